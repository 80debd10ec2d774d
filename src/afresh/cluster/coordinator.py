"""Watches the cluster: moves budget by price every second, and sees to it that every worker runs somewhere.

It keeps nothing: its truth is in PostgreSQL. It may be killed and started again at any moment, and two of them do no
harm: each second of work is one transaction.
"""

import logging
import threading
import time
from typing import Protocol

from afresh.cluster.register import Register
from afresh.errors import AfreshError
from afresh.types import Address

_log = logging.getLogger("afresh.cluster")

EVERY_SECONDS = 1.0


class Placer(Protocol):
    """Starts workers, and starts them again when they end."""

    def keep(self, parts: int, drained: frozenset[str], leased: frozenset[int]) -> None:
        """See to it that workers 0 … parts - 1 run, none on a node that is drained; the others end by themselves.

        Those that are `leased` run somewhere, perhaps begun by a coordinator that is no more.
        """

    def close(self) -> None:
        """End those that still run."""


class Coordinator:
    """The loop around `Register.spread` and a `Placer`."""

    def __init__(self, address: Address, placer: Placer | None) -> None:
        self.register = Register(address)
        self.placer = placer
        self._ended = threading.Event()

    def end(self) -> None:
        """Watch no more, from any thread."""
        self._ended.set()

    def run(self) -> None:
        """Watch until the cluster is stopped."""
        waits = False
        while not self._ended.is_set():
            began = time.monotonic()
            try:
                if not self.once():
                    return
                if waits:
                    waits = False
                    _log.warning("The coordinator goes on.")
            except AfreshError as error:
                if not waits:  # it is said once, and not at every try
                    _log.warning("The coordinator waits: %s", error.message)
                waits = True
            self._ended.wait(max(EVERY_SECONDS - (time.monotonic() - began), 0.05))

    def once(self) -> bool:
        """A second's work; False: the cluster is to stop, and has."""
        running, parts, _, settings = self.register.wanted()
        if running:
            self.register.spread()
        leased = frozenset(member.part for member in self.register.members() if member.alive)
        if self.placer is not None:
            self.placer.keep(parts if running else 0, frozenset(settings.get("drained", ())), leased)
        return running or bool(leased)

"""One part of the cluster: an engine and a daemon for the hosts that it owns, for as long as its lease runs."""

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

from afresh.cluster.gate import Gate, now
from afresh.cluster.register import LEASE_SECONDS, MARGIN_SECONDS, Register, Wanted
from afresh.daemon import Daemon
from afresh.errors import AfreshError, StoreError
from afresh.schedule.pace import MIN_BUDGET
from afresh.store.postgres import Part, Postgres
from afresh.types import Address

_log = logging.getLogger("afresh.cluster")

BEAT_SECONDS = 1.0
SETTLE_BEATS = 2  # for which slices must have stopped to arrive, before they are taken
RETRY_SECONDS = 0.5
TELL_SECONDS = 10.0  # between two complaints
SKEW_SECONDS = 1.0  # between two machines' clocks, above which it is said
GRACE_SECONDS = 3.0  # for fetches under way, where slices are handed over
STUCK = 71  # the exit code of a process whose event loop did not stop asking in time
FIRST_BUDGET = 0.1  # a second, at least: what the engine of a worker is made for that has none yet
UNKNOWN = -1.0  # a price before there is any

# What goes along with a host, or holds for all workers: named values that begin so are kept for the whole store.
SHARED = ("robots ", "noise ", "lists ", "websub ", "web sitemap ", "crawl", "paused", "pinned")

# A worker counts these from nothing: whoever asks adds up those of all, and those from before there were workers, once.
OWN = ("calibration",)


class Crawling(Protocol):
    """A daemon that is ready to run, and what must be closed after it."""

    daemon: Daemon

    async def close(self) -> None:
        """Let go of sources and threads."""


@dataclass(frozen=True, slots=True)
class Post:
    """What a worker needs to build its daemon."""

    store: Postgres
    gate: Gate
    slices: frozenset[int]
    budget: float
    ahead: float = 0.0  # seconds that the database's clock is ahead of ours


Build = Callable[[Post], Crawling]


class Worker:
    """Takes a lease, crawls while it runs, hands over what others are to have, and begins again.

    Invariants: no request is under way when the lease ends; slices are handed over when nothing is under way for them
    and all is durable; what is spent is what was granted and acknowledged.
    """

    def __init__(
        self, address: Address, part: int, build: Build, open_store: Callable[[Part], Postgres], *, node: str = ""
    ) -> None:
        self.part = part
        self.build, self.open_store = build, open_store
        self.node = node or socket.gethostname()
        self.register = Register(address)
        self._ended = threading.Event()
        self._told = -TELL_SECONDS
        self._crawls = 0
        self._known: tuple[float, int] = (time.monotonic(), 0)

    def end(self) -> None:
        """End in order, from any thread."""
        self._ended.set()

    def tell(self, message: str) -> None:
        """Say what is wrong, not again at every try."""
        if time.monotonic() - self._told > TELL_SECONDS:
            self._told = time.monotonic()
            _log.warning("%s", message)

    def run(self) -> None:
        """Work until the cluster is stopped, or has fewer workers than our number."""
        holder = f"process {os.getpid()} on {self.node}"
        while not self._ended.is_set():
            try:
                taken = self.register.take(self.part, holder)
                if taken is not None and not self._serve(*taken):
                    return
            except StoreError as error:
                self.tell(f"Worker {self.part} waits: {error.message}")
            time.sleep(RETRY_SECONDS)

    def _serve(self, token: int, until: float) -> bool:
        """Crawl under one lease; False: there is nothing more to do here."""
        gate = Gate(until - MARGIN_SECONDS)
        beats = _Beats(self, token, gate)
        beats.start()
        try:
            while True:
                if not beats.first.wait(LEASE_SECONDS) or beats.lost.is_set():
                    return True
                wanted = beats.wanted
                if self._ended.is_set() or wanted is None or not wanted.running or self.part >= wanted.parts:
                    self.register.hand_over(self.part, token)
                    self.register.give_up(self.part, token)
                    return False
                self.register.hand_over(self.part, token)
                slices = self.register.slices(self.part, token)
                beats.changed.clear()
                if not slices:
                    beats.changed.wait(BEAT_SECONDS)
                    continue
                # Ray would have it be uvloop's, whose timers the daemon cannot ask when they run out.
                with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                    runner.run(self._crawl(token, gate, slices, beats))
        finally:
            beats.stop()

    async def _crawl(self, token: int, gate: Gate, slices: frozenset[int], beats: "_Beats") -> None:
        part = Part(self.part, token, slices, SHARED, OWN)
        ahead = await asyncio.to_thread(self.register.ahead)
        if abs(ahead) > SKEW_SECONDS:
            self.tell(f"The clock of {self.node} is {-ahead:+.1f} s off; worker {self.part} goes by the database's.")
        with await asyncio.to_thread(self.open_store, part) as store:
            crawling = self.build(Post(store, gate, slices, max(beats.budget, FIRST_BUDGET), ahead))
            daemon = crawling.daemon
            daemon.listeners.append(self._hear)
            daemon.grace = min(daemon.grace, GRACE_SECONDS)
            try:
                if beats.crawl(asyncio.get_running_loop(), daemon):
                    await daemon.run()
            finally:
                beats.rest()
                gate_was_open = gate.is_open
                await crawling.close()
                if not gate_was_open:
                    _log.warning("Worker %d stopped asking: its lease could not be renewed.", self.part)

    def _hear(self, event: object) -> None:
        if type(event).__name__ == "Finished":
            self._crawls += 1

    def rate(self) -> float:
        """Crawls a second since this was last asked."""
        now, crawls = time.monotonic(), self._crawls
        before, self._known = self._known, (now, crawls)
        return (crawls - before[1]) / max(now - before[0], 1e-3)


def spendable(budget: float) -> float:
    """What of a budget can be spent: nothing of one that is hardly any.

    >>> spendable(2.5), spendable(1e-13)
    (2.5, 0.0)
    """
    return budget if budget >= MIN_BUDGET else 0.0


class _Beats(threading.Thread):
    """Renews the lease, says what is spent, and hears what may be; ends all asking when the lease is about to end.

    Two threads: one that talks to the database, which may never answer, and one that watches the clock.
    """

    def __init__(self, worker: Worker, token: int, gate: Gate) -> None:
        super().__init__(name="afresh-beats", daemon=True)
        self.worker, self.token, self.gate = worker, token, gate
        self.budget, self.spending = 0.0, 0.0
        self.wanted: Wanted | None = None
        self.first, self.lost, self.changed = threading.Event(), threading.Event(), threading.Event()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._daemon: Daemon | None = None
        self._arriving = (0, 0)  # slices that may be taken, and for how many beats it was so many
        self._watching = threading.Thread(target=self._watch, name="afresh-lease", daemon=True)

    def start(self) -> None:
        """Begin both."""
        super().start()
        self._watching.start()

    def stop(self) -> None:
        """Renew it no more."""
        self._over.set()
        self.first.set()

    def crawl(self, loop: asyncio.AbstractEventLoop, daemon: Daemon) -> bool:
        """A daemon runs on this loop from now on; False: it must not, for the lease was lost meanwhile."""
        with self._lock:
            if self.lost.is_set():
                return False
            self._loop, self._daemon = loop, daemon
        daemon.control.spend(spendable(self.spending))
        return True

    def rest(self) -> None:
        """It runs no more."""
        with self._lock:
            self._loop = self._daemon = None

    def run(self) -> None:
        register = self.worker.register
        while not self._over.is_set():
            began = time.monotonic()
            try:
                if (found := register.beat(self.worker.part, self.token, **self._said())) is None:
                    self._lose()
                    return
                budget, until, wanted = found
                with self._lock:
                    if self.lost.is_set():
                        return  # it comes too late: all asking has ended
                    self.gate.until = until - MARGIN_SECONDS
                self._hear(budget, wanted)
            except AfreshError as error:
                self.worker.tell(f"Worker {self.worker.part} could not renew its lease: {error.message}")
            if self.lost.is_set():
                return
            pause = BEAT_SECONDS - (time.monotonic() - began)
            self._over.wait(max(min(pause, self.gate.until - now()), 0.01))

    def _watch(self) -> None:
        """End all asking in time, also while a beat waits for a server that says nothing."""
        while not self._over.is_set():
            if (left := self.gate.until - now()) <= 0.0:
                self._lose()
                return
            self._over.wait(min(left, BEAT_SECONDS))  # which does not count a sleep of the machine

    def _said(self) -> dict[str, Any]:
        daemon, price = self._daemon, UNKNOWN
        said: dict[str, Any] = {"node": self.worker.node, "rate": round(self.worker.rate(), 3)}
        if daemon is not None:
            first, stated, allowed = daemon.engine.first, daemon.overview.stated, daemon.overview.allowance
            if not len(daemon.engine):
                price = 0.0
            elif first.price > 0:
                price = float(first.price)
            said["pages"] = daemon.pages
            if not len(daemon.engine):
                said["capacity"] = 0.0
            elif allowed is not None and allowed.rate < inf:
                said["capacity"] = allowed.rate
            if stated is not None:
                said |= {"fresh": stated.share, "weight": daemon.overview.weight, "by_requests": stated.by_requests}
        return {"spending": self.spending, "price": price, "said": said}

    def _hear(self, budget: float, wanted: Wanted) -> None:
        self.budget, self.wanted = budget, wanted
        self.first.set()
        arriving, beats = self._arriving
        beats = beats + 1 if wanted.to_take and wanted.to_take == arriving else 0
        self._arriving = wanted.to_take, beats
        leaves = not wanted.running or self.worker.part >= wanted.parts or self.worker._ended.is_set()
        changes = wanted.to_give > 0 or beats >= SETTLE_BEATS
        if leaves or changes:
            self.changed.set()
        with self._lock:
            loop, daemon = self._loop, self._daemon
            if loop is None or daemon is None:
                self.spending = budget  # nothing is spent: it begins with this
                return
            with suppress(RuntimeError):  # the loop has just ended
                loop.call_soon_threadsafe(self._spend, daemon, budget)
                if leaves or changes:
                    loop.call_soon_threadsafe(daemon.stop)

    def _spend(self, daemon: Daemon, budget: float) -> None:
        """On the event loop: from now on this is what is spent, and the next beat says so."""
        if daemon.engine.first.budget != spendable(budget):
            daemon.control.spend(spendable(budget))
        self.spending = budget

    def _lose(self) -> None:
        """Break off everything, and make sure that it is: a request after the end of a lease is the one great fault."""
        shut = threading.Event()
        with self._lock:
            self.lost.set()
            self.gate.until = 0.0
            loop, daemon = self._loop, self._daemon
        self.first.set()
        self.changed.set()
        if loop is None or daemon is None:
            return

        def end() -> None:
            self.gate.shut()
            daemon.grace = 0.0
            daemon.stop()
            shut.set()

        with suppress(RuntimeError):
            loop.call_soon_threadsafe(end)
            if not shut.wait(MARGIN_SECONDS / 2):
                os._exit(STUCK)

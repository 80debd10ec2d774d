"""What the operating system says of files in a tree: one more sender, noisy as all are, and graded like them.

Notices get lost (on network mounts all of them, in a large tree when a queue is full), and editors send several for one
change. Nothing relies on them. They need the package `watchfiles`; without it trees are looked at all the same.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec

SENDER = "watchfiles"
FIRST_BACK_OFF, LONGEST_BACK_OFF = 5.0, 600.0
GATHER_MS = 200  # for which notices are gathered

_log = logging.getLogger("afresh.files")


class Notices:
    """Listens to one tree until it is stopped; `hear` gets paths, and whether each has come or gone, in a thread."""

    def __init__(self, root: bytes, hear: Callable[[Mapping[bytes, bool]], None]) -> None:
        self.root = root
        self._hear = hear
        self._stop = threading.Event()
        self._complained = False
        self._thread = threading.Thread(target=self._run, name="afresh-notices-files", daemon=True)

    def start(self) -> None:
        """Begin to listen, if there is something to listen with."""
        if find_spec("watchfiles") is None:
            _log.info("Changes of files are not heard: the package watchfiles is missing. They are looked at in turn.")
        else:
            self._thread.start()

    def stop(self) -> None:
        """Listen no longer; the thread ends within a second."""
        self._stop.set()

    def _run(self) -> None:
        rest = FIRST_BACK_OFF
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self._listen()
            except Exception as error:  # no more watches, a root that is not there
                if not self._complained:
                    self._complained = True
                    _log.warning("Changes in %s are not heard: %s.", os.fsdecode(self.root), str(error)[:200])
            rest = FIRST_BACK_OFF if time.monotonic() - began > LONGEST_BACK_OFF else min(2 * rest, LONGEST_BACK_OFF)
            self._stop.wait(rest)

    def _listen(self) -> None:
        from watchfiles import Change, watch

        root = os.fsdecode(self.root)
        for changes in watch(
            root, watch_filter=None, debounce=GATHER_MS, step=50, stop_event=self._stop, raise_interrupt=False,
            recursive=True, ignore_permission_denied=True,
        ):  # fmt: skip
            heard: dict[bytes, bool] = {}
            for change, path in changes:
                name = os.fsencode(path)
                heard[name] = heard.get(name, False) or change is not Change.modified
            if heard and not self._stop.is_set():
                self._hear(heard)

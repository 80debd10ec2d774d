"""What a process shares with the others that use one store: it tells of requests, hands results over, and takes turns.

All of it happens in one thread of its own, so that no request waits for the disk. A kill loses at most the requests of
the last second, and results that nobody has been told of.
"""

import fcntl
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from afresh.errors import AfreshError, InboxFull, StoreLocked
from afresh.store import Sqlite
from afresh.store.base import Entry
from afresh.store.handed import of_cost, of_result
from afresh.store.messages import drain, of_pages, of_requests, packed
from afresh.store.socket_file import wake
from afresh.types import Fetched, Page, Request, Spent

TELL_EVERY = 1.0  # seconds
MAX_COUNTED = 10_000  # keys, after which requests are told of at once
VISIBLE_SECONDS = 2.0  # that a runner may take to keep what was handed over
LOOK_EVERY = 0.01
TURNS = 1 << 30  # places in the file of turns

_log = logging.getLogger("afresh.sql")


class Turns:
    """Who runs a key now, among processes: the others wait for what comes of it.

    The file beside the store has one byte for each turn; it stays empty.
    """

    def __init__(self, store: Path) -> None:
        self._file = os.open(f"{store}.turns", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self, key: str) -> bool:
        """Whether it is our turn now; of one process at a time."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._place(key))
        except OSError:
            return False
        return True

    def end(self, key: str) -> None:
        """Let the next one."""
        with suppress(OSError):
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, self._place(key))

    @staticmethod
    def _place(key: str) -> int:
        import xxhash

        return int(xxhash.xxh3_64_intdigest(key.encode()) % TURNS)

    def close(self) -> None:
        """End all turns."""
        os.close(self._file)


class Shared:
    """The thread that tells the store what happens here."""

    def __init__(self, store: Sqlite, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self.turns = Turns(store.path)
        self._counts: dict[str, float] = {}
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._complained = False
        self._closed = False
        self._pending: dict[str, tuple[float, float]] = {}  # keys handed over: as of when, and until when it is waited
        self._in_vain: dict[str, tuple[Page, Fetched]] = {}  # what failed runs have cost, by lane

    def requested(self, key: str) -> None:
        """Somebody has asked for a key."""
        with self._lock:
            self._counts[key] = self._counts.get(key, 0.0) + 1.0
            self._begin()
            if len(self._counts) > MAX_COUNTED:
                self._work.put(self._tell)

    def hand_over(self, page: Page, fetched: Fetched) -> None:
        """Let a result be kept; its key's turn ends when others can see it."""
        with self._lock:
            self._begin()
        self._work.put(lambda: self._hand_over(page, fetched))

    def spent_in_vain(self, page: Page, fetched: Fetched) -> None:
        """A run has brought nothing: what it has cost is told with the requests."""
        with self._lock:
            if (before := self._in_vain.get(page.host)) is not None:
                one, other = fetched.cost, before[1].cost
                seconds, calls = one.seconds + other.seconds, one.calls + other.calls
                fetched = replace(fetched, spent=Spent(seconds, one.bytes + other.bytes, calls))
            self._in_vain[page.host] = page, fetched
            self._begin()

    def _begin(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="afresh-cache", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        due = time.monotonic() + TELL_EVERY
        while True:
            pause = max(due - time.monotonic(), 0.0)
            with suppress(queue.Empty):
                work = self._work.get(timeout=min(pause, LOOK_EVERY * 3) if self._pending else pause)
                if work is None:
                    self._guarded(self._tell)
                    return
                self._guarded(work)
            if time.monotonic() >= due:  # however much else there is to do
                self._guarded(self._tell)
                due = time.monotonic() + TELL_EVERY
            if self._pending:
                self._guarded(self._end_turns)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
            self._complained = False
        except (AfreshError, OSError) as error:
            if not self._complained:
                self._complained = True
                _log.warning("What is asked for here cannot be told to the store: %s", error)

    def _tell(self) -> None:
        """Requests since the last time, into the inbox."""
        with self._lock:
            counts, self._counts = self._counts, {}
            in_vain, self._in_vain = self._in_vain, {}
        now = self._clock()
        costs = [each for page, fetched in in_vain.values() for each in of_cost(page, fetched, now)]
        try:
            if costs:
                self._store.post(costs)
        except AfreshError:
            for page, fetched in in_vain.values():
                self.spent_in_vain(page, fetched)
            with self._lock:
                for key, count in counts.items():
                    self._counts[key] = self._counts.get(key, 0.0) + count
            raise
        if not counts:
            return
        try:
            self._store.post(of_requests((Request(key, now, count) for key, count in counts.items()), now))
        except InboxFull:
            raise
        except AfreshError:  # the next time, then
            with self._lock:
                for key, count in counts.items():
                    self._counts[key] = self._counts.get(key, 0.0) + count
            raise

    def _hand_over(self, page: Page, fetched: Fetched) -> None:
        key, waits = page.url, False
        try:
            now = self._clock()
            entry = of_result(page, fetched, now)
            entries: list[Entry] = [entry] if entry is not None else of_cost(page, fetched, now)
            if entry is None:
                entries += [*of_pages([page], now), *packed("refresh", [key], now)]
            self._store.post(entries)
            if not wake(self._store.path):
                self._keep_ourselves()
            elif entry is not None:
                self._pending[key] = fetched.started, time.monotonic() + VISIBLE_SECONDS
                waits = True
        finally:
            if not waits:
                self._pending.pop(key, None)
                self.turns.end(key)

    def _keep_ourselves(self) -> None:
        """Nobody runs on the store: what waits in its inbox is carried out here."""
        try:
            with Sqlite(self._store.path, create=False, max_inbox=self._store.max_inbox) as kept:
                kept.claim(brief=True)
                drain(kept)
        except StoreLocked:
            pass  # somebody does run on it by now

    def _end_turns(self) -> None:
        """End the turns of keys whose results others can see by now. None of them holds up another."""
        for key, (started, deadline) in list(self._pending.items()):
            state = self._store.state(key) if time.monotonic() < deadline else None
            seen = state is not None and state.checked is not None and state.checked >= started
            if seen or time.monotonic() >= deadline:
                del self._pending[key]
                self.turns.end(key)

    def close(self) -> None:
        """Tell the rest, and end. A second call does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._thread is not None:
            self._work.put(None)
            self._thread.join(10.0)
        self.turns.close()

"""Threads in which system calls wait, for one mount: one that hangs holds a bounded number of them, and nobody else."""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from afresh.types import Blame

MAX_THREADS = 4  # of a mount: those that hang included
IDLE_SECONDS = 60.0

Result = TypeVar("Result")
_Job = tuple["Future[object]", Callable[[], object]]


class MountHangs(Exception):
    """Every thread of a mount waits for it."""

    blame = Blame.LANE


class Threads:
    """Calls functions in threads of its own. A thread whose call hangs is left behind, and counts until it comes back.

    >>> threads = Threads("example", 30.0)
    >>> threads.submit(lambda: 6 * 7).result(), threads.close()
    (42, None)
    """

    def __init__(self, name: str, patience: float) -> None:
        """A call that takes longer than `patience` hangs."""
        self._name, self._patience = name, patience
        self._since: dict[int, float] = {}  # by thread: when its call began
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = self._idle = 0
        self._closed = False

    def submit(self, call: Callable[[], Result]) -> "Future[Result]":
        """Call it as soon as a thread is free; MountHangs if none will be."""
        future: Future[Result] = Future()
        with self._lock:
            horizon = time.monotonic() - self._patience
            hang = sum(since <= horizon for since in self._since.values())
            if hang >= MAX_THREADS or self._closed:
                raise MountHangs(self._name)
            if self._idle <= self._jobs.qsize() and self._threads < MAX_THREADS:
                self._threads += 1
                threading.Thread(target=self._work, name=f"afresh-files-{self._name}"[:60], daemon=True).start()
            self._jobs.put((future, call))  # type: ignore[arg-type]
        return future

    def _work(self) -> None:
        while (job := self._next()) is not None:
            future, call = job
            if future.set_running_or_notify_cancel():
                with self._lock:
                    self._since[threading.get_ident()] = time.monotonic()
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
                with self._lock:
                    del self._since[threading.get_ident()]

    def _next(self) -> _Job | None:
        """The next call; None: the thread ends, and does not count from here on."""
        with self._lock:
            self._idle += 1
        while True:
            job = None
            with suppress(queue.Empty):
                job = self._jobs.get(timeout=IDLE_SECONDS)
            with self._lock:
                if job is None and self._jobs.qsize() and not self._closed:
                    continue  # it came at this very moment
                self._idle -= 1
                self._threads -= job is None
                return job

    def close(self) -> None:
        """Let the threads end once they have nothing to do."""
        with self._lock:
            self._closed = True
            for _ in range(self._threads):  # those that hang read it when they come back
                self._jobs.put(None)

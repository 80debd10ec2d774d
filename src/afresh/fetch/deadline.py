"""A time limit for many things under way: what takes longer is cancelled, and raises TimeoutError.

All have the same time, so the first to begin is due first, and one timer serves all. asyncio's own limit sets and
cancels a timer for each, which takes a tenth of the time of a fetch.
"""

import asyncio
from types import TracebackType


class Deadlines:
    """So many seconds for everything `with` it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._running: dict[_Limit, None] = {}  # in the order in which they are due
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def limit(self) -> "_Limit":
        """For what the running task does from now on."""
        return _Limit(self)

    def begin(self, each: "_Limit", due: float) -> None:
        """One more."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the timer of another one would never come
            self._loop, self._timer = loop, None
            self._running.clear()
        self._running[each] = None
        if self._timer is None:
            self._timer = loop.call_at(due, self._look)

    def end(self, each: "_Limit") -> None:
        """One less."""
        self._running.pop(each, None)

    def close(self) -> None:
        """No more will begin."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        """Cancel what is due, and look again when the next will be."""
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._running:
            first = next(iter(self._running))
            if first.due > loop.time():
                self._timer = loop.call_at(first.due, self._look)
                return
            del self._running[first]
            first.run_out()


class _Limit:
    """One thing under way."""

    __slots__ = ("_asked_before", "_deadlines", "_over", "_task", "due")

    def __init__(self, deadlines: Deadlines) -> None:
        self._deadlines = deadlines
        self._over = False

    def run_out(self) -> None:
        """Its time is over."""
        self._over = True
        self._task.cancel()

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a limit is for a task")
        self._task, self._asked_before = task, task.cancelling()
        self.due = asyncio.get_running_loop().time() + self._deadlines.seconds
        self._deadlines.begin(self, self.due)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.end(self)
        # Somebody else may have cancelled the task too, which must not be mistaken for our own cancelling.
        if self._over and self._task.uncancel() <= self._asked_before and kind is asyncio.CancelledError:
            raise TimeoutError from error

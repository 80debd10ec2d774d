"""A thread of its own for a function that may be slow, or never come back: nobody waits for that at the end."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue

MAX_WAITING = 16  # calls, each of which may hold bodies
PATIENCE_SECONDS = 0.1  # for which a call waits for its turn

Answer = Future[float | None]


class Occupied(Exception):
    """The thread is at other calls: this one was not begun, and never will be."""


class Apart:
    """Carries functions out one after the other; the interpreter's own pools would wait for one that hangs.

    Whoever asks waits for a turn, as long as his patience lasts. What was given up before its turn is never begun.
    """

    def __init__(self, name: str) -> None:
        self._asked: SimpleQueue[tuple[Callable[[], float | None], Answer] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._since: float | None = None  # when what is under way began

    @property
    def busy(self) -> float:
        """For how many seconds what is under way has taken so far."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    async def ask(
        self, function: Callable[[], float | None], seconds: float, patience: float = PATIENCE_SECONDS
    ) -> float | None:
        """What the function returns, or raises.

        TimeoutError if the call itself takes longer; Occupied if it had no turn.
        """
        if not self._thread.is_alive():
            self._thread.start()
        if self.busy > patience or self._asked.qsize() >= MAX_WAITING:
            raise Occupied("the function is at other crawls")
        answer: Answer = Future()
        self._asked.put((function, answer))
        told = asyncio.wrap_future(answer)
        try:
            done, _ = await asyncio.wait({told}, timeout=patience)
            if not done and answer.cancel():
                raise Occupied("the function is at other crawls")
            if not done:
                await asyncio.wait({told}, timeout=max(seconds - self.busy, 0.0))
            if not told.done():
                raise TimeoutError
            return told.result()
        finally:
            told.cancel()  # of a call under way this says only that nobody waits for it any more

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            function, answer = asked
            if answer.set_running_or_notify_cancel():
                self._since = time.monotonic()
                try:
                    found = function()
                except BaseException as error:  # whatever it wants to end, it is not this program
                    ends = not isinstance(error, Exception)
                    wanted = RuntimeError(f"it wanted to end the program ({error!r})") if ends else error
                    self._since = None
                    answer.set_exception(wanted)
                    del wanted
                else:
                    self._since = None
                    answer.set_result(found)
            del asked, function, answer  # they hold bodies

    def close(self) -> None:
        """Let the thread end, once it comes back."""
        self._asked.put(None)

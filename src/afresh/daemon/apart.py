"""A thread of its own for a function that may be slow, or never come back: nobody waits for that at the end."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

Asked = tuple[Callable[[], float | None], asyncio.AbstractEventLoop, "asyncio.Future[float | None]"]


class Apart:
    """Carries functions out one after the other; the interpreter's own pools would wait for one that hangs."""

    def __init__(self, name: str) -> None:
        self._asked: SimpleQueue[Asked | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._since: float | None = None  # when what is under way began

    @property
    def busy(self) -> float:
        """For how many seconds what is under way has taken so far."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    async def ask(self, function: Callable[[], float | None], seconds: float) -> float | None:
        """What the function returns, or raises; TimeoutError if that takes longer."""
        if not self._thread.is_alive():
            self._thread.start()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[float | None] = loop.create_future()
        self._asked.put((function, loop, answer))
        async with asyncio.timeout(seconds):
            return await answer

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            function, loop, answer = asked
            if answer.cancelled():  # nobody waits any more
                continue
            self._since = time.monotonic()
            try:
                tell: tuple[Any, ...] = answer.set_result, function()
            except BaseException as error:  # whatever it wants to end, it is not this program
                ends = not isinstance(error, Exception)
                tell = (
                    answer.set_exception,
                    RuntimeError(f"it wanted to end the program ({error!r})") if ends else error,
                )
            self._since = None
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(_unless_given_up, answer, *tell)
            del asked, function, answer, tell  # they hold bodies

    def close(self) -> None:
        """Let the thread end, once it comes back."""
        self._asked.put(None)


def _unless_given_up(answer: "asyncio.Future[float | None]", tell: Callable[[Any], None], what: Any) -> None:
    if not answer.done():
        tell(what)

"""The time that a fetch takes without what we ourselves keep it waiting for.

A host rests for ten times as long as its answer took. While our own event loop is held up, answers lie unread, and that
is no fault of their hosts. So a clock stands still for as long as a timer that is due is not heard.
"""

import asyncio

EVERY = 0.01  # seconds from one look at the clock to the next


class Stalls:
    """A clock that counts seconds in which the event loop could hear the network; it runs while anybody needs it."""

    def __init__(self) -> None:
        self._lost = 0.0  # seconds by which the timer was late, in all
        self._users = 0
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> None:
        """One more needs it; `end` must follow."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # the timer of another one would never come
            self._loop, self._timer, self._users = loop, None, 0
        self._users += 1
        if self._timer is None:
            self._timer = loop.call_later(EVERY, self._tick)

    def end(self) -> None:
        """One less."""
        self._users -= 1

    def now(self) -> float:
        """Seconds by this clock."""
        now = asyncio.get_running_loop().time()
        # Those who hear the network have their turn before the timer has: how late it is by now counts, too.
        return now - self._lost - (max(now - self._timer.when(), 0.0) if self._timer is not None else 0.0)

    def close(self) -> None:
        """Nobody needs it any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        if self._timer is None:
            return
        loop = asyncio.get_running_loop()
        self._lost += max(loop.time() - self._timer.when(), 0.0)
        self._timer = loop.call_later(EVERY, self._tick) if self._users > 0 else None

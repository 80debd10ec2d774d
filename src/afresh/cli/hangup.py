"""SIGHUP: the one place that knows what to do again when it comes."""

import asyncio
import signal
from collections.abc import Callable


class Hangup:
    """What to do at SIGHUP: open the log again, read the settings again. Each interested part adds itself.

    Actions run on the event loop in the order in which they were added; a fault in one is told and stops no other.
    """

    def __init__(self) -> None:
        self._actions: list[Callable[[], object]] = []

    def add(self, action: Callable[[], object]) -> None:
        """Call this at every SIGHUP from now on."""
        self._actions.append(action)

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hear the signal; without this it would end the process."""
        loop.add_signal_handler(signal.SIGHUP, self.act, loop)

    def act(self, loop: asyncio.AbstractEventLoop) -> None:
        """Call everything that was added."""
        for action in self._actions:
            try:
                action()
            except Exception as error:
                loop.call_exception_handler({"message": "what SIGHUP asks for failed", "exception": error})

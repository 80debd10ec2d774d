"""The wall clock, read once."""

import time


class SteadyClock:
    """Wall time that never jumps: read once, then carried on by the monotonic clock.

    A step of the system's clock, by an hour say, must neither starve the crawler nor make it burst. `ahead`: by so many
    seconds the clock that counts is ahead of the system's.
    """

    def __init__(self, ahead: float = 0.0) -> None:
        self._offset = time.time() + ahead - time.monotonic()

    def __call__(self) -> float:
        """Seconds since 1970."""
        return time.monotonic() + self._offset

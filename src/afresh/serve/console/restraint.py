"""How often the runner is asked for those who look: it answers on the loop that crawls, so that is bounded."""

import math

MAX_WAIT_SECONDS = 3.0  # for a turn; longer than that nobody is kept waiting


class Restraint:
    """Turns at a constant rate, after so many at once; all who ask share them.

    >>> turns = Restraint(rate=10.0, burst=2.0)
    >>> [round(turns.wait(1.0, now=0.0), 2) for _ in range(4)]
    [0.0, 0.0, 0.1, 0.2]
    >>> turns.wait(1.0, now=100.0)
    0.0
    """

    def __init__(self, *, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._left, self._time = burst, -math.inf

    def wait(self, cost: float, now: float) -> float:
        """Take a turn; in how many seconds it comes. More than `MAX_WAIT_SECONDS`: none was taken."""
        left = min(self._left + (now - self._time) * self.rate, self.burst) - cost
        seconds = max(0.0, -left / self.rate)
        if seconds <= MAX_WAIT_SECONDS:
            self._left, self._time = left, now
        return seconds

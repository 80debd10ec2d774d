"""What is left out while our own processor, rather than the budget or the hosts, is what is scarce.

The most valuable page that may be asked for at a moment may still gain little: better ones rest. That is right as long
as it costs the others nothing. Where the event loop is late it does: whatever is done for a page that gains next to
nothing makes those wait that gain ten times as much. So such pages are put off for a moment, all but a few.
"""

LATE_SECONDS = 0.005  # from this average lateness on, the event loop counts as busy
LITTLE = 0.5  # of what a refresh gains on average
LET_THROUGH = 8  # every n-th goes nevertheless, so that nothing is put off for ever
REST_SECONDS = 1.0  # that the host of a page rests which was put off
FADING = 0.05  # the weight of what is newest in an average


class Shedding:
    """Knows how late the event loop is, and what refreshes gain."""

    def __init__(self) -> None:
        self.lateness = 0.0  # seconds, on average
        self.put_off = 0  # pages so far
        self._gain = 0.0  # on average, of refreshes that were ordered or put off

    def late(self, seconds: float) -> None:
        """A timer ran out this long ago, and is heard only now."""
        self.lateness += FADING * (seconds - self.lateness)

    def puts_off(self, gain: float) -> bool:
        """Whether to leave a refresh that gains so much for later.

        >>> shedding = Shedding()
        >>> [shedding.puts_off(gain) for gain in (1.0, 0.01)]
        [False, False]
        >>> shedding.late(1.0)
        >>> [shedding.puts_off(gain) for gain in (1.0, 0.001)]
        [False, True]
        """
        self._gain += FADING * (gain - self._gain)
        if self.lateness < LATE_SECONDS or gain >= LITTLE * self._gain:
            return False
        self.put_off += 1
        return self.put_off % LET_THROUGH > 0

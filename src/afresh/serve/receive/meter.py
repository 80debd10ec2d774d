"""How much each sender may send: so much at once, and then at a constant rate."""

from collections import OrderedDict
from math import ceil

MAX_SENDERS = 10_000  # that are counted apart; the longest unused begin anew


class Meter:
    """A bucket for each sender, which fills at `rate` a second and holds `burst`.

    >>> meter = Meter(rate=1.0, burst=10.0)
    >>> meter.take("a", 10.0, now=0.0), meter.take("a", 2.0, now=1.0), meter.take("a", 2.0, now=2.0)
    (0, 1, 0)
    """

    def __init__(self, *, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, sender: str, amount: float, now: float) -> int:
        """Take as much as somebody sends; 0, or whole seconds until there is room and nothing was taken.

        More than the bucket holds is let through once it is full, and keeps it empty for as long as that takes.
        """
        left, before = self._left.pop(sender, (self.burst, now))
        left = min(left + max(now - before, 0.0) * self.rate, self.burst)
        needed = min(amount, self.burst)
        if left >= needed:
            self._left[sender] = (left - amount, now)
            wait = 0
        else:
            self._left[sender] = (left, now)
            wait = ceil((needed - left) / self.rate) if self.rate > 0 else 3600
        if len(self._left) > MAX_SENDERS:
            self._left.popitem(last=False)
        return wait

"""What a run for who asks has to gain, where applications pay out of the same purse as refreshes ahead.

A run for who asks is never in vain for want of a reader, as a refresh ahead may be. So runs have most of the budget:
the price moves until what applications really spend comes to that share. Refreshes have what is left.
"""

import math

SHARE = 0.85  # of a budget, for runs if there are enough of them
SMOOTH_SECONDS = 10.0  # over which spending is averaged
MOVE_SECONDS = 10.0  # in which a price that buys nothing falls to 1/e
FASTEST_RISE = 3.0  # times as fast
LEAST, MOST = 1e-3, 1e3  # of the price of refreshes
LONGEST_STEP = 5.0  # seconds; what is longer was a pause of ours


def run_price_name(purse: str) -> str:
    """Under this name the store keeps it."""
    return f"run price {purse}"


class RunPrice:
    """The price of one purse. It is asked every second or so.

    >>> price = RunPrice()
    >>> [round(price.at(float(t), spent=0.0, budget=0.2, refreshes=50.0), 1) for t in (0, 5, 10)]
    [50.0, 30.3, 18.4]
    >>> price.at(12.0, spent=10.0, budget=0.2, refreshes=50.0) > 30.0
    True
    """

    def __init__(self) -> None:
        self._price = self._rate = self._spent = 0.0
        self._asked: float | None = None

    def at(self, now: float, spent: float, budget: float, refreshes: float) -> float:
        """The price now, if applications have spent so much since the start; refreshes have theirs."""
        if self._asked is None:
            self._asked, self._spent, self._price, self._rate = now, spent, refreshes, 0.0
        passed = min(now - self._asked, LONGEST_STEP)
        if passed <= 0.0:
            return self._price
        rate, weight = (spent - self._spent) / (now - self._asked), -math.expm1(-passed / SMOOTH_SECONDS)
        self._rate += weight * (rate - self._rate)
        self._asked, self._spent = now, spent
        if budget > 0.0:
            over = min(self._rate / (SHARE * budget) - 1.0, FASTEST_RISE)
            self._price *= math.exp(over * passed / MOVE_SECONDS)
        self._price = min(max(self._price, LEAST * refreshes), MOST * refreshes)
        return self._price

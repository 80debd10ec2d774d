"""What a run of a query for who asks has to gain, where applications pay out of the same purse as refreshes ahead.

A run for who asks is never in vain for want of a reader, as a refresh ahead may be. So runs have most of the budget:
the price moves until what applications really spend comes to that share. Refreshes have what is left.
"""

import math

SHARE = 0.85  # of a budget, for runs if there are enough of them
SMOOTH_SECONDS = 10.0  # over which spending is averaged
MOVE_SECONDS = 10.0  # in which a price that buys nothing falls to 1/e
FASTEST_RISE = 3.0  # times as fast
# In right answers for what a refresh typically costs. The least keeps a cache a cache, however large the budget is:
# what is almost surely right is not run again.
LEAST, FIRST, MOST = 0.02, 1.0, 1e4
LONGEST_STEP = 5.0  # seconds; what is longer was a pause of ours


def run_price_name(purse: str) -> str:
    """Under this name the store keeps it."""
    return f"run price {purse}"


class RunPrice:
    """The price of one purse, in right answers for one of its budget's unit. It is asked for every second or so.

    It knows nothing of the price of refreshes, which there is none of while applications leave nothing for them.

    >>> price = RunPrice(typical=0.02)
    >>> [round(price.at(float(t), spent=0.0, budget=0.2), 1) for t in (0, 5, 10)]
    [50.0, 30.3, 18.4]
    >>> price.at(12.0, spent=10.0, budget=0.2) > 30.0
    True
    """

    def __init__(self, typical: float) -> None:
        self._least, self._price, self._most = (each / typical for each in (LEAST, FIRST, MOST))
        self._rate = self._spent = 0.0
        self._asked: float | None = None

    def resume(self, price: float) -> None:
        """Go on where it was before a restart."""
        if self._least <= price <= self._most:
            self._price = price

    def at(self, now: float, spent: float, budget: float) -> float:
        """The price now, if applications have spent so much since the start."""
        before, self._asked = self._asked, now if self._asked is None else max(now, self._asked)
        if before is None or now <= before or budget <= 0.0:
            self._spent = spent
            return self._price
        passed = min(now - before, LONGEST_STEP)
        rate, weight = (spent - self._spent) / (now - before), -math.expm1(-passed / SMOOTH_SECONDS)
        self._rate += weight * (rate - self._rate)
        self._spent = spent
        over = min(self._rate / (SHARE * budget) - 1.0, FASTEST_RISE)
        self._price = min(max(self._price * math.exp(over * passed / MOVE_SECONDS), self._least), self._most)
        return self._price

"""What refreshes cost, in the unit of a budget: learned for each page, apart for those that find the same and the rest.

The schedule reckons in crawls of a typical cost. So a budget of seconds of a database, or of bytes, is spent on what
gains most for its cost; and what a crawl has cost beside what was expected is made up for by those after it.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from afresh.checks import number
from afresh.engine.kind_costs import KindCosts
from afresh.types import Spent

# What a refresh is taken to cost while nobody knows, and the unit that the schedule reckons in.
TYPICAL = {"calls": 1.0, "seconds": 0.02, "bytes": 20_000.0, "money": 0.001}
CHEAPEST = 0.05  # of the typical cost: asking costs something, whatever comes of it
NEWEST = 0.25  # what the last refresh counts for in the average of its page
OF_ALL = 0.02  # and in that of all pages
SPENT_SECONDS, SPENT_STEP = 60.0, 0.1  # over which it is said what was spent, and what is spent at one moment

Floats = NDArray[np.float64]


class Costs:
    """Knows what a refresh of each page costs.

    `penalty`: what a refresh that finds nothing new counts for besides, in the same unit.

    >>> costs = Costs("seconds")
    >>> costs.learn(0, Spent(seconds=0.1), new=True), costs.learn(0, Spent(seconds=0.002), new=False)
    (0.1, 0.002)
    >>> costs.of(0), 0.002 < costs.expected(0) < 0.1
    ((0.002, 0.1), True)
    """

    def __init__(self, unit: str = "calls", *, penalty: float = 0.0) -> None:
        self.unit = unit
        self.typical = TYPICAL[unit]
        self.penalty = number("penalty", penalty)
        self.kinds: KindCosts | None = None  # what those of each kind cost, if kinds are told
        self._pages = np.full((0, 3), math.nan)  # cost of finding the same, of finding something new; share of the new
        self._all = [math.nan, math.nan, 0.5]

    def spent(self, spent: Spent) -> float:
        """What something has cost, in our unit."""
        return max(float(getattr(spent, self.unit)), CHEAPEST * self.typical)

    def enter(self, slots: NDArray[np.int64], same: Sequence[float | None], new: Sequence[float | None]) -> None:
        """Pages come in, with what was known of their costs before a restart."""
        self._reach(int(slots.max(initial=-1)))
        self._pages[slots] = math.nan
        for column, given in enumerate((same, new)):
            if len(given):
                known = np.array(given, np.float64)
                self._pages[slots, column] = known
                if math.isnan(self._all[column]) and (known >= 0).any():
                    self._all[column] = float(np.nanmean(known))

    def learn(self, slot: int, spent: Spent, *, new: bool) -> float:
        """A refresh of a page has cost this, and found something new or not; in our unit."""
        self._reach(slot)
        cost, page = self.spent(spent), self._pages[slot]
        for averages, weight in ((page, NEWEST), (self._all, OF_ALL)):
            before = float(averages[int(new)])
            averages[int(new)] = cost if math.isnan(before) else before + weight * (cost - before)
            share = self._all[2] if math.isnan(averages[2]) else float(averages[2])
            averages[2] = share + weight * (new - share)
        return cost

    def of(self, slot: int) -> tuple[float | None, float | None]:
        """(cost of finding the same, of finding something new) of a page; None: not known."""
        self._reach(slot)
        same, new, _ = self._pages[slot].tolist()
        return None if math.isnan(same) else same, None if math.isnan(new) else new

    def expected(self, slot: int, kinds: int = 0) -> float:
        """What the next refresh of a page of these kinds is expected to cost, the penalty included."""
        self._reach(slot)
        same, new, share = self._pages[slot].tolist()
        typical = next((each for each in (self._all[1], self._all[0]) if not math.isnan(each)), self.typical)
        if math.isnan(new):
            new = self._by_kinds(kinds, same if not math.isnan(same) else typical, new=True)
        if math.isnan(same):
            same = min(self._by_kinds(kinds, new, new=False), new)
        share = self._all[2] if math.isnan(share) else share
        return float(share * new + (1.0 - share) * (same + self.penalty))

    def _by_kinds(self, kinds: int, otherwise: float, *, new: bool) -> float:
        if self.kinds is None or not kinds:
            return otherwise
        return self.kinds.expected(kinds, self.unit, otherwise, new=new)

    def reckoned(self, slot: int, kinds: int = 0) -> float:
        """The same in the schedule's unit: refreshes of the typical cost."""
        return max(self.expected(slot, kinds) / self.typical, CHEAPEST)

    def _reach(self, slot: int) -> None:
        if slot >= len(self._pages):
            after = np.full((max(slot + 1, 64, len(self._pages) * 5 // 4), 3), math.nan)
            after[: len(self._pages)] = self._pages
            self._pages = after


class Spending:
    """What was spent of a budget lately: a rate, over a minute or so.

    >>> spending = Spending()
    >>> for second in range(600):
    ...     spending.note(0.2, float(second))
    >>> round(spending.rate(600.0), 2)
    0.2
    """

    def __init__(self) -> None:
        self._since: float | None = None
        self._last = self._sum = 0.0

    def note(self, cost: float, now: float) -> None:
        """So much was spent now."""
        if self._since is None:
            self._since = self._last = now
        if now < self._last + SPENT_STEP:
            self._sum += cost
            return
        self._sum = self._sum * math.exp((self._last - now) / SPENT_SECONDS) + cost
        self._last = now

    def rate(self, now: float) -> float:
        """What was spent a second."""
        if self._since is None:
            return 0.0
        left = self._sum * math.exp(min(self._last - now, 0.0) / SPENT_SECONDS)
        watched = max(now - self._since, 1.0)
        return left / (SPENT_SECONDS * -math.expm1(-watched / SPENT_SECONDS))

"""What refreshes of each kind of pages cost, apart for those that find the same and the rest.

A page has no costs of its own before its first crawl, and no cost of finding the same before it was crawled twice. So
what pages of its kinds cost stands in: as far as it is known by crawls, or in full where an operator has named it.
"""

import math
from collections.abc import Sequence

import numpy as np

from afresh.estimate.kinds import MAX_KINDS, unpack
from afresh.types import Spent

UNITS = ("calls", "seconds", "bytes", "money")
MEMORY = 0.999  # what a crawl leaves of what crawls of its kind have cost before
FEW_CRAWLS = 4.0  # of a kind: then half of what is expected of its new pages is what those have cost
GIVEN_CRAWLS = 10.0  # for which an operator's word on a cost counts
MAX_COST = 1e15  # of any cost that is learned


class KindCosts:
    """Averages that fade, of each kind and, as kind 0, of all pages.

    >>> costs, lamp = KindCosts(), 4 | 15 << 8  # kind 4, as far as that can be said
    >>> for _ in range(100):
    ...     costs.learn(lamp, Spent(seconds=0.2, bytes=90_000), new=True)
    >>> round(costs.expected(lamp, "bytes", 20_000.0, new=True), -3), costs.expected(0, "bytes", 20_000.0, new=True)
    (83000.0, 20000.0)
    """

    def __init__(self) -> None:
        # By kind, and by whether something new was found: crawls, and what they have cost in each unit.
        self._spent = np.zeros((MAX_KINDS + 1, 2, 1 + len(UNITS)))
        self._given = np.full((MAX_KINDS + 1, len(UNITS)), math.nan)

    def give(self, kind: int, cost: float, unit: str) -> None:
        """An operator says what a refresh of a page of this kind costs."""
        self._given[kind, UNITS.index(unit)] = cost

    def learn(self, kinds: int, spent: Spent, *, new: bool) -> None:
        """A refresh of a page of these kinds has cost this, and found something new or not."""
        each = np.array([1.0, *(min(max(float(getattr(spent, unit)), 0.0), MAX_COST) for unit in UNITS)])
        for number, share in ((0, 1.0), *unpack(kinds)):
            own = self._spent[number, int(new)]
            own *= MEMORY**share
            own += share * each

    def expected(self, kinds: int, unit: str, otherwise: float, *, new: bool) -> float:
        """What a refresh of a page of these kinds costs if it finds something new, or if not; `otherwise` is what would
        be expected of a page of no known kind."""
        place, found, known = UNITS.index(unit), 0.0, 0.0
        for number, share in unpack(kinds):
            crawls, cost = float(self._spent[number, int(new), 0]), float(self._spent[number, int(new), 1 + place])
            given = float(self._given[number, place])
            if not math.isnan(given):
                weight, mean = share, (GIVEN_CRAWLS * given + cost) / (GIVEN_CRAWLS + crawls)
            elif crawls:
                weight, mean = share * crawls / (crawls + FEW_CRAWLS), cost / crawls
            else:
                continue
            found, known = found + weight * mean, known + weight
        return found + max(1.0 - known, 0.0) * otherwise

    def mean(self, kind: int, unit: str) -> float | None:
        """What a refresh of a page of this kind has cost, or as an operator says; None: nobody knows."""
        place = UNITS.index(unit)
        crawls, cost = (float(each) for each in self._spent[kind][:, [0, 1 + place]].sum(axis=0))
        given = float(self._given[kind, place])
        if not math.isnan(given):
            return (GIVEN_CRAWLS * given + cost) / (GIVEN_CRAWLS + crawls)
        return cost / crawls if crawls else None

    def learned(self, kind: int) -> list[list[float]]:
        """What crawls of a kind have cost, for `recall`."""
        return [[float(f"{each:.6g}") for each in row] for row in self._spent[kind].tolist()]

    def recall(self, kind: int, learned: Sequence[Sequence[float]]) -> None:
        """What crawls of a kind had cost before a restart; what cannot have been kept so is passed over."""
        found = np.array(learned, np.float64)
        if found.shape == self._spent[kind].shape and np.isfinite(found).all() and found.min() >= 0.0:
            self._spent[kind] = np.minimum(found, MAX_COST)

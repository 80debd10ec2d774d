"""How often the pages of a group are asked for: the assumed request rate of a page without requests yet.

A group (a path pattern within a host within everything) keeps the requests of all its pages as one count that fades,
and the seconds that its pages were watched, which fade alike. Both are sums of what each page keeps, and such sums can
be kept without looking at the pages: a few additions a request, five numbers a group, whatever the number of pages.

The arithmetic runs in the interpreter and, called from compiled code, compiled.
"""

import math
from collections.abc import Sequence

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from afresh.estimate.requests import MEMORY

Floats = NDArray[np.float64]

MOST_GROUPS = 65_536
PARENT_PAGES = 5.0  # how many pages' worth a group is drawn towards its parent

# Of each group: its parent (the first group is its own), its pages, their requests, and its pages, each as
# exp(−watched/memory), which is what their watched seconds still lack; all as of a moment.
PARENT, PAGES, REQUESTS, YOUNG, MOMENT = range(5)


@register_jitable
def count_in(
    groups: Floats, memory: float, group: int, now: float, pages: float, requests: float, young: float
) -> None:
    """Add to what a group and all those above it hold."""
    while True:
        before = groups[group, MOMENT]
        moment = max(now, before)
        left = math.exp(-(moment - before) / memory)
        late = math.exp(-(moment - now) / memory)  # what came in late has faded since
        groups[group, PAGES] += pages
        groups[group, REQUESTS] = groups[group, REQUESTS] * left + requests * late
        groups[group, YOUNG] = groups[group, YOUNG] * left + young * late
        groups[group, MOMENT] = moment
        if group == 0:
            return
        group = int(groups[group, PARENT])


@register_jitable
def average_of(groups: Floats, memory: float, group: int, now: float) -> float:
    """Requests per second that a page of the group is taken to get; 0 while nobody asked for anything."""
    depth, above = 0, group
    while above > 0:
        above = int(groups[above, PARENT])
        depth += 1
    found = 0.0
    for steps in range(depth, -1, -1):  # from the widest to the narrowest
        number = group
        for _ in range(steps):
            number = int(groups[number, PARENT])
        left = math.exp(-max(now - groups[number, MOMENT], 0.0) / memory)
        pages, requests = groups[number, PAGES], max(groups[number, REQUESTS], 0.0) * left
        seconds = memory * max(pages - groups[number, YOUNG] * left, 0.0)
        if number == 0:
            found = requests / seconds if seconds > 0 else 0.0
        elif pages > 0 and seconds > 0:
            parents = PARENT_PAGES * seconds / pages
            found = (requests + parents * found) / (seconds + parents)
    return float(found)


class Popularity:
    """Requests per second and page, group by group.

    Invariants: a group's count is the sum of its pages' own, all faded to the same moment; a parent's includes its
    children's. Moments never go backwards, and there are at most `MOST_GROUPS` groups.

    >>> popularity = Popularity()
    >>> news, archive = (popularity.group(("example.com", kind)) for kind in ("news", "archive"))
    >>> for group in (news, archive):
    ...     for _ in range(10):
    ...         popularity.add(group, 0.0)
    >>> popularity.ask(news, 500.0, 100.0)
    >>> round(popularity.average(news, 100.0), 2), round(popularity.average(archive, 100.0), 2)
    (0.42, 0.08)
    """

    def __init__(self, memory: float = MEMORY.slow) -> None:
        self.memory = memory  # seconds
        self.groups = np.zeros((16, 5))  # with room for more than there are
        self._numbers: dict[str, int] = {}

    def group(self, kin: Sequence[str]) -> int:
        """The narrowest group of these names."""
        number = 0
        for name in kin:
            known = self._numbers.get(name)
            if known is None:
                if len(self._numbers) + 1 >= MOST_GROUPS:
                    return number
                known = self._numbers[name] = len(self._numbers) + 1
                if known >= len(self.groups):
                    self.groups = np.concatenate([self.groups, np.zeros_like(self.groups)])
                self.groups[known, PARENT], self.groups[known, MOMENT] = number, self.groups[0, MOMENT]
            number = known
        return number

    def add(self, group: int, now: float, *, since: float | None = None, requests: float = 0.0) -> None:
        """A page of the group is watched, since now or since then; `requests` of it are remembered, faded to now."""
        watched = 0.0 if since is None else max(now - since, 0.0)
        count_in(self.groups, self.memory, group, now, 1.0, requests, math.exp(-watched / self.memory))

    def add_many(self, group: int, now: float, pages: float, requests: float, lacked: float) -> None:
        """So many pages; `lacked` is the sum over them of exp(−watched/memory)."""
        count_in(self.groups, self.memory, group, now, float(pages), float(requests), float(lacked))

    def remove(self, group: int, now: float, *, since: float, requests: float) -> None:
        """Stop watching a page with these faded requests."""
        lacked = math.exp(-max(now - since, 0.0) / self.memory)
        count_in(self.groups, self.memory, group, now, -1.0, -requests, -lacked)

    def ask(self, group: int, count: float, now: float) -> None:
        """A page of the group was asked for."""
        count_in(self.groups, self.memory, group, now, 0.0, count, 0.0)

    def average(self, group: int, now: float) -> float:
        """Requests per second that a page of the group is taken to get; 0 while nobody asked for anything."""
        return average_of(self.groups, self.memory, group, now)

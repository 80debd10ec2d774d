"""How often the pages of a group are asked for: the assumed request rate of a page without requests yet.

A group (a path pattern within a host within everything) keeps the requests of all its pages as one count that fades,
and the seconds that its pages were watched, which fade alike. Both are sums of what each page keeps, and such sums can
be kept without looking at the pages: a few additions a request, three numbers a group, whatever the number of pages.
"""

import math
from collections.abc import Sequence

from afresh.estimate.requests import MEMORY

MOST_GROUPS = 65_536
PARENT_PAGES = 5.0  # how many pages' worth a group is drawn towards its parent


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
        self._memory = memory  # seconds
        self._numbers: dict[str, int] = {}
        self._parent = [0]
        self._pages = [0.0]
        self._requests = [0.0]
        self._young = [0.0]  # pages, each as exp(−watched/memory): what their watched seconds still lack
        self._moment = [0.0]

    def group(self, kin: Sequence[str]) -> int:
        """The narrowest group of these names."""
        number = 0
        for name in kin:
            known = self._numbers.get(name)
            if known is None:
                if len(self._parent) >= MOST_GROUPS:
                    return number
                known = self._numbers[name] = len(self._parent)
                for column, value in (
                    (self._parent, number),
                    (self._pages, 0.0),
                    (self._requests, 0.0),
                    (self._young, 0.0),
                    (self._moment, self._moment[0]),
                ):
                    column.append(value)  # type: ignore[arg-type]
            number = known
        return number

    def add(self, group: int, now: float, *, since: float | None = None, requests: float = 0.0) -> None:
        """A page of the group is watched, since now or since then; `requests` of it are remembered, faded to now."""
        watched = 0.0 if since is None else max(now - since, 0.0)
        self._change(group, now, 1.0, requests, math.exp(-watched / self._memory))

    def remove(self, group: int, now: float, *, since: float, requests: float) -> None:
        """Stop watching a page with these faded requests."""
        self._change(group, now, -1.0, -requests, -math.exp(-max(now - since, 0.0) / self._memory))

    def ask(self, group: int, count: float, now: float) -> None:
        """A page of the group was asked for."""
        self._change(group, now, 0.0, count, 0.0)

    def average(self, group: int, now: float) -> float:
        """Requests per second that a page of the group is taken to get; 0 while nobody asked for anything."""
        line = [group]
        while line[-1]:
            line.append(self._parent[line[-1]])
        found = 0.0
        for number in reversed(line):
            left = math.exp(-max(now - self._moment[number], 0.0) / self._memory)
            pages, requests = self._pages[number], max(self._requests[number], 0.0) * left
            seconds = self._memory * max(pages - self._young[number] * left, 0.0)
            if number == 0:
                found = requests / seconds if seconds > 0 else 0.0
            elif pages > 0 and seconds > 0:
                parents = PARENT_PAGES * seconds / pages
                found = (requests + parents * found) / (seconds + parents)
        return found

    def _change(self, group: int, now: float, pages: float, requests: float, young: float) -> None:
        while True:
            moment = max(now, self._moment[group])
            left = math.exp(-(moment - self._moment[group]) / self._memory)
            late = math.exp(-(moment - now) / self._memory)  # what came in late has faded since
            self._pages[group] += pages
            self._requests[group] = self._requests[group] * left + requests * late
            self._young[group] = self._young[group] * left + young * late
            self._moment[group] = moment
            if group == 0:
                return
            group = self._parent[group]

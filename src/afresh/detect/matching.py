"""What two sequences have in common: the fewest differences where they are few, else a fair answer in time."""

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Sequence

MAX_DIFFERENCES = 400  # of two sequences, for which the fewest are looked for; that takes their square
Pairs = list[tuple[int, int]]


class Effort:
    """How many steps may still be spent on exact answers; shared by all comparisons of one document."""

    def __init__(self, steps: int = 2_000_000) -> None:
        self.steps = steps


def common(old: Sequence[object], new: Sequence[object], effort: Effort) -> Pairs:
    """Places of the old and of the new that stay, both rising.

    >>> common("the ferry runs".split(), "the old ferry".split(), Effort())
    [(0, 0), (1, 2)]
    """
    first, most = 0, min(len(old), len(new))
    while first < most and old[first] == new[first]:
        first += 1
    last = 0
    while last < most - first and old[len(old) - 1 - last] == new[len(new) - 1 - last]:
        last += 1
    olds, news = old[first : len(old) - last], new[first : len(new) - last]
    middle: Pairs | None = []
    if olds and news:
        middle = _fewest(olds, news, effort)
        if middle is None:
            middle = _paired(olds, news)
    assert middle is not None  # noqa: S101 - for the type checker
    same = [(nth, nth) for nth in range(first)]
    same += [(first + one, first + other) for one, other in middle]
    return same + [(len(old) - nth, len(new) - nth) for nth in range(last, 0, -1)]


def _fewest(old: Sequence[object], new: Sequence[object], effort: Effort) -> Pairs | None:
    """The answer with the fewest differences (Myers' greedy algorithm); None if it takes too long."""
    furthest, trails = {1: 0}, []
    for differences in range(min(len(old) + len(new), MAX_DIFFERENCES) + 1):
        trails.append(dict(furthest))
        for diagonal in range(-differences, differences + 1, 2):
            down = diagonal == -differences or (
                diagonal != differences and furthest[diagonal - 1] < furthest[diagonal + 1]
            )
            at = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            began = at
            while at < len(old) and 0 <= at - diagonal < len(new) and old[at] == new[at - diagonal]:
                at += 1
            furthest[diagonal] = at
            effort.steps -= 1 + at - began
            if at >= len(old) and at - diagonal >= len(new):
                return _walked_back(trails, len(old), len(new))
        if effort.steps < 0:
            return None
    return None


def _walked_back(trails: list[dict[int, int]], at: int, other: int) -> Pairs:
    pairs: deque[tuple[int, int]] = deque()
    for differences in range(len(trails) - 1, -1, -1):
        furthest, diagonal = trails[differences], at - other
        down = diagonal == -differences or (diagonal != differences and furthest[diagonal - 1] < furthest[diagonal + 1])
        came = diagonal + 1 if down else diagonal - 1
        before = furthest.get(came, 0)
        start = before if down else before + 1
        if not differences:
            start = 0
        while at > start:
            at, other = at - 1, other - 1
            pairs.appendleft((at, other))
        at, other = before, before - came
    return list(pairs)


def _paired(old: Sequence[object], new: Sequence[object]) -> Pairs:
    """The n-th of a kind with the n-th of its kind, as many as are in order; as fast as sorting."""
    places: defaultdict[object, deque[int]] = defaultdict(deque)
    for nth, each in enumerate(old):
        places[each].append(nth)
    pairs = [(places[each].popleft(), nth) for nth, each in enumerate(new) if places.get(each)]
    ends: list[int] = []  # the smallest end of a rising row of each length, and which pair that is
    which: list[int] = []
    before: list[int] = []
    for nth, (one, _) in enumerate(pairs):
        length = bisect_left(ends, one)
        before.append(which[length - 1] if length else -1)
        ends[length : length + 1], which[length : length + 1] = [one], [nth]
    stays: deque[tuple[int, int]] = deque()
    at = which[-1] if which else -1
    while at >= 0:
        stays.appendleft(pairs[at])
        at = before[at]
    return list(stays)

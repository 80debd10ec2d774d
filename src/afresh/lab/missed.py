"""Costs of copies against a history: what a crawl finds missed, and what the copies have cost, exactly.

Three kinds: stale or not; the square of the time since the first missed change; the significance of all that is missed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.mirror import Plays
from afresh.sim.history import History
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STALE, AGE_SQUARED, SIGNIFICANCE = range(3)


class Missed(NamedTuple):
    """The changes of a history, and sums over those before each of them."""

    kind: int
    times: Floats  # those of page k are times[first[k] : first[k + 1]]
    first: Integers
    sizes: Floats  # the sum of the significance of all changes before
    moments: Floats  # the sum of significance × time


def missed(history: History, kind: int, significance: Floats) -> Missed:
    """The costs of this kind, with the significance of each change."""
    sizes, moments = np.zeros((2, len(significance) + 1))
    np.cumsum(significance, out=sizes[1:])
    np.cumsum(significance * history.times, out=moments[1:])
    return Missed(kind, history.times, history.first, sizes, moments)


@compiled
def _range(law: Missed, page: int, since: float, now: float) -> tuple[int, int]:
    times = law.times[law.first[page] : law.first[page + 1]]
    begin, end = np.searchsorted(times, since, side="right"), np.searchsorted(times, now, side="right")
    return law.first[page] + begin, law.first[page] + end


@compiled
def _cost(law: Missed, page: int, since: float, now: float) -> float:
    begin, end = _range(law, page, since, now)
    if end <= begin:
        return 0.0
    if law.kind == STALE:
        return 1.0
    if law.kind == AGE_SQUARED:
        return float((now - law.times[begin]) ** 2)
    return float(law.sizes[end] - law.sizes[begin])


@compiled
def _spent(law: Missed, page: int, since: float, now: float) -> float:
    """The integral of the cost of a copy made at `since`, until now."""
    begin, end = _range(law, page, since, now)
    if end <= begin:
        return 0.0
    late = now - law.times[begin]
    if law.kind == STALE:
        return float(late)
    if law.kind == AGE_SQUARED:
        return float(late**3 / 3.0)
    return float(now * (law.sizes[end] - law.sizes[begin]) - (law.moments[end] - law.moments[begin]))


@compiled
def _costs(law: Missed, page: Integers, time: Floats, age: Floats) -> Floats:
    found = np.empty(page.size)
    for k in range(page.size):
        found[k] = _cost(law, page[k], time[k] - age[k], time[k])
    return found


@compiled
def _score(law: Missed, page: Integers, time: Floats, current: Floats, width: float, found: Floats) -> None:
    end = width * found.size
    for k in range(page.size + current.size):
        at = page[k] if k < page.size else k - page.size
        now = min(time[k], end) if k < page.size else end
        since = current[at]
        window, spent = int(since / width), 0.0
        while window < found.size and now > since:
            edge = min(now, (window + 1) * width)
            until = _spent(law, at, since, edge)
            found[window] += until - spent
            if edge >= now:
                break
            window, spent = window + 1, until
        current[at] = max(now, since)


def costs_of(law: Missed, plays: Plays) -> Floats:
    """What each play shows."""
    return _costs(law, plays.arm, plays.time, plays.age)


def score(law: Missed, page: Integers, time: Floats, *, width: float, windows: int) -> Floats:
    """The mean cost of a copy in each window of time; all are fresh at 0, and refreshed at these moments."""
    pages, found = len(law.first) - 1, np.zeros(windows)
    _score(law, page, time, np.zeros(pages), width, found)
    return found / (width * pages)

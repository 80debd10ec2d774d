"""Refreshing at random: the probability with which each item is refreshed per step.

An item changes per step with probability c and is refreshed with probability p; it is fresh with probability
p/(p + c − pc) in the steady state. Wanted are the p that maximise Σ u·p/(p + c − pc) with Σ p ≤ budget. Where intervals
can be controlled the crawl value is stronger, because nothing is left to chance; this is for where they cannot.
"""

import heapq
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from afresh.value.arguments import Floats, blame, numbers
from afresh.value.compiled import compiled

_SAMPLE = 5_000
_ALWAYS = 1.0 - 1e-9  # stands for a change at every step, because the formulas divide by 1 − c

Method = Literal["exact", "build", "reduce", "increments"]


def refresh_probabilities(
    weight: ArrayLike,
    change_probability: ArrayLike,
    budget: float = 1.0,
    method: Method = "exact",
    increments: int = 1000,
) -> Floats:
    """Refresh probabilities that keep the most weight fresh; together they are at most `budget` refreshes per step.

    "exact" finds the price at which the items ask for the budget; "build" grows the set of refreshed items in the
    order of weight/change; "reduce" starts from all items and drops those that would get less than nothing;
    "increments" hands the budget out in many small parts, each where it helps most (better with more parts).

    >>> refresh_probabilities([4.0, 1.0, 1.0], [0.1, 0.1, 0.9]).round(4).tolist()
    [0.5704, 0.2296, 0.2]
    """
    u, c = _checked(weight, change_probability, budget, increments)
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, _METHODS))}, but is {method!r}")
    scale, offset, useful = _lines(u, c)
    if budget >= useful:
        return np.where(scale > 0, 1.0, 0.0)
    if budget == 0:
        return np.zeros(u.size)
    if method == "exact":
        p = _exact(scale, offset, float(budget))
    else:
        # Items that nobody wants or that never change gain nothing from a refresh.
        wanted = scale > 0
        p = np.zeros(u.size)
        p[wanted] = _METHODS[method](u[wanted], np.minimum(c[wanted], _ALWAYS), float(budget), int(increments))
    _settle(p, offset, float(budget))
    return p


def expected_freshness(weight: ArrayLike, change_probability: ArrayLike, probabilities: ArrayLike) -> float:
    """Σ u·p/(p + c − pc): the weight that is fresh in the steady state; an item that never changes is always fresh."""
    u, c, p = np.broadcast_arrays(
        *(np.asarray(v, dtype=np.float64) for v in (weight, change_probability, probabilities))
    )
    fresh = np.ones(u.shape)
    np.divide(p, p + c - p * c, out=fresh, where=c > 0)
    return float((u * fresh).sum())


def _checked(weight: ArrayLike, change_probability: ArrayLike, budget: float, increments: int) -> tuple[Floats, Floats]:
    u, c = numbers("weight", weight), numbers("change_probability", change_probability)
    if u.ndim > 1 or c.ndim > 1:
        raise ValueError("weight and change_probability must be numbers or one-dimensional arrays")
    # Comparisons with NaN are false, and min and max of an array that holds NaN are NaN.
    if u.size and not (u.min() >= 0 and u.max() < math.inf):
        raise ValueError("weight must be at least 0 and finite")
    if c.size and not (c.min() >= 0 and c.max() <= 1):
        raise ValueError("change_probability must be at least 0 and at most 1")
    blame({"budget": budget})
    if increments < 1 or increments != int(increments):
        raise ValueError(f"increments must be a whole number of at least 1, but is {increments}")
    if u.shape != c.shape or not u.ndim:
        u, c = np.broadcast_arrays(np.atleast_1d(u), c)
    return _plain(u), _plain(c)


def _plain(values: Floats) -> Floats:
    """Contiguous and writable: numba compiles anew for every other kind."""
    return values if values.flags.c_contiguous and values.flags.writeable else np.array(values)


@compiled
def _lines(u: Floats, c: Floats) -> tuple[Floats, Floats, int]:
    """Scale and offset of p = scale/√λ − offset = (√(uc/λ) − c)/(1 − c), 0 for useless items; number of useful ones."""
    scale, offset, useful = np.zeros(u.size), np.zeros(u.size), 0
    for i in range(u.size):
        if u[i] > 0.0 and c[i] > 0.0:
            certain = min(c[i], _ALWAYS)
            per_spare = 1.0 / (1.0 - certain)
            scale[i] = math.sqrt(u[i] * certain) * per_spare
            offset[i] = certain * per_spare
            useful += 1
    return scale, offset, useful


@compiled
def _settle(p: Floats, offset: Floats, budget: float) -> None:
    """Give what rounding left over to the item with the most certain change: it is the one that rounding has moved."""
    total, best = 0.0, -1
    for i in range(p.size):
        total += p[i]
        if 0.0 < p[i] < 1.0 and (best < 0 or offset[i] > offset[best]):
            best = i
    if best >= 0:
        p[best] = min(1.0, max(0.0, p[best] + budget - total))


@compiled
def _asked(v: float, scale: Floats, offset: Floats) -> tuple[float, float]:
    """Σ p at 1/√λ = v, and its slope: each p is a straight line in v, cut off at 0 and 1."""
    total, slope = 0.0, 0.0
    for i in range(scale.size):
        p = scale[i] * v - offset[i]
        total += min(1.0, max(0.0, p))
        slope += scale[i] if 0.0 < p < 1.0 else 0.0  # no jumps: which items are cut off is anybody's guess
    return total, slope


@compiled
def _find(scale: Floats, offset: Floats, budget: float, start: float) -> tuple[float, float]:
    """(low, high) values of v = 1/√λ between which the items come to ask for the budget; equal if one fits exactly."""
    low, high, v = 0.0, math.inf, start
    for _ in range(200):
        total, slope = _asked(v, scale, offset)
        if abs(total - budget) <= 1e-13 * budget:
            return v, v
        if total < budget:
            low = v
        else:
            high = v
        new = v + (budget - total) / slope if slope > 0.0 else math.nan
        if not low < new < high:
            new = 2.0 * v if high == math.inf else 0.5 * (low + high)
        if new in (low, high):
            break
        v = new
    return low, high


@compiled
def _between(low: float, high: float, scale: Floats, offset: Floats, budget: float) -> Floats:
    """Each p, mixed from those at two values of v if neither meets the budget."""
    more, _ = _asked(high, scale, offset)
    less, _ = _asked(low, scale, offset)
    share = (more - budget) / (more - less) if more > budget and more > less else 0.0
    p = np.empty(scale.size)
    for i in range(scale.size):
        p[i] = min(1.0, max(0.0, scale[i] * high - offset[i]))
        if share > 0.0:
            p[i] += share * (min(1.0, max(0.0, scale[i] * low - offset[i])) - p[i])
    return p


def _exact(scale: Floats, offset: Floats, budget: float) -> Floats:
    start = (budget + float(offset.sum())) / float(scale.sum())  # as if all were refreshed
    if scale.size > 4 * _SAMPLE:
        every = scale.size // _SAMPLE
        low, high = _find(scale[::every].copy(), offset[::every].copy(), budget / every, start)
        start = high if high < math.inf else low
    low, high = _find(scale, offset, budget, start)
    return _between(low, high, scale, offset, budget)


def _capped(solve: Any, u: Floats, c: Floats, budget: float) -> Floats:
    """A rule that knows no upper limit, applied again to the rest whenever it gives an item more than 1."""
    p = np.zeros(u.size)
    rest = np.arange(u.size)
    while True:
        mine = solve(u[rest], c[rest], budget)
        over = mine >= 1.0
        if not over.any():
            p[rest] = mine
            return p
        p[rest[over]] = 1.0
        budget -= float(np.count_nonzero(over))
        rest = rest[~over]
        if budget <= 0 or not rest.size:
            return p


def _build(u: Floats, c: Floats, budget: float) -> Floats:
    order = np.argsort(-u / c, kind="stable")
    scale, offset, _ = _lines(u[order], c[order])
    roots = np.cumsum(scale) / (budget + np.cumsum(offset))  # √λ, were the set to end here
    last = int(np.flatnonzero(scale / roots > offset)[-1])
    p = np.zeros(u.size)
    p[order] = np.maximum(scale / roots[last] - offset, 0.0)
    p[order[last + 1 :]] = 0.0
    return p


def _reduce(u: Floats, c: Floats, budget: float) -> Floats:
    scale, offset, _ = _lines(u, c)
    kept = np.arange(u.size)
    while True:
        root = scale[kept].sum() / (budget + offset[kept].sum())
        mine = scale[kept] / root - offset[kept]
        if (mine >= 0).all():
            break
        kept = kept[mine >= 0]
    p = np.zeros(u.size)
    p[kept] = mine
    return p


def _increments(u: Floats, c: Floats, budget: float, increments: int) -> Floats:
    p = np.zeros(u.size)
    heap = [(-float(gain), i) for i, gain in enumerate(u / c)]
    heapq.heapify(heap)
    part, left = budget / increments, budget
    while left > 1e-12 * budget and heap:
        _, i = heap[0]
        step = min(part, left, 1.0 - p[i])
        p[i] += step
        left -= step
        if p[i] >= 1.0:
            heapq.heappop(heap)
        else:
            fresh = p[i] + c[i] - p[i] * c[i]
            heapq.heapreplace(heap, (-float(u[i] * c[i] / fresh**2), i))
    return p


_METHODS: dict[str, Callable[[Floats, Floats, float, int], Floats]] = {
    "exact": lambda u, c, budget, _: _exact(*_lines(u, c)[:2], budget),
    "build": lambda u, c, budget, _: _capped(_build, u, c, budget),
    "reduce": lambda u, c, budget, _: _capped(_reduce, u, c, budget),
    "increments": _increments,
}

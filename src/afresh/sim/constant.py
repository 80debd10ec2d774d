"""The best constant rates for changes as they came: what could be had without adapting, by who knows the future.

Where visits to a page are an interval τ apart, at a random phase, a copy is fresh with probability min(1, s/τ) at s
after a change, as long as no other comes. Over a gap between two changes of length L that makes L − τ/2, or L²/(2τ) of
a shorter one, and a visit more is worth ½·min(L, τ)². So what a visit to a page is worth at an interval is a sum over
its gaps, whatever their pattern (of Poisson changes, the crawl value on average), and grows with the interval: one
price for all pages gives the optimum. Of a gap that had lasted for a when the scored time began, ½·min(a, τ)² is left
out. Before a page's first change every copy of it is current, and no visit is worth anything.
"""

import numpy as np
from numpy.typing import NDArray

from afresh.sim.history import Floats, History

_STEPS = 80  # of the bisection


def best_rates(history: History, begin: float, budget: float) -> Floats:
    """Visits per second to each page, which together spend the budget of the scored time while each page is there."""
    sign, gaps, page = _gaps(history, begin)
    if not len(gaps):
        return np.full(history.pages, budget / history.pages)
    first = np.searchsorted(page, np.arange(history.pages + 1))
    squares = np.concatenate([[0.0], np.cumsum(sign * gaps**2)])
    counts = np.concatenate([[0.0], np.cumsum(sign)])
    longer = counts[first[page + 1]] - counts[:-1]
    worth = 0.5 * (squares[:-1] - squares[first[page]] + longer * gaps**2)  # of a visit, at an interval like the gap
    lived, span = history.lived(begin, history.end), history.end - begin

    def rates(price: float) -> Floats:
        asked = price * lived / np.maximum(history.weight, 1e-300)
        at = first[:-1] + np.bincount(page[worth <= asked[page]], minlength=history.pages)
        square, left = squares[at] - squares[first[:-1]], counts[first[1:]] - counts[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((left > 0.5) & (asked > 0), np.sqrt(left / np.maximum(2.0 * asked - square, 1e-300)), 0.0)

    low, high = -700.0, 700.0  # logarithms of the price
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if rates(float(np.exp(middle))) @ lived > budget * span:
            low = middle
        else:
            high = middle
    # Where gaps are all alike, rates jump at a price: what it leaves of the budget is spent between the two.
    few, many = rates(float(np.exp(high))), rates(float(np.exp(low)))
    missing, more = float(budget * span - few @ lived), float((many - few) @ lived)
    if missing <= 0.0 or not 0.0 < more < np.inf:
        return few
    return np.asarray(few + min(missing / more, 1.0) * (many - few))


def _gaps(history: History, begin: float) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """(1 or −1, length, page) of the gaps that last into the scored time, and of the parts of them before it."""
    every = np.arange(history.pages)
    page = np.repeat(every, np.diff(history.first))
    until = np.full(history.pages, history.end)
    if history.ends is not None:
        until = np.minimum(until, history.ends)
    inside = history.times < until[page]
    owner, moment = np.concatenate([page[inside], every]), np.concatenate([history.times[inside], until])
    order = np.lexsort((moment, owner))
    owner, moment = owner[order], moment[order]
    lasting = (owner[1:] == owner[:-1]) & (moment[1:] > begin) & (moment[1:] > moment[:-1])
    since, length, owner = moment[:-1][lasting], np.diff(moment)[lasting], owner[1:][lasting]
    begun = since < begin
    sign = np.concatenate([np.ones(len(length)), -np.ones(int(begun.sum()))])
    length, owner = np.concatenate([length, begin - since[begun]]), np.concatenate([owner, owner[begun]])
    order = np.lexsort((length, owner))
    return sign[order], length[order], owner[order]

"""LDS: crawls at given constant rates, each page as evenly as one crawl a tick allows.

The sequence follows from the rates alone, so it is known before the run. Every page's k-th crawl has a deadline, and at
each tick the page with the earliest deadline goes: at a total rate of one crawl a tick the number of crawls of a page
never strays far from its rate × time, which is what the low-discrepancy schedule of the papers is for.
"""

import numpy as np
from numpy.typing import NDArray

from afresh.sim.queue import Queue, new_queue, pop, push
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_GOLDEN = 0.6180339887498949


@compiled
def _sequence(queue: Queue, interval: Floats, picks: Integers) -> None:
    for tick in range(picks.size):
        due = queue.key[0]
        page = pop(queue)
        picks[tick] = page
        push(queue, page, due + interval[page])


@compiled
def _fill(queue: Queue, interval: Floats, phase: Floats) -> None:
    for page in range(interval.size):
        if interval[page] < np.inf:
            push(queue, page, interval[page] * phase[page])


def evenly_spaced(rates: Floats, ticks: int) -> Integers:
    """The page of each tick; a page of rate 0 is never picked.

    >>> evenly_spaced(np.array([2.0, 1.0, 1.0]), 8).tolist()
    [1, 0, 0, 2, 1, 0, 0, 2]
    """
    if not (rates > 0).any():
        return np.empty(0, np.int64)
    with np.errstate(divide="ignore"):
        interval = np.where(rates > 0, rates.sum() / rates, np.inf)
    queue = new_queue(len(rates))
    # First deadlines are spread over the first interval, by a sequence without a rhythm of its own.
    _fill(queue, interval, np.asarray((np.arange(1, len(rates) + 1) * _GOLDEN) % 1.0, np.float64))
    picks = np.empty(ticks, np.int64)
    _sequence(queue, interval, picks)
    return picks

"""How fresh copies were, averaged over all the changes there might have been: a score with less chance in it.

In a made-up world all rates are known. So of every copy it can be said, by its age and the signals it has heard, how
likely it was to be fresh, and that serves better for telling two schedules apart than whether it was.
"""

import math

import numpy as np
from numpy.typing import NDArray

from afresh.sim.history import Heard
from afresh.sim.world import World
from afresh.value.compiled import compiled
from afresh.value.kernels import page_rates

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@compiled
def _fresh_time(
    silent_rate: Floats,
    signal_weight: Floats,
    request_rate: Floats,
    signal_time: Floats,
    signal_page: Integers,
    picks: Integers,
    step: float,
    edges: Floats,
) -> Floats:
    """Expected fresh time in each window, times request rates; the loop of `learned`, without its decisions."""
    stale, since = np.zeros(silent_rate.size), np.zeros(silent_rate.size)
    total, heard, tick = np.zeros(edges.size), 0, 0
    for window in range(edges.size):
        while True:
            crawled, told = np.inf, np.inf
            if tick < picks.size:
                crawled = (tick + 1) * step
            if heard < signal_time.size:
                told = signal_time[heard]
            now = min(crawled, told)
            if now > edges[window]:
                break
            page = signal_page[heard] if told <= crawled else picks[tick]
            if page >= 0:
                total[window] += request_rate[page] * _pass(stale, since, silent_rate[page], page, now)
                stale[page] = stale[page] + signal_weight[page] if told <= crawled else 0.0
            if told <= crawled:
                heard += 1
            else:
                tick += 1
        for page in range(silent_rate.size):
            total[window] += request_rate[page] * _pass(stale, since, silent_rate[page], page, edges[window])
    return total


@compiled
def _pass(stale: Floats, since: Floats, silent_rate: float, page: int, now: float) -> float:
    """Let time pass over a copy in silence; how long of it the copy was fresh."""
    elapsed = now - since[page]
    since[page] = now
    fresh = math.exp(-stale[page])
    stale[page] += silent_rate * elapsed
    return fresh * float(-math.expm1(-silent_rate * elapsed) / silent_rate if silent_rate > 0.0 else elapsed)


def freshness_of_picks(world: World, heard: Heard, picks: Integers, *, step: float, edges: tuple[float, ...]) -> Floats:
    """The share of requests that found a fresh copy, in the windows from 0 to the first edge, from there to the next …

    All copies were fresh at 0; page `picks[k]` was crawled at (k + 1)·step, −1: none. Signals must not be late.
    """
    rates = zip(world.change_rate, world.recall, world.false_rate, strict=True)
    silent_rate, _, weight = np.array([page_rates(*page) for page in rates]).T
    ends = np.array(edges, np.float64)
    fresh: Floats = _fresh_time(silent_rate, weight, world.request_rate, heard.time, heard.page, picks, step, ends)
    shares: Floats = fresh / world.request_rate.sum() / np.diff(ends, prepend=0.0)
    return shares

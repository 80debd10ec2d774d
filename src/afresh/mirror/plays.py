"""When each arm is played, and what its costs say about the slope of the total cost.

Between two refreshes of an arm lies an interval of 1/rate. With probability ε it has one probe, at a uniform moment
u: then (cost(u) − cost(1/rate)) / (ε·rate) is a sample of the derivative by the arm's rate, and 0 otherwise.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.mirror.draws import draw
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SYNC, PROBE, BRIDGE = range(3)  # a bridge refreshes like a sync; its cost is no sample, since its interval was cut
_SAME = 1e-9  # of an interval: it still ends in time


class Arms(NamedTuple):
    """What is known of each arm between its plays."""

    rates: Floats
    since: Floats  # when its interval began, or begins, if a bridge is to come
    synced: Floats  # its last refresh
    nth: NDArray[np.uint64]  # of its intervals
    bridged: NDArray[np.bool_]  # a bridge is to come at `since`
    probed: NDArray[np.bool_]  # the interval's probe is over
    seen: Floats  # what the probe of the interval cost; NaN: nothing yet
    sums: Floats  # of the samples since the last update
    counts: Integers


class Plays(NamedTuple):
    """Plays in the order of their times, up to and with the moment `end`."""

    arm: Integers
    time: Floats
    age: Floats  # since the arm's refresh before
    kind: Integers
    nth: NDArray[np.uint64]  # the arm's interval: a probe and the sync after it are of the same
    end: float


def new_arms(count: int, rate: float, now: float) -> Arms:
    """All arms are fresh now, with the same rate."""
    return Arms(
        rates=np.full(count, rate),
        since=np.full(count, now),
        synced=np.full(count, now),
        nth=np.zeros(count, np.uint64),
        bridged=np.zeros(count, np.bool_),
        probed=np.zeros(count, np.bool_),
        seen=np.full(count, math.nan),
        sums=np.zeros(count),
        counts=np.zeros(count, np.int64),
    )


@compiled
def _walk(arms: Arms, epsilon: float, seed: np.uint64, end: float, out: Plays) -> int:
    """The number of plays until the end; they are written to `out`, and the arms moved on, if it has room."""
    count, write = 0, out.arm.size > 0
    for k in range(arms.rates.size):
        since, synced, nth, probed = arms.since[k], arms.synced[k], arms.nth[k], arms.probed[k]
        if arms.bridged[k]:
            if since > end:
                continue
            if write:
                out.arm[count], out.time[count], out.age[count] = k, since, since - synced
                out.kind[count], out.nth[count] = BRIDGE, nth
                arms.bridged[k] = False
            synced = since
            nth += np.uint64(1)
            count += 1
        interval = 1.0 / arms.rates[k]
        while True:
            due = since + interval
            chance = draw(seed, np.uint64(k), nth)
            if chance < epsilon and not probed:
                moment = since + chance / epsilon * interval
                if moment <= end:
                    if write:
                        out.arm[count], out.time[count], out.age[count] = k, moment, moment - synced
                        out.kind[count], out.nth[count] = PROBE, nth
                    probed = True
                    count += 1
            if due > end + _SAME * interval:
                break
            if write:
                out.arm[count], out.time[count], out.age[count] = k, due, interval
                out.kind[count], out.nth[count] = SYNC, nth
            since = synced = due
            nth += np.uint64(1)
            probed = False
            count += 1
        if write:
            arms.since[k], arms.synced[k], arms.nth[k], arms.probed[k] = since, synced, nth, probed
    return count


def hand_out(arms: Arms, epsilon: float, seed: np.uint64, end: float) -> Plays:
    """All plays after those handed out before, up to the end."""
    count = _walk(arms, epsilon, seed, end, _room(0, end))
    if count == 0:
        return _room(0, end)
    out = _room(count, end)
    _walk(arms, epsilon, seed, end, out)
    order = np.argsort(out.time, kind="stable")  # an arm's probe stays before the sync at the same moment
    return Plays(out.arm[order], out.time[order], out.age[order], out.kind[order], out.nth[order], end)


def _room(count: int, end: float) -> Plays:
    time, age = np.empty((2, count))
    return Plays(np.empty(count, np.int64), time, age, np.empty(count, np.int64), np.empty(count, np.uint64), end)


@compiled
def take_in(arms: Arms, epsilon: float, arm: Integers, kind: Integers, cost: Floats) -> None:
    """Make samples of what the plays cost."""
    for i in range(arm.size):
        k = arm[i]
        if kind[i] == PROBE:
            arms.seen[k] = cost[i]
        elif kind[i] == SYNC:
            if arms.seen[k] == arms.seen[k]:
                arms.sums[k] += (arms.seen[k] - cost[i]) / (epsilon * arms.rates[k])
                arms.seen[k] = math.nan
            arms.counts[k] += 1

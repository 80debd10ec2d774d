"""When a page's turn comes: the schedule of all pages, played forward.

Values of all pages are followed as they would grow. In each step the most valuable ones are taken, as many as the
budget pays for and each host answers in that time, and begin again as fresh copies. No price is needed for that, so
what is foretold holds while the price still settles, and where hosts take less than the budget.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_VALUES = 200_000  # that are computed for one answer, below some 8,000 pages: less than 0.1 s
MAX_STEPS = 256
MIN_STEPS = 24
ROUNDS = 4.0  # of all pages, and of those of the host, that are played at most
ALL_ITS_TURNS = 0.9  # share of its turns that a host with no room for more has given away


@dataclass(frozen=True, slots=True)
class Foretold:
    """What came of a page in the play."""

    when: float  # it is asked for; ∞: not while the play lasted
    ahead: int  # crawls of its host before that
    end: float = inf  # of the play
    price: float = 0.0  # what the least valuable crawl of a step gained towards the end; 0: budget was left
    crowded: bool = False  # its host gave all its turns to other pages


def play(
    own: int,
    *,
    value_at: Callable[[float, Floats], Floats],
    current: Floats,
    may_go: Floats,
    host: Integers,
    opens: Floats,
    turn: Floats,
    budget: float,
    now: float,
) -> Foretold:
    """When the page at place `own` is asked for. `opens` and `turn` are of hosts, all others of pages.

    `value_at` says what a crawl of each page gains at a time, if the copies are as of other times (−∞: no copy).
    """
    pages, current, opens = len(current), current.copy(), opens.copy()
    mine = int(host[own])
    round_of_all = max(pages / budget, float(turn[mine]) * int((host == mine).sum()))
    steps = int(min(max(MAX_VALUES // pages, MIN_STEPS), MAX_STEPS))
    step = max(ROUNDS * round_of_all / steps, 1.0 / budget)
    room, before, began, lowest = 0.0, 0, now, list[float]()
    for _ in range(steps):
        room = min(room, 1.0) + step * budget
        begins = np.maximum(opens, now)
        turns = np.where(begins < now + step, np.floor((now + step - begins) / turn) + 1.0, 0.0)
        values = np.where((may_go < now + step) & (turns[host] > 0), value_at(now, current), -inf)
        taken = np.flatnonzero(values > 0)
        taken = taken[np.argsort(-values[taken], kind="stable")]
        rank = _rank_within(host[taken])
        fits = rank < turns[host[taken]]
        most = int(min(room, pages))
        taken, rank = taken[fits][:most], rank[fits][:most]
        times = np.maximum(now + np.arange(len(taken)) / budget, begins[host[taken]] + rank * turn[host[taken]])
        place = np.flatnonzero(taken == own)
        if len(place):
            nth = int(place[0])
            return Foretold(max(float(times[nth]), float(may_go[own])), before + int(rank[nth]))
        lowest.append(float(values[taken[-1]]) if len(taken) == most and most else 0.0)
        room -= len(taken)
        before += int((host[taken] == mine).sum())
        current[taken] = times
        np.maximum.at(opens, host[taken], times + turn[host[taken]])
        now += step
    price = float(np.median(lowest[len(lowest) // 2 :]))
    return Foretold(inf, before, now, price, before * float(turn[mine]) >= ALL_ITS_TURNS * (now - began))


def _rank_within(groups: Integers) -> Integers:
    """How many of the same group come before each.

    >>> _rank_within(np.array([3, 3, 1, 3, 1])).tolist()
    [0, 1, 0, 2, 1]
    """
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.searchsorted(ordered, ordered)
    ranks = np.empty(len(groups), np.int64)
    ranks[order] = np.arange(len(groups)) - starts
    return ranks

"""How much each page is wanted, for many pages: compiled, from requests, what operators say, and what others report.

The counts of a page's requests are in its record (`online.PAGE`), those of its group in `popularity`.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.base import MAX_RATE
from afresh.estimate.courses import EVERY, TICK, are_used, expected, fits, judge, learn
from afresh.estimate.kinds import value_of
from afresh.estimate.online import Table
from afresh.estimate.popularity import average_of, count_in
from afresh.estimate.requests import Memory, faded, ordinary_share, request_rate
from afresh.value.compiled import compiled

Records = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_REQUESTS = 1e15  # in one piece of evidence; more would not fit into what is kept of a page

WEIGHED = 2

WANTED = np.dtype(
    [
        ("importance", "f8"),  # as an operator says; NaN: nothing was said
        ("popularity", "f4"),  # by reports of others, in times the average page
        # 1: the importance multiplies what is learned; WEIGHED: it is what a stale copy costs, and nobody said it
        ("times", "u4"),
    ]
)


class Asking(NamedTuple):
    """What is known of requests, beside the records of pages."""

    wanted: Records  # by page
    groups: Floats  # of `Popularity`
    group_of: Integers  # the group there of each group of the estimator
    memory: Memory
    counted_since: Floats  # one moment: logs reach back so far
    courses: Floats  # what `courses` keeps


def nothing_said(pages: int) -> Records:
    """Records of pages of which nobody says how much they are wanted."""
    wanted = np.zeros(pages, WANTED)
    wanted["importance"], wanted["popularity"] = math.nan, 1.0
    return wanted


@compiled
def asked_at(table: Table, page: int) -> float:
    """When the page's counts of requests were last brought up to date."""
    record = table.pages[page]
    return float(record.since) + float(record.asked)


@compiled
def counted_from(table: Table, asking: Asking, page: int) -> float:
    """Since when requests for the page are counted."""
    return min(float(table.pages[page].since), float(asking.counted_since[0]))


@compiled
def _judge_courses(table: Table, asking: Asking, page: int, count: float, now: float) -> None:
    """See whether the course of a page foretold a request, or its counts alone; for one request of some."""
    kept, record, memory = asking.courses, table.pages[page], asking.memory
    kept[TICK] += 1.0
    if not now > asked_at(table, page) or kept[TICK] % EVERY != 0.0:
        return
    age, requests, burst = float(record.asked), float(record.requests), float(record.burst)
    gap = now - asked_at(table, page)
    if not fits(kept, age + gap, requests):
        return
    average = average_of(asking.groups, memory.slow, asking.group_of[record.group], now)
    told = expected(kept, age, gap, requests, burst, average)
    watched = asked_at(table, page) - counted_from(table, asking, page)
    judge(kept, told, gap * request_rate(requests, burst, watched, average, memory, 1.0), count)
    learn(kept, age + gap, faded(requests, gap, memory.slow), faded(burst, gap, memory.fast), average)


@compiled
def ask(table: Table, asking: Asking, page: int, count: float, now: float) -> None:
    """Somebody asked for a page; NaN: at about the moment when somebody last did."""
    record, memory = table.pages[page], asking.memory
    late = 0.0
    _judge_courses(table, asking, page, count, now)
    count = min(count, MAX_REQUESTS) if count > 0.0 else 0.0
    if not math.isnan(now):
        # To a few seconds, after years: the same seconds must not fade twice.
        asked = np.float32(now - record.since)
        elapsed = np.float64(asked) - np.float64(record.asked)
        if elapsed > 0.0:
            record.requests = faded(float(record.requests), elapsed, memory.slow)
            record.burst = faded(float(record.burst), elapsed, memory.fast)
            record.asked = asked
        late = max(asked_at(table, page) - now, 0.0)  # what came before others that are counted has faded since
    record.burst += faded(count, late, memory.fast)
    count = faded(count, late, memory.slow)
    at = asked_at(table, page)
    watched = at - counted_from(table, asking, page)
    count *= ordinary_share(float(record.requests), float(record.burst), watched, memory)
    record.requests += count
    count_in(asking.groups, memory.slow, asking.group_of[record.group], at, 0.0, count, 0.0)


@compiled
def request_rate_of(table: Table, asking: Asking, page: int, now: float) -> float:
    """Requests a second for a page, as far as is known, or as its operator says."""
    record, said, memory = table.pages[page], asking.wanted[page], asking.memory
    given = not math.isnan(said.importance)
    if given and said.times != 1:
        return float(said.importance)
    elapsed = max(0.0, now - asked_at(table, page))
    average = average_of(asking.groups, memory.slow, asking.group_of[record.group], now)
    slow = faded(float(record.requests), elapsed, memory.slow)
    fast = faded(float(record.burst), elapsed, memory.fast)
    kept, age = asking.courses, now - record.since
    if are_used(kept) and fits(kept, age, slow):
        rate = expected(kept, age, 60.0, slow, fast, average) / 60.0
    else:
        watched = now - counted_from(table, asking, page)
        popularity = float(said.popularity) * math.exp(float(record.foretold))
        rate = request_rate(slow, fast, watched, average, memory, popularity)
    if record.kind != 0:
        rate *= value_of(table.groups, record.kind)
    return float(min(rate * said.importance if given else rate, MAX_RATE))

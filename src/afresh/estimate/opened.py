"""What a `Learner` knows by its address: what the interpreter calls.

Each function here does what the one of `online` or `wanted` does that it names. An address is read as the tuple `Known`
that was written there; see `afresh.value.views`.
"""

from typing import Any, NamedTuple

import numpy as np

from afresh.estimate import online, wanted
from afresh.estimate.courses import new_courses
from afresh.estimate.kinds import FIRST_OWN
from afresh.estimate.online import Table
from afresh.estimate.popularity import Popularity
from afresh.estimate.requests import MEMORY
from afresh.estimate.wanted import Asking
from afresh.value.compiled import bundle, compiled
from afresh.value.views import reader, view_of


class Known(NamedTuple):
    """All that is known of pages."""

    table: Table
    asking: Asking


def asking_nobody() -> Asking:
    """Nothing is known of requests yet, for no page."""
    groups, nobody = Popularity(MEMORY.slow).groups, wanted.nothing_said(0)
    group_of = np.zeros(2 * FIRST_OWN, np.int64)  # with room for more groups than there are
    return Asking(nobody, groups, group_of, MEMORY, np.full(1, np.inf), new_courses(MEMORY.fast))


_known: Any = reader(view_of(Known(online.new_table(0, typical_rate=1.0, now=0.0), asking_nobody())))


@compiled
def learn_crawl(at: int, page: int, elapsed: float, signals: float, changed: bool) -> None:
    """`online.learn_crawl`."""
    online.learn_crawl(_known(at).table, page, elapsed, signals, changed)


@compiled
def tell_age(at: int, page: int, age: float, trust: float) -> None:
    """`online.tell_age`."""
    online.tell_age(_known(at).table, page, age, trust)


@compiled
def tell_last_change(at: int, page: int, since: float, elapsed: float, trust: float) -> None:
    """`online.tell_last_change`."""
    online.tell_last_change(_known(at).table, page, since, elapsed, trust)


@compiled
def glance(at: int) -> int:
    """`online.glance`."""
    return online.glance(_known(at).table)


@compiled
def sweep(at: int, turns: int) -> None:
    """`online.sweep`."""
    online.sweep(_known(at).table, turns)


@compiled
def hear_signals(at: int, page: int, count: float, now: float) -> None:
    """`online.hear_signals`."""
    online.hear_signals(_known(at).table, page, count, now)


@compiled
def ask(at: int, page: int, count: float, now: float) -> None:
    """`wanted.ask`."""
    known = _known(at)
    wanted.ask(known.table, known.asking, page, count, now)


@compiled
def beliefs_of(at: int, page: int, now: float) -> tuple[float, float, float, float]:
    """`online.beliefs_of`."""
    return online.beliefs_of(_known(at).table, page, now)


@compiled
def request_rate_of(at: int, page: int, now: float) -> float:
    """`wanted.request_rate_of`."""
    known = _known(at)
    return wanted.request_rate_of(known.table, known.asking, page, now)


@compiled
def fresh_probability_of(at: int, page: int, elapsed: float, signals: float) -> float:
    """`online.fresh_probability_of`."""
    return online.fresh_probability_of(_known(at).table, page, elapsed, signals)


together = bundle(
    "learner",
    *(learn_crawl, glance, sweep, hear_signals, ask, beliefs_of, request_rate_of, fresh_probability_of),
    *(tell_age, tell_last_change),
)

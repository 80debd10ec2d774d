"""Dates of last changes in a replay: what pages say at each visit, true or not, and what becomes of it, as in a run.

See `afresh.estimate.dates` for what dates are worth, and `afresh.daemon.dates`, which does the same for real ones.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.engine import heart as does
from afresh.engine.heart import Heart
from afresh.estimate.dates import LEAST_TRUST, MEMORY, MEMORY_OF_ALL, grade_counts, nothing_graded, trust_in
from afresh.estimate.online import tell_age, tell_last_change
from afresh.sim.field import Field
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TRUE, NOW, STUCK = range(3)  # what a page says: its last change, the moment of the answer, or always the same


class Dates(NamedTuple):
    """What pages say, and what is thought of each host's dates. Without hosts there are none."""

    before: Floats  # each page's last change before the start; NaN: it says nothing before its first change
    host: Integers  # of each page
    lie: Integers  # of each page
    shown: Floats  # what the last visit was told
    trust: Floats  # a row for each host
    of_all: Floats


def no_dates() -> Dates:
    """No page says anything."""
    return Dates(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty((0, 4)), np.empty(0))


def dates_of(before: Floats, host: Integers, lie: Integers) -> Dates:
    """Dates as pages give them; nothing is thought of them yet."""
    hosts = int(host.max(initial=-1)) + 1
    return Dates(
        before.astype(np.float64),
        host.astype(np.int64),
        lie.astype(np.int64),
        np.full(len(before), math.nan),
        np.zeros((hosts, 4)),
        nothing_graded(),
    )


@compiled
def _stated(field: Field, dates: Dates, page: int, now: float) -> float:
    """What a page says now, of which a copy was just made."""
    if dates.lie[page] == NOW:
        return now
    seen = field.seen[page]
    if dates.lie[page] == STUCK or seen == field.first[page]:
        return float(dates.before[page])
    return float(field.times[seen - 1])


@compiled
def first_date(heart: Heart, field: Field, dates: Dates, page: int, now: float) -> None:
    """A page was crawled for the first time."""
    if dates.host.size == 0:
        return
    date = _stated(field, dates, page, now)
    dates.shown[page] = date
    if date < now:
        trust = trust_in(dates.trust[dates.host[page]], dates.of_all)
        if trust > LEAST_TRUST:
            tell_age(heart.table, page, now - date, trust)
            does.believe(heart, page, now)


@compiled
def first_dates(heart: Heart, field: Field, dates: Dates, now: float) -> None:
    """All pages that are there at the start were crawled for the first time."""
    for page in range(dates.host.size):
        if not math.isnan(heart.pages[page]["current"]):
            first_date(heart, field, dates, page, now)


@compiled
def later_date(
    heart: Heart, field: Field, dates: Dates, page: int, before: float, now: float, changed: bool, told: bool
) -> None:
    """A page was crawled again, `before` being the time of the last visit; whether signals had `told` of a change."""
    if dates.host.size == 0:
        return
    date, shown = _stated(field, dates, page, now), dates.shown[page]
    dates.shown[page] = date
    if math.isnan(date) or math.isnan(shown):
        return
    own, moved, within = dates.trust[dates.host[page]], date != shown, before <= date <= now
    right = moved and (within or not changed)
    grade_counts(own, MEMORY, changed, right)
    grade_counts(dates.of_all, MEMORY_OF_ALL, changed, right)
    if changed and moved and within and not told:
        trust = trust_in(own, dates.of_all)
        if trust > LEAST_TRUST:
            tell_last_change(heart.table, page, now - date, now - before, trust)  # the schedule hears of it in its turn

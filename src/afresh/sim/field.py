"""Copies against a history: what a visit finds, and the score that follows from it, exactly."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.sim.history import History
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

VISITS, FINDS = range(2)


class Field(NamedTuple):
    """All copies, and what they have been worth so far."""

    times: Floats
    first: Integers
    seen: Integers  # index of the first change that the copy does not have
    current: Floats  # the copy is as of this moment
    fresh_time: Floats
    stale_time: Floats
    stale_age: Floats  # time integral of the age of the stale copy
    visits: Integers  # of each page
    tally: Integers
    span: Floats  # (scored from, end)
    births: (
        Floats  # when each page came to be, or else the start: nobody visits it before, and its copy counts from then
    )
    ends: Floats  # when each page is gone: from then on its copy counts for nothing
    said: Floats  # statements about copies that a visit checked, and their squared errors


def new_field(history: History, score_from: float) -> Field:
    """Every copy is current at the start; a page that is born later is known from its birth on, with a copy of then."""
    pages = history.pages
    births = np.full(pages, history.start)
    if history.births is not None:
        births = np.maximum(births, history.births)
    return Field(
        times=history.times,
        first=history.first,
        seen=history.first[:-1].copy(),
        current=births.copy(),
        fresh_time=np.zeros(pages),
        stale_time=np.zeros(pages),
        stale_age=np.zeros(pages),
        visits=np.zeros(pages, np.int64),
        tally=np.zeros(2, np.int64),
        span=np.array([score_from, history.end]),
        births=births,
        ends=np.full(pages, np.inf) if history.ends is None else history.ends.astype(np.float64),
        said=np.zeros(2),
    )


@compiled
def _account(field: Field, page: int, spoiled: float, now: float) -> None:
    """The copy was fresh until `spoiled` and stale from then on until now."""
    score_from = field.span[0]
    begin = max(field.current[page], score_from)
    now = min(now, field.ends[page])
    if now <= begin:
        return
    field.fresh_time[page] += max(0.0, min(spoiled, now) - begin)
    if spoiled < now:
        late = max(spoiled, score_from)
        field.stale_time[page] += now - late
        field.stale_age[page] += 0.5 * ((now - spoiled) ** 2 - (late - spoiled) ** 2)


@compiled
def visit(field: Field, page: int, now: float) -> bool:
    """Renew the copy; whether the page had changed."""
    last = field.first[page + 1]
    old = field.seen[page]
    new = old
    while new < last and field.times[new] <= now:
        new += 1
    changed = new > old
    _account(field, page, field.times[old] if changed else now, now)
    field.seen[page] = new
    field.current[page] = now
    if now > field.span[0]:
        field.visits[page] += 1
        field.tally[VISITS] += 1
        field.tally[FINDS] += changed
    return bool(changed)


@compiled
def is_gone(field: Field, page: int, now: float) -> bool:
    """Whether a visit finds nothing any more, so that the page need not be visited again."""
    return bool(field.ends[page] <= now)


def coming(field: Field, start: float) -> Integers:
    """The pages that are born after the start, in the order of their births."""
    order = np.argsort(field.births, kind="stable")
    return np.asarray(order[field.births[order] > start], np.int64)


@compiled
def modified(field: Field, page: int) -> float:
    """When the copy's content was last changed, as a server says in Last-Modified; its birth if it never was."""
    seen = field.seen[page]
    return float(field.times[seen - 1] if seen > field.first[page] else field.births[page])


@compiled
def entries_since(field: Field, page: int, moment: float) -> int:
    """How many changes of the copy's content are younger than a moment, as the dated entries of a feed show."""
    k = field.seen[page]
    while k > field.first[page] and field.times[k - 1] > moment:
        k -= 1
    return int(field.seen[page] - k)


@compiled
def close(field: Field) -> None:
    """The end: score what the copies have been worth since their last visit."""
    end = field.span[1]
    for page in range(field.current.size):
        old = field.seen[page]
        spoiled = end
        if old < field.first[page + 1] and field.times[old] < end:
            spoiled = field.times[old]
        _account(field, page, spoiled, end)
        field.current[page] = end

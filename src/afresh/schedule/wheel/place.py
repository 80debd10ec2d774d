"""Where a page belongs: when it comes up, and the list it waits in until then.

A page on the wheel comes up at the moment its staleness reaches its threshold. A page that is up lies on a shelf with
others of about the same value, so that the best of a backlog goes first, however long it is. A page whose host is not
ready is parked with its host.
"""

import math
from typing import Any

import numpy as np

from afresh.schedule.wheel.inlined import inlined
from afresh.schedule.wheel.lists import BUCKETS, put_first, put_last, take_out
from afresh.schedule.wheel.memory import control_at, extra_of, host_at, page_at
from afresh.schedule.wheel.policies import seen
from afresh.schedule.wheel.table import EMPTY, LOOSE, PARKED, PAUSED, READY, SHELVES, SPECIAL, URGENT, WHEEL
from afresh.schedule.wheel.worth import crawled_of, longest_of, may_go_at, worth
from afresh.value.predictive import predictive_staleness, silent_time, told

_URGENT_SHELF = SHELVES - 1
_SHELF_OF_HALF = 1022 << 5  # of the value 1/2: the bits of its exponent
# A page that comes up this little below the price is taken nevertheless: finding the exact moment costs more.
NEARLY = 0.98


@inlined
def due_by_time(core: int, page: Any, threshold: float) -> float:
    """When the page's staleness reaches a threshold with the signals that it has heard."""
    silent_rate, _, weight, shape = seen(page, control_at(core).policy)
    rest = threshold - told(float(page.signals), weight, shape)
    return float(page.current + silent_time(rest, silent_rate, shape))


@inlined
def set_due(core: int, slot: int, now: float) -> None:
    """When the page's staleness reaches its threshold if no signal comes."""
    page = page_at(core, slot)
    threshold = np.float64(page.threshold)
    due = math.inf
    if threshold < math.inf:
        silent_rate, _, weight, shape = seen(page, control_at(core).policy)
        if predictive_staleness(now - page.current, float(page.signals), silent_rate, weight, shape) >= threshold:
            due = now
        else:
            due = max(now, due_by_time(core, page, threshold))
    due = min(due, crawled_of(core, page) + longest_of(core, page)) if page.current > -math.inf else due
    page.due = max(due, may_go_at(core, page))


@inlined
def to_wheel(core: int, slot: int) -> None:
    """Put a page, which is in no list, on the wheel by its due time.

    Beyond the horizon it is put somewhere in the wheel's far half, to be looked at on the way; scattered, so that many
    pages that never come up do not all have to be looked at in the same moment.
    """
    control = control_at(core)
    page = page_at(core, slot)
    buckets = control.buckets
    ahead = page.due / control.width
    if ahead < control.bucket + buckets - 2:
        bucket = max(control.bucket, np.int64(math.floor(ahead)))
    else:
        half = buckets >> 1
        bucket = control.bucket + half + (slot * 2_654_435_761 & 0x7FFFFFFF) % (half - 2)
    page.place = WHEEL
    put_last(core, BUCKETS + (bucket & (buckets - 1)), slot)


@inlined
def shelf_of(control: Any, value: float) -> int:
    """The shelf for this value: higher for higher values, in steps of two to three percent."""
    # The exponent of a double and the first five bits of its mantissa: 32 shelves an octave.
    shelf = (np.float64(value).view(np.int64) >> 47) - _SHELF_OF_HALF - control.base
    return int(max(0, min(_URGENT_SHELF - 1, shelf)))


@inlined
def to_shelf(core: int, slot: int, value: float) -> None:
    """Make a page, which is in no list, ready to be picked."""
    control = control_at(core)
    page = page_at(core, slot)
    if page.marks & URGENT:
        shelf = _URGENT_SHELF
    else:
        shelf = shelf_of(control, value)
    page.place = READY
    put_last(core, shelf, slot)
    control.ready += 1
    if page.current == -math.inf:
        page.marks |= EMPTY
        control.empty += 1
    control.top = max(control.top, shelf)
    if shelf < _URGENT_SHELF:
        control.bottom = min(control.bottom, shelf)


@inlined
def to_host(core: int, slot: int) -> None:
    """Park a page, which is in no list, with its host until that is ready.

    Of those that have waited longest, few are compared then: what an operator wants is among them.
    """
    page = page_at(core, slot)
    page.place = PARKED
    if page.marks & URGENT or (page.marks & SPECIAL and extra_of(core, page).longest < math.inf):
        put_first(core, SHELVES + page.host, slot)
    else:
        put_last(core, SHELVES + page.host, slot)
    host_at(core, page.host).parked += 1
    if page.current == -math.inf:
        page.marks |= EMPTY
        host_at(core, page.host).empty += 1


@inlined
def lift(core: int, slot: int) -> None:
    """Take a page out of whatever list it is in."""
    page = page_at(core, slot)
    empty = 1 if page.marks & EMPTY else 0
    if page.place == READY:
        control_at(core).ready -= 1
        control_at(core).empty -= empty
    elif page.place == PARKED:
        host_at(core, page.host).parked -= 1
        host_at(core, page.host).empty -= empty
    elif page.place != WHEEL:
        if page.place == LOOSE:
            page.place = PAUSED
        return
    take_out(core, slot)
    page.place = PAUSED
    page.marks &= ~EMPTY & 255


@inlined
def wait_for_value(core: int, slot: int, now: float) -> None:
    """A page that has nothing to gain now: look again soon if time alone can change that, else once a revolution."""
    control = control_at(core)
    page = page_at(core, slot)
    grows = page.request_rate > 0.0 and seen(page, control.policy)[0] > 0.0
    page.due = now + control.width if grows else math.inf
    to_wheel(core, slot)


@inlined
def _was_passed(core: int, slot: int, now: float) -> bool:
    """Whether the wheel has run ahead of the moment when the page is due: all who may go were brought forward there."""
    control = control_at(core)
    page = page_at(core, slot)
    ahead = control.ahead > control.bucket and page.due < control.ahead * control.width
    return bool(ahead and may_go_at(core, page) <= now)


@inlined
def settle(core: int, slot: int, now: float) -> None:
    """Put a page, which is in no list, where its threshold wants it: on the wheel, or on a shelf if it is due.

    Where the wheel has run ahead it would pass over the page until that is due, however much it is worth among those
    that were brought forward: it joins them.
    """
    page = page_at(core, slot)
    if control_at(core).exact:
        page.place = LOOSE
        page.due = math.inf
        return
    if not page.marks & URGENT:
        set_due(core, slot, now)
        if page.due > now:
            value = worth(core, slot, now) if _was_passed(core, slot, now) else 0.0
            if value > 0.0:
                to_shelf(core, slot, value)
            else:
                to_wheel(core, slot)
            return
    value = worth(core, slot, now)
    if value > 0.0 or page.marks & URGENT:
        to_shelf(core, slot, value)
    else:
        wait_for_value(core, slot, now)

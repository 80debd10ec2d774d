"""Where a page belongs: its value, its threshold, when it comes up, and the list it waits in until then.

A page on the wheel comes up at the moment its staleness reaches its threshold. A page that is up lies on a shelf with
others of about the same value, so that the best of a backlog goes first, however long it is. A page whose host is not
ready is parked with its host.
"""

import math
from typing import Any

import numpy as np

from afresh.schedule.inlined import inlined
from afresh.schedule.lists import put_first, put_last, take_out
from afresh.schedule.policies import seen, threshold_at, value_at
from afresh.schedule.table import EPOCH_SHIFT, PARKED, PAUSED, READY, SHELVES, URGENT, WHEEL, State
from afresh.value.kernels import page_staleness

_STEPS = 32  # shelves an octave of value
_URGENT_SHELF = SHELVES - 1
# A page that comes up this little below the price is taken all the same: finding the exact moment costs more.
NEARLY = 0.98
FOREVER = 1e300  # the age of what has no copy yet: finite, so that rates times ages never become 0·∞


@inlined
def price_of(state: State, page: Any) -> float:
    """What a crawl of the page must gain per cost: the price, or its host's own."""
    control = state.control[0]
    if control.exact:
        return float(control.floor)
    price = float(control.price)
    if page.host >= 0:
        price = max(price, float(state.hosts[page.host].price))
    return price


@inlined
def value_of(state: State, slot: int, now: float) -> float:
    """V·μ/cost of a page at this moment."""
    control = state.control[0]
    page = state.pages[slot]
    silent_rate, signal_rate, weight = seen(page, control.policy)
    x = page_staleness(min(now - page.current, FOREVER), float(page.signals), silent_rate, weight)
    value = value_at(x, silent_rate, signal_rate, weight, control.terms)
    return np.float64(page.request_rate) * value / np.float64(page.cost)


@inlined
def longest_of(state: State, page: Any) -> float:
    """The page is to be crawled at least every so many seconds."""
    longest = float(state.control[0].longest)
    if page.extra >= 0:
        longest = min(longest, float(state.extra[page.extra].longest))
    return longest


@inlined
def may_go_at(state: State, page: Any) -> float:
    """The page itself must not be crawled before this moment."""
    if page.extra < 0:
        return -math.inf
    extra = state.extra[page.extra]
    return max(float(extra.not_before), float(page.current + extra.shortest))


@inlined
def worth(state: State, slot: int, now: float) -> float:
    """What the page is ranked by: its value, or more if it has waited longer than it may."""
    value = value_of(state, slot, now)
    page = state.pages[slot]
    longest = longest_of(state, page)
    if longest < math.inf and page.current > -math.inf:
        over = (now - page.current) / longest
        if over >= 1.0 - 1e-9:
            value = max(value, max(float(state.control[0].price), 1e-300) * (0.1 + over))
    return value


@inlined
def set_rate(state: State, slot: int, rate: float) -> None:
    """Note what the page asks for per second, and keep the sums in step."""
    control = state.control[0]
    page = state.pages[slot]
    old = np.float64(page.rate)
    page.rate = min(rate, 1e30)
    new = np.float64(page.rate)
    control.demand += new - old
    if (page.marks >> EPOCH_SHIFT) != control.epoch:
        page.marks = (page.marks & 15) | (control.epoch << EPOCH_SHIFT)
        control.stale_demand = max(0.0, control.stale_demand - old)
    step = (1 if new > 0.0 else 0) - (1 if old > 0.0 else 0)
    control.active += step
    if page.host >= 0:
        host = state.hosts[page.host]
        host.demand += new - old
        host.active += step


@inlined
def set_threshold(state: State, slot: int) -> None:
    """Find the staleness at which the page's value reaches the present price, and what crawling there costs."""
    control = state.control[0]
    page = state.pages[slot]
    x, rate = math.inf, 0.0
    cost = np.float64(page.cost)
    if page.request_rate > 0.0:
        price = price_of(state, page) * cost / np.float64(page.request_rate)
        tolerance = 1e-8 if control.exact else 3e-2
        x, rate = threshold_at(price, page, control.policy, control.terms, np.float64(page.threshold), tolerance)
    longest = longest_of(state, page)
    rate = max(rate, 1.0 / longest)
    if page.extra >= 0:
        shortest = float(state.extra[page.extra].shortest)
        if shortest > 0.0:
            rate = min(rate, 1.0 / shortest)
    page.threshold = x * (1.0 - 1e-6) if control.exact else x
    set_rate(state, slot, min(cost * rate, control.budget))


@inlined
def set_due(state: State, slot: int, now: float) -> None:
    """When the page's staleness reaches its threshold if no signal comes."""
    page = state.pages[slot]
    threshold = np.float64(page.threshold)
    due = math.inf
    if threshold < math.inf:
        silent_rate, _, weight = seen(page, state.control[0].policy)
        missing = threshold - page_staleness(now - page.current, float(page.signals), silent_rate, weight)
        if missing <= 0.0:
            due = now
        elif silent_rate > 0.0:
            due = now + missing / silent_rate
    due = min(due, page.current + longest_of(state, page)) if page.current > -math.inf else due
    page.due = max(due, may_go_at(state, page))


@inlined
def to_wheel(state: State, slot: int) -> None:
    """Put a page, which is in no list, on the wheel by its due time.

    Beyond the horizon it is put somewhere in the wheel's far half, to be looked at on the way; scattered, so that many
    pages that never come up do not all have to be looked at in the same moment.
    """
    control = state.control[0]
    page = state.pages[slot]
    buckets = state.wheel.size
    ahead = page.due / control.width
    if ahead < control.bucket + buckets - 2:
        bucket = max(control.bucket, np.int64(math.floor(ahead)))
    else:
        half = buckets >> 1
        bucket = control.bucket + half + (slot * 2_654_435_761 & 0x7FFFFFFF) % (half - 2)
    page.place = WHEEL
    put_first(state, bucket & (buckets - 1), slot)


@inlined
def shelf_of(control: Any, value: float) -> int:
    """The shelf for this value: higher for higher values, in steps of two to three percent."""
    mantissa, exponent = math.frexp(value)
    shelf = exponent * _STEPS + int((mantissa - 0.5) * (2 * _STEPS)) - control.base
    return int(max(0, min(_URGENT_SHELF - 1, shelf)))


@inlined
def to_shelf(state: State, slot: int, value: float) -> None:
    """Make a page, which is in no list, ready to be picked."""
    control = state.control[0]
    page = state.pages[slot]
    if page.marks & URGENT:
        shelf = _URGENT_SHELF
    elif control.exact:
        shelf = 0
    else:
        shelf = shelf_of(control, value)
    page.place = READY
    put_last(state, shelf, slot)
    control.ready += 1
    control.top = max(control.top, shelf)
    if shelf < _URGENT_SHELF:
        control.bottom = min(control.bottom, shelf)


@inlined
def to_host(state: State, slot: int) -> None:
    """Park a page, which is in no list, with its host until that is ready."""
    page = state.pages[slot]
    page.place = PARKED
    put_last(state, SHELVES + page.host, slot)
    state.hosts[page.host].parked += 1


@inlined
def lift(state: State, slot: int) -> None:
    """Take a page out of whatever list it is in."""
    page = state.pages[slot]
    if page.place == READY:
        state.control[0].ready -= 1
    elif page.place == PARKED:
        state.hosts[page.host].parked -= 1
    elif page.place != WHEEL:
        return
    take_out(state, slot)
    page.place = PAUSED


@inlined
def wait_for_value(state: State, slot: int, now: float) -> None:
    """A page that has nothing to gain now: look again soon if time alone can change that, else once a revolution."""
    control = state.control[0]
    page = state.pages[slot]
    grows = page.request_rate > 0.0 and seen(page, control.policy)[0] > 0.0
    if control.exact and grows:
        to_shelf(state, slot, 0.0)
        return
    page.due = now + control.width if grows else math.inf
    to_wheel(state, slot)


@inlined
def settle(state: State, slot: int, now: float) -> None:
    """Put a page, which is in no list, where its threshold wants it: on the wheel, or on a shelf if it is due."""
    control = state.control[0]
    page = state.pages[slot]
    if not page.marks & URGENT:
        set_due(state, slot, now)
        # A bucket that has begun is not looked at again: exact mode keeps at hand what is due within it.
        soon = control.exact and page.due < control.bucket * control.width
        if page.due > now and not soon:
            to_wheel(state, slot)
            return
        if soon:
            to_shelf(state, slot, 0.0)
            return
    value = worth(state, slot, now)
    if value > 0.0 or page.marks & URGENT:
        to_shelf(state, slot, value)
    else:
        wait_for_value(state, slot, now)

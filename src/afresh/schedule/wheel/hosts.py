"""Politeness: when a host may be asked again, the pages that wait for it, and the price of a host at its cap.

A host is ready if none of its pages is leased, its gap is over and its own budget has a token. Due pages of a host that
is not ready are parked with it; a heap over the hosts with parked pages says which is ready first. A host that cannot
serve all its pages at the common price gets a price of its own, at which it can: its best pages go first, and the
budget that it cannot take flows elsewhere.
"""

import math
from typing import Any

from afresh.schedule.wheel.inlined import inlined
from afresh.schedule.wheel.memory import control_at, host_at, page_at, waking_at
from afresh.schedule.wheel.place import NEARLY, lift, settle, to_shelf
from afresh.schedule.wheel.table import URGENT
from afresh.schedule.wheel.worth import price_of, set_threshold, worth
from afresh.value.compiled import compiled

# A host's budget is met on average; this many crawls may come early if others were late.
_BURST = 3.0
_LATELY = 20  # picks that the price of a host with a budget of its own follows, in exact mode
_LOOK_AT = 8  # parked pages that are compared when a host is ready


@inlined
def ready_at(host: Any) -> float:
    """When the host may be asked again."""
    return max(max(float(host.busy_until), float(host.rests_until)), float(host.spent_until))


@inlined
def host_is_ready(core: int, slot: int, now: float) -> bool:
    """Whether the page's host, if it has one, may be asked now."""
    number = page_at(core, slot).host
    return number < 0 or ready_at(host_at(core, number)) <= now


@inlined
def _place(core: int, number: int, position: int) -> None:
    waking_at(core, position).host = number
    host_at(core, number).in_heap = position + 1


@inlined
def _wakes_at(core: int, position: int) -> float:
    return ready_at(host_at(core, waking_at(core, position).host))


@compiled
def _sift(core: int, position: int) -> None:
    """Restore the heap's order round a host whose time has changed."""
    size = control_at(core).heap_size
    number = waking_at(core, position).host
    key = ready_at(host_at(core, number))
    while position > 0:
        above = (position - 1) >> 1
        if _wakes_at(core, above) <= key:
            break
        _place(core, waking_at(core, above).host, position)
        position = above
    while True:
        below = 2 * position + 1
        if below >= size:
            break
        if below + 1 < size and _wakes_at(core, below + 1) < _wakes_at(core, below):
            below += 1
        if _wakes_at(core, below) >= key:
            break
        _place(core, waking_at(core, below).host, position)
        position = below
    _place(core, number, position)


@compiled
def touch_host(core: int, number: int) -> None:
    """Call after a host's times or its parked pages changed: keeps it in the heap while pages wait for it."""
    if number < 0:
        return
    host, control = host_at(core, number), control_at(core)
    if host.in_heap > 0:
        _sift(core, host.in_heap - 1)
    elif host.parked > 0:
        control.heap_size += 1
        _place(core, number, control.heap_size - 1)
        _sift(core, control.heap_size - 1)


@compiled
def _leave_heap(core: int) -> int:
    control = control_at(core)
    number = waking_at(core, 0).host
    host_at(core, number).in_heap = 0
    control.heap_size -= 1
    if control.heap_size > 0:
        _place(core, waking_at(core, control.heap_size).host, 0)
        _sift(core, 0)
    return int(number)


@compiled
def _send_best(core: int, number: int, now: float) -> None:
    """Shelve the best of the first few pages parked with a host; those not worth its price any more leave."""
    host, control = host_at(core, number), control_at(core)
    candidate, slot, best = int(host.first), -1, 0.0
    for _ in range(_LOOK_AT):
        if candidate < 0:
            break
        page = page_at(core, candidate)
        following = int(page.next)
        value = math.inf if page.marks & URGENT else worth(core, candidate, now)
        below = value < NEARLY * price_of(core, page) and control.ahead <= control.bucket  # else it was brought forward
        if below or not value > 0.0:
            lift(core, candidate)
            set_threshold(core, candidate)
            settle(core, candidate, now)
        elif value > best:
            slot, best = candidate, value
        candidate = following
    if slot >= 0:
        lift(core, slot)
        to_shelf(core, slot, best)
    elif host.parked > 0:
        touch_host(core, number)


@compiled
def wake_hosts(core: int, now: float) -> None:
    """Bring the best page of each host that has become ready back to the shelves."""
    control = control_at(core)
    for _ in range(control.heap_size):
        if control.heap_size == 0 or ready_at(host_at(core, waking_at(core, 0).host)) > now:
            break
        number = _leave_heap(core)
        if host_at(core, number).parked > 0:
            _send_best(core, number, now)


@inlined
def spend(core: int, slot: int, now: float) -> None:
    """A page of the host was picked: count its cost and, where picks are crawled at once, its gap."""
    page = page_at(core, slot)
    if page.host < 0:
        return
    host = host_at(core, page.host)
    if host.budget < math.inf:
        step = page.cost / host.budget
        # `spent_until` runs _BURST steps behind, so that a token that came while nothing was due is not lost.
        host.spent_until = max(host.spent_until, now - _BURST * step) + step
        value = control_at(core).pick_value
        if control_at(core).exact and not math.isnan(value):
            host.picks = min(host.picks + 1, _LATELY)
            host.price += (value - host.price) / host.picks
    if control_at(core).lease > 0.0:
        host.busy_until = now + control_at(core).lease
    else:
        host.rests_until = max(host.rests_until, now + host.gap)
    touch_host(core, page.host)


@inlined
def cap_of(host: Any) -> float:
    """Cost per second that the host can take at most."""
    turn = max(float(host.gap), float(host.service))
    return min(float(host.budget), 1.0 / turn if turn > 0.0 else math.inf)


@inlined
def rests(core: int, number: int, until: float) -> None:
    """Nobody asks the host before that moment."""
    if number >= 0:
        host = host_at(core, number)
        host.rests_until = max(host.rests_until, until)
        touch_host(core, number)


@compiled
def served(core: int, number: int, now: float, took: float, gap: float) -> None:
    """A crawl of the host ended: it rests for `gap`, and we learn how long one turn with it takes."""
    if number < 0:
        return
    host = host_at(core, number)
    host.busy_until = -math.inf
    gap = max(gap, float(host.gap))
    host.rests_until = max(host.rests_until, now + gap)
    host.service = took + gap if host.service == 0.0 else 0.8 * host.service + 0.2 * (took + gap)
    touch_host(core, number)


@inlined
def steer_host(core: int, number: int, now: float) -> None:
    """Move the price of a host towards the one at which its pages ask for its cap; none if that is the common one.

    The rule is that of the common price (see `price`), with the copies parked as the backlog.
    """
    control = control_at(core)
    if number < 0 or control.exact:
        return
    host, price = host_at(core, number), float(control.price)
    cap = cap_of(host)
    if cap == math.inf:
        return
    elapsed = now - host.updated
    host.updated = now
    if not 0.0 < elapsed < math.inf or cap <= 0.0:
        return
    late = host.parked - host.empty if control.ahead <= control.bucket else 0  # pages brought forward are not late
    pages = max(8.0, float(host.active + late))
    pull = min(1.0, host.demand / cap - 1.0 + max(0.0, late - 1.0) / pages)
    step = min(0.1, max(-0.1, elapsed * cap / pages * pull))
    own = max(price, float(host.price)) * math.exp(step)
    host.price = own if own > price else 0.0

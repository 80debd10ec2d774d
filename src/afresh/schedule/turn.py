"""One tick of the budget: what has come up is shelved, the best of it is picked, the price moves a little.

Contract of the compiled functions: `now` never goes backwards; `take` picks one page, which is in no list afterwards,
and the caller must then call `crawl` (its copy is as of now) or `lease_out`. Each costs O(1) amortised in the number of
pages. The arrays of `State` do not grow here: slots, hosts, and room in the ring of leases must exist.
"""

import math

import numpy as np

from afresh.schedule.exact import exact_pick
from afresh.schedule.hosts import host_is_ready, served, spend, steer_host, touch_host, wake_hosts
from afresh.schedule.inlined import inlined
from afresh.schedule.lists import take_out
from afresh.schedule.place import (
    NEARLY,
    lift,
    longest_of,
    may_go_at,
    price_of,
    set_due,
    set_rate,
    set_threshold,
    settle,
    shelf_of,
    to_host,
    to_shelf,
    to_wheel,
    value_of,
    wait_for_value,
    worth,
)
from afresh.schedule.policies import LDS, THRESHOLD, seen
from afresh.schedule.price import steer
from afresh.schedule.table import EPOCH_SHIFT, LEASED, PAUSED, SHELVES, TO_PAUSE, URGENT, WHEEL, State
from afresh.value.compiled import compiled

_AT_ONCE = 32  # pages taken off the wheel a tick at most, so that no tick takes long
_CHOICE = 4  # pages among which the best is picked when the wheel has to run ahead
_MORE = 12  # pages of the last bucket that are shelved beyond that
_LOOKS = 4096  # pages that a tick looks at, at most, while the wheel runs ahead
_SWEEP = 4  # thresholds set anew a tick
_STEPS = 16  # shelves that are searched for a page to be valued anew


@inlined
def come_up(state: State, slot: int, now: float) -> None:
    """A page that was just taken off the wheel: to a shelf, to its host, or back if it is not worth it yet."""
    control = state.control[0]
    page = state.pages[slot]
    if page.due >= control.bucket * control.width and page.due < math.inf:
        to_wheel(state, slot)  # from beyond the horizon
        return
    if not host_is_ready(state, slot, now):
        to_host(state, slot)
        touch_host(state, page.host)
        return
    value = worth(state, slot, now)
    if value < NEARLY * price_of(state, page) and not control.exact and control.policy != LDS:
        steer_host(state, page.host, now)
        set_threshold(state, slot)
        set_due(state, slot, now)
        if page.due >= control.bucket * control.width:
            to_wheel(state, slot)
            if page.host >= 0:
                touch_host(state, page.host)  # it may have been the one that its host had sent
            return
    if value > 0.0:
        to_shelf(state, slot, _rank(state, slot, value, now))
    else:
        wait_for_value(state, slot, now)
        if page.host >= 0:
            touch_host(state, page.host)


@inlined
def _rank(state: State, slot: int, value: float, now: float) -> float:
    """What decides who goes first: the value, or for LDS how late the page is."""
    control = state.control[0]
    if control.policy != LDS:
        return value
    return float(control.price) * math.exp(max(-20.0, min(20.0, 0.01 * control.budget * (now - state.pages[slot].due))))


@inlined
def drain(state: State, now: float) -> None:
    """Bring up the pages of all buckets that have begun, some at a time."""
    control = state.control[0]
    mask = state.wheel.size - 1
    target = np.int64(math.floor(now / control.width))
    if target - control.bucket > mask:
        control.bucket = target - mask  # after a long silence every bucket is looked at once, not once a revolution
    left = control.pages if control.exact else _AT_ONCE
    while control.bucket <= target:
        slot = state.wheel[control.bucket & mask]
        while slot >= 0 and left > 0:
            take_out(state, slot)
            # Whatever is still early goes at least one bucket on, so that this loop ends.
            control.bucket += 1
            come_up(state, slot, now)
            control.bucket -= 1
            slot = state.wheel[control.bucket & mask]
            left -= 1
        if slot >= 0:
            return
        control.bucket += 1


@inlined
def _bring_forward(state: State, bucket: int, now: float, wanted: int, anyone: bool) -> int:
    """Shelve pages of a bucket that lies ahead, as far as they may go; how many were looked at.

    Unless `anyone` will do, pages that only pass through the bucket because they are due beyond the horizon stay.
    """
    end = math.inf if anyone else (bucket + 1) * state.control[0].width
    slot = state.wheel[bucket & (state.wheel.size - 1)]
    looks = 0
    while slot >= 0 and state.control[0].ready < wanted:
        following = state.pages[slot].next
        page = state.pages[slot]
        looks += 1
        if page.due <= end and may_go_at(state, page) <= now and host_is_ready(state, slot, now):
            value = worth(state, slot, now)
            if value > 0.0:
                take_out(state, slot)
                to_shelf(state, slot, _rank(state, slot, value, now))
        slot = following
    return looks


@inlined
def run_ahead(state: State, now: float, wanted: int) -> None:
    """Nothing is due: shelve those who will come up next, for the next to cross is nearly the best."""
    control = state.control[0]
    control.ahead = max(control.ahead, control.bucket)
    looks = 0
    for turn in range(2):
        while control.ready < wanted and control.ahead < control.bucket + state.wheel.size and looks < _LOOKS:
            looks += _bring_forward(state, control.ahead, now, wanted + _MORE, turn == 1)
            if control.ready < wanted + _MORE:
                control.ahead += 1
        if control.ready > 0 or turn == 1 or looks >= _LOOKS:
            return
        # Pages may have been put where the wheel had already passed, or are due beyond the horizon.
        control.ahead = control.bucket


@inlined
def _value_anew(state: State, slot: int, now: float) -> None:
    """Move a waiting page to the shelf of its present value, or back to the wheel if it is not worth the price."""
    control = state.control[0]
    rank = max(1e-300, _rank(state, slot, worth(state, slot, now), now))
    # Where the wheel has run ahead, the page may have been brought forward, and would not be found again in time.
    if control.ahead <= control.bucket and rank < NEARLY * price_of(state, state.pages[slot]):
        lift(state, slot)
        come_up(state, slot, now)
    elif shelf_of(control, rank) != control.rotate - 1:
        lift(state, slot)
        to_shelf(state, slot, rank)


@inlined
def _look_through(state: State, now: float) -> None:
    """Value one of the waiting pages anew: nobody is forgotten, and who is not worth it any more leaves."""
    control = state.control[0]
    top = min(control.top, SHELVES - 2)
    for _ in range(_STEPS):
        if control.rotate > top or control.rotate < control.bottom:
            control.rotate = control.bottom
        slot = state.shelf_first[control.rotate]
        if slot < 0 and control.rotate == control.bottom and control.bottom < top:
            control.bottom += 1
        control.rotate += 1
        if slot >= 0:
            _value_anew(state, slot, now)
            return


@inlined
def best(state: State, now: float) -> int:
    """Take the page off the highest shelf whose host is ready; −1: there is none."""
    control = state.control[0]
    while control.ready > 0:
        while state.shelf_first[control.top] < 0:
            control.top -= 1
        slot = int(state.shelf_first[control.top])
        lift(state, slot)
        if host_is_ready(state, slot, now):
            return slot
        to_host(state, slot)
        touch_host(state, state.pages[slot].host)
    control.top = 0
    return -1


@compiled
def sweep(state: State, now: float) -> None:
    """After a jump of the price: set a few more thresholds anew, so that all are within a quarter of pages/budget."""
    control = state.control[0]
    end = min(control.used, control.sweep + _SWEEP)
    while control.sweep < end:
        slot = control.sweep
        control.sweep += 1
        page = state.pages[slot]
        if page.place == WHEEL and (page.marks >> EPOCH_SHIFT) != control.epoch:
            lift(state, slot)
            set_threshold(state, slot)
            settle(state, slot, now)


@compiled
def take(state: State, now: float) -> int:
    """Pick the page to crawl at this tick and take it out of all lists; −1: no page may go or has anything to gain."""
    control = state.control[0]
    # A call costs more than finding out that there is nothing to do.
    if control.leases_first < control.leases_last:
        end_leases(state, now)
    if control.heap_size > 0:
        wake_hosts(state, now)
    drain(state, now)
    if control.exact:
        slot = exact_pick(state, now)
    else:
        if control.sweep < control.used:
            sweep(state, now)
        if control.ready < _CHOICE and control.policy != THRESHOLD:
            run_ahead(state, now, _CHOICE)
        if control.ready > 1:
            _look_through(state, now)
        slot = best(state, now)
        if slot < 0 and control.policy != THRESHOLD:
            run_ahead(state, now, 1)
            slot = best(state, now)
    if slot >= 0:
        control.pick_value = value_of(state, slot, now)
        spend(state, slot, now)
    if not control.exact:
        steer(state, now)
    elif slot >= 0:
        control.price += (control.pick_value - control.price) / max(20.0, control.pages / 4.0)
    return slot


@compiled
def look(state: State, now: float) -> int:
    """The page that `take` would pick, which stays where it is; −1: none."""
    end_leases(state, now)
    wake_hosts(state, now)
    drain(state, now)
    control = state.control[0]
    if control.exact:
        slot = exact_pick(state, now)
    else:
        if control.policy != THRESHOLD and control.ready < _CHOICE:
            run_ahead(state, now, _CHOICE)
        slot = best(state, now)
    if slot >= 0:
        to_shelf(state, slot, max(1e-300, _rank(state, slot, worth(state, slot, now), now)))
    return slot


@compiled
def crawl(state: State, slot: int, now: float) -> None:
    """The page that was just picked is crawled at this very moment: its age starts again."""
    page = state.pages[slot]
    host = page.host
    page.marks &= ~URGENT & 255
    planned = page.due
    page.current = now
    page.signals = 0
    steer_host(state, host, now)
    set_threshold(state, slot)
    if state.control[0].policy == LDS:
        _due_evenly(state, slot, planned, now)
        to_wheel(state, slot)
    else:
        settle(state, slot, now)


@inlined
def _due_evenly(state: State, slot: int, planned: float, now: float) -> None:
    """LDS: one interval after the page was due, not after it was crawled, so that its count stays close to its rate."""
    page = state.pages[slot]
    silent_rate, _, _ = seen(page, LDS)
    interval = np.float64(page.threshold) / silent_rate if silent_rate > 0.0 else math.inf
    interval = min(interval, longest_of(state, page))
    # A page that was crawled early or late by more than an interval starts anew.
    due = planned + interval
    page.due = due if abs(due - now) <= 2.0 * interval else now + interval


@compiled
def lease_out(state: State, slot: int, now: float) -> None:
    """Hand the page that was just picked out: it is in no list until `hand_in`, or until the lease ends."""
    control = state.control[0]
    page = state.pages[slot]
    page.place = LEASED
    page.due = now + control.lease
    page.previous = page.signals
    size = state.lease_slot.size
    state.lease_slot[control.leases_last % size] = slot
    state.lease_end[control.leases_last % size] = page.due
    control.leases_last += 1


@compiled
def hand_in(state: State, slot: int, now: float, crawled: float, gap: float) -> None:
    """The crawl is over; the copy is as of `crawled` (NaN: nothing was refreshed), and the host rests.

    A crawl that outlived its lease counts too, but the page may have been handed out again: what was heard of it stays.
    """
    page = state.pages[slot]
    fresh = not math.isnan(crawled)
    if fresh:
        page.current = crawled
        page.marks &= ~URGENT & 255
    if page.place == LEASED:
        if fresh:
            # Hints heard after the fetch began may be about a change that came too late for it.
            page.signals -= min(page.signals, page.previous)
        served(state, page.host, now, now - (page.due - state.control[0].lease), gap)
        page.place = PAUSED
        if page.marks & TO_PAUSE:
            page.marks &= ~TO_PAUSE & 255
            set_rate(state, slot, 0.0)
            return
    elif page.place == PAUSED:
        return
    lift(state, slot)
    steer_host(state, page.host, now)
    set_threshold(state, slot)
    settle(state, slot, now)
    touch_host(state, page.host)


@compiled
def end_leases(state: State, now: float) -> None:
    """Pages whose lease ended are in play again, as if they had not been given out."""
    control = state.control[0]
    size = state.lease_slot.size
    while control.leases_first < control.leases_last:
        at = control.leases_first % size
        slot, end = state.lease_slot[at], state.lease_end[at]
        page = state.pages[slot]
        held = page.place == LEASED and page.due == end
        if held and end > now:
            return
        if end > now and control.leases_last - control.leases_first < size:
            return
        control.leases_first += 1
        if held:
            hand_in(state, slot, now, math.nan, 0.0)

"""One tick of the budget: what has come up is shelved, the best of it is picked, the price moves a little.

Contract of the compiled functions: `now` never goes backwards; `take` picks one page, which is in no list afterwards,
and the caller must then call `crawl` (its copy is as of now) or `lease_out`. Each costs O(1) amortised in the number of
pages. The arrays of `State` do not grow here: slots, hosts, and room in the ring of leases must exist.
"""

import math

import numpy as np

from afresh.schedule.wheel.exact import exact_best, exact_pick
from afresh.schedule.wheel.hosts import host_is_ready, rests, served, spend, steer_host, touch_host, wake_hosts
from afresh.schedule.wheel.inlined import inlined
from afresh.schedule.wheel.lists import take_out
from afresh.schedule.wheel.memory import bucket_at, control_at, extra_at, extra_of, lease_at, page_at, shelf_at
from afresh.schedule.wheel.place import (
    NEARLY,
    lift,
    set_due,
    settle,
    shelf_of,
    to_host,
    to_shelf,
    to_wheel,
    wait_for_value,
)
from afresh.schedule.wheel.policies import THRESHOLD
from afresh.schedule.wheel.price import steer
from afresh.schedule.wheel.table import (
    EPOCH_SHIFT,
    LEASED,
    LOOSE,
    PARKED,
    PAUSED,
    READY,
    SHELVES,
    SPECIAL,
    TO_PAUSE,
    URGENT,
    WHEEL,
)
from afresh.schedule.wheel.worth import (
    about,
    alike,
    may_go_at,
    price_of,
    set_rate,
    set_threshold,
    value_of,
    worth,
)
from afresh.value.compiled import compiled

_AT_ONCE = 32  # pages taken off the wheel a tick at most, so that no tick takes long
_CHOICE = 4  # pages among which the best is picked when the wheel has to run ahead
_MORE = 12  # pages of the last bucket that are shelved beyond that
_LOOKS = 4096  # pages that a tick looks at, at most, while the wheel runs ahead
_SWEEP = 4  # thresholds set anew a tick
_EQUALS = 8  # pages of a shelf that are searched for one like its first, but of a lower slot
_FEW = 256  # while less than one page in this many is waiting, none waits long enough for its value to move much,
_SELDOM = 4  # and one is valued again every n-th tick; else at every tick
_WINDOW = 32  # neighbouring slots; the page among them that was left alone longest is visited, whatever that gains
_LIMITS = 16  # pages with limits that are looked at a tick
_STEPS = 16  # shelves that are searched for a page to be valued anew


@inlined
def come_up(core: int, slot: int, now: float) -> None:
    """A page that was just taken off the wheel: to a shelf, to its host, or back if it is not worth it yet."""
    control = control_at(core)
    page = page_at(core, slot)
    if page.due >= control.bucket * control.width and page.due < math.inf:
        to_wheel(core, slot)  # from beyond the horizon
        return
    if not host_is_ready(core, slot, now):
        to_host(core, slot)
        touch_host(core, page.host)
        return
    if page.due == math.inf:
        # Not worth the price at any age when last looked at, as pages that come round beyond the horizon mostly are.
        set_threshold(core, slot)
        set_due(core, slot, now)
        if page.due == math.inf:
            to_wheel(core, slot)
            if page.host >= 0:
                touch_host(core, page.host)
            return
    value = worth(core, slot, now)
    if value < NEARLY * price_of(core, page):
        steer_host(core, page.host, now)
        set_threshold(core, slot)
        set_due(core, slot, now)
        if page.due >= control.bucket * control.width:
            to_wheel(core, slot)
            if page.host >= 0:
                touch_host(core, page.host)  # it may have been the one that its host had sent
            return
    if value > 0.0:
        to_shelf(core, slot, value)
    else:
        wait_for_value(core, slot, now)
        if page.host >= 0:
            touch_host(core, page.host)


@inlined
def drain(core: int, now: float) -> None:
    """Bring up the pages of all buckets that have begun, some at a time."""
    control = control_at(core)
    mask = control.buckets - 1
    target = np.int64(math.floor(now / control.width))
    if target - control.bucket > mask:
        control.bucket = target - mask  # after a long silence every bucket is looked at once, not once a revolution
    left = _AT_ONCE
    while control.bucket <= target:
        slot = bucket_at(core, control.bucket & mask).first
        while slot >= 0 and left > 0:
            take_out(core, slot)
            # Whatever is still early goes at least one bucket on, so that this loop ends.
            control.bucket += 1
            come_up(core, slot, now)
            control.bucket -= 1
            slot = bucket_at(core, control.bucket & mask).first
            left -= 1
        if slot >= 0:
            return
        control.bucket += 1


@inlined
def _bring_forward(core: int, bucket: int, now: float, wanted: int, anyone: bool) -> int:
    """Shelve pages of a bucket that lies ahead, as far as they may go; how many were looked at.

    Those whose host rests are parked with it: the wheel comes by once, and would pass over them. Unless `anyone` will
    do, pages that only pass through the bucket because they are due beyond the horizon stay.
    """
    control = control_at(core)
    end = math.inf if anyone else (bucket + 1) * control.width
    slot = bucket_at(core, bucket & (control.buckets - 1)).first
    looks = 0
    while slot >= 0 and control.ready < wanted:
        following = page_at(core, slot).next
        page = page_at(core, slot)
        looks += 1
        if page.due <= end and may_go_at(core, page) <= now:
            value = worth(core, slot, now)
            if value > 0.0:
                take_out(core, slot)
                if host_is_ready(core, slot, now):
                    to_shelf(core, slot, value)
                else:
                    to_host(core, slot)
                    touch_host(core, page.host)
        slot = following
    return looks


@inlined
def run_ahead(core: int, now: float, wanted: int) -> None:
    """Nothing is due: shelve those who will come up next, for the next to cross is nearly the best."""
    control = control_at(core)
    control.ahead = max(control.ahead, control.bucket)
    looks = 0
    for turn in range(2):
        while control.ready < wanted and control.ahead < control.bucket + control.buckets and looks < _LOOKS:
            looks += _bring_forward(core, control.ahead, now, wanted + _MORE, turn == 1)
            if control.ready < wanted + _MORE:
                control.ahead += 1
        if control.ready > 0 or turn == 1 or looks >= _LOOKS:
            return
        # Pages may have been put where the wheel had already passed, or are due beyond the horizon.
        control.ahead = control.bucket


@inlined
def _value_anew(core: int, slot: int, now: float) -> None:
    """Move a waiting page to the shelf of its present value, or back to the wheel if it is not worth the price."""
    control = control_at(core)
    rank = max(1e-300, worth(core, slot, now))
    # Where the wheel has run ahead, the page may have been brought forward, and would not be found again in time.
    if control.ahead <= control.bucket and rank < NEARLY * price_of(core, page_at(core, slot)):
        lift(core, slot)
        come_up(core, slot, now)
    elif shelf_of(control, rank) != control.rotate - 1:
        lift(core, slot)
        to_shelf(core, slot, rank)


@inlined
def _look_through(core: int, now: float) -> None:
    """Value one of the waiting pages again, so that none is forgotten; one that is no longer worth a crawl leaves."""
    control = control_at(core)
    top = min(control.top, SHELVES - 2)
    for _ in range(_STEPS):
        if control.rotate > top or control.rotate < control.bottom:
            control.rotate = control.bottom
        slot = shelf_at(core, control.rotate).first
        if slot < 0 and control.rotate == control.bottom and control.bottom < top:
            control.bottom += 1
        control.rotate += 1
        if slot >= 0:
            _value_anew(core, slot, now)
            return


@inlined
def _lowest_of_equals(core: int, first: int) -> int:
    """The first page of a shelf, or among the next few one of a lower slot that is like it in all that counts."""
    slot, page = first, page_at(core, first)
    following = page.next
    for _ in range(_EQUALS):
        if following < 0:
            break
        other = page_at(core, following)
        if following < slot and alike(other, page):
            slot = following
        following = other.next
    return int(slot)


@inlined
def best(core: int, now: float) -> int:
    """Take the page off the highest shelf whose host is ready; −1: there is none."""
    control = control_at(core)
    while control.ready > 0:
        while shelf_at(core, control.top).first < 0:
            control.top -= 1
        slot = _lowest_of_equals(core, int(shelf_at(core, control.top).first))
        lift(core, slot)
        if host_is_ready(core, slot, now):
            return slot
        to_host(core, slot)
        touch_host(core, page_at(core, slot).host)
    control.top = 0
    return -1


@compiled
def sweep(core: int, now: float) -> None:
    """After a jump of the price: set a few more thresholds anew, so that all are within a quarter of pages/budget."""
    control = control_at(core)
    end = min(control.used, control.sweep + _SWEEP)
    while control.sweep < end:
        slot = control.sweep
        control.sweep += 1
        page = page_at(core, slot)
        if page.place == WHEEL and (page.marks >> EPOCH_SHIFT) != control.epoch:
            lift(core, slot)
            set_threshold(core, slot)
            settle(core, slot, now)


@inlined
def _pick(core: int, now: float) -> int:
    """About the best page, taken off its shelf; −1: there is none."""
    control = control_at(core)
    if control.sweep < control.used:
        sweep(core, now)
    if control.ready < _CHOICE and control.policy != THRESHOLD:
        run_ahead(core, now, _CHOICE)
    control.turns += 1
    if control.ready * _FEW > control.pages or control.turns % _SELDOM == 0:
        _look_through(core, now)
    slot = best(core, now)
    if slot < 0 and control.policy != THRESHOLD:
        run_ahead(core, now, 1)
        slot = best(core, now)
    return slot


@compiled
def _pick_oldest(core: int, now: float) -> int:
    """At every n-th pick, the page among some neighbours that was `left_alone_longest`, taken out of its list; else −1.

    The neighbours are others each time, so no page is left out for longer than it takes to go round. Every second
    round measures by the clock alone, so that no number of requests keeps the neighbours out for good.
    """
    control = control_at(core)
    control.oldest_in -= 1
    if control.oldest_in > 0:
        return -1
    control.oldest_in = control.oldest_every
    found, longest = -1, 0.0
    windows = (control.used + _WINDOW - 1) // _WINDOW  # of about the same size, and none reaches into the next round
    end = min(control.oldest_hand + (control.used + windows - 1) // max(1, windows), control.used)
    for slot in range(control.oldest_hand, end):
        page = page_at(core, slot)
        waits = (page.place == WHEEL or page.place == READY or page.place == PARKED) and page.request_rate > 0.0
        missed = now - page.current if waits else 0.0
        if waits and not control.oldest_by_clock:
            missed *= math.sqrt(page.request_rate)
        if missed > longest and may_go_at(core, page) <= now and host_is_ready(core, slot, now):
            found, longest = slot, missed
    control.oldest_hand = end
    if end >= control.used:
        control.oldest_hand = 0
        control.oldest_by_clock = 1 - control.oldest_by_clock
    if found >= 0:
        lift(core, found)
    return int(found)


@compiled
def _bring_overdue(core: int, now: float) -> None:
    """Pages left alone for longer than an operator allows go before all others: some are looked at, others each time.

    A page that came up early, for its value, may lie on a shelf behind very many others.
    """
    control = control_at(core)
    for _ in range(min(_LIMITS, control.extra_room)):
        control.extra_hand = (control.extra_hand + 1) % control.extra_room
        extra = extra_at(core, control.extra_hand)
        if extra.page < 0 or not math.inf > now - extra.crawled >= extra.longest:
            continue
        page = page_at(core, extra.page)
        waits = page.place == READY or page.place == WHEEL or page.place == PARKED
        if waits and may_go_at(core, page) <= now and host_is_ready(core, extra.page, now):
            lift(core, extra.page)
            to_shelf(core, extra.page, worth(core, extra.page, now))


@inlined
def _take_up(core: int, now: float) -> int:
    """Pick one of the pages that have come up; −1: there is none."""
    control = control_at(core)
    if control.heap_size > 0:
        wake_hosts(core, now)
    drain(core, now)
    if control.extra_room > 0:
        _bring_overdue(core, now)
    slot = _pick_oldest(core, now) if control.oldest_every > 0 else -1
    if slot >= 0:
        control.pick_value = control.price  # which it says nothing about
        return slot
    slot = _pick(core, now)
    if slot >= 0 and control.ahead > control.bucket:
        control.pick_value = about(core, slot, now)  # nobody else asks for it
    return slot


@compiled
def take(core: int, now: float) -> int:
    """Pick the page to crawl at this tick and take it out of all lists; −1: no page may go or has anything to gain."""
    control = control_at(core)
    # A call costs more than finding out that there is nothing to do.
    if control.leases_first < control.leases_last:
        end_leases(core, now)
    slot = exact_pick(core, now) if control.exact else _take_up(core, now)
    if slot >= 0:
        spend(core, slot, now)
    # The price moves by a part in the number of pages a tick: once a bucket is often enough.
    if not control.exact and now - control.updated >= 0.9 * control.width:
        steer(core, now)
    return slot


@compiled
def look(core: int, now: float) -> int:
    """The page that `take` would pick, which stays where it is; −1: none."""
    end_leases(core, now)
    control = control_at(core)
    if control.exact:
        return exact_best(core, now)
    wake_hosts(core, now)
    drain(core, now)
    if control.policy != THRESHOLD and control.ready < _CHOICE:
        run_ahead(core, now, _CHOICE)
    slot = best(core, now)
    if slot >= 0:
        to_shelf(core, slot, max(1e-300, worth(core, slot, now)))
    return slot


@compiled
def crawl(core: int, slot: int, now: float) -> None:
    """The page that was just picked is crawled at this very moment: its age starts again."""
    page = page_at(core, slot)
    host = page.host
    page.marks &= ~URGENT & 255
    page.current = now
    page.signals = 0.0
    if page.marks & SPECIAL:
        extra_of(core, page).crawled = now
    steer_host(core, host, now)
    set_threshold(core, slot)
    settle(core, slot, now)


@compiled
def lease_out(core: int, slot: int, now: float) -> None:
    """Hand the page that was just picked out: it is in no list until `hand_in`, or until the lease ends."""
    control = control_at(core)
    page = page_at(core, slot)
    page.place = LEASED
    page.due = now + control.lease
    page.previous = np.float32(page.signals).view(np.int32)
    size = control.lease_room
    lease_at(core, control.leases_last % size).slot = slot
    lease_at(core, control.leases_last % size).end = page.due
    control.leases_last += 1


@compiled
def order(core: int, now: float) -> tuple[int, float, float, float, int]:
    """(slot, value, cost, the price now, leases then) of the page to crawl now.

    It is handed out, or crawled at once if there are no leases. There must be room for a lease; a slot of −1: no page
    may go or has anything to gain.
    """
    slot = take(core, now)
    if slot < 0:
        return -1, 0.0, 0.0, 0.0, 0
    control = control_at(core)
    value, cost = value_of(core, slot, now), float(page_at(core, slot).cost)
    if control.lease > 0.0:
        lease_out(core, slot, now)
    else:
        crawl(core, slot, now)
    return slot, value, cost, float(control.price), control.leases_last - control.leases_first


@compiled
def hand_in(core: int, slot: int, now: float, crawled: float, gap: float) -> None:
    """The crawl is over; the copy is as of `crawled` (NaN: nothing was refreshed), and the host rests.

    A crawl that outlived its lease counts too. Its host rests after it, and on the wheel what was heard of it stays.
    """
    page = page_at(core, slot)
    fresh = not math.isnan(crawled)
    if fresh:
        page.current = crawled
        page.marks &= ~URGENT & 255
        if page.marks & SPECIAL:
            extra_of(core, page).crawled = crawled
    if fresh and page.place in (LEASED, LOOSE):
        # Hints heard after the fetch began may be about a change that came too late for it.
        heard = np.int32(page.previous).view(np.float32)
        page.signals -= min(page.signals, heard)
    if page.place in (LEASED, LOOSE):
        page.previous = 0
    if page.place == LEASED:
        served(core, page.host, now, now - (page.due - control_at(core).lease), gap)
        page.place = PAUSED
        if page.marks & TO_PAUSE:
            page.marks &= ~TO_PAUSE & 255
            set_rate(core, slot, 0.0)
            return
    else:
        rests(core, page.host, now + gap)
        if page.place == PAUSED:
            return
    lift(core, slot)
    steer_host(core, page.host, now)
    set_threshold(core, slot)
    settle(core, slot, now)
    touch_host(core, page.host)


@compiled
def end_leases(core: int, now: float) -> None:
    """Pages whose lease ended are in play again, as if they had not been given out."""
    control = control_at(core)
    size = control.lease_room
    while control.leases_first < control.leases_last:
        at = control.leases_first % size
        slot, end = lease_at(core, at).slot, lease_at(core, at).end
        page = page_at(core, slot)
        held = page.place == LEASED and page.due == end
        if held and end > now:
            return
        if end > now and control.leases_last - control.leases_first < size:
            return
        control.leases_first += 1
        if held:
            heard = page.previous
            hand_in(core, slot, now, math.nan, 0.0)
            if page.place == LOOSE:
                page.previous = heard  # its crawl may come back all the same

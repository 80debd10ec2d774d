"""The true argmax at every tick: all pages are looked at, and few of them are valued.

A page's value only grows while nothing happens to it. So its value at a later moment, the horizon, bounds what it is
worth until then. The page with the highest bound among those that may go is valued exactly, and after it only pages
whose bounds are higher than that. Pages without a copy, all those of a first crawl, do not change in value at all:
their bound is their value. Bounds are found anew for pages that something happened to, and for all when the horizon is
reached, which is as far away as the square root of the number of pages takes to pick: about as many are valued at
every pick.

All pages in play are loose: in no list, with no threshold. The price follows what is picked, as that of `Plain` does.
"""

import math
from typing import Any

import numpy as np

from afresh.schedule.wheel.hosts import host_is_ready
from afresh.schedule.wheel.inlined import inlined
from afresh.schedule.wheel.memory import control_at, extra_of, page_at
from afresh.schedule.wheel.place import lift
from afresh.schedule.wheel.table import LOOSE, SPECIAL, URGENT
from afresh.schedule.wheel.worth import may_go_at, value_of, worth
from afresh.value.compiled import compiled

_MARGIN = 1.0 + 1e-6  # on bounds: values grow, but the sums behind them are rounded
_QUICKEST = 20  # picks that the price follows at least


@inlined
def _value(core: int, slot: int, now: float) -> float:
    return worth(core, slot, now) if control_at(core).longest < math.inf else value_of(core, slot, now)


@compiled
def _bound(core: int, slot: int) -> None:
    """Find what a page is worth at most until the horizon."""
    control, page = control_at(core), page_at(core, slot)
    if control.longest < math.inf:
        return  # one that has waited too long is worth more at once
    copied = page.current > -math.inf
    page.due = value_of(core, slot, control.horizon) * (_MARGIN if copied else 1.0)


@compiled
def _look_further(core: int, now: float) -> None:
    """Set the horizon anew; no bound is known then."""
    control = control_at(core)
    picks = control.turns - control.bounded_turns
    pause = (now - control.bounded) / picks if picks > 0 and control.horizon > -math.inf else 0.0
    pause = min(max(pause, 1.0 / control.budget if control.budget > 0.0 else 1e9), 1e9)
    control.horizon = now + pause * math.sqrt(control.pages)
    control.bounded, control.bounded_turns = now, control.turns
    for slot in range(control.used):
        if page_at(core, slot).place == LOOSE:
            page_at(core, slot).due = math.inf


@inlined
def _overdue(core: int, page: Any, now: float) -> float:
    """How many times as long as it may, a page with such a limit has been left alone."""
    extra = extra_of(core, page)
    return (now - extra.crawled) / extra.longest if extra.longest < math.inf and extra.crawled > -math.inf else 0.0


@compiled
def _wanted(core: int, now: float) -> int:
    """The page that was first asked for before all others, or was left alone longest beyond its limit; −1: none."""
    urgent, late, longest = -1, -1, 1.0
    for slot in range(control_at(core).used):
        page = page_at(core, slot)
        if page.place != LOOSE or not page.marks & (URGENT | SPECIAL) or not host_is_ready(core, slot, now):
            continue
        if page.marks & URGENT:
            if urgent < 0 or page.next < page_at(core, urgent).next:
                urgent = slot
        elif may_go_at(core, page) <= now:
            over = _overdue(core, page, now)
            if over > longest or (over == longest and late < 0):
                late, longest = slot, over
    return urgent if urgent >= 0 else late


@compiled
def _highest_bound(core: int, now: float) -> int:
    """The page that may be worth most, among those that may go; −1: none may."""
    found, bound = -1, -1.0
    for slot in range(control_at(core).used):
        page = page_at(core, slot)
        if page.place != LOOSE or page.due <= bound:
            continue
        if host_is_ready(core, slot, now) and may_go_at(core, page) <= now:
            if page.due == math.inf:
                _bound(core, slot)
            if page.due > bound:
                found, bound = slot, page.due
    return found


@compiled
def _best_of_all(core: int, found: int, now: float) -> int:
    """The page of the highest value, the lower slot of equals: this one, or one whose bound is no lower than it."""
    value = _value(core, found, now)
    for slot in range(control_at(core).used):
        page = page_at(core, slot)
        if page.place != LOOSE or page.due < value or slot == found:
            continue
        if host_is_ready(core, slot, now) and may_go_at(core, page) <= now:
            other = _value(core, slot, now)
            if other > value or (other == value and slot < found):
                found, value = slot, other
    control_at(core).pick_value = value
    return found if value > 0.0 else -1


@compiled
def exact_best(core: int, now: float) -> int:
    """The page that goes first, which stays where it is; −1: there is none with anything to gain.

    Pages that somebody wants before all others go in the order in which he asked for them, then those that were left
    alone for longer than they may; what those gain is not looked at: `pick_value` is NaN.
    """
    control = control_at(core)
    if now > control.horizon:
        _look_further(core, now)
    slot = _wanted(core, now)
    if slot >= 0:
        control.pick_value = math.nan
        return slot
    slot = _highest_bound(core, now)
    return _best_of_all(core, slot, now) if slot >= 0 else -1


@compiled
def _left_alone_longest(core: int, now: float) -> int:
    """Among the pages that may go and that anybody wants; see `priced.left_alone_longest`."""
    control = control_at(core)
    found, longest = -1, -1.0
    for slot in range(control.used):
        page = page_at(core, slot)
        if page.place != LOOSE or not page.request_rate > 0.0:
            continue
        missed = now - page.current
        if not control.oldest_by_clock:
            missed *= math.sqrt(np.float64(page.request_rate))
        if missed > longest and host_is_ready(core, slot, now) and may_go_at(core, page) <= now:
            found, longest = slot, missed
    return found


@compiled
def _swept(core: int, now: float) -> int:
    """At every n-th pick, the page that was left alone longest; else −1."""
    control = control_at(core)
    control.oldest_in -= 1
    if control.oldest_in > 0:
        return -1
    control.oldest_in = control.oldest_every
    found = _left_alone_longest(core, now)
    control.oldest_by_clock = 1 - control.oldest_by_clock
    return found


@compiled
def exact_pick(core: int, now: float) -> int:
    """Take the page that goes first out of play; −1: there is none. The price follows, but for first crawls, what was
    wanted, and what is swept."""
    control = control_at(core)
    slot = exact_best(core, now)
    if slot < 0:
        return -1
    if not math.isnan(control.pick_value):
        swept = _swept(core, now) if control.oldest_every > 0 else -1
        if swept >= 0:
            slot, control.pick_value = swept, value_of(core, swept, now)
        elif page_at(core, slot).current > -math.inf:
            control.picks += 1
            followed = min(control.picks, max(_QUICKEST, control.pages // 4))
            control.price += (control.pick_value - control.price) / followed
    control.turns += 1
    lift(core, slot)
    return slot

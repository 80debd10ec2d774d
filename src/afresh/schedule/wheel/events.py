"""What happens to pages from outside: they come and go, signals arrive, beliefs change, somebody pauses them.

All compiled, on one page each, O(1); the `_all` forms loop over many. Same contract as `turn`.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.schedule.wheel.hosts import touch_host
from afresh.schedule.wheel.inlined import inlined
from afresh.schedule.wheel.memory import control_at, extra_index, extra_of, host_at, page_at
from afresh.schedule.wheel.place import NEARLY, due_by_time, lift, settle, to_shelf, to_wheel
from afresh.schedule.wheel.policies import seen
from afresh.schedule.wheel.table import (
    EPOCH_SHIFT,
    FREE,
    LEASED,
    LOOSE,
    PAUSED,
    READY,
    SHELVES,
    SPECIAL,
    TO_PAUSE,
    URGENT,
    WHEEL,
)
from afresh.schedule.wheel.worth import forget_anchor, price_of, set_rate, set_threshold, worth
from afresh.value.compiled import compiled
from afresh.value.kernels import page_rates
from afresh.value.sums import page_change_rate

Slots = NDArray[np.int64]
Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
FourColumns = tuple[Floats, Floats, Floats, Floats]  # change_rate, recall, false_rate, shape


@compiled
def new_slot(core: int) -> int:
    """A free slot; there must be room."""
    control = control_at(core)
    slot = control.free
    if slot >= 0:
        control.free = page_at(core, slot).next
        return int(slot)
    control.used += 1
    return int(control.used - 1)


@compiled
def believe(core: int, slot: int, change_rate: float, recall: float, false_rate: float, shape: float) -> None:
    """Set what is believed of a page's changes and signals."""
    page = page_at(core, slot)
    page.silent_rate, page.signal_rate, page.weight = page_rates(change_rate, recall, false_rate)
    page.shape = shape
    forget_anchor(page)


@compiled
def _at(values: Any, i: int) -> Any:
    return values[i] if values.size > 1 else values[0]


@compiled
def write_all(
    core: int,
    slots: Slots,
    beliefs: FourColumns,
    request_rate: Floats,
    cost: Floats,
    host: Numbers,
    now: float,
    age: Floats,
    signals: Floats,
) -> None:
    """Take pages in, without placing them yet; `beliefs` is (change_rate, recall, false_rate, shape)."""
    control = control_at(core)
    for i in range(slots.size):
        slot = new_slot(core)
        slots[i] = slot
        page = page_at(core, slot)
        page.current = now - _at(age, i)
        page.due = now
        believe(core, slot, _at(beliefs[0], i), _at(beliefs[1], i), _at(beliefs[2], i), _at(beliefs[3], i))
        page.request_rate = _at(request_rate, i)
        page.cost = _at(cost, i)
        page.threshold = 0.0
        page.rate = 0.0
        page.host = _at(host, i)
        page.anchor = 0.0
        page.signals = _at(signals, i)
        page.previous = 0  # no signals at a lease
        page.place = PAUSED
        page.marks = control.epoch << EPOCH_SHIFT
    control.pages += slots.size
    control.changes += slots.size


@compiled
def place_all(core: int, slots: Slots, now: float) -> None:
    """Find thresholds for pages that are in no list, and put each where it belongs."""
    for i in range(slots.size):
        if i > 0 and page_at(core, slots[i]).threshold == 0.0:
            # Neighbours are often alike: the last page's threshold is a better start than none.
            page_at(core, slots[i]).threshold = page_at(core, slots[i - 1]).threshold
        set_threshold(core, slots[i])
        settle(core, slots[i], now)


@compiled
def replace(core: int, slot: int, now: float) -> None:
    """Something about the page has changed: find its threshold and its place anew."""
    page = page_at(core, slot)
    forget_anchor(page)
    place = page.place
    if place in (LEASED, PAUSED):
        if place == PAUSED:
            set_rate(core, slot, 0.0)
        return
    lift(core, slot)
    set_threshold(core, slot)
    settle(core, slot, now)
    touch_host(core, page.host)


@inlined
def _lift_if_nearly_worth(core: int, slot: int, now: float) -> None:
    """Shelve a page that no age brings to the price, if signals have brought it as close as makes no difference.

    Where many pages are alike, their thresholds come and go with the price's last digits.
    """
    page = page_at(core, slot)
    silent_rate, signal_rate, weight, shape = seen(page, control_at(core).policy)
    least = NEARLY * price_of(core, page)
    most = np.float64(page.request_rate) / np.float64(page.cost) / page_change_rate(silent_rate, signal_rate, weight)
    if most < least and shape == math.inf:
        return
    value = worth(core, slot, now)
    if value >= least:
        lift(core, slot)
        to_shelf(core, slot, value)


@compiled
def signal(core: int, slot: int, now: float, count: float) -> None:
    """Hints arrived that the page changed: it comes up earlier, or now."""
    control = control_at(core)
    page = page_at(core, slot)
    if now - page.current < control.delay:
        return  # it may be about the change that was just fetched
    page.signals += count
    if page.place == LOOSE:
        page.due = math.inf
        return
    if page.place == READY:
        if not page.marks & URGENT:
            lift(core, slot)
            to_shelf(core, slot, max(worth(core, slot, now), 1e-300))
        return
    if page.place != WHEEL:
        return
    silent_rate, _, weight, _ = seen(page, control.policy)
    if weight == 0.0:
        return
    if page.threshold == math.inf:
        _lift_if_nearly_worth(core, slot, now)
        return
    if page.marks & (SPECIAL | URGENT) or control.longest < math.inf or not silent_rate > 0.0:
        lift(core, slot)
        settle(core, slot, now)
        return
    before = page.due
    page.due = due_by_time(core, page, np.float64(page.threshold))
    if page.due <= now:
        lift(core, slot)
        to_shelf(core, slot, max(worth(core, slot, now), 1e-300))
    elif math.floor(page.due / control.width) < math.floor(before / control.width):
        lift(core, slot)
        to_wheel(core, slot)


@compiled
def signal_all(core: int, slots: Slots, now: float, count: Numbers) -> None:
    """`signal` for many pages."""
    for i in range(slots.size):
        signal(core, slots[i], now, _at(count, i))


@compiled
def update_all(core: int, slots: Slots, beliefs: FourColumns, request_rate: Floats, now: float) -> None:
    """Believe something else of many pages; NaN: that stays as it is."""
    for i in range(slots.size):
        slot = slots[i]
        page = page_at(core, slot)
        change_rate, recall, false_rate, shape = believed(page)
        new = _at(beliefs[0], i)
        change_rate = change_rate if math.isnan(new) else new
        new = _at(beliefs[1], i)
        recall = recall if math.isnan(new) else new
        new = _at(beliefs[2], i)
        false_rate = false_rate if math.isnan(new) else new
        new = _at(beliefs[3], i)
        shape = shape if math.isnan(new) else new
        believe(core, slot, change_rate, recall, false_rate, shape)
        new = _at(request_rate, i)
        if not math.isnan(new):
            page.request_rate = new
        replace(core, slot, now)
    control_at(core).changes += slots.size


@compiled
def believed(page: Any) -> tuple[float, float, float, float]:
    """(change_rate, recall, false_rate, shape) of a record; a page that never changes has lost its recall."""
    silent_rate, signal_rate, weight = (
        np.float64(page.silent_rate),
        np.float64(page.signal_rate),
        np.float64(page.weight),
    )
    heard = -signal_rate * math.expm1(-weight)
    change_rate = silent_rate + heard
    recall = heard / change_rate if change_rate > 0.0 else 0.0
    return change_rate, recall, signal_rate * math.exp(-weight), np.float64(page.shape)


@compiled
def remove(core: int, slot: int) -> None:
    """Forget a page; its slot is free."""
    control = control_at(core)
    page = page_at(core, slot)
    host = page.host
    if page.place == LEASED and host >= 0:
        host_at(core, host).busy_until = -math.inf
    lift(core, slot)
    set_rate(core, slot, 0.0)
    touch_host(core, host)
    if page.marks & SPECIAL:
        extra_of(core, page).page = -2 - control.extra_free
        control.extra_free = extra_index(page)
    page.place = FREE
    page.next = control.free
    control.free = slot
    control.pages -= 1
    control.changes += 1


@compiled
def remove_all(core: int, slots: Slots) -> None:
    """`remove` for many pages."""
    for i in range(slots.size):
        remove(core, slots[i])


@compiled
def pause(core: int, slot: int) -> None:
    """Keep the page out of play; one that is leased is paused when it comes back."""
    page = page_at(core, slot)
    if page.place == LEASED:
        page.marks |= TO_PAUSE
        return
    lift(core, slot)
    page.place = PAUSED
    set_rate(core, slot, 0.0)
    touch_host(core, page.host)
    control_at(core).changes += 1


@compiled
def resume(core: int, slot: int, now: float) -> None:
    """Bring a paused page back into play."""
    page = page_at(core, slot)
    page.marks &= ~TO_PAUSE & 255
    if page.place == PAUSED:
        set_threshold(core, slot)
        settle(core, slot, now)
        control_at(core).changes += 1


@compiled
def urge(core: int, slot: int, now: float) -> None:
    """Crawl the page before all others; of several, the one that was asked for first."""
    page, control = page_at(core, slot), control_at(core)
    if control.exact and not page.marks & URGENT:
        control.asked += 1
        page.next = control.asked
    page.marks |= URGENT
    replace(core, slot, now)


@compiled
def rebuild(core: int) -> None:
    """Put every page that waits on a new, empty wheel."""
    for slot in range(control_at(core).used):
        if page_at(core, slot).place == WHEEL:
            to_wheel(core, slot)


@compiled
def reshelve(core: int, slots: Slots, base: int, now: float) -> None:
    """Let the shelves begin at another value, and put these pages, all that are ready, on them anew."""
    for i in range(slots.size):
        lift(core, slots[i])
    control = control_at(core)
    control.base, control.top, control.bottom = base, 0, SHELVES - 1
    for i in range(slots.size):
        to_shelf(core, slots[i], max(worth(core, slots[i], now), 1e-300))

"""The true argmax at every tick, without looking at every page.

All pages whose value surpasses a floor are ready; all others wait on the wheel, and come up before they reach it. So
the best page is the best of those ready. The floor is the value of the k-th best page, k about the square root of the
number of pages; it is set anew, by a look at every page, when nobody is left above it or too many are.
"""

import math

import numpy as np
from numpy.typing import NDArray

from afresh.schedule.wheel.hosts import host_is_ready, touch_host
from afresh.schedule.wheel.memory import control_at, page_at, shelf_at
from afresh.schedule.wheel.place import lift, settle, to_host
from afresh.schedule.wheel.table import PARKED, READY, SHELVES, URGENT, WHEEL
from afresh.schedule.wheel.worth import may_go_at, set_threshold, worth
from afresh.value.compiled import compiled


@compiled
def _above(core: int) -> int:
    return max(16, int(math.sqrt(control_at(core).pages)))


@compiled
def _best_on(core: int, shelf: int, now: float) -> int:
    """The page of the highest value on a shelf, the lower slot of equals; pages whose host is not ready are parked."""
    slot = int(shelf_at(core, shelf).first)
    found, best = -1, 0.0
    while slot >= 0:
        following = int(page_at(core, slot).next)
        if host_is_ready(core, slot, now):
            if may_go_at(core, page_at(core, slot)) <= now:
                value = worth(core, slot, now)
                if page_at(core, slot).marks & URGENT:
                    value = math.inf
                if value > best or (value == best and value > 0.0 and slot < found):
                    found, best = slot, value
        else:
            lift(core, slot)
            to_host(core, slot)
            touch_host(core, page_at(core, slot).host)
        slot = following
    return found


@compiled
def _nth_smallest(values: NDArray[np.float64], count: int, nth: int) -> float:
    """Of the first so many values, which change their places; to compile a whole sort takes ten times as long."""
    low, high = 0, count - 1
    while low < high:
        middle = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < middle:
                i += 1
            while values[j] > middle:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if nth <= j:
            high = j
        elif nth >= i:
            low = i
        else:
            break
    return float(values[nth])


@compiled
def set_floor(core: int, now: float) -> None:
    """Set the floor so that about k pages that may go are above it, and place every page by it."""
    control = control_at(core)
    values = np.zeros(control.used)
    count = 0
    for slot in range(control.used):
        page = page_at(core, slot)
        if page.place == WHEEL or page.place == READY or page.place == PARKED:
            lift(core, slot)
            page.place = WHEEL
            if host_is_ready(core, slot, now) and may_go_at(core, page) <= now:
                values[count] = worth(core, slot, now)
                count += 1
    level = _nth_smallest(values, count, max(0, count - 2 * _above(core))) if count > 0 else 0.0
    control.floor = level * (1.0 - 1e-9)
    for slot in range(control.used):
        if page_at(core, slot).place == WHEEL:
            set_threshold(core, slot)
            settle(core, slot, now)


@compiled
def exact_pick(core: int, now: float) -> int:
    """Take the best page that may go out of all lists; −1: there is none with anything to gain."""
    control = control_at(core)
    slot = -1
    for turn in range(2):
        slot = _best_on(core, SHELVES - 1, now)
        if slot < 0:
            slot = _best_on(core, 0, now)
        if slot >= 0 and control.ready <= 8 * _above(core):
            break
        if turn == 0:
            set_floor(core, now)
    if slot >= 0:
        lift(core, slot)
    return slot

"""The true argmax at every tick, without looking at every page.

All pages whose value surpasses a floor are ready; all others wait on the wheel, and come up before they reach it. So
the best page is the best of those ready. The floor is the value of the k-th best page, k about the square root of the
number of pages; it is set anew, by a look at every page, when nobody is left above it or too many are.
"""

import math

import numpy as np

from afresh.schedule.hosts import host_is_ready, touch_host
from afresh.schedule.place import lift, may_go_at, set_threshold, settle, to_host, worth
from afresh.schedule.table import PARKED, READY, SHELVES, URGENT, WHEEL, State
from afresh.value.compiled import compiled


@compiled
def _above(state: State) -> int:
    return max(16, int(math.sqrt(state.control[0].pages)))


@compiled
def _best_on(state: State, shelf: int, now: float) -> int:
    """The page of the highest value on a shelf, the lower slot of equals; pages whose host is not ready are parked."""
    slot = int(state.shelf_first[shelf])
    found, best = -1, 0.0
    while slot >= 0:
        following = int(state.pages[slot].next)
        if host_is_ready(state, slot, now):
            if may_go_at(state, state.pages[slot]) <= now:
                value = worth(state, slot, now)
                if state.pages[slot].marks & URGENT:
                    value = math.inf
                if value > best or (value == best and value > 0.0 and slot < found):
                    found, best = slot, value
        else:
            lift(state, slot)
            to_host(state, slot)
            touch_host(state, state.pages[slot].host)
        slot = following
    return found


@compiled
def set_floor(state: State, now: float) -> None:
    """Set the floor so that about k pages that may go are above it, and place every page by it."""
    control = state.control[0]
    values = np.zeros(control.used)
    count = 0
    for slot in range(control.used):
        page = state.pages[slot]
        if page.place == WHEEL or page.place == READY or page.place == PARKED:
            lift(state, slot)
            page.place = WHEEL
            if host_is_ready(state, slot, now) and may_go_at(state, page) <= now:
                values[count] = worth(state, slot, now)
                count += 1
    values = np.sort(values[:count])
    level = values[max(0, count - 2 * _above(state))] if count > 0 else 0.0
    control.floor = level * (1.0 - 1e-9)
    for slot in range(control.used):
        if state.pages[slot].place == WHEEL:
            set_threshold(state, slot)
            settle(state, slot, now)


@compiled
def exact_pick(state: State, now: float) -> int:
    """Take the best page that may go out of all lists; −1: there is none with anything to gain."""
    control = state.control[0]
    slot = -1
    for turn in range(2):
        slot = _best_on(state, SHELVES - 1, now)
        if slot < 0:
            slot = _best_on(state, 0, now)
        if slot >= 0 and control.ready <= 8 * _above(state):
            break
        if turn == 0:
            set_floor(state, now)
    if slot >= 0:
        lift(state, slot)
    return slot

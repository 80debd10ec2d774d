"""Many ticks in one call, for simulations; and when to ask again if no page may go."""

import math

import numpy as np
from numpy.typing import NDArray

from afresh.schedule.wheel.hosts import ready_at
from afresh.schedule.wheel.memory import control_at, host_at, page_at, waking_at
from afresh.schedule.wheel.table import FREE, LEASED, PAUSED, URGENT
from afresh.schedule.wheel.turn import crawl, take
from afresh.schedule.wheel.worth import may_go_at
from afresh.value.compiled import compiled

NO_PAGES, HOSTS, NOTHING_TO_GAIN = range(3)
_LOOKED_THROUGH = 1 << 16  # pages at most, to find out when one of them may go


@compiled
def run_ticks(core: int, tick: float, until: float, picked: NDArray[np.int64]) -> tuple[int, float]:
    """Pick and crawl one page at every tick up to `until`, as many as there is room for: (how many, the next tick)."""
    control = control_at(core)
    found = 0
    if control.budget <= 0.0:
        return 0, tick
    step = 1.0 / control.budget
    while found < picked.size and tick <= until + 1e-6 * step:
        slot = take(core, tick) if control.pages > 0 else -1
        cost = 1.0
        if slot >= 0:
            cost = page_at(core, slot).cost
            crawl(core, slot, tick)
            picked[found] = slot
            found += 1
        tick += cost * step
    return found, tick


@compiled
def run_thresholds(core: int, tick: float, until: float, picked: NDArray[np.int64]) -> tuple[int, float]:
    """The continuous policy: crawl every page when it comes up, to within one bucket of the wheel."""
    control = control_at(core)
    found = 0
    while found < picked.size and tick <= until:
        slot = take(core, tick) if control.pages > 0 else -1
        if slot >= 0:
            crawl(core, slot, tick)
            picked[found] = slot
            found += 1
        else:
            tick += control.width
    return found, tick


@compiled
def next_chance(core: int, now: float) -> tuple[float, int]:
    """(when to ask again, why not now) after nothing could be picked: never too late.

    Some thousands of pages are all looked at. Among more it is when the next host is ready, or the wheel turns.
    """
    control = control_at(core)
    if control.pages > _LOOKED_THROUGH:
        step = 1.0 / control.budget
        soon, parked = now + max(step, float(control.width)), control.heap_size > 0
        if parked:
            soon = min(soon, max(now + step, ready_at(host_at(core, waking_at(core, 0).host))))
        return soon, HOSTS if parked else NOTHING_TO_GAIN
    earliest, waiting = math.inf, False
    for slot in range(control.used):
        page = page_at(core, slot)
        if page.place == FREE or page.place == PAUSED:
            continue
        waiting = True
        free_at = page.due if page.place == LEASED else -math.inf if page.marks & URGENT else may_go_at(core, page)
        if page.host >= 0:
            free_at = max(free_at, ready_at(host_at(core, page.host)))
        earliest = min(earliest, free_at)
    if not waiting:
        return math.inf, NO_PAGES
    if earliest <= now:
        # Values move with time: look again at the next tick.
        return now + 1.0 / control.budget, NOTHING_TO_GAIN
    return earliest, HOSTS

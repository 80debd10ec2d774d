"""The price settles by itself: demand and backlog move it, and a sample of the pages gives it its start.

F is the demand: what all pages together would cost per second if each were crawled at its threshold. `late` is how far
the picks are behind: the backlog of due pages in seconds of budget, or minus the time that the wheel has run ahead of
the clock because nothing was due. Pages without a copy are not late: first crawls have no say in the price. With T0 =
pages/budget, log Λ moves by (F/R − 1) + late/T0 per T0: slow enough not to ring, because a threshold set now tells its
effect only when its page comes up again.

At the start, and after steps of the budget or of many pages, the price is solved on a sample and jumps. Thresholds from
before the jump are still on the wheel then. They are corrected when they come up, and until then their share of F is
multiplied by the factor that the sample predicts for it.
"""

import math

import numpy as np
from numpy.typing import NDArray

from afresh.schedule.wheel.inlined import inlined
from afresh.schedule.wheel.memory import control_at, host_at, page_at
from afresh.schedule.wheel.policies import THRESHOLD, threshold_at
from afresh.value.compiled import compiled

Slots = NDArray[np.int64]
Floats = NDArray[np.float64]

SAMPLE = 20_000
_FEWEST = 16.0  # pages: below that the price must not run after single picks
_LOWEST, _HIGHEST = 1e-250, 1e250


@inlined
def steer(core: int, now: float) -> None:
    """Move the price; called once a tick."""
    control = control_at(core)
    elapsed = now - control.updated
    control.updated = now
    if not 0.0 < elapsed < math.inf or control.budget <= 0.0:
        return
    span = max(_FEWEST, max(float(control.active), control.pages / 50.0)) / control.budget
    demand = control.demand + control.stale_demand * (control.stale_factor - 1.0)
    pull = demand / control.budget - 1.0
    if control.policy != THRESHOLD:
        pull += late(core, now) / span
    step = max(-0.2, min(0.2, elapsed / span * max(-1.0, pull)))
    control.price = max(_LOWEST, min(_HIGHEST, control.price * math.exp(step)))


@inlined
def late(core: int, now: float) -> float:
    """Seconds that the picks are behind the clock; less than 0: ahead of it."""
    control = control_at(core)
    if control.ahead > control.bucket:
        # Where the price has just fallen, what lies ahead is due at the new one: the wheel is not ahead of that.
        return min(0.0, now - control.ahead * control.width) if control.pick_value < control.price else 0.0
    expected = control.width * control.budget  # pages that came up within their bucket, a little before their time
    behind = max(0.0, now - control.bucket * control.width)
    return float(max(0.0, control.ready - control.empty - expected) / control.budget + behind)


@compiled
def sample_demand(core: int, slots: Slots, price: float, by_hosts: bool, x: Floats) -> float:
    """Cost per second that these pages ask for at a price, or at their host's own; their thresholds are left in x."""
    control = control_at(core)
    total = 0.0
    for j in range(slots.size):
        page = page_at(core, slots[j])
        rate = 0.0
        cost = np.float64(page.cost)
        if page.request_rate > 0.0:
            own = price
            if by_hosts and page.host >= 0:
                own = max(own, float(host_at(core, page.host).price))
            own *= cost / np.float64(page.request_rate)
            x[j], rate = threshold_at(own, page, control.policy, control.terms, x[j], 1e-2)
        total += cost * max(rate, 1.0 / control.longest)
    return total


@compiled
def _first_price(core: int, slots: Slots, budget: float) -> float:
    """A price of about the right size: what these pages are wanted in the time that a visit to each of them takes.

    It is in the collection's own units, so that nothing depends on whether time is told in seconds or in years.
    """
    wanted = 0.0
    for j in range(slots.size):
        page = page_at(core, slots[j])
        wanted += np.float64(page.request_rate) / np.float64(page.cost)
    return min(max(wanted / max(budget, 1e-100), 1e-100), 1e100)


@compiled
def solve_on(core: int, slots: Slots, budget: float, by_hosts: bool) -> float:
    """The price at which these pages ask for the budget; 0: they never ask for so much. `by_hosts`: those of hosts
    count, too."""
    x = np.zeros(slots.size)
    low, high = -math.inf, math.inf
    start = float(control_at(core).price)
    if not 1e-100 < start < 1e100:
        start = _first_price(core, slots, budget)
    t = math.log(start)
    reach = 2.0
    for _ in range(60):
        asked = sample_demand(core, slots, math.exp(t), by_hosts, x)
        if asked > budget:
            low = t
            t = t + reach if high == math.inf else 0.5 * (t + high)
        else:
            high = t
            t = t - reach if low == -math.inf else 0.5 * (t + low)
        if low == -math.inf or high == math.inf:
            reach *= 2.0
            if t < -500.0:
                return 0.0
            if t > 500.0:
                return math.exp(500.0)
        elif high - low < 2e-3:
            break
    return math.exp(0.5 * (low + high))

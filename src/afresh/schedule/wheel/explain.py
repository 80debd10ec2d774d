"""Why a page is, or is not, about to be crawled."""

import math

from afresh.schedule.base import Explanation
from afresh.schedule.wheel.hosts import cap_of, ready_at
from afresh.schedule.wheel.policies import seen, threshold_at
from afresh.schedule.wheel.table import LEASED, PARKED, PAUSED, URGENT, State
from afresh.schedule.wheel.worth import may_go_at, price_of, value_of
from afresh.value.predictive import silent_time


def explain(state: State, slot: int, now: float, turn: float = 0.0) -> Explanation:
    """Value, price, due time, and what holds the page back; `turn` is how long one turn with its host takes."""
    value = float(value_of(state.core, slot, now))
    page, control = state.pages[slot], state.control[0]
    price = float(price_of(state.core, page)) if not control["exact"] else float(control["price"])
    due, ahead = _due(state, slot, value, price, now), 0
    if turn > 0.0 and value >= price and int(page["host"]) >= 0:
        host = state.hosts[int(page["host"])]
        ahead = max(int(host["parked"]) - int(page["place"] == PARKED), 0)
        due = max(due, float(ready_at(host)), now) + ahead * turn
    return Explanation(value, price, due, _held_by(state, slot, value, price, now), ahead=ahead, turn=turn)


def _due(state: State, slot: int, value: float, price: float, now: float) -> float:
    page, control = state.pages[slot], state.control[0]
    due = math.inf
    if value >= price:
        due = now
    elif page["request_rate"] > 0:
        policy = int(control["policy"])
        own = price * float(page["cost"]) / float(page["request_rate"])
        x, _ = threshold_at(own, page, policy, int(control["terms"]), 0.0, 1e-8)
        silent_rate, _, weight, shape = seen(page, policy)
        signals = float(page["signals"])
        told = weight * signals if signals > 0 and weight > 0 else 0.0
        if x < math.inf and page["current"] > -math.inf:
            due = float(page["current"]) + silent_time(x - told, silent_rate, shape)
    return max(due, float(may_go_at(state.core, page)))


def _held_by(state: State, slot: int, value: float, price: float, now: float) -> str:
    page = state.pages[slot]
    number = int(page["host"])
    host = state.hosts[number] if number >= 0 else None
    below = value < price and not page["marks"] & URGENT
    reasons = {
        "leased": page["place"] == LEASED and page["due"] > now,
        "paused": page["place"] == PAUSED,
        "put off": may_go_at(state.core, page) > now,
        "host busy": host is not None and host["busy_until"] > now,
        "host resting": host is not None and host["rests_until"] > now,
        "host budget": host is not None and ready_at(host) > now,
        "host at its cap": below and host is not None and math.isfinite(cap_of(host)) and host["price"] > 0,
        "below the price": below,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")

"""Why a page is, or is not, about to be crawled."""

import math
from typing import NamedTuple

import numpy as np

from afresh.schedule.base import Explanation
from afresh.schedule.wheel.hosts import cap_of, ready_at
from afresh.schedule.wheel.memory import control_at, host_at, page_at
from afresh.schedule.wheel.policies import seen, threshold_at
from afresh.schedule.wheel.table import LEASED, PARKED, PAUSED, URGENT, State
from afresh.schedule.wheel.worth import may_go_at, price_of, value_of
from afresh.value.compiled import compiled
from afresh.value.predictive import silent_time


class _Facts(NamedTuple):
    value: float
    price: float
    reaches: float  # when its value reaches the price
    may_go: float  # when nothing of the page's own puts it off any longer
    host_ready: float
    host_cap: float


@compiled
def facts_of(core: int, slot: int, now: float) -> tuple[float, float, float, float, float, float]:
    """What `_Facts` says of a page."""
    page, control = page_at(core, slot), control_at(core)
    price = float(control.price) if control.exact else float(price_of(core, page))
    ready, cap = -math.inf, math.inf
    if page.host >= 0:
        ready, cap = ready_at(host_at(core, page.host)), cap_of(host_at(core, page.host))
    reaches = math.inf
    if page.request_rate > 0.0:
        own = price * np.float64(page.cost) / np.float64(page.request_rate)
        x, _ = threshold_at(own, page, control.policy, control.terms, 0.0, 1e-8)
        silent_rate, _, weight, shape = seen(page, control.policy)
        told = weight * np.float64(page.signals) if page.signals > 0.0 and weight > 0.0 else 0.0
        if x < math.inf and page.current > -math.inf:
            reaches = page.current + silent_time(x - told, silent_rate, shape)
    return value_of(core, slot, now), price, reaches, float(may_go_at(core, page)), ready, cap


def explain(state: State, slot: int, now: float, turn: float = 0.0) -> Explanation:
    """Value, price, due time, and what holds the page back; `turn` is how long one turn with its host takes."""
    facts, page, ahead = _Facts(*facts_of(state.core, slot, now)), state.pages[slot], 0
    up = facts.value >= facts.price
    due = max(now if up else facts.reaches, facts.may_go)
    if turn > 0.0 and up and int(page["host"]) >= 0:
        host = state.hosts[int(page["host"])]
        ahead = max(int(host["parked"]) - int(page["place"] == PARKED), 0)
        due = max(due, facts.host_ready, now) + ahead * turn
    return Explanation(facts.value, facts.price, due, _held_by(state, slot, facts, now), ahead=ahead, turn=turn)


def _held_by(state: State, slot: int, facts: _Facts, now: float) -> str:
    page = state.pages[slot]
    number = int(page["host"])
    host = state.hosts[number] if number >= 0 else None
    below = facts.value < facts.price and not page["marks"] & URGENT
    reasons = {
        "leased": page["place"] == LEASED and page["due"] > now,
        "paused": page["place"] == PAUSED,
        "put off": facts.may_go > now,
        "host busy": host is not None and host["busy_until"] > now,
        "host resting": host is not None and host["rests_until"] > now,
        "host budget": facts.host_ready > now,
        "host at its cap": below and host is not None and math.isfinite(facts.host_cap) and host["price"] > 0,
        "below the price": below,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")

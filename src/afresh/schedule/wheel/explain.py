"""Why a page is, or is not, about to be crawled."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.schedule.base import Explanation
from afresh.schedule.queue import play
from afresh.schedule.wheel.hosts import cap_of, ready_at
from afresh.schedule.wheel.memory import control_at, host_at, page_at
from afresh.schedule.wheel.table import FREE, LEASED, PARKED, PAUSED, SPECIAL, TO_PAUSE, URGENT, State
from afresh.schedule.wheel.worth import may_go_at, price_of, value_of, values_of
from afresh.value.compiled import compiled

PLAYED = 20_000  # pages whose schedule is played forward for one answer
_LATEST = 1e100  # seconds; an age at which all is gained that time brings
_WANTED = 1e200  # more than any crawl gains: of pages that an operator wants

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]


class _Facts(NamedTuple):
    value: float
    price: float
    reaches: float  # when its value reaches the price
    may_go: float  # when nothing of the page's own puts it off any longer
    host_ready: float
    host_cap: float


@compiled
def reaches(core: int, slot: int, price: float, now: float) -> float:
    """When the value of a page reaches a price if no signal comes; infinity: it does not, by itself.

    It grows with time, so the bracket is halved: for a page whose rate is uncertain there is no formula.
    """
    current = float(page_at(core, slot).current)
    if value_of(core, slot, now) >= price:
        return now
    if not current > -math.inf or not value_of(core, slot, current + _LATEST) > price:
        return math.inf
    low, high = max(0.0, now - current), max(1.0, 2.0 * (now - current))
    while value_of(core, slot, current + high) < price:
        low, high = high, 2.0 * high
    while high - low > 1e-6 * high:
        middle = 0.5 * (low + high)
        if value_of(core, slot, current + middle) < price:
            low = middle
        else:
            high = middle
    return current + high


@compiled
def facts_of(core: int, slot: int, now: float) -> tuple[float, float, float, float, float, float]:
    """What `_Facts` says of a page."""
    page, control = page_at(core, slot), control_at(core)
    price = float(control.price) if control.exact else float(price_of(core, page))
    ready, cap = -math.inf, math.inf
    if page.host >= 0:
        ready, cap = ready_at(host_at(core, page.host)), cap_of(host_at(core, page.host))
    return value_of(core, slot, now), price, reaches(core, slot, price, now), float(may_go_at(core, page)), ready, cap


def explain(state: State, slot: int, now: float, turn: float, begins: float) -> Explanation:
    """Value, price, due time, and what holds the page back; `turn` is how long one turn with its host takes.

    `begins`: when the budget has its next token.
    """
    facts = _Facts(*facts_of(state.core, slot, now))
    held_by = _held_by(state, slot, facts, now)
    if state.control[0]["pages"] > PLAYED:
        due, ahead = _roughly(state, slot, facts, now, turn)
        return Explanation(facts.value, facts.price, due, held_by, ahead=ahead, turn=turn)
    pages, ahead = _Pages(state, now), 0
    if turn > 0.0:
        turn = max(turn, pages.step_of(int(state.pages[slot]["host"])))
    first, budget = pages.first_crawls(slot, facts.value), float(state.control[0]["budget"])
    if turn > 0.0 and budget > 0.0 and held_by != "leased":
        due, ahead = pages.in_queue(slot, turn, facts.may_go, begins)
    else:
        due = max(now if facts.value >= facts.price else facts.reaches, facts.may_go)
        due = max(due, now + first / budget) if first and budget > 0.0 else due
    every = pages.every(slot, turn)
    return Explanation(facts.value, facts.price, due, held_by, first, ahead=ahead, turn=turn, every=every)


def _roughly(state: State, slot: int, facts: _Facts, now: float, turn: float) -> tuple[float, int]:
    """When the page goes, and how many of its host before it: by the price, and those that are known to wait."""
    page, ahead = state.pages[slot], 0
    up = facts.value >= facts.price
    due = max(now if up else facts.reaches, facts.may_go)
    if turn > 0.0 and up and int(page["host"]) >= 0:
        host = state.hosts[int(page["host"])]
        ahead = max(int(host["parked"]) - int(page["place"] == PARKED), 0)
        due = max(due, facts.host_ready, now) + ahead * turn
    return due, ahead


class _Pages:
    """All pages of a small collection at a moment, as columns."""

    def __init__(self, state: State, now: float) -> None:
        self.state, self.now = state, now
        pages = state.pages[: int(state.control[0]["used"])]
        self.host, self.current = pages["host"].astype(np.int64), pages["current"].astype(np.float64)
        self.leased = (pages["place"] == LEASED) & (pages["due"] > now)
        self.paused = (pages["place"] == PAUSED) | (pages["marks"] & TO_PAUSE > 0)
        self.in_play = (pages["place"] != FREE) & ~self.paused
        self.urgent = pages["marks"] & URGENT > 0
        self.signals = pages["signals"].astype(np.float64)
        special = np.flatnonzero((pages["marks"] & SPECIAL > 0) & (pages["place"] != FREE))
        extra = state.extra[pages["anchor"].view(np.int32)[special]] if len(special) else state.extra[:0]
        self.crawled, self.not_before = self.current.copy(), np.full(len(pages), -np.inf)
        self.may_go, self.longest = self.not_before.copy(), np.full(len(pages), np.inf)
        self.crawled[special], self.not_before[special] = extra["crawled"], extra["not_before"]
        self.may_go[special] = np.maximum(extra["not_before"], extra["crawled"] + extra["shortest"])
        self.longest[special] = extra["longest"]

    def step_of(self, host: int) -> float:
        """Seconds from one crawl to the next that the host's own budget pays for; 0: it has none."""
        return 1.0 / float(self.state.hosts[host]["budget"]) if host >= 0 else 0.0

    def first_crawls(self, slot: int, value: float) -> int:
        """Pages without a copy that may go, and gain more than this one."""
        if not self.current[slot] > -math.inf:
            return 0
        empty = self.in_play & ~self.leased & (self.current == -np.inf) & (self.may_go <= self.now)
        slots = np.flatnonzero(empty)
        return int((self._values(slots, self.now, self.current[slots], self.signals[slots]) > value).sum())

    def every(self, slot: int, turn: float) -> float:
        """How often its host can serve the page, if that is less often than is wanted; else 0."""
        wanted = float(self.longest[slot])
        if wanted == math.inf or turn <= 0.0:
            return 0.0
        alike = self.longest[(self.host == self.host[slot]) & (self.longest < np.inf)]
        load = turn * float((1.0 / alike).sum())
        return wanted * load if load > 1.0 else 0.0

    def in_queue(self, slot: int, turn: float, limit: float, begins: float) -> tuple[float, int]:
        """When the page goes, by what all pages gain; and how many crawls of its host go before it."""
        active = self.in_play & (np.where(self.leased, self.not_before, self.may_go) < np.inf)
        active[slot] = True
        slots = np.flatnonzero(active)
        own, now = int(np.searchsorted(slots, slot)), self.now
        numbers = np.where(self.host < 0, -1 - np.arange(len(self.host)), self.host)[slots]  # without one: its own
        hosts, host = np.unique(numbers, return_inverse=True)
        turns = np.array([max(turn, self.step_of(each)) for each in hosts.tolist()])
        if limit > now + turn * int((host == host[own]).sum()):
            return limit, 0  # a round of its host is over by then
        leased, urgent, longest = self.leased[slots], self.urgent[slots], self.longest[slots]
        began = np.where(leased, now, self.current[slots])  # soon to be a fresh copy
        crawled = np.where(leased | (self.crawled[slots] == -np.inf), now, self.crawled[slots])
        heard = np.where(leased, 0.0, self.signals[slots])
        may_go = np.where(leased, self.not_before[slots], self.may_go[slots])
        if self.paused[slot]:
            may_go[own] = -np.inf  # as if it were not: others say that it is
        opens = np.full(len(hosts), now)
        named = hosts >= 0
        records = self.state.hosts[hosts[named]]
        opens[named] = np.maximum(np.maximum(records["rests_until"], records["spent_until"]), now)
        np.maximum.at(opens, host[leased], now + turns[host[leased]])

        def value_at(when: float, current: Floats) -> Floats:
            as_it_is = current == began
            value = self._values(slots, when, current, np.where(as_it_is, heard, 0.0))
            overdue = (when - np.where(as_it_is, crawled, current)) / longest
            value = np.where(overdue >= 1.0, _WANTED * overdue, value)
            return np.where(urgent & as_it_is, np.inf, value)

        told = play(
            own,
            value_at=value_at,
            current=began,
            may_go=may_go,
            host=host,
            opens=opens,
            turn=turns,
            budget=float(self.state.control[0]["budget"]),
            now=begins,
        )
        if told.when < math.inf:
            return told.when, told.ahead
        if told.crowded or told.price <= 0.0:
            return (limit if limit > now else math.inf), told.ahead
        if value_of(self.state.core, slot, now) >= told.price:
            return max(told.end, limit), 0
        return max(told.end, limit, reaches(self.state.core, slot, told.price, now)), 0

    def _values(self, slots: Slots, when: float, current: Floats, signals: Floats) -> Floats:
        found = np.zeros(len(slots))
        values_of(self.state.core, slots, when, current, signals, found)
        return found


def _held_by(state: State, slot: int, facts: _Facts, now: float) -> str:
    page, exact = state.pages[slot], bool(state.control[0]["exact"])
    number = int(page["host"])
    host: Any = state.hosts[number] if number >= 0 else None
    below = facts.value < facts.price and (exact or not page["marks"] & URGENT)
    reasons = {
        "leased": page["place"] == LEASED and page["due"] > now,
        "paused": page["place"] == PAUSED,
        "put off": facts.may_go > now,
        "host busy": host is not None and host["busy_until"] > now,
        "host resting": host is not None and host["rests_until"] > now,
        "host budget": facts.host_ready > now,
        "host at its cap": below and not exact and math.isfinite(facts.host_cap) and host["price"] > 0,
        "below the price": below,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")

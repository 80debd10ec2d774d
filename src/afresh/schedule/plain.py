"""The plain scheduler: at every tick, look at every page and take the best.

It is the specification of the fast one: O(pages) a decision, nothing remembered, nothing approximated. Which page is
"best" is a `Rule`, so that the crawl value and other people's rules run on the very same machine.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from afresh.checks import MAX_MOMENT, moment, number
from afresh.schedule.arguments import (
    check_beliefs,
    check_page,
    host_number,
    later_moment,
    seconds_to_rest,
    signal_count,
    slot_number,
)
from afresh.schedule.base import Explanation, Pick
from afresh.schedule.priced import PricedByPicks, left_alone_longest, require_seconds
from afresh.types import Wait

Floats = npt.NDArray[np.float64]

PAGE = np.dtype(
    [
        ("request_rate", "f8"),
        ("change_rate", "f8"),
        ("recall", "f8"),
        ("false_rate", "f8"),
        ("shape", "f8"),
        ("cost", "f8"),
        ("host", "i8"),
        ("added", "f8"),
        ("current", "f8"),  # the copy is as of this moment; −∞: there is none
        ("signals", "f8"),  # heard since then
        ("signals_at_lease", "f8"),
        ("lease_ends", "f8"),  # −∞: not leased
        ("not_before", "f8"),
        ("crawled", "f8"),  # when the copy was last confirmed, by the clock; −∞: there is none
        ("shortest", "f8"),  # never more often than; 0: no limit
        ("longest", "f8"),  # at least every; ∞: no limit
        ("paused", "?"),
        ("urgent", "?"),
        ("active", "?"),
    ]
)


class Rule(Protocol):
    """Says how urgent each page is; the page with the highest urgency goes first."""

    def urgency(self, pages: npt.NDArray[np.void], now: float) -> Floats:
        """One number a page, in a unit of the rule's own; never NaN, and at most 0 for a page not worth a crawl."""

    def due(self, slot: int, page: np.void, *, price: float, now: float) -> float:
        """When the page's urgency will reach `price` if nothing happens to it; infinity: never."""

    def added(self, slot: int, page: np.void, now: float) -> None:
        """A page was taken in."""

    def crawled(self, slot: int, page: np.void, *, now: float, changed: bool) -> None:
        """A crawl refreshed the copy; called before the page's own age is reset."""


class Plain(PricedByPicks):
    """The argmax over all pages of a rule's urgency, among the hosts that are ready, at a constant rate.

    Invariants: a leased page is not handed out; a host has at most one page leased; a removed slot is handed out again
    by `add` and by nothing else. A share `sweep` of the picks goes to the copy that was left alone longest.
    """

    def __init__(self, rule: Rule, *, budget: float, lease: float = 120.0, sweep: float = 0.0) -> None:
        self.rule = rule
        super().__init__(budget, sweep)
        self.lease = number("lease", lease, above=True, most=MAX_MOMENT)
        self._pages = np.zeros(0, PAGE)
        self._count = 0
        self._free: list[int] = []
        self._host_busy_until = np.full(0, -np.inf)
        self._host_rests_until = np.full(0, -np.inf)

    def __len__(self) -> int:
        return self._count - len(self._free)

    def add(
        self,
        *,
        request_rate: float,
        change_rate: float,
        recall: float = 0.0,
        false_rate: float = 0.0,
        cost: float = 1.0,
        host: int = 0,
        now: float,
        age: float = float("inf"),
        signals: float = 0.0,
        shape: float = float("inf"),
    ) -> int:
        """Take a page in and return its slot; `age` seconds since its copy was current (infinity: no copy yet)."""
        check_page(
            request_rate=request_rate,
            change_rate=change_rate,
            recall=recall,
            false_rate=false_rate,
            cost=cost,
            age=age,
            signals=signals,
            shape=shape,
        )
        now, host = moment("now", now), host_number(host)
        slot = self._free.pop() if self._free else self._grow()
        self._pages[slot] = (
            *(request_rate, change_rate, recall, false_rate, shape, cost, host, now, now - age, signals),
            *(0, -np.inf, -np.inf, now - age, 0.0, np.inf, False, False, True),
        )
        self._reach_host(host)
        self.rule.added(slot, self._pages[slot], now)
        return slot

    def _grow(self) -> int:
        if self._count == len(self._pages):
            more = np.zeros(max(64, len(self._pages)), PAGE)
            self._pages = np.concatenate([self._pages, more])
        self._count += 1
        return self._count - 1

    def _reach_host(self, host: int) -> None:
        missing = host + 1 - len(self._host_busy_until)
        if missing > 0:
            more = np.full(max(missing, len(self._host_busy_until)), -np.inf)
            self._host_busy_until = np.concatenate([self._host_busy_until, more])
            self._host_rests_until = np.concatenate([self._host_rests_until, more])

    def update(
        self,
        slot: int,
        *,
        now: float,
        request_rate: float | None = None,
        change_rate: float | None = None,
        recall: float | None = None,
        false_rate: float | None = None,
        shape: float | None = None,
        age: float | None = None,
        signals: float | None = None,
    ) -> None:
        """Believe something else of the page from now on; what is not given stays."""
        check_beliefs(
            request_rate=request_rate,
            change_rate=change_rate,
            recall=recall,
            false_rate=false_rate,
            age=age,
            signals=signals,
            shape=shape,
        )
        slot, now = slot_number(slot, self._count), moment("now", now)
        page = self._pages[slot]
        if age is not None:
            page["current"] = now - age
        given = {
            "request_rate": request_rate,
            "change_rate": change_rate,
            "recall": recall,
            "false_rate": false_rate,
            "shape": shape,
            "signals": signals,
        }
        for name, value in given.items():
            if value is not None:
                page[name] = value

    def signal(self, slot: int, now: float, count: int = 1) -> None:
        """A hint arrived that the page changed."""
        slot, count = slot_number(slot, self._count), signal_count(count)
        moment("now", now)
        self._pages[slot]["signals"] += count

    def next(self, now: float) -> Pick | Wait:
        """The most urgent page that may be crawled now, if the budget has a token; or when to ask again."""
        now = moment("now", now)
        if wait := self._pace.wait(now):
            return wait
        pages = self._pages[: self._count]
        free_at = self._free_at(pages)
        may_go = pages["active"] & (free_at <= now)
        if not may_go.any():
            waiting = free_at[pages["active"]]
            return Wait(float(waiting.min()) if len(waiting) else float("inf"), "hosts" if len(waiting) else "no pages")
        urgency = np.where(may_go, self.rule.urgency(pages, now), -np.inf)
        if (wanted := self._wanted(pages, may_go, now)) is not None:
            self._pace.take(now, float(pages[wanted]["cost"]))
            self._lease(wanted, now, None)
            return Pick(wanted, float(urgency[wanted]), self._price)
        slot = int(np.argmax(urgency))
        best = float(urgency[slot])
        if best <= 0:
            # Nothing is worth a crawl yet; values move with time, so look again at the next tick.
            return Wait(now + 1.0 / self.budget, "nothing to gain")
        swept = may_go & (pages["request_rate"] > 0)
        if self._sweeps_now() and swept.any():
            current, wanted_by = pages["current"], pages["request_rate"]
            slot = left_alone_longest(np.flatnonzero(swept), current, wanted_by, now, by_requests=self._by_requests)
            best = float(urgency[slot])
        elif pages[slot]["current"] > -np.inf:
            self._learn_price(best, len(self))
        self._pace.take(now, float(pages[slot]["cost"]))
        self._lease(slot, now, best)
        return Pick(slot, best, self._price)

    def _wanted(self, pages: npt.NDArray[np.void], may_go: npt.NDArray[np.bool_], now: float) -> int | None:
        """The page that an operator wants before all others, or that was left alone longer than he allows."""
        limited = may_go & (pages["longest"] < np.inf) & (pages["crawled"] > -np.inf)
        age = np.where(limited, now - pages["crawled"], 0.0)
        overdue = np.where(may_go & pages["urgent"], np.inf, age / np.where(limited, pages["longest"], 1.0))
        slot = int(np.argmax(overdue))
        return slot if overdue[slot] >= 1.0 else None

    def _free_at(self, pages: npt.NDArray[np.void]) -> Floats:
        """When each page may go, by its own lease and delay and by its host's."""
        resting = np.maximum(self._host_busy_until, self._host_rests_until)
        for host, purse in self._purses.items():
            if host < len(resting):
                resting[host] = max(resting[host], purse.spent_until)
        limits = np.maximum(
            pages["not_before"], np.where(pages["shortest"] > 0, pages["crawled"] + pages["shortest"], -np.inf)
        )
        own = np.maximum(pages["lease_ends"], np.where(pages["urgent"], -np.inf, limits))
        return np.asarray(np.where(pages["paused"], np.inf, np.maximum(resting[pages["host"]], own)), dtype=np.float64)

    def _lease(self, slot: int, now: float, value: float | None) -> None:
        page = self._pages[slot]
        self._spend(int(page["host"]), float(page["cost"]), value, now)
        page["lease_ends"] = now + self.lease
        page["signals_at_lease"] = page["signals"]
        self._host_busy_until[page["host"]] = now + self.lease

    def finish(
        self,
        slot: int,
        now: float,
        *,
        crawled: float | None,
        changed: bool = False,
        gap: float = 0.0,
        put_off: float = 0.0,
    ) -> None:
        """The order is done: the copy is as of `crawled` (None: nothing was refreshed); its host rests for `gap`."""
        slot, now = slot_number(slot, self._count), moment("now", now)
        crawled = crawled if crawled is None else moment("crawled", crawled)
        gap, put_off = seconds_to_rest("gap", gap), seconds_to_rest("put_off", put_off)
        page = self._pages[slot]
        if crawled is not None:
            self.rule.crawled(slot, page, now=crawled, changed=changed)
            page["current"] = page["crawled"] = crawled
            # Hints heard after the fetch began may be about a change that came too late for it.
            page["signals"] = max(0.0, page["signals"] - page["signals_at_lease"])
        page["urgent"] &= crawled is None and not put_off  # an order that was not carried out comes again
        page["signals_at_lease"] = 0
        self._free_host_of(page)
        page["lease_ends"] = -np.inf
        page["not_before"] = now + put_off
        self.host_rests(int(page["host"]), now + gap)

    def _free_host_of(self, page: np.void) -> None:
        """A lease that has ended does not free a host that another page keeps busy by now."""
        if page["lease_ends"] > -np.inf and page["lease_ends"] == self._host_busy_until[page["host"]]:
            self._host_busy_until[page["host"]] = -np.inf

    def give_back(self, slot: int, until: float, now: float) -> None:
        """The page that `next` has just handed out is not crawled before `until`: the budget's token is back."""
        slot, now, until = slot_number(slot, self._count), moment("now", now), max(moment("until", until), now)
        self._pace.give_back(float(self._pages[slot]["cost"]))
        self.finish(slot, now, crawled=None, put_off=until - now)

    def put_off(self, slot: int, until: float, now: float) -> None:
        """Do not hand the page out before `until`, whatever was said before; not for one that is leased."""
        slot, until = slot_number(slot, self._count), later_moment("until", until)
        moment("now", now)
        self._pages[slot]["not_before"] = until

    def pause(self, slot: int) -> None:
        """Keep the page out of play until `resume`."""
        slot = slot_number(slot, self._count)
        self._pages[slot]["paused"] = True

    def resume(self, slot: int, now: float) -> None:
        """Bring a paused page back into play."""
        slot, now = slot_number(slot, self._count), moment("now", now)
        self._pages[slot]["paused"] = False

    def crawl_now(self, slot: int, now: float) -> None:
        """Crawl the page before all others, as soon as the budget and its host allow it."""
        slot, now = slot_number(slot, self._count), moment("now", now)
        self._pages[slot]["urgent"] = True

    def not_more_often_than(self, slot: int, seconds: float, now: float) -> None:
        """Leave at least this many seconds between two crawls of the page; 0: no limit."""
        slot, now = slot_number(slot, self._count), moment("now", now)
        self._pages[slot]["shortest"] = require_seconds(seconds, 0.0)

    def at_least_every(self, slot: int, seconds: float, now: float) -> None:
        """Crawl the page at least once in this many seconds, whatever it gains; infinity: no limit."""
        slot, now = slot_number(slot, self._count), moment("now", now)
        self._pages[slot]["longest"] = require_seconds(seconds, 1e-9)

    def set_host(self, host: int, *, gap: float | None = None, budget: float | None = None) -> None:
        """Give a host a budget of its own; the gap is given with every answer."""
        host = host_number(host)
        if gap is not None:
            seconds_to_rest("gap", gap)
        if budget is not None:
            self._set_purse(host, budget)

    def host_rests(self, host: int, until: float) -> None:
        """Hand out no page of this host before `until`."""
        host, until = host_number(host), later_moment("until", until)
        self._reach_host(host)
        self._host_rests_until[host] = max(self._host_rests_until[host], until)

    def remove(self, slot: int) -> None:
        """Forget the page."""
        slot = slot_number(slot, self._count)
        page = self._pages[slot]
        self._free_host_of(page)
        self._pages[slot] = np.zeros((), PAGE)
        for name, value in (("cost", 1.0), ("shape", np.inf), ("longest", np.inf)):
            self._pages[slot][name] = value  # free slots are valued too
        self._free.append(slot)

    def explain(self, slot: int, now: float, turn: float = 0.0) -> Explanation:
        """Value, price, due time, and what holds the page back; the queue of its host is not counted."""
        slot, now = slot_number(slot, self._count), moment("now", now)
        page = self._pages[slot]
        pages = self._pages[: self._count]
        urgency = self.rule.urgency(pages, now)
        value, first = float(urgency[slot]), 0
        due = now if value >= self._price else self.rule.due(slot, page, price=self._price, now=now)
        due = max(due, _limit(page))
        if page["current"] > -np.inf:
            empty = (
                pages["active"]
                & (pages["current"] == -np.inf)
                & (pages["lease_ends"] <= now)
                & (pages["not_before"] <= now)
                & ~pages["paused"]
            )
            first = int((empty & (urgency > value)).sum())
        return Explanation(value, self._price, self._after(first, due, now), self._held_by(page, now, value), first)

    def _held_by(self, page: np.void, now: float, value: float) -> str:
        host = page["host"]
        reasons = {
            "leased": page["lease_ends"] > now,
            "paused": page["paused"],
            "put off": _limit(page) > now,
            "host busy": self._host_busy_until[host] > now,
            "host resting": self._host_rests_until[host] > now,
            "host budget": self._spent_until(int(host)) > now,
            "below the price": value < self._price,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")


def _limit(page: np.void) -> float:
    """Before when a page is not to be handed out, whatever it is worth."""
    limit = page["crawled"] + page["shortest"] if page["shortest"] > 0 else -np.inf
    return float(max(page["not_before"], limit))

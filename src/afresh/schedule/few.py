"""The plain scheduler's picks for some thousands of pages, by a look at few of them, and without compiling anything.

A page's value only grows while nothing happens to it. So its value at a later moment, the horizon, bounds what it is
worth until then. The page with the highest bound among those that may go is valued exactly, and after it only pages
whose bounds are no lower. Pages without a copy, all those of a first crawl, do not change in value at all: their bound
is their value. Bounds are found anew for pages that something happened to, and for all when the horizon is reached,
which is as far away as the square root of the number of pages takes to pick: about as many are valued at every pick.
"""

from dataclasses import dataclass, fields
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

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
from afresh.schedule.greedy import Greedy
from afresh.schedule.plain import PAGE
from afresh.schedule.priced import PricedByPicks, left_alone_longest, require_seconds
from afresh.schedule.queue import play
from afresh.types import Wait
from afresh.value.arguments import blame
from afresh.value.crawl import value_of_pages
from afresh.value.predictive import NO_COPY
from afresh.value.resting import REST

Floats = NDArray[np.float64]
Slots = slice | NDArray[np.int64]

_SOON = 0.2  # staleness up to which x²/2 is less than a seventh more than the value that it bounds
_WANTED = 1e200  # more than any crawl gains: of pages that an operator wants
_MARGIN = 1.0 + 1e-6  # on bounds: values grow, but the sums behind them are rounded


@dataclass(slots=True)
class _Columns:
    """What is kept of each page, by slot."""

    host: NDArray[np.int64]
    request_rate: Floats
    change_rate: Floats
    recall: Floats
    false_rate: Floats
    shape: Floats
    cost: Floats
    current: Floats  # the copy is as of this moment; −∞: there is none
    signals: Floats  # heard since then
    signals_at_lease: Floats
    lease_ends: Floats
    not_before: Floats
    crawled: Floats  # when the copy was last confirmed, by the clock; −∞: there is none
    shortest: Floats  # never more often than; 0: no limit
    paused: Floats  # 1: it is
    may_go: Floats  # when the page itself may be handed out, by all of these; ∞: it may not, or the slot is free
    bound: Floats  # on its value until the horizon

    @classmethod
    def room(cls, pages: int) -> "_Columns":
        """For this many pages."""
        return cls(np.zeros(pages, np.int64), *(np.zeros(pages) for _ in fields(cls)[1:]))

    def grown(self) -> "_Columns":
        """The same with more room."""
        more = self.room(max(64, 2 * len(self.bound)))
        for each in fields(self):
            getattr(more, each.name)[: len(self.bound)] = getattr(self, each.name)
        return more


class Few(PricedByPicks):
    """Does what `Plain` does with the rule `Greedy`; see there.

    Invariants: those of `Plain`, the same picks; no page is worth more than its bound before the horizon, but those in
    `_touched`, whose bounds are out of date. It may say to ask again sooner than `Plain`, never later.
    """

    def __init__(self, *, budget: float, lease: float = 120.0, sweep: float = 0.0) -> None:
        super().__init__(budget, sweep)
        self.lease = number("lease", lease, above=True, most=MAX_MOMENT)
        self._columns = _Columns.room(0)
        self._count = 0
        self._free: list[int] = []
        self._longest: dict[int, float] = {}  # of pages that are to be crawled at least this often
        self._limited: tuple[NDArray[np.int64], Floats] | None = None  # the same as arrays, found anew after changes
        self._urgent: dict[int, None] = {}  # pages that an operator wants before all others, the first first
        self._touched: set[int] = set()  # pages whose bounds are out of date
        self._horizon = -inf
        self._bounded = (-inf, 0)  # when all bounds were last found, and after how many picks
        self._host_busy_until: list[float] = []
        self._host_rests_until: list[float] = []
        self._host_pages: list[int] = []
        self._host_opens = np.zeros(0)  # when a page of each may go; ∞: it has none

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
        age: float = inf,
        signals: float = 0.0,
        shape: float = inf,
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
        if self._free:
            slot = self._free.pop()
        else:
            slot, self._count = self._count, self._count + 1
            if slot == len(self._columns.bound):
                self._columns = self._columns.grown()
        kept = self._columns
        kept.request_rate[slot], kept.change_rate[slot] = request_rate, change_rate
        kept.recall[slot], kept.false_rate[slot], kept.shape[slot], kept.cost[slot] = recall, false_rate, shape, cost
        kept.current[slot], kept.signals[slot], kept.signals_at_lease[slot] = now - age, signals, 0.0
        kept.lease_ends[slot] = kept.not_before[slot] = kept.may_go[slot] = -inf
        kept.crawled[slot], kept.shortest[slot], kept.paused[slot] = now - age, 0.0, 0.0
        kept.host[slot] = host
        self._touched.add(slot)
        self._reach_host(host)
        self._host_pages[host] += 1
        self._open_host(host)
        return slot

    def _reach_host(self, host: int) -> None:
        missing = host + 1 - len(self._host_pages)
        if missing > 0:
            self._host_busy_until += [-inf] * missing
            self._host_rests_until += [-inf] * missing
            self._host_pages += [0] * missing
            if host >= len(self._host_opens):
                more = np.full(max(host + 1, 2 * len(self._host_opens)), inf)
                more[: len(self._host_opens)] = self._host_opens
                self._host_opens = more

    def _open_host(self, host: int) -> None:
        opens = max(self._host_busy_until[host], self._host_rests_until[host], self._spent_until(host))
        self._host_opens[host] = opens if self._host_pages[host] else inf

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
        kept = self._columns
        if age is not None:
            kept.current[slot] = now - age
        for column, value in (
            (kept.request_rate, request_rate),
            (kept.change_rate, change_rate),
            (kept.recall, recall),
            (kept.false_rate, false_rate),
            (kept.shape, shape),
            (kept.signals, signals),
        ):
            if value is not None:
                column[slot] = value
        self._touched.add(slot)

    def signal(self, slot: int, now: float, count: int = 1) -> None:
        """A hint arrived that the page changed."""
        slot, count = slot_number(slot, self._count), signal_count(count)
        moment("now", now)
        self._columns.signals[slot] += count
        self._touched.add(slot)

    def next(self, now: float) -> Pick | Wait:
        """The most valuable page that may be crawled now, if the budget has a token; or when to ask again."""
        now = moment("now", now)
        if wait := self._pace.wait(now):
            return wait
        soonest = float(self._host_opens.min(initial=inf))
        if soonest > now:
            self._waited = True
            return Wait(soonest, "hosts" if len(self) else "no pages")
        if (wanted := self._wanted(now)) is not None:
            self._pace.take(now, float(self._columns.cost[wanted]))
            self._lease(wanted, now, None)
            return Pick(wanted, self._worth_of(wanted, now), self._price)
        self._find_bounds(now)
        kept, count = self._columns, self._count
        opens = np.maximum(self._host_opens[kept.host[:count]], kept.may_go[:count])
        bounds = np.where(opens <= now, kept.bound[:count], -inf)
        slot = int(bounds.argmax())
        best = float(bounds[slot])
        if best == -inf:
            self._waited = True
            return Wait(float(opens.min()), "hosts")
        if kept.current[slot] > -inf:
            # Where rounding brought its value above its bound, the page is still among those that are compared.
            slot, best = self._best_above(bounds, min(self._worth_of(slot, now), best), now)
        if best <= 0:
            # Nothing is worth a crawl yet; values move with time, so look again at the next tick.
            self._waited = True
            return Wait(now + 1.0 / self.budget, "nothing to gain")
        swept = (opens <= now) & (kept.request_rate[:count] > 0)
        if self._sweeps_now() and swept.any():
            slots, wanted_by = np.flatnonzero(swept), kept.request_rate
            slot = left_alone_longest(slots, kept.current, wanted_by, now, by_requests=self._by_requests)
            best = self._worth_of(slot, now)
        elif kept.current[slot] > -inf:
            self._learn_price(best, len(self))
        self._pace.take(now, float(kept.cost[slot]))
        self._lease(slot, now, best)
        return Pick(slot, best, self._price)

    def _wanted(self, now: float) -> int | None:
        """The page that an operator wants before all others, or that was left alone longer than he allows."""
        kept = self._columns
        for slot in self._urgent:
            if not kept.paused[slot] and max(self._host_opens[kept.host[slot]], kept.lease_ends[slot]) <= now:
                return slot
        if not self._longest:
            return None
        if self._limited is None:
            self._limited = np.fromiter(self._longest, np.int64), np.fromiter(self._longest.values(), np.float64)
        slots, longest = self._limited
        opens = np.maximum(self._host_opens[kept.host[slots]], kept.may_go[slots])
        copied = kept.crawled[slots] > -inf
        overdue = np.where((opens <= now) & copied, (now - kept.crawled[slots]) / longest, 0.0)
        place = int(overdue.argmax())
        return int(slots[place]) if overdue[place] >= 1.0 else None

    def _best_above(self, bounds: Floats, value: float, now: float) -> tuple[int, float]:
        """The page of the highest value among those that may be worth at least this; the lower slot of equals."""
        slots = np.flatnonzero(bounds >= value)
        values = self._worth(slots, now)
        place = int(values.argmax())
        return int(slots[place]), float(values[place])

    def _find_bounds(self, now: float) -> None:
        if now > self._horizon:
            then, picks = self._bounded
            pause = (now - then) / (self._picks - picks) if self._picks > picks else 0.0
            pause = min(max(pause, 1.0 / self.budget), 1e9)
            self._horizon, self._bounded = now + pause * sqrt(self._count), (now, self._picks)
            self._value_at_horizon(slice(0, self._count))
        elif self._touched:
            slots = [slot for slot in self._touched if not self._bound_quickly(slot)]
            if len(slots) == 1:
                self._value_at_horizon(slice(slots[0], slots[0] + 1))  # a slice of a column is no copy
            elif slots:
                self._value_at_horizon(np.array(slots))
        self._touched.clear()

    def _bound_quickly(self, slot: int) -> bool:
        """Where a copy was crawled lately and no signal counts, V and its stale time are at most Δ·elapsed²/2 each."""
        kept = self._columns
        current, change_rate = kept.current.item(slot), kept.change_rate.item(slot)
        if not current > -inf or kept.recall.item(slot) or kept.false_rate.item(slot):
            return False
        x = change_rate * max(self._horizon - current, 0.0)
        if not 0.0 < x < _SOON:
            return False
        most = (1.0 + REST) * x * x / (2.0 * change_rate)
        kept.bound[slot] = _MARGIN * kept.request_rate.item(slot) * most / kept.cost.item(slot)
        return True

    def _value_at_horizon(self, which: Slots) -> None:
        bound = self._worth(which, self._horizon)
        self._columns.bound[which] = np.where(self._columns.current[which] > -inf, _MARGIN * bound, bound)

    def _worth(self, which: Slots, now: float, current: Floats | None = None, signals: Floats | None = None) -> Floats:
        """V(elapsed, signals) / cost of some pages, with copies and signals as they are, unless others are given."""
        kept = self._columns
        current = kept.current[which] if current is None else current
        with np.errstate(all="ignore"):  # 0·∞ and the like, where the limit is known
            value: Floats = value_of_pages(
                np.minimum(np.maximum(now - current, 0.0), NO_COPY),
                kept.signals[which] if signals is None else signals,
                kept.change_rate[which],
                kept.recall[which],
                kept.false_rate[which],
                kept.shape[which],
                kept.request_rate[which],
            )
            value /= kept.cost[which]
        if np.isnan(value.sum()):
            names = ("signals", "change_rate", "recall", "false_rate", "shape", "request_rate")
            blame({name: getattr(kept, name)[which] for name in names})
        return value

    def _worth_of(self, slot: int, now: float) -> float:
        return float(self._worth(slice(slot, slot + 1), now)[0])

    def _lease(self, slot: int, now: float, value: float | None) -> None:
        kept = self._columns
        self._note_pick()
        kept.lease_ends[slot] = now + self.lease
        self._renew(slot)
        self._spend(int(kept.host[slot]), float(kept.cost[slot]), value, now)
        kept.signals_at_lease[slot] = kept.signals[slot]
        host = int(kept.host[slot])
        self._host_busy_until[host] = now + self.lease
        self._open_host(host)

    def _renew(self, slot: int) -> None:
        """Find out again when the page itself may go."""
        kept = self._columns
        free = max(kept.lease_ends[slot], self._limit(slot))
        kept.may_go[slot] = inf if kept.paused[slot] else free

    def _limit(self, slot: int) -> float:
        """Before when the page is not to be handed out, whatever it is worth."""
        kept = self._columns
        limit = kept.crawled[slot] + kept.shortest[slot] if kept.shortest[slot] > 0 else -inf
        return float(max(kept.not_before[slot], limit))

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
        kept = self._columns
        if crawled is not None:
            kept.current[slot] = kept.crawled[slot] = crawled
            # Hints heard after the fetch began may be about a change that came too late for it.
            kept.signals[slot] = max(0.0, kept.signals[slot] - kept.signals_at_lease[slot])
            self._touched.add(slot)
        if crawled is not None or put_off:
            self._urgent.pop(slot, None)  # an order that was not carried out comes again
        kept.signals_at_lease[slot] = 0.0
        kept.lease_ends[slot] = -inf
        kept.not_before[slot] = now + put_off
        self._renew(slot)
        host = int(kept.host[slot])
        self._host_busy_until[host] = -inf
        self.host_rests(host, now + gap)

    def give_back(self, slot: int, until: float, now: float) -> None:
        """The page that `next` has just handed out is not crawled before `until`: the budget's token is back."""
        slot, now, until = slot_number(slot, self._count), moment("now", now), max(moment("until", until), now)
        self._pace.give_back(float(self._columns.cost[slot]))
        self.finish(slot, now, crawled=None, put_off=until - now)

    def put_off(self, slot: int, until: float, now: float) -> None:
        """Do not hand the page out before `until`, whatever was said before; not for one that is leased."""
        slot, until = slot_number(slot, self._count), later_moment("until", until)
        moment("now", now)
        self._columns.not_before[slot] = until
        self._renew(slot)

    def pause(self, slot: int) -> None:
        """Keep the page out of play until `resume`."""
        slot = slot_number(slot, self._count)
        self._columns.paused[slot] = 1.0
        self._renew(slot)

    def resume(self, slot: int, now: float) -> None:
        """Bring a paused page back into play."""
        slot, now = slot_number(slot, self._count), moment("now", now)
        self._columns.paused[slot] = 0.0
        self._renew(slot)

    def crawl_now(self, slot: int, now: float) -> None:
        """Crawl the page before all others, as soon as the budget and its host allow it."""
        slot, now = slot_number(slot, self._count), moment("now", now)
        self._urgent[slot] = None

    def not_more_often_than(self, slot: int, seconds: float, now: float) -> None:
        """Leave at least this many seconds between two crawls of the page; 0: no limit."""
        slot, now = slot_number(slot, self._count), moment("now", now)
        self._columns.shortest[slot] = require_seconds(seconds, 0.0)
        self._renew(slot)

    def at_least_every(self, slot: int, seconds: float, now: float) -> None:
        """Crawl the page at least once in this many seconds, whatever it gains; infinity: no limit."""
        slot, now = slot_number(slot, self._count), moment("now", now)
        self._longest.pop(slot, None)
        if require_seconds(seconds, 1e-9) < inf:
            self._longest[slot] = seconds
        self._limited = None

    def set_host(self, host: int, *, gap: float | None = None, budget: float | None = None) -> None:
        """Give a host a budget of its own; the gap is given with every answer."""
        host = host_number(host)
        if gap is not None:
            seconds_to_rest("gap", gap)
        self._reach_host(host)
        if budget is not None:
            self._set_purse(host, budget)
            self._open_host(host)

    def host_rests(self, host: int, until: float) -> None:
        """Hand out no page of this host before `until`."""
        host, until = host_number(host), later_moment("until", until)
        self._reach_host(host)
        self._host_rests_until[host] = max(self._host_rests_until[host], until)
        self._open_host(host)

    def remove(self, slot: int) -> None:
        """Forget the page."""
        slot = slot_number(slot, self._count)
        kept, host = self._columns, int(self._columns.host[slot])
        # A lease that has ended does not free a host that another page keeps busy by now.
        if kept.lease_ends[slot] > -inf and kept.lease_ends[slot] == self._host_busy_until[host]:
            self._host_busy_until[host] = -inf
        self._host_pages[host] -= 1
        self._open_host(host)
        kept.may_go[slot], kept.lease_ends[slot] = inf, -inf
        kept.request_rate[slot] = 0.0
        self._urgent.pop(slot, None)
        self._longest.pop(slot, None)
        self._limited = None
        self._free.append(slot)

    def explain(self, slot: int, now: float, turn: float = 0.0) -> Explanation:
        """Value, price, due time, and what holds the page back; `turn` is how long one turn with its host takes."""
        slot, now = slot_number(slot, self._count), moment("now", now)
        value, host = self._worth_of(slot, now), int(self._columns.host[slot])
        first, ahead = self._first_crawls(slot, value, now), 0
        if turn > 0.0:
            turn = max(turn, self._step_of(host))
        if turn > 0.0 and self.budget > 0.0 and not self._columns.lease_ends[slot] > now:
            due, ahead = self._in_queue(slot, now, turn)
        else:
            due = max(now if value >= self._price else self._due(slot, now, self._price), self._limit(slot))
            due = self._after(first, due, now)
        return Explanation(
            value,
            self._price,
            due,
            self._held_by(slot, now, value),
            first,
            ahead=ahead,
            turn=turn,
            spare=self.spare,
            every=self._every(slot, turn),
        )

    def _every(self, slot: int, turn: float) -> float:
        """How often its host can serve the page, if that is less often than is wanted; else 0."""
        host, wanted = self._columns.host, self._longest.get(slot, inf)
        alike = [longest for other, longest in self._longest.items() if host[other] == host[slot]]
        load = turn * sum(1.0 / longest for longest in alike)
        return wanted * load if wanted < inf and load > 1.0 else 0.0

    def _in_queue(self, slot: int, now: float, turn: float) -> tuple[float, int]:
        """When the page goes, by what all pages gain; and how many crawls of its host go before it."""
        kept, count = self._columns, self._count
        active = kept.may_go[:count] < inf
        active[slot] = True
        slots = np.flatnonzero(active)
        own = int(np.searchsorted(slots, slot))
        hosts, host = np.unique(kept.host[slots], return_inverse=True)
        turns = np.array([max(turn, self._step_of(each)) for each in hosts.tolist()])
        if (limit := self._limit(slot)) > now + turn * int((host == host[own]).sum()):
            return limit, 0  # a round of its host is over by then
        leased = kept.lease_ends[slots] > now  # soon to be a fresh copy
        began = np.where(leased, now, kept.current[slots])
        crawled = np.where(leased | (kept.crawled[slots] == -inf), now, kept.crawled[slots])
        heard = np.where(leased, 0.0, kept.signals[slots])
        longest = np.array([self._longest.get(each, inf) for each in slots.tolist()])
        urgent = np.array([each in self._urgent for each in slots.tolist()])
        may_go = np.where(leased, kept.not_before[slots], kept.may_go[slots])
        if kept.paused[slot]:
            may_go[own] = -inf  # as if it were not: others say that it is
        opens = np.array([max(self._host_rests_until[each], self._spent_until(each), now) for each in hosts.tolist()])
        np.maximum.at(opens, host[leased], now + turns[host[leased]])

        def value_at(when: float, current: Floats) -> Floats:
            as_it_is = current == began
            value = self._worth(slots, when, current, np.where(as_it_is, heard, 0.0))
            overdue = (when - np.where(as_it_is, crawled, current)) / longest
            value = np.where(overdue >= 1.0, _WANTED * overdue, value)
            return np.where(urgent & as_it_is, inf, value)

        told = play(
            own,
            value_at=value_at,
            current=began,
            may_go=may_go,
            host=host,
            opens=opens,
            turn=turns,
            budget=self.budget,
            now=max(now, self._pace.ready_at()),
        )
        if told.when < inf:
            return told.when, told.ahead
        if told.crowded or told.price <= 0.0:
            return (limit if limit > now else inf), told.ahead
        return max(told.end, limit, self._due(slot, now, told.price)), 0

    def _first_crawls(self, slot: int, value: float, now: float) -> int:
        """Pages without a copy that may go, and gain more than this one."""
        kept, count = self._columns, self._count
        if not kept.current[slot] > -inf:
            return 0
        empty = np.flatnonzero((kept.current[:count] == -inf) & (kept.may_go[:count] <= now))
        return int((self._worth(empty, now) > value).sum()) if len(empty) else 0

    def _due(self, slot: int, now: float, price: float) -> float:
        pages = np.zeros(1, PAGE)
        for name in ("request_rate", "change_rate", "recall", "false_rate", "shape", "cost", "current", "signals"):
            pages[name] = getattr(self._columns, name)[slot]
        return Greedy().due(slot, pages[0], price=price, now=now)

    def _held_by(self, slot: int, now: float, value: float) -> str:
        kept = self._columns
        host, leased = int(kept.host[slot]), kept.lease_ends[slot] > now
        reasons = {
            "leased": leased,
            "paused": kept.paused[slot] > 0,
            "put off": kept.may_go[slot] > now,
            "host busy": self._host_busy_until[host] > now,
            "host resting": self._host_rests_until[host] > now,
            "host budget": self._spent_until(host) > now,
            "below the price": value < self._price,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")

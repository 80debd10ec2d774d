"""Hands out pages at the moments that a timetable sets; no decision looks at all of them.

Every host has a heap of its pages, the one that is due first at the top. Hosts that are ready stand in a queue by their
tops; hosts that rest, and pages that are leased or put off, in queues by the moment at which they may go. An entry of a
queue that has become wrong stays until its turn, and counts for nothing then.

The picks are those of `schedule.Plain` with the same timetable, which looks at every page at every tick.
"""

import math
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from afresh.checks import MAX_MOMENT, moment, number
from afresh.mirror.heaps import NODE, put, put_all, take
from afresh.mirror.timetable import Timetable
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
from afresh.schedule.priced import PricedByPicks, require_seconds
from afresh.types import Wait

OVERDUE = -1e13  # seconds before all that is due: pages that were left alone for longer than an operator allows
_MORE = 1.05  # times what a host takes: so much more is wanted of it than it takes
_STALE = 2  # entries a host, of which most count for nothing, before a queue is made anew

PAGE = np.dtype(
    [
        ("added", "f8"),
        ("current", "f8"),  # the copy is as of this moment; −∞: there is none
        ("crawled", "f8"),  # when the copy was last confirmed, by the clock; −∞: there is none
        ("lease_ends", "f8"),  # −∞: not leased
        ("not_before", "f8"),
        ("shortest", "f8"),  # never more often than; 0: no limit
        ("longest", "f8"),  # at least every; ∞: no limit
        ("share", "f8"),  # its part of the rates of all pages in play
        ("host", "i4"),
        ("queued", "?"),  # it stands in the heap of its host
        ("paused", "?"),
        ("urgent", "?"),
        ("active", "?"),
    ]
)


class Appointments(PricedByPicks):
    """Spends a budget at a constant rate on the pages that have been due longest, among the hosts that are ready.

    Invariants: those of `Plain`; and a page that may go, but for its host, is in the heap of its host and no other is.
    """

    def __init__(self, timetable: Timetable, *, budget: float, lease: float = 120.0) -> None:
        super().__init__(budget)
        self.timetable = timetable
        self.lease = number("lease", lease, above=True, most=MAX_MOMENT)
        self._pages, self._nodes = np.zeros(0, PAGE), np.zeros(0, NODE)
        self._count = 0
        self._free: list[int] = []
        self._total = 0.0  # of the rates of all pages in play
        self._tops = np.full(0, -1, np.int64)  # by host
        self._busy_until: list[float] = []
        self._rests_until: list[float] = []
        self._ready: list[tuple[float, int, int]] = []  # (when its top is due, its top, host)
        self._resting: list[tuple[float, int]] = []  # (when it is ready, host)
        self._later: list[tuple[float, int]] = []  # (when it may go, slot)
        self._limits: list[tuple[float, int]] = []  # (when it has been left alone for too long, slot)
        self._now = -math.inf

    def __len__(self) -> int:
        return self._count - len(self._free)

    # --- pages come and go ---

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
        age: float = math.inf,
        signals: float = 0.0,
        shape: float = math.inf,
    ) -> int:
        """Take a page in and return its slot; what is believed of its changes says nothing here."""
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
        now, host = self._begin(now), host_number(host)
        slot = self._free.pop() if self._free else self._grow()
        self._pages[slot] = (now, now - age, now - age, *(-np.inf,) * 2, 0, np.inf, 0, host, False, False, False, True)
        self._reach_host(host)
        self.timetable.added(slot, self._pages[slot], now)
        self._place(slot)
        return slot

    def _grow(self) -> int:
        if self._count == len(self._pages):
            more = max(64, len(self._pages) // 2)
            self._pages = np.concatenate([self._pages, np.zeros(more, PAGE)])
            self._nodes = np.concatenate([self._nodes, np.zeros(more, NODE)])
        self._count += 1
        return self._count - 1

    def _reach_host(self, host: int) -> None:
        missing = host + 1 - len(self._tops)
        if missing > 0:
            more = max(missing, len(self._tops) // 2)
            self._tops = np.concatenate([self._tops, np.full(more, -1, np.int64)])
            self._busy_until.extend([-math.inf] * more)
            self._rests_until.extend([-math.inf] * more)

    def remove(self, slot: int) -> None:
        """Forget the page."""
        slot = slot_number(slot, self._count)
        host = int(self._pages[slot]["host"])
        self._leave(slot)
        self._free_host_of(slot)
        self._offer(host)
        self._pages[slot]["active"] = False
        self._count_in(slot)
        self._pages[slot] = np.zeros((), PAGE)
        self._free.append(slot)

    # --- decisions ---

    def next(self, now: float) -> Pick | Wait:
        """The page that has been due longest of those that may go, if the budget has a token; or when to ask again."""
        now = self._begin(now)
        if wait := self._pace.wait(now):
            return wait
        self._wake()
        host = self._first_host()
        if host < 0:
            until = min((queue[0][0] for queue in (self._later, self._resting) if queue), default=math.inf)
            return Wait(until, "hosts" if len(self) else "no pages")
        if self.timetable.fit(self._total):
            self._place_all()
            host = self._first_host()
        slot = int(self._tops[host])
        self._pace.take(now)
        self._spend(host, 1.0, None, now)
        take(self._nodes, self._tops, host, slot)
        self._pages[slot]["queued"] = False
        self._pages[slot]["lease_ends"] = self._busy_until[host] = now + self.lease
        heappush(self._later, (now + self.lease, slot))
        self._offer(host)
        return Pick(slot, 0.0, 0.0)

    def _first_host(self) -> int:
        """The ready host whose top has been due longest; −1: none is ready."""
        if len(self._ready) > _STALE * (len(self._tops) + 16):
            self._stand_in_line()
        while self._ready:
            key, slot, host = self._ready[0]
            if self._tops[host] == slot and self._nodes[slot]["key"] == key and self._free_at(host) <= self._now:
                return host
            heappop(self._ready)
        return -1

    def _wake(self) -> None:
        """Pages and hosts that may go by now are in their places."""
        now = self._now
        while self._later and self._later[0][0] <= now:
            _, slot = heappop(self._later)
            if not self._pages[slot]["queued"]:
                self._place(slot, again=False)
        while self._resting and self._resting[0][0] <= now:
            _, host = heappop(self._resting)
            if self._free_at(host) <= now:  # if not, there is another entry
                self._offer(host)
        while self._limits and self._limits[0][0] <= now:
            until, slot = heappop(self._limits)
            if self._pages[slot]["queued"] and self._limit_passes(slot) == until:
                self._place(slot)

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
        slot, now = slot_number(slot, self._count), self._begin(now)
        crawled = crawled if crawled is None else moment("crawled", crawled)
        gap, put_off = seconds_to_rest("gap", gap), seconds_to_rest("put_off", put_off)
        page = self._pages[slot]
        if crawled is not None:
            self.timetable.crawled(slot, page, now=crawled, changed=changed)
            page["current"] = page["crawled"] = crawled
            self._note_limit(slot)
        page["urgent"] &= crawled is None and not put_off  # an order that was not carried out comes again
        self._free_host_of(slot)
        page["lease_ends"] = -np.inf
        page["not_before"] = now + put_off
        self._place(slot)
        self.host_rests(int(page["host"]), now + gap)

    def give_back(self, slot: int, until: float, now: float) -> None:
        """The page that `next` has just handed out is not crawled before `until`: the budget's token is back."""
        slot, now, until = slot_number(slot, self._count), moment("now", now), max(moment("until", until), now)
        self._pace.give_back()
        self.finish(slot, now, crawled=None, put_off=until - now)

    def _free_host_of(self, slot: int) -> None:
        """A lease that has ended does not free a host that another page keeps busy by now."""
        page = self._pages[slot]
        if page["lease_ends"] > -np.inf and page["lease_ends"] == self._busy_until[page["host"]]:
            self._busy_until[page["host"]] = -math.inf

    # --- what an operator may want, and what others find out ---

    def put_off(self, slot: int, until: float, now: float) -> None:
        """Do not hand the page out before `until`, whatever was said before; not for one that is leased."""
        self._set(slot, now, "not_before", later_moment("until", until))

    def pause(self, slot: int) -> None:
        """Keep the page out of play until `resume`."""
        self._set(slot, max(self._now, 0.0), "paused", True)

    def resume(self, slot: int, now: float) -> None:
        """Bring a paused page back into play."""
        self._set(slot, now, "paused", False)

    def crawl_now(self, slot: int, now: float) -> None:
        """Crawl the page before all others, as soon as the budget and its host allow it."""
        self._set(slot, now, "urgent", True)

    def not_more_often_than(self, slot: int, seconds: float, now: float) -> None:
        """Leave at least this many seconds between two crawls of the page; 0: no limit."""
        self._set(slot, now, "shortest", require_seconds(seconds, 0.0))

    def at_least_every(self, slot: int, seconds: float, now: float) -> None:
        """Crawl the page at least once in this many seconds, whatever it gains; infinity: no limit."""
        self._set(slot, now, "longest", require_seconds(seconds, 1e-9))
        self._note_limit(slot)

    def _set(self, slot: int, now: float, name: str, value: float) -> None:
        slot = slot_number(slot, self._count)
        self._begin(now)
        self._pages[slot][name] = value
        self._place(slot)

    def set_host(self, host: int, *, gap: float | None = None, budget: float | None = None) -> None:
        """Give a host a budget of its own; the gap is given with every answer."""
        host = host_number(host)
        if gap is not None:
            seconds_to_rest("gap", gap)
        if budget is not None:
            self._set_purse(host, budget)
            if host < len(self._tops):
                self._offer(host)

    def host_rests(self, host: int, until: float) -> None:
        """Hand out no page of this host before `until`."""
        host, until = host_number(host), later_moment("until", until)
        self._reach_host(host)
        self._rests_until[host] = max(self._rests_until[host], until)
        self._offer(host)

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
        """What is believed of changes says nothing here."""
        check_beliefs(
            request_rate=request_rate,
            change_rate=change_rate,
            recall=recall,
            false_rate=false_rate,
            shape=shape,
            age=age,
            signals=signals,
        )
        slot_number(slot, self._count)
        moment("now", now)

    def signal(self, slot: int, now: float, count: int = 1) -> None:
        """Hints say nothing here."""
        slot_number(slot, self._count)
        signal_count(count)
        moment("now", now)

    def explain(self, slot: int, now: float, turn: float = 0.0) -> Explanation:
        """When a page is due, what holds it back, and whether its host takes as many crawls as its pages are to get."""
        slot, now = slot_number(slot, self._count), moment("now", now)
        if self.timetable.fit(self._total):
            self._place_all()
        pages, page = self._pages[: self._count], self._pages[slot]
        due = max(self.timetable.due(slot, page, price=0.0, now=now), self._limit(slot))
        if not page["current"] > -np.inf:
            return Explanation(0.0, 0.0, due, self._held_by(slot, now))
        own, mine = self.timetable.event(slot), pages["host"] == page["host"]
        new = pages["active"] & ~pages["paused"] & (pages["current"] == -np.inf) & (pages["added"] < own)
        first = int((new & (pages["lease_ends"] <= now) & (pages["not_before"] <= now)).sum())
        due = self._after(first, due, now)
        ahead = int((mine & pages["queued"] & (self._nodes["key"][: self._count] < own)).sum())
        host = int(page["host"])
        due = max(due, self._free_at(host), now + ahead * turn if turn > 0.0 else now)
        room = min(math.inf if turn <= 0.0 else 1.0 / turn, self._purse_budget(host))  # crawls a second
        wanted = float(pages["share"][mine].sum()) * (1.0 + self.timetable.epsilon) / self.timetable.unit
        every = self.timetable.interval(slot) * wanted / room if wanted > room * _MORE else 0.0
        return Explanation(0.0, 0.0, due, self._held_by(slot, now), first, ahead, turn, every=every)

    def _held_by(self, slot: int, now: float) -> str:
        page = self._pages[slot]
        host = int(page["host"])
        reasons = {
            "leased": page["lease_ends"] > now,
            "paused": page["paused"],
            "put off": self._limit(slot) > now,
            "host busy": self._busy_until[host] > now,
            "host resting": self._rests_until[host] > now,
            "host budget": self._spent_until(host) > now,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")

    # --- where pages and hosts stand ---

    def _begin(self, now: float) -> float:
        """Every operation that knows the time passes here: it never goes backwards."""
        now = moment("now", now)
        self._now = max(self._now, now)
        return now

    def _limit(self, slot: int) -> float:
        """Before when a page is not to be handed out, however long it has been due."""
        page = self._pages[slot]
        if page["shortest"] > 0:
            return max(float(page["not_before"]), float(page["crawled"] + page["shortest"]))
        return float(page["not_before"])

    def _free_at(self, host: int) -> float:
        return max(self._busy_until[host], self._rests_until[host], self._spent_until(host))

    def _key(self, slot: int) -> float:
        """Where a page stands in the heap of its host."""
        page = self._pages[slot]
        if page["urgent"]:
            return -math.inf
        passes = self._limit_passes(slot)
        if passes <= self._now:
            return OVERDUE + passes
        return self.timetable.event(slot) if page["current"] > -np.inf else float(page["added"])

    def _place(self, slot: int, *, again: bool = True) -> None:
        """Put a page where it belongs by now; with `again` it may stand somewhere already."""
        self._leave(slot)
        self._count_in(slot)
        page = self._pages[slot]
        if not page["active"] or page["paused"]:
            return
        free = float(page["lease_ends"]) if page["urgent"] else max(float(page["lease_ends"]), self._limit(slot))
        host = int(page["host"])
        if free <= self._now:
            page["queued"] = True
            put(self._nodes, self._tops, host, slot, self._key(slot))
            if self._tops[host] == slot:
                self._offer(host)
        elif again and free < np.inf:
            heappush(self._later, (free, slot))

    def _leave(self, slot: int) -> None:
        page = self._pages[slot]
        if page["queued"]:
            page["queued"] = False
            host = int(page["host"])
            was_top = self._tops[host] == slot
            take(self._nodes, self._tops, host, slot)
            if was_top:
                self._offer(host)

    def _offer(self, host: int) -> None:
        """A host stands in line: its top, or when it is ready, may be another than before."""
        top = int(self._tops[host])
        if top < 0:
            return
        free = self._free_at(host)
        if free <= self._now:
            heappush(self._ready, (float(self._nodes[top]["key"]), top, host))
        elif free < np.inf:
            heappush(self._resting, (free, host))

    def _stand_in_line(self) -> None:
        """The queues of hosts anew, without entries that count for nothing."""
        self._ready.clear()
        self._resting.clear()
        for host in np.flatnonzero(self._tops >= 0).tolist():
            self._offer(host)

    def rekey(self, slots: NDArray[np.int64]) -> None:
        """The rates of these pages are others now."""
        if len(slots) > 0.1 * len(self):
            self._place_all()
            return
        for slot in slots.tolist():
            self._count_in(slot)
            if self._pages[slot]["queued"]:
                self._place(slot)

    def _place_all(self) -> None:
        """All heaps anew, by the rates and the mean interval of now."""
        pages, rows = self._pages[: self._count], self.timetable.rows[: self._count]
        copied = pages["current"] > -np.inf
        pages["share"] = np.where(pages["active"] & copied & ~pages["paused"], rows["rate"], 0.0)
        self._total = float(pages["share"].sum())
        slots = np.flatnonzero(pages["queued"])
        due = np.where(copied, self.timetable.events(rows), pages["added"])[slots]
        special = pages["urgent"][slots] | (pages["longest"][slots] < np.inf)
        for nth in np.flatnonzero(special).tolist():
            due[nth] = self._key(int(slots[nth]))
        put_all(self._nodes, self._tops, pages["host"][slots], slots, due)
        self._stand_in_line()

    def _count_in(self, slot: int) -> None:
        """What a page in play adds to the rates of all."""
        page = self._pages[slot]
        in_play = page["active"] and not page["paused"] and page["current"] > -np.inf
        share = float(self.timetable.rows[slot]["rate"]) if in_play else 0.0
        self._total += share - float(page["share"])
        page["share"] = share

    def _limit_passes(self, slot: int) -> float:
        """When a page has been left alone for longer than an operator allows; infinity: he did not say."""
        page = self._pages[slot]
        limited = page["longest"] < np.inf and page["crawled"] > -np.inf
        return float(page["crawled"] + page["longest"]) if limited else math.inf

    def _note_limit(self, slot: int) -> None:
        if (passes := self._limit_passes(slot)) < math.inf:
            heappush(self._limits, (passes, slot))
            if len(self._limits) > _STALE * (len(self) + 16):
                known = set(self._limits)
                self._limits = [(until, slot) for until, slot in known if self._limit_passes(slot) == until]
                heapify(self._limits)

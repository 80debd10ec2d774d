"""The loop, pure: evidence in, orders out. It reads no clock; every runner, live or simulated, drives these lines.

1. `observe` takes a signal or a request and updates what is believed of the page.
2. `next` hands out the most valuable page among the hosts that are ready, or says when to ask again.
3. The runner carries the order out, compares what it fetched with what is kept, and calls `finish`.
4. `finish` learns from the outcome and returns it as a `Crawl`, which the runner stores.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from afresh.checks import MAX_MOMENT, later, moment, number, require, require_kinds, require_text
from afresh.engine.arguments import check_crawl
from afresh.engine.columns import GONE, MOST_FAILURES, OUTDATED
from afresh.engine.costs import Costs, Spending
from afresh.engine.hearts import CompiledHeart
from afresh.engine.members import Integers, Members
from afresh.engine.names import Names
from afresh.estimate import Activity, Calibration, Estimator, Senders
from afresh.estimate.base import bounded
from afresh.frontier import Lane, Lanes, Retries, SiteRules, host_failed, retry_after
from afresh.schedule import Explanation, KnowsPrices, Schedules
from afresh.types import (
    STORE_FULL,
    Crawl,
    Fetched,
    Importance,
    Order,
    Outcome,
    Page,
    Request,
    Signal,
    Spent,
    Verdict,
    Wait,
)

RUN_DEBT_SECONDS = 10.0  # of the budget that others may have overspent, and refreshes make up for
MOST_LATELY = 4096  # signals whose moments are remembered
MOST_SENT_AWAY = 100  # pages whose paths have spent their budget, in one go


class Engine(Members):
    """Decides which copy to refresh next, and learns from what comes of it.

    Invariants: every order ends in one `finish` or `release`, and what comes for an order that is no longer out (its
    lease ended, it was finished already, its page was removed) changes nothing; a page is known by its URL to the
    outside and by its slot inside; `now` never goes backwards.
    """

    def __init__(
        self,
        *,
        scheduler: Schedules,
        estimator: Estimator,
        lanes: Lanes | None = None,
        activity: Activity | None = None,
        senders: Senders | None = None,
        importance: Mapping[str, Importance] | None = None,
        retries: Retries | None = None,
        rules: SiteRules | None = None,
        names: Names | None = None,
        costs: Costs | None = None,
        purse: str = "crawl",
        shortest: float = 0.0,
    ) -> None:
        require(scheduler, "scheduler", ("next", "finish", "explain"), "Scheduler.live(budget=2.0) of afresh.schedule")
        require(estimator, "estimator", ("beliefs", "crawled", "learned"), "Learner() of afresh.estimate")
        super().__init__(
            scheduler=scheduler,
            estimator=estimator,
            activity=activity,
            senders=senders,
            names=names,
            lanes=lanes,
            importance=importance,
            retries=retries,
            rules=rules,
            costs=costs,
            shortest=shortest,
        )
        self.purse = purse  # the name of the budget that it spends
        self.spending = Spending()  # of it, by whom ever, lately
        self.ran = 0.0  # what others have spent of it since the start, in its unit
        self._lately: deque[tuple[int, int, int, float]] = deque(maxlen=MOST_LATELY)  # slot, sender, row, time
        self._now = -math.inf  # when it was last asked for an order
        self.calibration = Calibration()  # of what is said about copies, checked by every crawl

    @property
    def parts(self) -> "tuple[Engine, ...]":
        """One for each purse; see `Engines`."""
        return (self,)

    @property
    def first(self) -> "Engine":
        """That of the purse which needs no name."""
        return self

    def by_part(self, urls: Sequence[str]) -> "list[tuple[Engine, list[int]]]":
        """Each engine that some of these pages belong to, and which of them."""
        return [(self, list(range(len(urls))))]

    def part_of(self, url: str) -> "Engine":
        """Whose page this is."""
        return self

    def reaches(self, part: "Engine", lanes: Iterable[str]) -> None:
        """Pages of these lanes come to a part."""

    def requests_since(self, moment: float) -> None:
        """Requests are counted since then."""
        self.estimator.requests_since(moment)

    @property
    def budget(self) -> float:
        """What may be spent a second, in the budget's own unit."""
        return self.scheduler.budget * (1.0 if self.costs is None else self.costs.typical)

    def has_unit(self, unit: str) -> bool:
        """Whether the budget is in this unit, so that it can be another one from now on."""
        return unit == ("calls" if self.costs is None else self.costs.unit)

    @property
    def price(self) -> float:
        """What one of that unit has to gain."""
        return self.scheduler.price / (1.0 if self.costs is None else self.costs.typical)

    def crawl_now(self, url: str, now: float) -> None:
        """Crawl a page before all others, as soon as the budget and its host allow it."""
        slot, now = self._slot(url), moment("now", now)
        self._wanted.add(slot)
        self.scheduler.crawl_now(slot, now)

    def looks_again(self, url: str, now: float) -> None:
        """A page that failed by itself may be well again: it is not put off any longer."""
        slot, now = self.names.slot(url), moment("now", now)
        if slot >= 0 and slot not in self._out and int(self.heart.columns.pages[slot]["failures"]):
            self.scheduler.put_off(slot, now, now)

    def observe(self, evidence: Signal | Request, now: float | None = None) -> bool:
        """Take in a hint or a request, which may have come late if `now` is given; False if the page is not ours."""
        now = None if now is None else moment("now", now)
        if not self.hear(evidence):
            return False
        heard = bounded("evidence.time", evidence.time)
        slot, now = self.names.slot(evidence.url), heard if now is None else max(now, heard)
        if isinstance(evidence, Signal):
            self.heart.heard(slot, now)
        else:
            self.heart.believe(slot, now)
        return True

    def hear(self, evidence: Signal | Request) -> bool:
        """As `observe`, without telling the schedule: where much is heard at once, `believe` does that once a page."""
        require_kinds((evidence, (Signal, Request), "evidence"))
        require_text(evidence.url, "evidence.url")
        slot = self.names.slot(evidence.url)
        if slot < 0:
            return False
        time = bounded("evidence.time", evidence.time)
        if isinstance(evidence, Signal):
            require_text(evidence.sender, "evidence.sender")
            sender = self.senders.number(evidence.sender)
            row = self.senders.row(self._host(slot), sender)
            self.heart.hear(slot, sender, row, time)
            self._lately.append((slot, sender, row, time))
        else:
            self.estimator.requested(slot, number("count", evidence.count), time)
        return True

    def news(self, evidence: Sequence[Signal | Request], slots: Integers) -> Integers:
        """Which of these hints and requests, of the pages at these slots, are news: their slots, else −1.

        A signal from before the copy was fetched is about what it holds.
        """
        known = np.flatnonzero(slots >= 0)
        found = np.full(len(slots), -1)
        current = self.heart.columns.pages["current"][slots[known]].tolist()
        for nth, since in zip(known.tolist(), current, strict=True):
            each = evidence[nth]
            if not isinstance(each, Signal) or each.time >= since:
                found[nth] = slots[nth]
        return found

    def observe_many(self, evidence: Iterable[Signal | Request], now: float, slots: Integers | None = None) -> int:
        """Take in many hints and requests, in their order, that are all heard now; how many are of pages of ours.

        `slots` as `news` gives them, else what was heard of pages of ours is all news.
        """
        now, every = moment("now", now), list(evidence)
        if slots is None:
            slots = self.slots([each.url for each in every])
        if not isinstance(self.heart, CompiledHeart):
            return sum(self.observe(each, now) for each, slot in zip(every, slots.tolist(), strict=True) if slot >= 0)
        rows: dict[tuple[int, str], tuple[int, int]] = {}
        signals: list[tuple[int, int, int, float]] = []
        requests: list[tuple[int, float, float]] = []
        host_of = self.heart.columns.pages["host"]
        for each, slot in zip(every, slots.tolist(), strict=True):
            if slot < 0:
                continue
            time = each.time if type(each.time) is float and -now <= each.time <= now else self._heard_at(each, now)
            if isinstance(each, Signal):
                key = int(host_of[slot]), each.sender
                row = rows.get(key)
                if row is None:
                    require_text(each.sender, "evidence.sender")
                    sender = self.senders.number(each.sender)
                    row = rows[key] = sender, self.senders.row(self._lanes.name(key[0]), sender)
                signals.append((slot, *row, time))
            else:
                requests.append((slot, number("count", each.count), time))
        if signals:
            whose, senders, pairs, moments = (np.array(column) for column in zip(*signals, strict=True))
            self.heart.hear_many(whose, senders, pairs, moments, now)
            self._lately.extend(signals[-MOST_LATELY:])
        if requests:
            whose, counts, moments = (np.array(column) for column in zip(*requests, strict=True))
            self.heart.ask_many(whose, counts, moments, now)
        return len(signals) + len(requests)

    @staticmethod
    def _heard_at(each: Signal | Request, now: float) -> float:
        require_kinds((each, (Signal, Request), "evidence"))
        return min(bounded("evidence.time", each.time), now)

    def believe(self, url: str, now: float) -> None:
        """Tell the schedule what is believed of a page since something was heard of it."""
        self.heart.believe(self._slot(url), moment("now", now))

    def next(self, now: float) -> Order | Wait:
        """The crawl that gains most now, or when to ask again; ConfigError if `now` is before the last one."""
        self._now = later(now, self._now)
        for _ in range(MOST_SENT_AWAY):
            pick = self.scheduler.next(now)
            if isinstance(pick, Wait):
                return pick
            slot = pick.slot
            page = self.names.page(slot)
            if not self.rules.limit_paths or (until := self._may_go(page, slot, now)) <= now:
                break
            self.scheduler.give_back(slot, until, now)
        else:
            return Wait(now, "path budgets")
        signals = self.heart.signals(slot)
        if signals:
            self.heart.order(slot)
        order = self._out[slot] = Order(slot, page.url, page.host, now, pick.value, pick.price, signals, pick.probe)
        self._lanes.lane(page.host).began(order, now)
        return order

    def _may_go(self, page: Page, slot: int, now: float) -> float:
        """When the budget of its path lets a page go: `now`, if there is none."""
        rule = self.rules.path_budget(page)
        if rule is None:
            return now
        return self.purses.ask(page.host, rule, slot, now, wanted=slot in self._wanted)

    def finish(self, order: Order, fetched: Fetched, verdict: Verdict, now: float, *, rest: float = 0.0) -> Crawl:
        """Learn from a crawl that was carried out; the record of it. The host rests at least for `rest`."""
        if type(order) is not Order:
            require_kinds((order, Order, "order"))
        check_crawl(fetched, verdict)
        now, rest = moment("now", now), number("rest", rest, most=MAX_MOMENT)
        lane = self._lanes.lane(order.host)
        if not self._ends(order, lane):
            return _record(order, fetched, verdict)
        slot = order.slot
        if self.costs is None:
            self.spending.note(fetched.cost.calls, now)
        reckon = self.costs is not None and self._spent(slot, fetched, verdict, now, ordered=True)
        if self.by_costs is not None:
            self.by_costs.saw(slot, verdict.cost, fetched.started, probe=order.probe)
        if self._without_room or verdict.reason == STORE_FULL:
            self._note_room(slot, verdict.reason)
        if not verdict.outcome.refreshed:
            crawl = self._recorded(order, fetched, verdict)
            self._not_refreshed(order, lane, fetched, crawl, now, rest)
            return crawl
        crawl = self._refreshed(order, fetched, verdict, now, self._rest(lane, False, fetched, verdict, now, rest))
        if reckon:
            cast(KnowsPrices, self.scheduler).reckon(slot, now)
        return crawl

    def _spent(self, slot: int, fetched: Fetched, verdict: Verdict, now: float, *, ordered: bool) -> bool:
        """Learn what a fetch has cost, and let those after it make up for what was not expected; whether the page's
        expected cost is another now."""
        costs, scheduler = cast(Costs, self.costs), cast(KnowsPrices, self.scheduler)
        before = scheduler.cost_of(slot)
        if verdict.outcome.refreshed:
            cost = costs.learn(slot, fetched.cost, new=verdict.outcome is not Outcome.UNCHANGED)
        else:
            cost = costs.spent(fetched.cost)
        if ordered:
            scheduler.settle(cost / costs.typical - before, now)
        else:
            self._ran(cost, now)
            return self._reprice(slot, before)
        self.spending.note(cost, now)
        return self._reprice(slot, before)

    def charge(self, url: str, spent: Spent, now: float) -> None:
        """Others have spent this out of our purse, and nothing is learned from it."""
        self._ran(spent.calls if self.costs is None else self.costs.spent(spent), moment("now", now))

    def _ran(self, cost: float, now: float) -> None:
        self.ran += cost
        self.spending.note(cost, now)
        if isinstance(self.scheduler, KnowsPrices):
            typical = 1.0 if self.costs is None else self.costs.typical
            self.scheduler.settle(cost / typical, now, RUN_DEBT_SECONDS)

    def costs_of(self, url: str) -> tuple[float | None, float | None]:
        """What a refresh of a page costs if it finds the same, and if not, in the budget's unit; None: unknown."""
        return (None, None) if self.costs is None else self.costs.of(self._slot(url))

    def receive(self, fetched: Fetched, verdict: Verdict, now: float) -> Crawl | None:
        """Learn from content that came without an order, because somebody who was waiting got it; the record of it.

        None: it is older than the copy, or no content, or the page is being crawled at this moment. It was paid for out
        of the same purse, whatever is learned.
        """
        check_crawl(fetched, verdict)
        slot, now = self._slot(fetched.url), moment("now", now)
        if self.costs is None:
            self._ran(fetched.cost.calls, now)
        else:
            self._spent(slot, fetched, verdict, now, ordered=False)
        current = self.heart.current(slot)
        if slot in self._out or not verdict.outcome.refreshed or (current is not None and fetched.started <= current):
            return None
        # A costly query may have run for long, and its result takes a moment to come here: what was heard since it was
        # begun is not about what it found.
        later = [sender for whose, sender, _, time in self._lately if whose == slot and time >= fetched.started]
        signals = max(self.heart.signals(slot) - len(later), 0)
        if signals or later:
            self.heart.run_elsewhere(slot, later)
        order = Order(slot, fetched.url, self._host(slot), now, signals=signals)
        return self._refreshed(order, fetched, verdict, now, 0.0)

    def _refreshed(self, order: Order, fetched: Fetched, verdict: Verdict, now: float, gap: float) -> Crawl:
        """A copy was confirmed or replaced: learn from it, and its age begins anew."""
        slot, outcome, started = order.slot, verdict.outcome, fetched.started
        self._wanted.discard(slot)
        current = self.heart.current(slot)
        learns, changed = current is not None and outcome is not Outcome.NEW, outcome is Outcome.CHANGED
        found = outcome is not Outcome.UNCHANGED
        said = self.heart.close(slot, started, now, learns=learns, changed=changed, found=found, gap=gap)
        if current is None:
            return _record(order, fetched, verdict)
        if learns:
            self.calibration.add(said, not changed)
        return _record(order, fetched, verdict, max(started - current, 0.0), said)

    def _not_refreshed(self, order: Order, lane: Lane, fetched: Fetched, crawl: Crawl, now: float, rest: float) -> None:
        """An order has brought no content: the page or its host is tried again later."""
        slot, probed = (
            order.slot,
            crawl.outcome is Outcome.PROBED,
        )  # a probe tries nothing that could fail but the fetch
        failures = 0 if probed else self._failed(slot, crawl)
        failed = host_failed(lane.name, fetched, crawl.reason)
        put_off = self.retries.put_off(crawl.outcome, failures, crawl.reason)
        if not put_off and failed is False and not probed:
            put_off = self.retries.put_off(Outcome.FAILED, failures)  # what rests is not this host, but where it led to
        if put_off:
            self._wanted.discard(slot)
        gap = self._rest(lane, failed, fetched, crawl, now, rest)
        self.scheduler.finish(slot, now, crawled=None, changed=False, gap=gap, put_off=put_off)
        self.heart.believe(slot, now)

    def _rest(
        self, lane: Lane, failed: bool | None, fetched: Fetched, came: Crawl | Verdict, now: float, rest: float
    ) -> float:
        """Let the host of an order rest after it; for how long."""
        asked = None if fetched.retry_after is None else retry_after(lane.name, fetched)
        gap = self._lanes.note(lane, failed, now, fetched.took, fetched.ended, asked, rest, came.reason)
        lane.ended(now, now + gap, refreshed=came.outcome.refreshed)
        return gap

    def _ends(self, order: Order, lane: Lane) -> bool:
        """Nobody is in the order's lane for it any more; whether it was still out."""
        if lane.order is order:
            lane.order = None
        if self._out.get(order.slot) is not order:
            return False
        del self._out[order.slot]
        return True

    def _failed(self, slot: int, crawl: Crawl) -> int:
        """Note that nothing was refreshed; how often in a row that was so."""
        page, gone = self.heart.columns.pages[slot], crawl.outcome is Outcome.GONE
        again = gone == self.heart.has(slot, GONE)
        failures = min(int(page["failures"]) + 1, MOST_FAILURES) if again else 1
        page["failures"] = failures
        page["flags"] = int(page["flags"]) & ~GONE | GONE * gone | OUTDATED * crawl.leaves_outdated
        return failures

    def is_out(self, order: Order) -> bool:
        """Whether an order was neither finished nor taken back yet."""
        return self._out.get(order.slot) is order

    def release(self, order: Order, now: float, gap: float = 0.0) -> None:
        """Take back an order that was not carried out: the page is in play again once its host has rested for `gap`."""
        require_kinds((order, Order, "order"))
        now, gap = moment("now", now), number("gap", gap, most=MAX_MOMENT)
        lane = self._lanes.lane(order.host)
        if self._ends(order, lane):
            lane.ready = max(lane.ready, now + gap)
            lane.ended(now, now + gap, refreshed=False)
            self.scheduler.finish(order.slot, now, crawled=None, gap=gap)

    def explain(self, url: str, now: float) -> Explanation:
        """Value, price, due time of a page, and what holds it back."""
        slot, now = self._slot(url), moment("now", now)
        host = self._host(slot)
        why, until = self.scheduler.explain(slot, now, self._lanes.turn(host)), self.purses.moment(slot)
        if until is not None and until > now and slot not in self._wanted:
            return replace(why, due=max(why.due, until), held_by="path budget")
        if why.held_by == "paused" and self.is_waiting(slot) and not self.is_held(slot):
            return replace(why, held_by="first turn")  # out of play, but nobody has paused it
        return why

    def comes_again(self, crawl: Crawl) -> bool:
        """Whether a page that was not refreshed is asked for again as soon as its host has rested."""
        if crawl.outcome.refreshed:
            return False
        return not self.retries.put_off(crawl.outcome, self.failures(crawl.url), crawl.reason)

    def host_of(self, url: str) -> str:
        """The host of a page."""
        return self._host(self._slot(url))

    def host_at(self, slot: int) -> str:
        """The host of the page at a slot."""
        return self._host(slot)

    def _host(self, slot: int) -> str:
        return self._lanes.name(int(self.heart.columns.pages[slot]["host"]))

    def _recorded(self, order: Order, fetched: Fetched, verdict: Verdict) -> Crawl:
        """The record of a crawl, with what was known and believed before it."""
        current = self.heart.current(order.slot)
        if current is None:
            return _record(order, fetched, verdict)
        said = self.heart.fresh_probability(order.slot, fetched.started)
        return _record(order, fetched, verdict, max(fetched.started - current, 0.0), said)


def _record(
    order: Order, fetched: Fetched, verdict: Verdict, elapsed: float | None = None, said: float | None = None
) -> Crawl:
    return Crawl(  # by position: names take a fifth longer
        order.url,
        fetched.started,
        verdict.outcome,
        elapsed,
        order.signals,
        fetched.took,
        fetched.status,
        len(fetched.body),
        verdict.significance,
        verdict.reason,
        said,
    )

"""The loop, pure: evidence in, orders out. It reads no clock; every runner, live or simulated, drives these lines.

1. `observe` takes a signal or a request and updates what is believed of the page.
2. `next` hands out the most valuable page among the hosts that are ready, or says when to ask again.
3. The runner carries the order out, compares what it fetched with what is kept, and calls `finish`.
4. `finish` learns from the outcome and returns it as a `Crawl`, which the runner stores.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from afresh.checks import MAX_MOMENT, later, moment, number, require, require_kinds, require_text, whole
from afresh.engine.arguments import check_crawl, check_page
from afresh.engine.columns import GONE, MOST_FAILURES, OUTDATED
from afresh.engine.statements import Statements
from afresh.estimate import Activity, Calibration, Estimator, Senders, branches_of, kin_of
from afresh.estimate.base import bounded
from afresh.frontier import Hosts, Purses, Retries, SiteRules, Turns, host_failed
from afresh.schedule import Explanation, Schedules
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
    Verdict,
    Wait,
)

REST_AFTER_REMOVAL = 10.0  # seconds, of a host one of whose pages is removed while it is fetched
MOST_SENT_AWAY = 100  # pages whose paths have spent their budget, in one go
NO_LIMITS = (0.0, math.inf)
UNKNOWN = "unknown"  # the sender of signals that were heard before a restart


class Engine(Statements):
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
        hosts: Hosts | None = None,
        activity: Activity | None = None,
        senders: Senders | None = None,
        importance: Mapping[str, Importance] | None = None,
        retries: Retries | None = None,
        rules: SiteRules | None = None,
    ) -> None:
        require(scheduler, "scheduler", ("next", "finish", "explain"), "Few(budget=2.0) of afresh.schedule")
        require(estimator, "estimator", ("beliefs", "crawled", "learned"), "Learner() of afresh.estimate")
        super().__init__(scheduler=scheduler, estimator=estimator, activity=activity, senders=senders)
        self._now = -math.inf  # when it was last asked for an order
        self.importance = importance or {}  # of the pages of a host, unless they have one of their own
        self.rules = rules or SiteRules()  # what operators want of whole sites
        self.hosts = hosts or Hosts()
        self.retries = retries or Retries()  # of pages that could not be refreshed
        self.calibration = Calibration()  # of what is said about copies, checked by every crawl
        self.purses = Purses()  # of paths that have a budget
        self.turns = Turns()  # of hosts
        self._limits: dict[int, tuple[float, float]] = {}  # seconds between two crawls, at least and at most
        self._out: dict[int, Order] = {}  # orders that are neither finished nor taken back
        self._wanted: set[int] = set()  # pages that an operator wants now
        self._without_room: set[int] = set()  # pages that are put off because the store was full

    def add(
        self,
        page: Page,
        now: float,
        *,
        current: float | None = None,
        signals: int = 0,
        failures: int = 0,
        last: Crawl | None = None,
        learned: bytes = b"",
    ) -> None:
        """Keep a page fresh from now on, going on from what was known of it; a page that is kept already stays.

        `last` is its last crawl before the restart, if that failed: the page is not tried again before its time.
        """
        check_page(page)
        now, signals, failures = moment("now", now), whole("signals", signals), whole("failures", failures)
        current = None if current is None else moment("current", current)
        require_kinds((last, (Crawl, type(None)), "last"), (learned, bytes, "learned"))
        if page.url in self._slots:
            return
        host = self.hosts.number(page.host)
        slot = self.scheduler.add(
            request_rate=0.0,
            change_rate=0.0,
            host=host,
            now=now,
            age=float("inf") if current is None else max(now - current, 0.0),
        )
        self._slots[page.url] = slot
        self._highest = max(self._highest, slot)
        self._pages[slot] = page
        flags, branches = 0, tuple[int, ...]()
        if last is not None:
            flags = OUTDATED * last.leaves_outdated | GONE * (last.outcome is Outcome.GONE)
        if self.activity is not None:
            if self.scheduler.budget > 0:
                self.activity.follow(len(self._slots) / self.scheduler.budget)
            branches = self.activity.branches(branches_of(page.url, page.host))
        self.heart.enter(slot, host=host, branches=branches, current=current, failures=failures, flags=flags)
        wanted = self.rules.applied(page)
        self.estimator.add(
            slot,
            now=now,
            importance=self._importance(wanted),
            popularity=page.popularity,
            learned=learned,
            kin=kin_of(page.url, page.host),
        )
        if signals:  # nobody knows any more who said it
            sender = self.senders.number(UNKNOWN)
            self.heart.recall(slot, sender, self.senders.row(page.host, sender), signals)
        self._limit(slot, wanted, now)
        self.heart.believe(slot, now)
        if last is not None:
            self._note_room(slot, last.reason)
            not_before = last.time + self.retries.put_off(last.outcome, failures, last.reason)
            if not_before > now:
                self.scheduler.put_off(slot, not_before, now)

    def _note_room(self, slot: int, reason: str) -> None:
        if reason == STORE_FULL:
            self._without_room.add(slot)
        else:
            self._without_room.discard(slot)

    @property
    def without_room(self) -> bool:
        """Whether any page is put off because there was no room for its content."""
        return bool(self._without_room)

    def room_again(self, now: float, most: int, *, first_copies: bool = True) -> bool:
        """Bring pages back that were put off for want of room, `most` of them; False once there are no more.

        Without `first_copies`, those that have no copy yet stay put off.
        """
        found = (slot for slot in self._without_room if first_copies or self.heart.current(slot) is not None)
        some = list(islice(found, most))
        for slot in some:
            self._without_room.discard(slot)
            if slot not in self._out:
                self.scheduler.put_off(slot, now, now)
        return len(some) == most

    def remove(self, url: str) -> None:
        """Forget a page."""
        slot = self._slot(url)
        del self._slots[url]
        page, order = self._pages.pop(slot), self._out.pop(slot, None)
        self._limits.pop(slot, None)
        self._without_room.discard(slot)
        self._wanted.discard(slot)
        self.purses.forget(slot)
        self.heart.forget(slot)
        self.scheduler.remove(slot)
        if order is not None:
            # Its host is being asked, and will be free for the next page only when that is over.
            self.scheduler.host_rests(self.hosts.number(page.host), order.time + REST_AFTER_REMOVAL)
        self.estimator.remove(slot)

    def tell(self, page: Page, now: float) -> None:
        """The operator says something else of a page from now on."""
        check_page(page)
        slot, now, wanted = self._slot(page.url), moment("now", now), self.rules.applied(page)
        self._pages[slot] = page
        self.estimator.told(slot, importance=self._importance(wanted), popularity=page.popularity)
        self._limit(slot, wanted, now)
        self.heart.believe(slot, now)

    def _importance(self, wanted: Page) -> Importance | None:
        return self.importance.get(wanted.host) if wanted.importance is None else wanted.importance

    def _limit(self, slot: int, wanted: Page, now: float) -> None:
        """Tell the scheduler how often at least and at most, if that is anything new."""
        limits = wanted.shortest or 0.0, wanted.longest or math.inf
        if limits != self._limits.get(slot, NO_LIMITS):
            self._limits[slot] = limits
            self.scheduler.not_more_often_than(slot, limits[0], now)
            self.scheduler.at_least_every(slot, limits[1], now)

    def obey(self, rules: SiteRules, now: float) -> None:
        """Other rules of sites hold from now on; `tell` says so of each page."""
        self.rules = rules
        for slot in self.purses.clear():
            if slot not in self._out:
                self.scheduler.put_off(slot, now, now)

    def page(self, url: str) -> Page:
        """A page with all that its operator and the rules of its site say of it."""
        return self.rules.applied(self._pages[self._slot(url)])

    def pages(self) -> list[Page]:
        """All pages, as their operator speaks of them."""
        return list(self._pages.values())

    def pause(self, url: str) -> None:
        """Keep a page out of play until `resume`."""
        self.scheduler.pause(self._slot(url))

    def resume(self, url: str, now: float) -> None:
        """Bring a paused page back into play."""
        self.scheduler.resume(self._slot(url), moment("now", now))

    def crawl_now(self, url: str, now: float) -> None:
        """Crawl a page before all others, as soon as the budget and its host allow it."""
        slot, now = self._slot(url), moment("now", now)
        self._wanted.add(slot)
        self.scheduler.crawl_now(slot, now)

    def observe(self, evidence: Signal | Request, now: float | None = None) -> bool:
        """Take in a hint or a request, which may have come late if `now` is given; False if the page is not ours."""
        now = None if now is None else moment("now", now)
        if not self.hear(evidence):
            return False
        heard = bounded("evidence.time", evidence.time)
        slot, now = self._slots[evidence.url], heard if now is None else max(now, heard)
        if isinstance(evidence, Signal):
            self.heart.heard(slot, now)
        else:
            self.heart.believe(slot, now)
        return True

    def hear(self, evidence: Signal | Request) -> bool:
        """As `observe`, without telling the schedule: where much is heard at once, `believe` does that once a page."""
        require_kinds((evidence, (Signal, Request), "evidence"))
        slot = self._slots.get(evidence.url)
        if slot is None:
            return False
        time = bounded("evidence.time", evidence.time)
        if isinstance(evidence, Signal):
            require_text(evidence.sender, "evidence.sender")
            sender = self.senders.number(evidence.sender)
            self.heart.hear(slot, sender, self.senders.row(self._pages[slot].host, sender), time)
        else:
            self.estimator.requested(slot, number("count", evidence.count), time)
        return True

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
            page = self._pages[pick.slot]
            if (until := self._may_go(page, pick.slot, now)) <= now:
                break
            self.scheduler.give_back(pick.slot, until, now)
        else:
            return Wait(now, "path budgets")
        self.heart.order(pick.slot)
        self.turns.began(page.host, now)
        order = self._out[pick.slot] = Order(
            slot=pick.slot,
            url=page.url,
            host=page.host,
            time=now,
            value=pick.value,
            price=pick.price,
            signals=self.heart.signals(pick.slot),
        )
        return order

    def _may_go(self, page: Page, slot: int, now: float) -> float:
        """When the budget of its path lets a page go: `now`, if there is none."""
        rule = self.rules.path_budget(page)
        if rule is None:
            return now
        return self.purses.ask(page.host, rule, slot, now, wanted=slot in self._wanted)

    def finish(self, order: Order, fetched: Fetched, verdict: Verdict, now: float, *, rest: float = 0.0) -> Crawl:
        """Learn from a crawl that was carried out; the record of it. The host rests at least for `rest`."""
        require_kinds((order, Order, "order"))
        check_crawl(fetched, verdict)
        now, rest = moment("now", now), number("rest", rest, most=MAX_MOMENT)
        if not self.is_out(order):
            return _record(order, fetched, verdict)
        slot = order.slot
        del self._out[slot]
        crawl = self._recorded(order, fetched, verdict)
        outcome, changed = verdict.outcome, verdict.outcome is Outcome.CHANGED
        failures = 0
        if outcome.refreshed:
            learns = crawl.elapsed is not None and outcome is not Outcome.NEW
            if learns and crawl.fresh_probability is not None:
                self.calibration.add(crawl.fresh_probability, not changed)
            found = outcome is not Outcome.UNCHANGED
            self.heart.check(slot, fetched.started, now, learns=learns, changed=changed, found=found)
        else:
            failures = self._failed(slot, crawl)
        self._note_room(slot, verdict.reason)
        put_off = self.retries.put_off(outcome, failures, verdict.reason)
        if outcome.refreshed or put_off:
            self._wanted.discard(slot)
        gap = self.hosts.answered(
            order.host,
            failed=host_failed(fetched, verdict),
            now=now,
            took=fetched.took,
            ended=fetched.ended,
            retry_after=fetched.retry_after,
            at_least=rest,
            reason=verdict.reason,
        )
        self.turns.ended(order.host, now, opens=now + gap, refreshed=outcome.refreshed)
        self.scheduler.finish(
            slot,
            now,
            crawled=fetched.started if outcome.refreshed else None,
            changed=changed,
            gap=gap,
            put_off=put_off,
        )
        if outcome.refreshed:
            self.heart.look_round(slot, now, changed=changed)
        else:
            self.heart.believe(slot, now)
        return crawl

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
        if self.is_out(order):
            del self._out[order.slot]
            self.turns.ended(order.host, now, opens=now + gap, refreshed=False)
            self.scheduler.finish(order.slot, now, crawled=None, gap=gap)

    def explain(self, url: str, now: float) -> Explanation:
        """Value, price, due time of a page, and what holds it back."""
        slot, now = self._slot(url), moment("now", now)
        host = self._pages[slot].host
        turn = max(self.turns.seconds(host), self.hosts.rest(host).seconds)
        why, until = self.scheduler.explain(slot, now, turn), self.purses.moment(slot)
        if until is not None and until > now and slot not in self._wanted:
            return replace(why, due=max(why.due, until), held_by="path budget")
        return why

    def comes_again(self, crawl: Crawl) -> bool:
        """Whether a page that was not refreshed is asked for again as soon as its host has rested."""
        if crawl.outcome.refreshed:
            return False
        return not self.retries.put_off(crawl.outcome, self.failures(crawl.url), crawl.reason)

    def _recorded(self, order: Order, fetched: Fetched, verdict: Verdict) -> Crawl:
        """The record of a crawl, with what was known and believed before it."""
        crawl, current = _record(order, fetched, verdict), self.heart.current(order.slot)
        if current is None:
            return crawl
        return replace(
            crawl,
            elapsed=max(fetched.started - current, 0.0),
            fresh_probability=self.heart.fresh_probability(order.slot, fetched.started),
        )


def _record(order: Order, fetched: Fetched, verdict: Verdict) -> Crawl:
    return Crawl(
        url=order.url,
        time=fetched.started,
        outcome=verdict.outcome,
        signals=order.signals,
        took=fetched.took,
        status=fetched.status,
        size=len(fetched.body),
        significance=verdict.significance,
        reason=verdict.reason,
    )

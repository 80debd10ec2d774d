"""The loop, pure: evidence in, orders out. It reads no clock; every runner, live or simulated, drives these lines.

1. `observe` takes a signal or a request and updates what is believed of the page.
2. `next` hands out the most valuable page among the hosts that are ready, or says when to ask again.
3. The runner carries the order out, compares what it fetched with what is kept, and calls `finish`.
4. `finish` learns from the outcome and returns it as a `Crawl`, which the runner stores.
"""

import math
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from afresh.checks import later, number, require, require_kinds
from afresh.errors import InputError
from afresh.estimate import Activity, Calibration, Estimator, Sources, branches_of, kin_of
from afresh.estimate.activity import TOLD_OF_A_CHANGE
from afresh.estimate.sources import NOT_EARLY, octave
from afresh.frontier import Hosts, Retries, SiteRules, host_failed
from afresh.schedule import Explanation, Schedules
from afresh.types import (
    STORE_FULL,
    Beliefs,
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

if TYPE_CHECKING:
    from afresh.estimate import Learner

Heard = Mapping[tuple[int, int], int]
NOTHING: Heard = {}  # shared by all pages about which nothing was heard
STATED = 20_000  # pages at most that tell of the whole collection
PIECE = 1_000  # of them that are gathered in one go
NO_LIMITS = (0.0, math.inf)
REST_AFTER_REMOVAL = 10.0  # seconds, of a host one of whose pages is removed while it is fetched
UNKNOWN = "unknown"  # the source of signals that were heard before a restart
ABOUT = 0.1  # an age that is off by less is right enough
_STRIDE = (math.sqrt(5.0) - 1.0) / 2.0  # of all slots, from one that is looked at in turn to the next


@dataclass(slots=True)
class _Tracked:
    """What the engine itself remembers of a page."""

    page: Page
    current: float | None  # the copy is as of this moment; None: there is none
    signals: int = 0  # heard since then
    heard: Heard = field(default_factory=lambda: NOTHING)  # the same by source and how early after a change
    ordered: Heard = field(default_factory=lambda: NOTHING)  # heard when the order was given
    outdated: bool = False  # whether the copy is known to differ from the page: there was no room for the new one
    found: bool = False  # whether the last crawl found a change, for which signals may yet come
    failures: int = 0  # in a row, up to now: all that it is gone, or all others
    gone: bool = False  # whether the last one said that the page is gone
    order: Order | None = None  # the one that is out
    told: tuple[float, ...] | None = None  # what the scheduler was last told to believe
    assumed: float = math.inf  # the scheduler takes the copy to be as of this moment
    limits: tuple[float, float] = NO_LIMITS  # seconds between two crawls, at least and at most
    branches: tuple[int, ...] = ()  # of its site, where pages may change together


@dataclass(frozen=True, slots=True)
class FreshnessParts:
    """Probabilities that a copy is current, each with one more thing taken into account."""

    by_rate: float  # the believed change rate alone
    by_silence: float  # changes that send signals would have been heard of
    by_all_rates: float  # and over all rates that the page may have
    with_signals: float  # and with the signals that were heard
    with_siblings: float  # and with what was found on other pages of its site: what is said in the end


@dataclass(frozen=True, slots=True)
class Stated:
    """How fresh copies are believed to be, all of them at one moment."""

    share: float  # of requests that would find a fresh copy; of pages, if `by_requests` is False
    time: float
    pages: int
    by_requests: bool  # whether pages differ in how much they are wanted; else each counts the same


@dataclass(frozen=True, slots=True)
class Survey:
    """All that `Engine.survey` gathered at a moment: what it states of all copies is worked out elsewhere."""

    time: float
    pages: int
    weights: Sequence[float]  # request rates of all pages,
    copied: Sequence[float]  # and of those with a copy
    fresh: Callable[[float], Sequence[float]]  # how likely these are to be current

    def carry_out(self) -> Stated | None:
        """The statement; None where there are no pages, or nobody wants any."""
        total = math.fsum(self.weights)
        if not total > 0.0:
            return None
        fresh = math.fsum(weight * each for weight, each in zip(self.copied, self.fresh(self.time), strict=True))
        return Stated(fresh / total, self.time, self.pages, min(self.weights) < max(self.weights))


class Engine:
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
        sources: Sources | None = None,
        importance: Mapping[str, Importance] | None = None,
        retries: Retries | None = None,
        rules: SiteRules | None = None,
    ) -> None:
        require(scheduler, "scheduler", ("next", "finish", "explain"), "Few(budget=2.0) of afresh.schedule")
        require(estimator, "estimator", ("beliefs", "crawled", "learned"), "Learner() of afresh.estimate")
        self.scheduler = scheduler
        self.estimator = estimator
        self._now = -math.inf  # when it was last asked for an order
        self.activity = activity  # None: every page changes on its own
        self.sources = sources or Sources()  # what signals are worth
        self.importance = importance or {}  # of the pages of a host, unless they have one of their own
        self.rules = rules or SiteRules()  # what operators want of whole sites
        self.hosts = hosts or Hosts()
        self.retries = retries or Retries()  # of pages that could not be refreshed
        self.calibration = Calibration()  # of what is said about copies, checked by every crawl
        self._slots: dict[str, int] = {}
        self._tracked: dict[int, _Tracked] = {}
        self._hands = {"look": 0, "survey": 0}  # the slots that were looked at last in turn
        self._highest = 0  # slot
        self._siblings: dict[int, deque[int]] = {}  # pages of each branch, the next one to be looked at first

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, url: str) -> bool:
        return url in self._slots

    def _slot(self, url: str) -> int:
        slot = self._slots.get(url)
        if slot is None:
            hint = "Add it first: engine.add(Page(url, host), now)."
            raise InputError(f"{str(url)[:300]!r} is not a page of this engine.", hint=hint)
        return slot

    def add(
        self,
        page: Page,
        now: float,
        *,
        current: float | None = None,
        signals: int = 0,
        failures: int = 0,
        gone: bool = False,
        not_before: float = 0.0,
        learned: bytes = b"",
    ) -> None:
        """Keep a page fresh from now on, going on from what was known of it; a page that is kept already stays.

        A page that failed before the restart, or was `gone`, is not tried again `not_before` its time.
        """
        require_kinds((page, Page, "page"))
        number("now", now, least=-math.inf)
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
        tracked = self._tracked[slot] = _Tracked(page, current, signals, failures=failures, gone=gone)
        if signals:
            # Nobody knows any more who said it.
            tracked.heard = {(self.sources.number(UNKNOWN), NOT_EARLY): signals}
        if self.activity is not None:
            if self.scheduler.budget > 0:
                self.activity.follow(len(self._slots) / self.scheduler.budget)
            tracked.branches = self.activity.branches(branches_of(page.url, page.host))
            self._siblings.setdefault(tracked.branches[-1], deque()).append(slot)
        wanted = self.rules.applied(page)
        self.estimator.add(
            slot,
            now=now,
            importance=self._importance(wanted),
            popularity=page.popularity,
            learned=learned,
            kin=kin_of(page.url, page.host),
        )
        self._limit(slot, wanted, now)
        self._believe(slot, now)
        if not_before > now:
            self.scheduler.finish(slot, now, crawled=None, put_off=not_before - now)

    def remove(self, url: str) -> None:
        """Forget a page."""
        slot = self._slot(url)
        del self._slots[url]
        tracked = self._tracked.pop(slot)
        branches = tracked.branches
        if branches:
            self._siblings[branches[-1]].remove(slot)
        self.scheduler.remove(slot)
        if tracked.order is not None:
            # Its host is being asked, and will be free for the next page only when that is over.
            host = self.hosts.number(tracked.page.host)
            self.scheduler.host_rests(host, tracked.order.time + REST_AFTER_REMOVAL)
        self.estimator.remove(slot)

    def tell(self, page: Page, now: float) -> None:
        """The operator says something else of a page from now on."""
        slot, wanted = self._slots[page.url], self.rules.applied(page)
        self._tracked[slot].page = page
        self.estimator.told(slot, importance=self._importance(wanted), popularity=page.popularity)
        self._limit(slot, wanted, now)
        self._believe(slot, now)

    def _importance(self, wanted: Page) -> Importance | None:
        return self.importance.get(wanted.host) if wanted.importance is None else wanted.importance

    def _limit(self, slot: int, wanted: Page, now: float) -> None:
        """Tell the scheduler how often at least and at most, if that is anything new."""
        limits = wanted.shortest or 0.0, wanted.longest or math.inf
        tracked = self._tracked[slot]
        if limits != tracked.limits:
            tracked.limits = limits
            self.scheduler.not_more_often_than(slot, limits[0], now)
            self.scheduler.at_least_every(slot, limits[1], now)

    def page(self, url: str) -> Page:
        """A page with all that its operator and the rules of its site say of it."""
        return self.rules.applied(self._tracked[self._slot(url)].page)

    def pages(self) -> list[Page]:
        """All pages, as their operator speaks of them."""
        return [tracked.page for tracked in self._tracked.values()]

    def pause(self, url: str) -> None:
        """Keep a page out of play until `resume`."""
        self.scheduler.pause(self._slot(url))

    def resume(self, url: str, now: float) -> None:
        """Bring a paused page back into play."""
        self.scheduler.resume(self._slot(url), now)

    def crawl_now(self, url: str, now: float) -> None:
        """Crawl a page before all others, as soon as the budget and its host allow it."""
        self.scheduler.crawl_now(self._slot(url), now)

    def observe(self, evidence: Signal | Request, now: float | None = None) -> bool:
        """Take in a hint or a request, which may have come late if `now` is given; False if the page is not ours."""
        if not self.hear(evidence):
            return False
        self.believe(evidence.url, evidence.time if now is None else max(now, evidence.time))
        return True

    def hear(self, evidence: Signal | Request) -> bool:
        """As `observe`, without telling the schedule: where much is heard at once, `believe` does that once a page."""
        require_kinds((evidence, (Signal, Request), "evidence"))
        slot = self._slots.get(evidence.url)
        if slot is None:
            return False
        number("evidence.time", evidence.time, least=-math.inf)
        if isinstance(evidence, Request):
            number("count", evidence.count)
        if isinstance(evidence, Signal):
            self._hear(slot, evidence)
        else:
            self.estimator.requested(slot, evidence.count, evidence.time)
        return True

    def believe(self, url: str, now: float) -> None:
        """Tell the schedule what is believed of a page since something was heard of it."""
        self._believe(self._slot(url), now)

    def _hear(self, slot: int, signal: Signal) -> None:
        tracked = self._tracked[slot]
        late = tracked.found and tracked.current is not None  # it may be about the change that was fetched
        early = octave(signal.time - (tracked.current or 0.0)) if late else NOT_EARLY
        source = self.sources.number(signal.source)
        tracked.signals += 1
        tracked.heard = {**tracked.heard, (source, early): tracked.heard.get((source, early), 0) + 1}
        self.estimator.signalled(slot, self.sources.weight(tracked.page.host, source, early), signal.time)

    def next(self, now: float) -> Order | Wait:
        """The crawl that gains most now, or when to ask again; ConfigError if `now` is before the last one."""
        self._now = later(now, self._now)
        pick = self.scheduler.next(now)
        if isinstance(pick, Wait):
            return pick
        tracked = self._tracked[pick.slot]
        tracked.ordered = tracked.heard
        tracked.order = Order(
            slot=pick.slot,
            url=tracked.page.url,
            host=tracked.page.host,
            time=now,
            value=pick.value,
            price=pick.price,
            signals=tracked.signals,
        )
        return tracked.order

    def finish(self, order: Order, fetched: Fetched, verdict: Verdict, now: float, *, rest: float = 0.0) -> Crawl:
        """Learn from a crawl that was carried out; the record of it. The host rests at least for `rest`."""
        require_kinds((order, Order, "order"), (fetched, Fetched, "fetched"), (verdict, Verdict, "verdict"))
        number("now", now, least=-math.inf)
        tracked = self._tracked.get(order.slot)
        if tracked is None or tracked.order is not order:
            return _record(order, fetched, verdict)
        tracked.order = None
        crawl = self._recorded(tracked, order, fetched, verdict)
        outcome = verdict.outcome
        if outcome.refreshed:
            if crawl.elapsed is not None and outcome is not Outcome.NEW:
                changed = outcome is Outcome.CHANGED
                if crawl.fresh_probability is not None:
                    self.calibration.add(crawl.fresh_probability, not changed)
                self._learn(tracked, order, crawl.elapsed, changed)
            tracked.current, tracked.outdated = fetched.started, False
            tracked.found = outcome is not Outcome.UNCHANGED
            tracked.signals -= order.signals
            tracked.heard, tracked.ordered = _rest(tracked.heard, tracked.ordered), NOTHING
            tracked.failures, tracked.gone = 0, False
        else:
            tracked.outdated |= verdict.reason == STORE_FULL and bool(fetched.body)
            gone = outcome is Outcome.GONE
            tracked.failures, tracked.gone = 1 if gone is not tracked.gone else tracked.failures + 1, gone
        gap = self.hosts.answered(
            order.host,
            failed=host_failed(fetched, verdict),
            now=now,
            took=fetched.took,
            retry_after=fetched.retry_after,
            at_least=rest,
            reason=verdict.reason,
        )
        self.scheduler.finish(
            order.slot,
            now,
            crawled=fetched.started if outcome.refreshed else None,
            changed=outcome is Outcome.CHANGED,
            gap=gap,
            put_off=self.retries.put_off(outcome, tracked.failures, verdict.reason),
        )
        self._believe(order.slot, now)
        if outcome is Outcome.CHANGED and tracked.branches:
            self._look_at_siblings(tracked.branches[-1], now)
        return crawl

    def is_out(self, order: Order) -> bool:
        """Whether an order was neither finished nor taken back yet."""
        tracked = self._tracked.get(order.slot)
        return tracked is not None and tracked.order is order

    def _learn(self, tracked: _Tracked, order: Order, elapsed: float, changed: bool) -> None:
        """A crawl has shown whether the copy, this old, had become stale."""
        slot, host = order.slot, tracked.page.host
        signals = self.sources.count(host, tracked.ordered)
        if tracked.ordered:
            age = self._age(tracked, (tracked.current or 0.0) + elapsed)
            weight = self.estimator.beliefs(slot, order.time).signal_weight
            self.sources.learn(
                host, tracked.ordered, by_time=self._stale(slot, age, 0.0), weight=weight, changed=changed
            )
        if self.activity is not None and tracked.current is not None:
            by_time = self._stale(slot, elapsed, 0.0)
            self.activity.learn(
                tracked.branches,
                tracked.current,
                tracked.current + elapsed,
                expected=by_time,
                told=self._stale(slot, elapsed, signals) - by_time,
                changed=changed,
            )
        self.estimator.crawled(slot, elapsed=elapsed, signals=signals, changed=changed)

    def _stale(self, slot: int, elapsed: float, signals: float) -> float:
        """x of a copy, by the estimator: it is fresh with probability exp(−x)."""
        return -math.log(max(self.estimator.fresh_probability(slot, elapsed, signals), 1e-300))

    def _look_at_siblings(self, branch: int, now: float) -> None:
        siblings = self._siblings[branch]
        for _ in range(min(TOLD_OF_A_CHANGE, len(siblings))):
            tracked = self._tracked[siblings[0]]
            age = self._age(tracked, now)
            if abs(now - tracked.assumed - age) > ABOUT * age:
                self._believe(siblings[0], now)
            siblings.rotate(-1)

    def release(self, order: Order, now: float, gap: float = 0.0) -> None:
        """Take back an order that was not carried out: the page is in play again once its host has rested for `gap`."""
        tracked = self._tracked.get(order.slot)
        if tracked is not None and tracked.order is order:
            tracked.order = None
            self.scheduler.finish(order.slot, now, crawled=None, gap=gap)

    def beliefs(self, url: str, now: float) -> Beliefs:
        """What is believed of a page."""
        return self.estimator.beliefs(self._slot(url), now)

    def fresh_probability(self, url: str, now: float) -> float:
        """How likely the copy of a page is to be current; 0 where there is none."""
        slot = self._slot(url)
        tracked = self._tracked[slot]
        if tracked.current is None or tracked.outdated:
            return 0.0
        number("now", now, least=-math.inf)
        elapsed, signals = max(now - tracked.current, 0.0), self._count(tracked)
        if self.activity is None:
            return self.estimator.fresh_probability(slot, elapsed, signals)
        by_time = self._stale(slot, elapsed, 0.0)
        told = self._stale(slot, elapsed, signals) - by_time if signals else 0.0
        return self.activity.fresh(tracked.branches, tracked.current, now, by_time) * math.exp(-told)

    def freshness_parts(self, url: str, now: float) -> FreshnessParts:
        """How what `fresh_probability` says comes about, one reason after the other; for a page with a copy."""
        slot = self._slot(url)
        tracked = self._tracked[slot]
        elapsed = max(now - (now if tracked.current is None else tracked.current), 0.0)
        believed = self.estimator.beliefs(slot, now)
        by_time = self.estimator.fresh_probability(slot, elapsed, 0.0)
        with_signals = self.estimator.fresh_probability(slot, elapsed, self._count(tracked))
        return FreshnessParts(
            by_rate=math.exp(-believed.change_rate * elapsed),
            by_silence=math.exp(-believed.silent_rate * elapsed),
            by_all_rates=by_time,
            with_signals=with_signals,
            with_siblings=self.fresh_probability(url, now),
        )

    def look_round(self, now: float, count: int) -> None:
        """Look at some pages in turn: each is believed what its siblings have taught meanwhile."""
        for slot in self._in_turn("look", count):
            self._believe(slot, now)

    def _in_turn(self, what: str, most: int) -> list[int]:
        """The next slots in use; in strides, so that any number of them in a row are of all sites alike."""
        count, hand, found = self._highest + 1, self._hands[what], []
        stride = max(1, int(count * _STRIDE))
        while math.gcd(stride, count) > 1:
            stride += 1
        for _ in range(min(most, len(self._tracked))):
            hand = (hand + stride) % count
            while hand not in self._tracked:
                hand = (hand + stride) % count
            found.append(hand)
        self._hands[what] = hand
        return found

    def survey(self, now: float, most: int = STATED) -> Survey:
        """What is needed to state how fresh all copies are now; of more than `most` pages, that many from all sites."""
        gathering = self.gather_survey(now, most)
        while True:
            try:
                next(gathering)
            except StopIteration as done:
                return cast(Survey, done.value)

    def gather_survey(self, now: float, most: int = STATED) -> Generator[None, None, Survey]:
        """`survey`, in pieces of a few milliseconds, so that others have a turn in between.

        The caller computes what it states, in any thread: it shares nothing with the engine.
        """
        slots = self._in_turn("survey", most) if len(self._tracked) > most else list(self._tracked)
        weights: list[float] = []
        copied: list[tuple[int, float, float, float, tuple[int, ...]]] = []  # slot, weight, current, signals, branches
        for nth, slot in enumerate(slots, start=1):
            if (each := self._tracked.get(slot)) is not None:
                weights.append(each.told[0] if each.told else 0.0)
                if each.current is not None and not each.outdated:
                    copied.append((slot, weights[-1], each.current, self._count(each), each.branches))
            if nth % PIECE == 0:
                yield
        copied = [each for each in copied if each[0] in self._tracked]
        fresh: Callable[[float], Sequence[float]]
        if hasattr(self.estimator, "table"):
            from afresh.estimate.survey import snapshot  # compiled code takes a while to load

            fresh = snapshot(
                cast("Learner", self.estimator),
                self.activity,
                slots=[each[0] for each in copied],
                current=[each[2] for each in copied],
                signals=[each[3] for each in copied],
                branches=[each[4] for each in copied],
            ).fresh
        else:  # the plain estimators, which are slow, have few pages
            said = [self.fresh_probability(self._tracked[each[0]].page.url, now) for each in copied]
            fresh = lambda _: said  # noqa: E731
        return Survey(now, len(self._tracked), weights, [each[1] for each in copied], fresh)

    def current(self, url: str) -> float | None:
        """The moment that the copy of a page is as of; None if there is none."""
        return self._tracked[self._slot(url)].current

    def explain(self, url: str, now: float) -> Explanation:
        """Value, price, due time of a page, and what holds it back."""
        return self.scheduler.explain(self._slot(url), now)

    def failures(self, url: str) -> int:
        """How often the page has failed in a row, up to now."""
        return self._tracked[self._slot(url)].failures

    def signals(self, url: str) -> int:
        """How many signals a page has sent since its copy was current."""
        return self._tracked[self._slot(url)].signals

    def learned(self, url: str) -> bytes:
        """What the estimator remembers of a page, for `add` after a restart."""
        return self.estimator.learned(self._slot(url))

    def _believe(self, slot: int, now: float) -> None:
        """Tell the scheduler what is believed of a page and its copy, if that is anything new."""
        believed, tracked = self.estimator.beliefs(slot, now), self._tracked[slot]
        age = self._scheduled_age(tracked, now)
        signals = self._count(tracked)
        told = (
            *(believed.request_rate, believed.change_rate, believed.recall, believed.false_rate, believed.shape),
            signals,
        )
        if told != tracked.told or age is not None:
            tracked.told = told
            tracked.assumed = now - age if age is not None else tracked.current or now
            self.scheduler.update(
                slot,
                now=now,
                request_rate=believed.request_rate,
                change_rate=believed.change_rate,
                recall=believed.recall,
                false_rate=believed.false_rate,
                shape=believed.shape,
                age=age,
                signals=signals,
            )

    def _count(self, tracked: _Tracked) -> float:
        """Signals since the copy was current, as a number of good ones."""
        return self.sources.count(tracked.page.host, tracked.heard) if tracked.heard else 0.0

    def _scheduled_age(self, tracked: _Tracked, now: float) -> float | None:
        """The age that the scheduler is told; None: the clock's, as it knows it."""
        if tracked.current is None or self.activity is None:
            return None
        return self._age(tracked, now)

    def _age(self, tracked: _Tracked, now: float) -> float:
        """How old a copy is, in seconds as long as what happened in them makes them."""
        if tracked.current is None:
            return math.inf
        if self.activity is None or len(self._siblings) == 1:
            # What happens on the only branch concerns all alike: it counts for what is said, and not for the order.
            return max(now - tracked.current, 0.0)
        return self.activity.stretched(tracked.branches, tracked.current, now)

    def _recorded(self, tracked: _Tracked, order: Order, fetched: Fetched, verdict: Verdict) -> Crawl:
        """The record of a crawl, with what was known and believed before it."""
        crawl = _record(order, fetched, verdict)
        if tracked.current is None:
            return crawl
        return replace(
            crawl,
            elapsed=max(fetched.started - tracked.current, 0.0),
            fresh_probability=self.fresh_probability(order.url, fetched.started),
        )


def _rest(heard: Heard, ordered: Heard) -> Heard:
    """What was heard after the order was given."""
    left = {kind: count - ordered.get(kind, 0) for kind, count in heard.items() if count > ordered.get(kind, 0)}
    return left or NOTHING


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

"""Pages come and go: one at a time, or many at once, in columns; and what their operators want of them."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from afresh.checks import moment, number, require, require_kinds, whole
from afresh.engine.arguments import check_page
from afresh.engine.arrivals import Arrivals
from afresh.engine.columns import GONE, HELD, NO_ROOM, OUT_OF_PLAY, OUTDATED, WAITING
from afresh.engine.costs import Costs
from afresh.engine.hearts import CompiledHeart, Entries
from afresh.engine.kind_costs import KindCosts
from afresh.engine.names import Names
from afresh.engine.statements import Statements
from afresh.estimate import Activity, Estimator, Senders, branches_of, kin_of
from afresh.estimate.base import Weighs
from afresh.estimate.dates import LEAST_TRUST
from afresh.frontier import Lanes, Purses, Retries, SiteRules
from afresh.schedule import KnowsPrices, Schedules
from afresh.types import STORE_FULL, Crawl, Importance, Order, Outcome, Page

MAX_PACKED = (1 << 16) - 1  # the kinds of a page

Integers = NDArray[np.int64]

REST_AFTER_REMOVAL = 10.0  # seconds, of a host one of whose pages is removed while it is fetched
NO_LIMITS = (0.0, math.inf)
UNKNOWN = "unknown"  # the sender of signals that were heard before a restart
MOST_FOLDERS = 1 << 17  # whose places are remembered
SETTLED_AT_ONCE = 1 << 16  # pages
MAX_POPULARITY = 1e6  # of a page, in times pages alike
DEAR_ENOUGH = 0.05  # a share by which an expected cost changes, before the page takes its place anew


class Members(Statements):
    """The pages that are kept fresh, what is said of them, and which of them are in play."""

    def __init__(
        self,
        *,
        scheduler: Schedules,
        estimator: Estimator,
        activity: Activity | None,
        senders: Senders | None,
        names: Names | None,
        lanes: Lanes | None,
        importance: Mapping[str, Importance] | None,
        retries: Retries | None,
        rules: SiteRules | None,
        costs: Costs | None,
        shortest: float,
    ) -> None:
        self.shortest = number("shortest", shortest)  # seconds between two crawls, where an operator says nothing
        if costs is not None:
            require(scheduler, "scheduler", ("set_costs", "reckon", "settle"), "Scheduler.live(budget=2.0)")
        self.costs = costs  # None: a crawl costs one of the budget, whatever it brings
        super().__init__(scheduler=scheduler, estimator=estimator, activity=activity, senders=senders, names=names)
        self.importance = importance or {}  # of the pages of a host, unless they have one of their own
        self.rules = rules or SiteRules()  # what operators want of whole sites
        self.lanes = Lanes() if lanes is None else lanes
        self.retries = retries or Retries()  # of pages that could not be refreshed
        self.purses = Purses()  # of paths that have a budget
        self.waiting = 0  # pages that are kept out of play until it is their turn for a first crawl
        self._without_room = 0  # pages that are put off because the store was full
        self._limits: dict[int, tuple[float, float]] = {}  # seconds between two crawls, at least and at most
        self._out: dict[int, Order] = {}  # orders that are neither finished nor taken back
        self._wanted: set[int] = set()  # pages that an operator wants now
        self._folders: dict[int, tuple[int, int]] = {}  # branch and group of kin of pages in a folder, by its key
        self._unsettled: list[Integers] = []  # pages that came in and are not in play yet
        # The kinds of a page by its address and by what was known of them; None: addresses tell nothing.
        self._kinds_by_address: Callable[[str, int], int] | None = None

    @property
    def lanes(self) -> Lanes:
        """What is known of hosts; it tells the schedule."""
        return self._lanes

    @lanes.setter
    def lanes(self, lanes: Lanes) -> None:
        lanes.schedule = self.scheduler
        self._lanes = lanes

    # --- in ---

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
        number: int = 0,
    ) -> None:
        """Keep a page fresh from now on, going on from what was known of it; a page that is kept already stays.

        `last` is its last crawl before the restart, if that failed: the page is not tried again before its time.
        `number` is the one under which the store has its text.
        """
        check_page(page)
        now, signals, failures = moment("now", now), whole("signals", signals), whole("failures", failures)
        current = None if current is None else moment("current", current)
        require_kinds((last, (Crawl, type(None)), "last"), (learned, bytes, "learned"))
        if (known := self.names.slot(page.url)) >= 0:
            if number:
                self.names.stored(known, page.url, number)
            return
        host = self.lanes.number(page.host)
        slot = self.scheduler.add(
            request_rate=0.0,
            change_rate=0.0,
            host=host,
            now=now,
            age=float("inf") if current is None else max(now - current, 0.0),
        )
        self.names.enter(slot, page, number)
        if self.by_costs is not None:
            self.by_costs.named(slot, page.url)
        branches = tuple[int, ...]()
        if self.activity is not None:
            self._follow()
            branches = self.activity.branches(branches_of(page.url, page.host))
        self.heart.enter(slot, host=host, branches=branches, current=current, failures=failures)
        wanted = self.rules.applied(page)
        self.estimator.add(
            slot,
            now=now,
            importance=self._importance(wanted),
            popularity=page.popularity,
            learned=learned,
            kin=kin_of(page.url, page.host),
        )
        self._tell_by_address([page.url], [slot])
        self._price(np.array([slot]))
        self._recall(slot, page.host, signals)
        self._limit(slot, wanted, now)
        self.heart.believe(slot, now)
        if last is not None:
            self.failed_before(slot, last, failures, now)

    def _price(self, slots: Integers, same: Sequence[float | None] = (), new: Sequence[float | None] = ()) -> None:
        """Pages come in: what a crawl of each is expected to cost."""
        if self.costs is not None and isinstance(self.scheduler, KnowsPrices):
            self.costs.enter(slots, same, new)
            reckoned = [self.costs.reckoned(slot, self._kinds_at(slot)) for slot in slots.tolist()]
            self.scheduler.set_costs(slots, np.array(reckoned))

    def _reprice(self, slot: int, before: float) -> bool:
        """Tell the scheduler what a crawl of a page is expected to cost now; whether that is something else."""
        after = cast(Costs, self.costs).reckoned(slot, self._kinds_at(slot))
        cast(KnowsPrices, self.scheduler).set_costs(slot, after)
        return abs(after - before) > DEAR_ENOUGH * before

    def _recall(self, slot: int, host: str, signals: int) -> None:
        """Signals that were heard before a restart; nobody knows any more who sent them."""
        if signals:
            sender = self.senders.number(UNKNOWN)
            self.heart.recall(slot, sender, self.senders.row(host, sender), signals)

    def failed_before(self, slot: int, last: Crawl, failures: int, now: float) -> None:
        """The last crawl of a page before a restart failed: it is not tried again before its time."""
        self.heart.mark(slot, OUTDATED, last.leaves_outdated)
        self.heart.mark(slot, GONE, last.outcome is Outcome.GONE)
        self._note_room(slot, last.reason)
        not_before = last.time + self.retries.put_off(last.outcome, failures, last.reason)
        if not_before > now:
            self.scheduler.put_off(slot, not_before, now)

    def reserve(self, pages: int) -> None:
        """So many pages will be here: where that is known, memory is not copied as they come, nor kept for more."""
        pages = whole("pages", pages)
        if isinstance(self.heart, CompiledHeart):
            self.heart.reserve(pages)
            self.names.reserve(pages)

    def add_many(self, arrivals: Arrivals | Iterable[Page], now: float, *, settle: bool = True) -> Integers:
        """Keep many pages fresh from now on; their slots, −1 where one was kept already.

        Without `settle` they are not in play until `settle` is called: once for many batches costs less, and what is
        believed of each then follows from all of them.
        """
        now = moment("now", now)
        some = arrivals if isinstance(arrivals, Arrivals) else Arrivals.of(list(arrivals))
        some.check()
        if not isinstance(self.heart, CompiledHeart):
            return self._add_each(some, now)
        marks, numbers = self.names.marks(some.urls), some.numbers_of("numbers")
        slots = self.names.slots(marks)
        for nth in np.flatnonzero((slots >= 0) & (numbers > 0)).tolist():
            self.names.stored(int(slots[nth]), some.urls[nth], int(numbers[nth]))
        new = np.flatnonzero(slots < 0)
        _, firsts = np.unique(marks[new], return_index=True)
        new = np.sort(new[firsts])
        slots[:] = -1
        if len(new):
            slots[new] = self._enter(some, new, now)
            self._tell_by_address([some.urls[nth] for nth in new.tolist()], slots[new].tolist())
            if self.costs is not None:
                known = (some.cost_same, some.cost_new)
                self._price(slots[new], *([each[nth] for nth in new.tolist()] if each else () for each in known))
            self.names.enter_many(slots[new], marks[new], numbers[new])
            self._tell_each(some, new, slots[new], now)
            self._unsettled.append(slots[new])
            if settle:
                for _ in self.settle(now):
                    pass
        return slots

    def _add_each(self, some: Arrivals, now: float) -> Integers:
        slots = np.full(len(some), -1, np.int64)
        for nth, url in enumerate(some.urls):
            is_new, number = self.names.slot(url) < 0, some.numbers[nth] if some.numbers else 0
            self.add(
                some.page(nth),
                now,
                current=some.current[nth] if some.current else None,
                signals=some.signals[nth] if some.signals else 0,
                failures=some.failures[nth] if some.failures else 0,
                learned=some.learned[nth] if some.learned else b"",
                number=number,
            )
            slots[nth] = self.names.slot(url) if is_new else -1
        return slots

    def _enter(self, some: Arrivals, new: Integers, now: float) -> Integers:
        """Records of new pages in all tables, out of play; their slots."""
        heart = cast(CompiledHeart, self.heart)
        every = len(new) == len(some)
        urls, hosts = (each if every else [each[nth] for nth in new.tolist()] for each in (some.urls, some.hosts))
        number = self.lanes.number
        host = np.fromiter((number(name) for name in hosts), np.int64, len(new))
        branch, group = self._places(urls, hosts, host)
        importance, times = some.floats_of("importance", math.inf)[new], some.floats_of("times", math.inf)[new]
        multiplies = ~np.isnan(times)
        learned = some.learned if every or not some.learned else [some.learned[nth] for nth in new.tolist()]
        return heart.enter_many(
            now,
            Entries(
                host=host,
                branch=branch,
                group=group,
                current=some.floats_of("current")[new],
                importance=np.where(multiplies, times, importance),
                failures=some.numbers_of("failures")[new],
                flags=np.zeros(len(new), np.int64),
                learned=heart.learner.read_back(learned, now) if learned else None,
                times=multiplies.astype(np.int64),
                popularity=some.floats_of("popularity", math.inf)[new],
            ),
        )

    def _places(self, urls: Sequence[str], hosts: Sequence[str], host: Integers) -> tuple[Integers, Integers]:
        """The branch and the group of kin of each page; pages of a folder have the same."""
        from afresh.engine.folders import folder_keys  # compiled code takes a while to load

        heart = cast(CompiledHeart, self.heart)
        keys, at, which = np.unique(folder_keys(urls, host, self.names.seed), return_index=True, return_inverse=True)
        places = np.empty((len(keys), 2), np.int64)
        if len(self._folders) > MOST_FOLDERS:
            self._folders.clear()
        for nth, (key, first) in enumerate(zip(keys.tolist(), at.tolist(), strict=True)):
            place = self._folders.get(key)
            if place is None:
                place = self._folders[key] = heart.place(urls[first], hosts[first])
            places[nth] = place
        return places[which, 0], places[which, 1]

    def _tell_each(self, some: Arrivals, new: Integers, slots: Integers, now: float) -> None:
        """What must be said of some of the new pages one by one; where there are rules of sites, of all."""
        if some.signals:
            for nth in np.flatnonzero(some.numbers_of("signals")[new]).tolist():
                self._recall(int(slots[nth]), some.hosts[new[nth]], some.signals[new[nth]])
        cares = self.rules or self.importance or self.shortest
        each = range(len(new)) if cares or not some.numbers else ()
        said = set(each) or {int(np.searchsorted(new, nth)) for nth in some.pages if nth in new} if some.pages else each
        for nth in said:
            page, slot = some.page(int(new[nth])), int(slots[nth])
            self.names.own(slot, page)
            wanted = self.rules.applied(page)
            if wanted is not page or self.importance:
                self.estimator.told(slot, importance=self._importance(wanted), popularity=page.popularity)
            self._limit(slot, wanted, now)

    def settle(self, now: float) -> Iterator[None]:
        """Let all pages that came in be in play, some at a time, so that others have a turn in between."""
        if not self._unsettled:
            return
        heart, slots = cast(CompiledHeart, self.heart), np.concatenate(self._unsettled)
        self._unsettled = []
        self._follow()
        pieces = [slots[first : first + SETTLED_AT_ONCE] for first in range(0, len(slots), SETTLED_AT_ONCE)]
        # What is believed of each follows from all of them, and so does the price.
        for step in (heart.believe_many, heart.settle_many):
            for piece in pieces:
                kept = piece[self.names.are_used(piece)]  # some may have left meanwhile
                step(kept, now)
                yield

    def _follow(self) -> None:
        """Slices of time are as long as a visit to every page in play needs them to be."""
        if self.activity is not None and self.scheduler.budget > 0:
            self.activity.follow((len(self) - self.waiting) / self.scheduler.budget)

    # --- out ---

    def remove(self, url: str) -> None:
        """Forget a page."""
        slot = self._slot(url)
        order = self._out.pop(slot, None)
        self._limits.pop(slot, None)
        self._wanted.discard(slot)
        self.purses.forget(slot)
        self.waiting -= self.heart.has(slot, WAITING)
        self._without_room -= self.heart.has(slot, NO_ROOM)
        self.heart.mark(slot, OUT_OF_PLAY | NO_ROOM, False)
        self.heart.forget(slot)
        self.scheduler.remove(slot)
        if order is not None:
            # Its host is being asked, and will be free for the next page only when that is over.
            self.lanes.rest_until(order.host, order.time + REST_AFTER_REMOVAL)
        self.estimator.remove(slot)
        self.names.leave(slot)

    def remove_many(self, urls: Iterable[str]) -> int:
        """Forget pages; how many of them were kept."""
        kept = [url for url in urls if url in self]
        for url in kept:
            self.remove(url)
        return len(kept)

    # --- what operators want ---

    def tell(self, page: Page, now: float) -> None:
        """The operator says something else of a page from now on."""
        check_page(page)
        slot, now, wanted = self._slot(page.url), moment("now", now), self.rules.applied(page)
        self.names.own(slot, page)
        self.estimator.told(slot, importance=self._importance(wanted), popularity=page.popularity)
        self._limit(slot, wanted, now)
        self.heart.believe(slot, now)

    def _importance(self, wanted: Page) -> Importance | None:
        return self.importance.get(wanted.host) if wanted.importance is None else wanted.importance

    def _limit(self, slot: int, wanted: Page, now: float) -> None:
        """Tell the scheduler how often at least and at most, if that is anything new."""
        limits = wanted.shortest or self.shortest, wanted.longest or math.inf
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
        return self.rules.applied(self.names.page(self._slot(url)))

    def pages(self) -> Iterator[Page]:
        """All pages, as their operator speaks of them; they may come and go meanwhile."""
        return self.names.pages()

    def slots_of_host(self, host: str) -> Integers:
        """The slots of all pages of a host."""
        slots = self.names.in_use()
        mine: Integers = slots[self.heart.columns.pages["host"][slots] == self.lanes.number(host)]
        return mine

    # --- in play and out of it ---

    def pause(self, url: str) -> None:
        """Keep a page out of play until `resume`."""
        self.hold(self._slot(url))

    def resume(self, url: str, now: float) -> None:
        """Bring a paused page back into play."""
        self.let_go(self._slot(url), moment("now", now))

    def hold(self, slot: int) -> None:
        """`pause`, by slot."""
        self.heart.mark(slot, HELD, True)
        self.scheduler.pause(slot)

    def is_held(self, slot: int) -> bool:
        """Whether a page is paused."""
        return self.heart.has(slot, HELD)

    def let_go(self, slot: int, now: float) -> None:
        """`resume`, by slot."""
        self.heart.mark(slot, HELD, False)
        self._play(slot, now)

    def wait(self, slot: int) -> None:
        """Keep a page out of play until it is its turn for a first crawl (`let_in`)."""
        if not self.heart.has(slot, WAITING):
            self.heart.mark(slot, WAITING, True)
            self.scheduler.pause(slot)
            self.waiting += 1

    def wait_many(self, slots: Integers) -> None:
        """`wait`, for pages that came in and are not in play yet."""
        if isinstance(self.heart, CompiledHeart):
            flags = self.heart.columns.pages["flags"]
            self.waiting += int((flags[slots] & WAITING == 0).sum())
            flags[slots] |= WAITING
        else:
            for slot in slots.tolist():
                self.wait(slot)

    def is_waiting(self, slot: int) -> bool:
        """Whether a page waits for its turn for a first crawl."""
        return self.heart.has(slot, WAITING)

    def waiting_among(self, slots: Integers) -> Integers:
        """Those of these slots whose pages wait so; −1 is none."""
        known = slots[slots >= 0]
        found: Integers = known[self.heart.columns.pages["flags"][known] & WAITING != 0]
        return found

    def let_in(self, slot: int, now: float) -> None:
        """A page that waits need not wait any longer."""
        if self.heart.has(slot, WAITING):
            self.heart.mark(slot, WAITING, False)
            self.waiting -= 1
            self._play(slot, now)

    def _play(self, slot: int, now: float) -> None:
        if not self.heart.has(slot, OUT_OF_PLAY):
            self.heart.believe(slot, now)
            self.scheduler.resume(slot, now)

    # --- what stale copies cost ---

    def weigh(self, weights: Mapping[str, float], base: float, first: float) -> Integers:
        """What a stale copy costs a second: of these pages, of all others, and what it costs not to have a page yet.

        Where an operator says how much a page is wanted, that holds. The slots whose weights have moved much:
        `believe_slots` tells the schedule of them.
        """
        if not isinstance(self.estimator, Weighs):
            return np.empty(0, np.int64)
        current = self.heart.columns.pages["current"]
        found = np.where(np.isnan(current), float(first), float(base))
        slots = self.names.slots(self.names.marks(list(weights)))
        known = slots >= 0
        told = np.array(list(weights.values()), np.float64)[known]
        found[slots[known]] = np.where(np.isnan(current[slots[known]]), np.maximum(told, first), told)
        return self.estimator.weigh(found)

    def believe_slots(self, slots: Integers, now: float) -> None:
        """Tell the schedule what is believed of some pages now."""
        now = moment("now", now)
        for slot in slots.tolist():
            self.heart.believe(slot, now)

    # --- kinds of pages ---

    def tell_kind(self, url: str, kind: int, now: float) -> None:
        """A page turned out to be of these kinds, as `estimate.kinds.pack` gives them."""
        slot, kind, now = self._slot(url), whole("kind", kind, most=MAX_PACKED), moment("now", now)
        if self.of_kind is not None:
            self.of_kind.told_kind(slot, kind)
            self.heart.believe(slot, now)
            scheduler = self.scheduler
            priced = self.costs is not None and isinstance(scheduler, KnowsPrices)
            if priced and self._reprice(slot, cast(KnowsPrices, scheduler).cost_of(slot)):
                cast(KnowsPrices, scheduler).reckon(slot, now)

    def describe_kind(
        self, kind: int, *, rate: float | None = None, spread: float | None = None, value: float = 1.0
    ) -> None:
        """What an operator says of a kind: how often its pages change, by what factor those of most pages differ from
        that, and how much more they are wanted."""
        if self.of_kind is not None:
            self.of_kind.describe_kind(kind, rate=rate, spread=spread, value=value)

    def use_kinds(self, costs: KindCosts, by_address: Callable[[str, int], int] | None = None) -> None:
        """What pages of each kind cost; and what says the kinds of a page that comes in, by its address and by what was
        known of them."""
        self._kinds_by_address = by_address
        if self.costs is not None:
            self.costs.kinds = costs

    def _kinds_at(self, slot: int) -> int:
        return 0 if self.of_kind is None else self.of_kind.kind_of(slot)

    def _tell_by_address(self, urls: Sequence[str], slots: Sequence[int]) -> None:
        if self._kinds_by_address is None or self.of_kind is None:
            return
        for url, slot in zip(urls, slots, strict=True):
            before = self.of_kind.kind_of(slot)
            if (kinds := self._kinds_by_address(url, before)) != before:
                self.of_kind.told_kind(slot, kinds)

    def recall_kinds(self, scores: Sequence[float]) -> None:
        """What kinds had proved to be worth before a restart."""
        if self.of_kind is not None:
            self.of_kind.recall_kinds(scores)

    # --- requests that are foretold ---

    def tell_popularity(self, url: str, popularity: float, now: float) -> None:
        """A new page is taken to be asked for so many times as often as pages alike, until requests say more."""
        slot, now = self._slot(url), moment("now", now)
        if self.foretelling is not None:
            self.foretelling.told_popularity(slot, number("popularity", popularity, most=MAX_POPULARITY))
            self.heart.believe(slot, now)

    def requests_beside(self, url: str, now: float) -> tuple[float, float]:
        """The requests that a page has had, and those that a page alike would have had."""
        if self.foretelling is None:
            return 0.0, 0.0
        return self.foretelling.requests_beside(self._slot(url), moment("now", now))

    def average_request_rate(self, url: str, now: float) -> float:
        """How often pages like this one are asked for; 0 where nobody asks for anything, or nothing is known of it."""
        if self.foretelling is None:
            return 0.0
        return self.foretelling.average_request_rate(self._slot(url), moment("now", now))

    # --- dates ---

    def tell_age(self, url: str, age: float, trust: float, now: float) -> None:
        """At its first crawl a page says how old its content is; `trust`, from 0 to 1, is that in its date."""
        slot, now = self._slot(url), moment("now", now)
        age, trust = number("age", age), number("trust", trust, most=1.0)
        if self.dated is not None and trust > LEAST_TRUST:
            self.dated.told_age(slot, age, trust)
            self.heart.believe(slot, now)

    def tell_last_change(self, url: str, since: float, elapsed: float, trust: float, now: float) -> None:
        """A page that was found changed after `elapsed` says how long ago the last change was."""
        slot, now = self._slot(url), moment("now", now)
        since, elapsed, trust = number("since", since), number("elapsed", elapsed), number("trust", trust, most=1.0)
        if self.dated is not None and trust > LEAST_TRUST:
            self.dated.told_last_change(slot, since, elapsed, trust)  # the schedule hears of it in the page's turn

    def recall_first_said(self, scores: Sequence[float]) -> None:
        """What was worth to hear at first crawls before a restart."""
        if self.dated is not None:
            self.dated.recall_first_said(scores)

    def worth_of_first_said(self) -> list[float]:
        """What has proved to be worth to hear at first crawls, for `recall_first_said`."""
        return [] if self.dated is None else self.dated.worth_of_first_said()

    # --- room in the store ---

    def _note_room(self, slot: int, reason: str) -> None:
        put_off = reason == STORE_FULL
        self._without_room += put_off - self.heart.has(slot, NO_ROOM)
        self.heart.mark(slot, NO_ROOM, put_off)

    @property
    def without_room(self) -> bool:
        """Whether any page is put off because there was no room for its content."""
        return self._without_room > 0

    def room_again(self, now: float, most: int, *, first_copies: bool = True) -> bool:
        """Bring pages back that were put off for want of room, `most` of them; False once there are no more.

        Without `first_copies`, those that have no copy yet stay put off.
        """
        slots, pages = self.names.in_use(), self.heart.columns.pages
        found = pages["flags"][slots] & NO_ROOM != 0
        if not first_copies:
            found &= ~np.isnan(pages["current"][slots])
        some = slots[found][:most].tolist()
        for slot in some:
            self._note_room(slot, "")
            if slot not in self._out:
                self.scheduler.put_off(slot, now, now)
        return len(some) == most

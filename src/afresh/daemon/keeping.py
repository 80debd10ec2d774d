"""Between the loop and the store: finished crawls are gathered and written in batches, pages are taken in from it."""

import asyncio
import json
import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from afresh.daemon.control import Control
from afresh.daemon.newcomers import EARLY_SHARE, LIKELY_FRESH, Newcomers
from afresh.daemon.pressure import Pressure
from afresh.daemon.room import Room
from afresh.daemon.run_price import RunPrice, run_price_name
from afresh.engine import AnyEngine, Arrivals, Engine, Engines
from afresh.errors import BodyDamaged, StoreError
from afresh.estimate.activity_kept import to_text as activity_to_text
from afresh.estimate.senders import SENDERS
from afresh.frontier.faults import NEVER_ASKED
from afresh.sources import Sources
from afresh.sources.base import PURSE, kept_meta
from afresh.store import Heard, PageColumns, PageState, Record, Store, understood
from afresh.store.base import gone_after
from afresh.store.messages import FOUND_SO_FAR
from afresh.types import BACK, CHANGES, Answer, Copy, Crawl, Fetched, Order, Outcome, Page, Validators, Verdict, Wait

_log = logging.getLogger("afresh.store")

Integers = NDArray[np.int64]
Places = list[tuple[Engine, int]]  # of pages: the engine's part that each belongs to, and its slot there

BATCH = 256  # crawls that are written without waiting for more
ROOM_TO_GROW = 100  # one in so many pages may still come, before memory is copied
TAKE_IN = 10_000  # pages handed to the engine at once
LEARNED_RATES = "learned rates"  # under this name the store has them
MANY_RATES = 100_000  # pages: the learned rates of more are written more seldom, as they take 43 bytes a page
KEEP_LEARNED = 30.0  # seconds, for what is learned of whole sites; and at the end
MOST_LET_IN = 8  # pages that wait, while nothing else is due, in one go
PLACES = 1 << 20
MOST_DAMAGED = 100_000
MAX_UNWRITTEN = 256 << 20  # bytes of bodies, if nothing else is said
LOOKED_AT = 1_000  # crawls of a page's history, at most
RECENT = 16_384  # durable states that are remembered, of about a kilobyte each


def price_name(part: Engine) -> str:
    """Under this name the store keeps the price of a purse."""
    return "price" if part.purse == PURSE else f"price {part.purse}"


class Keeper:
    """Knows the newest state of every page, durable or not, and makes it durable.

    Invariants: a crawl's record is whole or absent in the store, and the pages that it found are there before it is;
    whatever is remembered here is what the store says or will say, because one process runs on a store at a time.
    """

    def __init__(
        self,
        *,
        store: Store,
        engine: AnyEngine,
        clock: Callable[[], float],
        sources: Sources | None = None,
        never: Container[str] = (),
        take: Callable[[], Mapping[str, str]] = dict,
        overview: Callable[[], Mapping[str, str | None]] = dict,
        learned: Callable[[], Mapping[str, str | None]] = dict,
        pressure: Pressure | None = None,
        control: Control | None = None,
        others: Callable[[list[Page]], tuple[list[Page], list[Page]]] | None = None,
    ) -> None:
        self.store = store
        self.engine = engine
        self.clock = clock
        self.sources = sources or Sources([])
        self.never = never  # hosts whose pages are not crawled any more
        self.take = take  # named values that somebody else wants to be kept
        self.overview = overview  # what is said of all pages, by name: kept every second
        self.learned = learned  # what is learned of whole sites, by name: kept now and then
        self.pressure = pressure or Pressure(MAX_UNWRITTEN)
        self.room = Room(store)
        self.control = control or Control(engine=engine, store=store, clock=clock)
        self.others = others  # tells pages that are ours from those that another runner on this store is to have
        self._newcomers: dict[str, Newcomers] = {}  # by the purse
        self._run_prices: dict[str, RunPrice] = {}  # of purses out of which applications pay as well
        for part in engine.parts:
            self._begin_with(part)
        if isinstance(engine, Engines):
            engine.made = self._begin_with
        self._turn = 0  # of the purses, which is asked first
        self._unwritten: list[Record] = []
        self._in_writing: list[Record] = []
        self._found: list[Page] = []  # pages that are not durable yet
        self._newest: dict[str, PageState] = {}  # states that are not durable yet
        self._recent: OrderedDict[str, PageState] = OrderedDict()  # some of those that are, the latest used at the end
        self._urls: dict[int, str] = {}  # some of the pages that were read, by their numbers
        self._copies: dict[str, Copy] = {}  # copies that are not durable
        self._proven = bytearray(PLACES)  # whether the copies at a place (by hash) were found whole since the start
        self._damaged: set[str] = set()  # pages whose damaged copies were told of
        self._touched: set[str] = set()  # pages about which something was heard that is not yet durable
        self._taken: list[int] = []  # entries of the inbox whose effect is not durable
        self._last_page = 0
        self._left_out = 0  # pages of such hosts
        self.untried = 0  # pages that were never crawled
        # Is told of a host how many more of its pages are in and were never crawled, from before a restart too.
        self.untried_of: Callable[[str, int], object] = lambda host, more: None
        self._alike = 0  # pages that were left out because their fingerprints are others'
        self._alive = 0.0  # when a sign of life was last written
        self._rates_kept = self._learned_kept = 0.0  # when what is learned of whole sites was
        self._activity_kept = 0  # crawls that had taught which pages change together by then

    def _begin_with(self, part: Engine) -> None:
        """A part of the engine is there: it goes on where it was before a restart."""
        self._newcomers[part.purse] = Newcomers(part)
        part.names.read = self._read
        name = price_name(part)
        if (price := self.store.get(name)) is not None:
            typical = 1.0 if part.costs is None else part.costs.typical
            part.scheduler.resume_price(understood(name, lambda: float(price)) * typical)
        if part.purse != PURSE:
            runs = self._run_prices[part.purse] = RunPrice(1.0 if part.costs is None else part.costs.typical)
            name = run_price_name(part.purse)
            if (kept := self.store.get(name)) is not None:
                runs.resume(understood(name, lambda: float(kept)))

    @property
    def newcomers(self) -> Newcomers:
        """Those of the purse that needs no name."""
        return self._newcomers[self.engine.first.purse]

    def newcomers_of(self, url: str) -> Newcomers:
        """Those among which a page waits."""
        return self._newcomers[self.engine.part_of(url).purse]

    @property
    def waiting(self) -> int:
        """How many pages wait for a first crawl."""
        return self.engine.waiting

    @property
    def full(self) -> bool:
        """Whether a batch is ready to be written."""
        return len(self._unwritten) >= BATCH or self.pressure.high

    def state(self, url: str) -> PageState:
        """The page as it is now, but for what the engine knows of it: beliefs, signals, what was learned."""
        state = self._newest.get(url) or self._recent.get(url) or self.store.state(url)
        if state is None:
            raise StoreError(f"The page {url} is not in the store any more.", hint="Was the file replaced?")
        return state

    async def returned(self, before: PageState, verdict: Verdict) -> Verdict:
        """The verdict on a page in this state; if it is as its copy says, and was gone, that is a change.

        Who dropped the page when it was gone would never hear of it again otherwise. Its history is read in a thread:
        the page may have been removed when this returns.
        """
        if verdict.outcome is not Outcome.UNCHANGED or not before.failures:
            return verdict
        url = before.page.url
        unwritten = [each.crawl for each in (*self._in_writing, *self._unwritten) if each.state.page.url == url]
        stored = await asyncio.to_thread(self.store.history, url, LOOKED_AT)
        earlier = chain(filter(None, reversed(unwritten)), stored)
        said = next((crawl.outcome for crawl in earlier if crawl.outcome in CHANGES or crawl.outcome.refreshed), None)
        if said is not Outcome.GONE:
            return verdict
        return Verdict(Outcome.CHANGED, 1.0, verdict.validators, BACK, verdict.cost)

    def copy(self, url: str) -> Copy | None:
        """The page's copy as it is now; None also if it is damaged, and to be replaced."""
        try:
            return self._copies.get(url) or self.store.copy(url)
        except BodyDamaged as error:
            self._note_damage(url, error)
            return None

    async def conditions(self, state: PageState) -> Validators:
        """What to ask for a page with: nothing if its copy is damaged, so that it comes whole and heals the store.

        A copy is looked at before the first fetch since the start; later ones were looked at, or written, in this run.
        """
        url = state.page.url
        place = hash(url) % len(self._proven)
        if state.validators.fingerprint and not self._proven[place] and url not in self._copies:
            if await asyncio.to_thread(self.copy, url) is None:
                return Validators()
            self._proven[place] = 1
        return state.validators

    def _note_damage(self, url: str, error: BodyDamaged) -> None:
        """One line in the log for each damaged copy."""
        if url not in self._damaged:
            if len(self._damaged) >= MOST_DAMAGED:
                self._damaged.clear()
            self._damaged.add(url)
            _log.warning("%s It is fetched anew.", error.message)

    def _read(self, number: int) -> Page | None:
        """The page with a number in the store, as its operator wants it now: the engine asks when an order goes out."""
        url = self._urls.get(number)
        state = None if url is None else self._newest.get(url) or self._recent.get(url)
        if state is None:
            if (kept := self.store.state_numbered(number)) is None:
                return None
            state = self._newest.get(kept.page.url) or self._recent.get(kept.page.url)
            if state is None:
                self._remember(state := kept)
            self._note_number(number, state.page.url)
        return state.page

    def _note_number(self, number: int, url: str) -> None:
        if len(self._urls) >= RECENT:
            self._urls.clear()
        self._urls[number] = url

    def welcome(self, pages: Iterable[Page]) -> None:
        """Hand pages that were just found to the engine: they need not be durable to be crawled, only to be kept."""
        now, some = self.clock(), list(pages)
        if self.others is not None:
            # They are in the store before the crawl that found them; there their own runner sees them.
            some, theirs = self.others(some)
            self._found += theirs
        if not some:
            return
        for page in some:
            self._newest[page.url] = PageState(page)
        self._found += some
        arrivals = Arrivals.of(some)
        self._enter(arrivals, now, crawls=(), special={})
        for _ in self.engine.settle(now):
            pass

    def _enter(
        self, arrivals: Arrivals, now: float, *, crawls: Sequence[int], special: Mapping[int, PageState]
    ) -> Places:
        """Hand pages to the engine, which puts them in play when it settles; those that must wait are queued.

        The engine's part and the slot of each, −1 if it is kept already.
        """
        tried = np.array(crawls, np.bool_) if len(crawls) else np.zeros(len(arrivals), np.bool_)
        places: Places = [(self.engine.first, -1)] * len(arrivals)
        for part, own in self._by_part(arrivals):
            some = arrivals if len(own) == len(arrivals) else arrivals.some(own)
            self.engine.reaches(part, dict.fromkeys(some.hosts))
            slots = self._enter_part(part, some, now, tried=tried[own])
            for nth, slot in zip(own.tolist(), slots.tolist(), strict=True):
                places[nth] = part, slot
        for nth in range(len(arrivals)) if self.control.cares else sorted(special):
            if places[nth][1] >= 0:
                self.control.entered(arrivals.page(nth))
        for nth, state in special.items():
            if places[nth][1] >= 0 and state.urgent:
                self.enter(state.page.url)
                self.engine.crawl_now(state.page.url, now)
        return places

    def _by_part(self, arrivals: Arrivals) -> Iterator[tuple[Engine, Integers]]:
        """Each part of the engine with the places of its pages."""
        if not isinstance(self.engine, Engines):
            yield self.engine, np.arange(len(arrivals))
            return
        parts = [self.engine.part_of(url) for url in arrivals.urls]
        for part in self.engine.parts:
            own = np.array([nth for nth, each in enumerate(parts) if each is part], np.int64)
            if len(own):
                yield part, own

    def _enter_part(self, part: Engine, arrivals: Arrivals, now: float, *, tried: NDArray[np.bool_]) -> Integers:
        slots = part.add_many(arrivals, now, settle=False)
        new = np.flatnonzero(slots >= 0)
        copied = ~np.isnan(arrivals.floats_of("current"))
        said = arrivals.floats_of("importance", math.inf), arrivals.floats_of("times", math.inf)
        free = np.isnan(said[0]) & np.isnan(said[1])
        by_host: dict[str, list[int]] = {}
        for nth in new.tolist():
            by_host.setdefault(arrivals.hosts[nth], []).append(nth)
        newcomers = self._newcomers[part.purse]
        for host, places in by_host.items():
            at = np.array(places)
            if untried := int((~tried[at]).sum()):
                self._count_untried(host, untried)
            waits = newcomers.offer(host, slots[at], new=~tried[at], copied=copied[at], free=free[at])
            if len(waits):
                part.wait_many(waits)
        return slots

    def _count_untried(self, host: str, more: int) -> None:
        self.untried += more
        self.untried_of(host, more)

    @staticmethod
    def _let_in(part: Engine, slot: int | None, now: float) -> None:
        if slot is not None:
            part.let_in(slot, now)

    def next(self, now: float) -> Order | Wait:
        """What is to be crawled now, of each purse in turn; pages that wait go in when it is their turn, or nothing
        else is due."""
        parts, waits = self.engine.parts, []
        for nth in range(len(parts)):
            turn = (self._turn + nth) % len(parts)
            decision = self._next(parts[turn], now)
            if not isinstance(decision, Wait):
                self._turn = turn + 1
                return decision
            waits.append(decision)
        return min(waits, key=lambda wait: wait.until)

    def _next(self, part: Engine, now: float) -> Order | Wait:
        """The same of one purse."""
        decision, newcomers = part.next(now), self._newcomers[part.purse]
        for _ in range(MOST_LET_IN):
            if not isinstance(decision, Wait) or decision.reason == "budget":
                break
            if (slot := newcomers.take()) is None:
                return decision
            self._let_in(part, slot, now)
            decision = part.next(now)
        if not isinstance(decision, Wait) and newcomers.wait_for_orders:
            for slot in newcomers.ordered(early=self._is_early(part, decision, now)):
                self._let_in(part, slot, now)
        return decision

    def _is_early(self, part: Engine, order: Order, now: float) -> bool | None:
        """Whether the copy that an order refreshes is younger than a round over all takes, or most likely current.

        None: there is none.
        """
        current = part.current(order.url)
        if current is None:
            return None
        in_play = len(part) - part.waiting
        if (now - current) * part.scheduler.budget < EARLY_SHARE * in_play:
            return True
        return part.fresh_probability(order.url, now) > LIKELY_FRESH

    def keep(self, before: PageState, crawl: Crawl, fetched: Fetched, verdict: Verdict, noise: str = "") -> None:
        """Queue what a crawl leaves behind; its body counts as held until it is durable."""
        url, validators, got, checked = crawl.url, before.validators, before.fetched, before.checked
        copy = None
        if crawl.outcome.refreshed:
            checked = crawl.time
            # What is the same but for noise need not be written where there is no room; what is back has its copy.
            brings = fetched.answered is not Answer.SAME and crawl.reason != BACK
            if brings and (self.room.for_bodies or crawl.outcome is not Outcome.UNCHANGED):
                validators, got = verdict.validators, crawl.time
                copy = Copy(
                    url, fetched.body, fetched.content_type, crawl.time, crawl.time, validators, kept_meta(fetched.meta)
                )
                self._copies[url] = copy
                self.pressure.hold(len(copy.body))
                self.room.waiting += len(copy.body)
        cost_same, cost_new = self.engine.costs_of(url)
        after = PageState(
            self._page(before),
            self.engine.beliefs(url, self.clock()),
            validators,
            got,
            checked,
            signals=self.engine.signals(url),
            crawls=before.crawls + 1,
            changes=before.changes + (crawl.outcome is Outcome.CHANGED),
            failures=self.engine.failures(url),
            learned=self.engine.learned(url),
            noise=noise,
            cost_same=before.cost_same if cost_same is None else cost_same,
            cost_new=before.cost_new if cost_new is None else cost_new,
            urgent=self._is_urgent(before) and self.engine.comes_again(crawl),
            gone=gone_after(before.gone, crawl),
        )
        self._newest[url] = after
        if not before.crawls:
            self._count_untried(before.page.host, -1)
            part = self.engine.part_of(url)
            self._let_in(part, self._newcomers[part.purse].tried(before.page.host), self.clock())
        self._unwritten.append(Record(crawl, after, copy, self.engine.lanes.state(after.page.host)))

    def _page(self, before: PageState) -> Page:
        """The page as its operator wants it now: that may have changed since the fetch began."""
        url = before.page.url
        state = self._newest.get(url) or self._recent.get(url)
        return before.page if state is None else state.page

    def _is_urgent(self, before: PageState) -> bool:
        """Whether an operator wants the page to be crawled now, also if that was said since the fetch began."""
        state = self._newest.get(before.page.url) or self._recent.get(before.page.url)
        return (state or before).urgent

    def enter(self, url: str) -> bool:
        """Whether a page is with the engine; one that waits for its turn goes in now."""
        part = self.engine.part_of(url)
        slot = part.names.slot(url)
        if slot >= 0 and part.is_waiting(slot):
            self._newcomers[part.purse].entered(part.host_of(url))
            self._let_in(part, slot, self.clock())
        return slot >= 0

    def heard(self, urls: Iterable[str], entry: int) -> None:
        """An entry of the inbox has changed what is believed of these pages: both become durable together."""
        self._touched.update(urls)
        self._taken.append(entry)

    def enter_some(self, part: Engine, slots: Integers) -> None:
        """Of these pages, those that wait for their turn go in now; −1: no page."""
        for slot in part.waiting_among(slots).tolist():
            if part.is_waiting(slot):
                self._newcomers[part.purse].entered(part.host_at(slot))
                self._let_in(part, slot, self.clock())

    def hinted(self, url: str) -> None:
        """A source has heard that a thing may have changed: who reads the store is to know, where copies are asked for
        there with how fresh they are."""
        if self.engine.part_of(url) is not self.engine.first:
            self._touched.add(url)

    def foretold(self, url: str) -> None:
        """Something else is foretold of a page than what the store has."""
        self._touched.add(url)

    def _heard(self) -> list[Heard]:
        """What was heard of pages, to be written; nobody asks the states that are remembered here for that."""
        touched, self._touched = list(self._touched), set()
        return [Heard(*each) for each in self.engine.believed(touched, self.clock())]

    def said(self, pages: Iterable[Page], urgent: Iterable[str]) -> None:
        """An operator's wishes are durable: what is remembered of these pages follows, and the engine hears of it."""
        now = self.clock()
        for page in pages:
            for states in (self._newest, self._recent):
                if page.url in states:
                    states[page.url] = replace(states[page.url], page=page)
            if page.url in self.engine:
                self.engine.tell(page, now)
                self.control.entered(page)
        for url in urgent:
            for states in (self._newest, self._recent):
                if url in states:
                    states[url] = replace(states[url], urgent=True)
            if self.enter(url):
                self.engine.crawl_now(url, now)

    def remove(self, url: str) -> None:
        """Forget a page and all that is not durable of it; its fetch may be under way."""
        self.control.left(url)
        if url in self.engine:
            part = self.engine.part_of(url)
            host, waited = part.host_of(url), part.is_waiting(part.names.slot(url))
            part.remove(url)
            state = self._newest.get(url) or self._recent.get(url) or self.store.state(url)
            untried = state is not None and not state.crawls
            if untried:
                self._count_untried(host, -1)
            if untried and not waited:
                # Its place among the pages of its host is free.
                self._let_in(part, self._newcomers[part.purse].tried(host), self.clock())
        elif self.store.state(url) is not None:
            self._left_out -= 1
        for states in (self._newest, self._recent):
            states.pop(url, None)
        copy = self._copies.pop(url, None)
        for record in self._unwritten:
            if record.state.page.url == url and record.copy is not None:
                self.pressure.release(len(record.copy.body))
        if copy is not None or any(record.state.page.url == url for record in self._unwritten):
            self._unwritten = [record for record in self._unwritten if record.state.page.url != url]

    async def write(self, alive: float | None = None) -> tuple[Crawl, ...]:
        """Make what is queued durable, with the price and a sign of life for those who look at the store."""
        batch, self._unwritten = self._unwritten, []
        taken, self._taken = self._taken, []
        heard = self._heard()
        found, self._found = self._found, []
        now = self.clock() if alive is None else alive
        if found:
            # Before the crawls that found them: once those are durable, their links are not read again.
            numbers = await asyncio.to_thread(self._add, [page.url for page in found], found)
            for page, number in zip(found, numbers, strict=True):
                names = self.engine.part_of(page.url).names
                slot = names.slot(page.url)
                if number and slot >= 0:
                    names.stored(slot, page.url, number)
                    self._note_number(number, page.url)
                self._forget(page.url, crawls=0)
        if batch or taken or heard:
            self._in_writing = batch
            await asyncio.to_thread(self.store.write, batch, taken=taken, heard=heard)
            self._in_writing = []
        values: dict[str, str | None] = {**self.take(), **self.sources.take()}
        if values or alive is not None or now - self._alive >= 1.0:
            await asyncio.to_thread(self.store.put, values | self._signs(now))
            self._alive = now
        for record in batch:
            self._forget(record.state.page.url, record.state.crawls)
            if record.copy is not None:
                self.pressure.release(len(record.copy.body))
                self.room.waiting -= len(record.copy.body)
                if self._copies.get(record.copy.url) is record.copy:
                    del self._copies[record.copy.url]
        return tuple(record.crawl for record in batch if record.crawl)

    def _add(self, urls: Sequence[str], pages: Sequence[Page]) -> list[int]:
        """Make pages durable; their numbers."""
        self.store.add(pages)
        return self.store.numbers(urls)

    def _signs(self, now: float) -> dict[str, str | None]:
        first = self.engine.first
        values: dict[str, str | None] = {"budget": repr(first.budget), "alive": repr(now)}
        values |= self.overview()
        if found := self.sources.found():
            values[FOUND_SO_FAR] = json.dumps(found)
        for part in self.engine.parts:
            if part.price > 0:
                values[price_name(part)] = repr(part.price)
            if (runs := self._run_prices.get(part.purse)) is not None and part.ran > 0.0:
                values[run_price_name(part.purse)] = repr(runs.at(now or self.clock(), part.ran, part.budget))
        if self.engine.calibration.statements:
            values["calibration"] = self.engine.calibration.to_text()
        by_costs, apart = first.by_costs, KEEP_LEARNED * max(1.0, len(self.engine) / MANY_RATES)
        if by_costs is not None and (now == 0.0 or now - self._rates_kept >= apart):
            self._rates_kept = now
            values[LEARNED_RATES] = by_costs.to_text()
        if now == 0.0 or now - self._learned_kept >= KEEP_LEARNED:
            self._learned_kept = now
            values |= self.learned()
            if self.engine.senders.learned:
                values[SENDERS] = self.engine.senders.to_text()
            activity = first.activity
            if activity is not None and activity.learned > self._activity_kept:
                values["activity"], self._activity_kept = activity_to_text(activity), activity.learned
        return values

    def _forget(self, url: str, crawls: int) -> None:
        """A page's state after this many crawls is durable: from now on the store has it, if there is no newer one."""
        state = self._newest.get(url)
        if state is not None and state.crawls <= crawls:
            del self._newest[url]
            self._remember(state)

    def _remember(self, state: PageState) -> None:
        self._recent[state.page.url] = state
        self._recent.move_to_end(state.page.url)
        if len(self._recent) > RECENT:
            self._recent.popitem(last=False)

    async def take_in(self) -> int:
        """Hand pages that others added to the store to the engine, some at a time; how many there were."""
        known = len(self.engine) + self._alike_now + self._left_out - len(self._found)
        pages = self.store.totals().pages
        if pages <= known:
            return 0
        if pages - known > TAKE_IN:
            self.engine.first.reserve(pages + pages // ROOM_TO_GROW)  # most are usually of that purse
        count = 0
        while len(some := await asyncio.to_thread(self.store.columns, after=self._last_page, limit=TAKE_IN)):
            count += await self._take_in(some)
            self._last_page = some.numbers[-1]
        if self._alike_now > self._alike:
            self._alike = self._alike_now
            _log.warning("%d pages are left out: their fingerprints are those of others.", self._alike)
        for _ in self.engine.settle(self.clock()):
            await asyncio.sleep(0)  # others have a turn
        return count

    @property
    def _alike_now(self) -> int:
        """Pages that are left out because their fingerprints are others'."""
        return sum(part.names.alike for part in self.engine.parts)

    async def _take_in(self, some: PageColumns) -> int:
        kept = some if not self.never else self._without_those_never_crawled(some)
        arrivals = Arrivals(
            urls=kept.urls,
            hosts=kept.hosts,
            numbers=kept.numbers,
            current=kept.checked,
            signals=kept.signals,
            failures=kept.failures,
            learned=kept.learned,
            importance=kept.importance,
            times=kept.times,
            popularity=kept.popularity,
            cost_same=kept.cost_same,
            cost_new=kept.cost_new,
            pages={nth: state.page for nth, state in kept.special.items()},
        )
        failing = [nth for nth, failures in enumerate(kept.failures) if failures]
        last = await asyncio.to_thread(self._last_crawls, [kept.urls[nth] for nth in failing])
        now = self.clock()
        places = self._enter(arrivals, now, crawls=kept.crawls, special=kept.special)
        for nth, crawl in zip(failing, last, strict=True):
            part, slot = places[nth]
            # One that failed before a restart stays put off, but where settings forbade it: they may be others now.
            if slot >= 0 and crawl is not None and crawl.reason not in NEVER_ASKED:
                part.failed_before(slot, crawl, kept.failures[nth], now)
        for finder in self.sources.finders:
            own = (
                kept.urls
                if len(self.sources.all) == 1
                else [url for url in kept.urls if self.sources.finder(url) is finder]
            )
            finder.know(list(own))
        return sum(slot >= 0 for _, slot in places)

    def _last_crawls(self, urls: Iterable[str]) -> list[Crawl | None]:
        return [next(iter(self.store.history(url, 1)), None) for url in urls]

    def _without_those_never_crawled(self, some: PageColumns) -> PageColumns:
        """The pages of hosts that are crawled; the others are counted."""
        never = {host: host in self.never for host in set(some.hosts)}
        places = [nth for nth, host in enumerate(some.hosts) if not never[host]]
        known = sum(url in self.engine for nth, url in enumerate(some.urls) if never[some.hosts[nth]])
        self._left_out += len(some) - len(places) - known
        names = (each.name for each in fields(some) if each.name != "special")
        columns = {name: [getattr(some, name)[nth] for nth in places] for name in names}
        special = {at: some.special[nth] for at, nth in enumerate(places) if nth in some.special}
        return PageColumns(**columns, special=special)

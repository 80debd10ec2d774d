"""The loop, live: asyncio and the wall clock around the pure engine.

It takes the pages out of the store, asks the engine for orders at the pace of the budget, carries each out as a task of
its own, and writes what came of them in batches. A crawl is acknowledged (`Stored`) once its batch is durable.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from afresh.daemon.answers import Answers
from afresh.daemon.clock import SteadyClock
from afresh.daemon.control import BudgetHours, Control
from afresh.daemon.costing import Costing
from afresh.daemon.counting import Counting
from afresh.daemon.dates import Dates
from afresh.daemon.desk import Desk
from afresh.daemon.entering import Entering
from afresh.daemon.events import CostUnknown, Event, Finished, Listener, Ordered, Released, Started, Stopped, Stored
from afresh.daemon.evicting import Evicting
from afresh.daemon.foretold import Foretold
from afresh.daemon.grading import Grading
from afresh.daemon.intake import Intake, require_evidence
from afresh.daemon.keeping import LEARNED_RATES, MAX_UNWRITTEN, Keeper
from afresh.daemon.kinds import Kinds
from afresh.daemon.overview import Overview
from afresh.daemon.pressure import Pressure
from afresh.daemon.questions import questions
from afresh.daemon.reader import Read, Reader
from afresh.daemon.searching import Searching
from afresh.daemon.shedding import REST_SECONDS, Shedding
from afresh.daemon.turns import Turns
from afresh.detect import Detector
from afresh.engine import AnyEngine
from afresh.estimate import Calibration, Senders
from afresh.estimate.activity_kept import from_text as activity_from_text
from afresh.fetch import Fetcher
from afresh.frontier.effort import rest_after
from afresh.frontier.scope import site_of
from afresh.mirror.costs import Cost, significance
from afresh.sources import Known, Later, Source, Sources, gathered
from afresh.sources.pieces import PIECE, in_pieces
from afresh.store import PageState, Store, understood
from afresh.store.messages import DEFINITIONS, PAUSED, PINNED, WATCHED, Edit, Pauses, of_requests, of_signals
from afresh.types import BACK, STORE_FULL, Blame, Copy, Fetched, Order, Outcome, Page, Request, Signal, Verdict, Wait

# Fetches that are begun in one pass of the event loop. While the network is what takes time, passes are many and short.
# If it is us, this keeps few under way: were there hundreds, each would wait in our own queue while the time that its
# host takes is counted, and its host would rest for ten times that.
AT_ONCE = 2
PATIENCE = 0.05  # seconds until it is asked again whether there is room in memory
SWITCH_SECONDS = 0.001  # after which a thread that reads makes room for the event loop
NO_SOURCE = "no_source"  # the reason where nobody knows what a key means
LONGEST_SLEEP = 0.5  # so that new evidence, a changed budget and the store's new pages are noticed soon


_log = logging.getLogger("afresh.loop")


class Daemon:
    """Runs an engine against the world until it is told to stop.

    Invariants: a page is fetched by one task at a time; every record of a batch is durable before it is acknowledged;
    after `run` returns, nothing is under way and all that was finished is stored.

    `sources` say what there is to keep; a `fetcher` alone is a source of web pages. Who made them closes them. Where
    several run on one store, `others` tells those of the pages that are found that are ours from those of the others.
    """

    def __init__(
        self,
        *,
        engine: AnyEngine,
        store: Store,
        sources: Sources | Source | Sequence[Source] | None = None,
        fetcher: Fetcher | None = None,
        detector: Detector | None = None,
        never: Container[str] = (),
        kinds: Kinds | None = None,
        searching: Callable[["Daemon"], Searching] | None = None,
        clock: Callable[[], float] | None = None,
        concurrency: int = 64,
        grace: float = 10.0,
        write_every: float = 0.2,
        max_unwritten: int = MAX_UNWRITTEN,
        max_kept: int | None = None,
        socket: Path | None = None,
        budget_hours: BudgetHours = (),
        cost: Cost = significance,
        listeners: Sequence[Listener] = (),
        others: Callable[[list[Page]], tuple[list[Page], list[Page]]] | None = None,
    ) -> None:
        self.engine = engine
        self.sources = gathered(sources, fetcher)
        self.store = store
        self.clock = clock or SteadyClock()
        self.concurrency = concurrency
        self.grace = grace
        self.write_every = write_every
        self.listeners = list(listeners)
        self._kinds = kinds
        self._never = never
        self._dates = Dates(self.sources)
        self._foretold = Foretold(lambda url: self._keeper.foretold(url))
        self._grading = Grading(engine, self.sources, self.clock)
        self._counting = Counting(engine=engine, store=store, clock=self.clock)
        self._pressure = Pressure(max_unwritten)
        self._shedding = Shedding()
        self.control = Control(engine=engine, store=store, clock=self.clock, budget_hours=budget_hours)
        self._keeper = Keeper(
            store=store,
            engine=engine,
            clock=self.clock,
            sources=self.sources,
            never=never,
            take=lambda: self._reader.take(),
            overview=lambda: {**self.overview.values(), **self._counting.latest()},
            learned=self._learned,
            pressure=self._pressure,
            control=self.control,
            others=others,
        )
        self._intake = Intake(
            store=store,
            engine=engine,
            keeper=self._keeper,
            clock=self.clock,
            carried_out=self._carried_out,
            receive=self._receive,
            graded=self._grading.hear_many,
        )
        self._searching = searching(self) if searching is not None else None
        if self._searching is not None:
            self._intake.searched = self._searching.searched
        self._reader = Reader(
            detector or Detector(), copy=self._keeper.copy, recall=store.get, sources=self.sources, kinds=kinds
        )
        self._costing = None
        if engine.first.by_costs is not None:
            self._costing = Costing(
                cost,
                sources=self.sources,
                copy=self._keeper.copy,
                importance=self._importance,
                tell=lambda kind, why: self._tell(CostUnknown(kind, why)),
                name=engine.first.by_costs.costs_learned().cost,
            )
        self.evicting = Evicting(engine=engine, store=store, sources=self.sources, clock=self.clock, wake=self.wake)
        self._entering = Entering(
            engine=engine,
            keeper=self._keeper,
            sources=self.sources,
            clock=self.clock,
            wake=self.wake,
            max_kept=max_kept,
        )
        self.overview = Overview(engine=engine, sources=self.sources, clock=self.clock)
        self._counting.stated = lambda: self.overview.stated
        turns = Turns(engine=engine, sources=self.sources, control=self.control, never=never, clock=self.clock)
        # What can be asked over the socket, by name: a caller may put in others before `run`.
        self.questions = questions(
            engine=engine,
            keeper=self._keeper,
            overview=self.overview,
            clock=self.clock,
            wake=self.wake,
            control=self.control,
            kinds=kinds,
            costing=self._costing,
            grades=self._grading.told,
            heard=lambda url: self._grading.heard.of(url),
            searching=self._searching,
            lent=turns.lately,
            ahead=turns.ahead,
        )
        self.questions |= turns.questions() | {"counts": self._counts, "served": self._counting.served}
        self._answers = Answers(socket, self.questions) if socket is not None else None
        self._desk = Desk(
            engine=engine,
            keeper=self._keeper,
            pressure=self._pressure,
            clock=self.clock,
            tell=self._tell,
            promised=self._dates.promised,
            grading=self._grading,
        )
        self._ended = asyncio.Event()  # no more orders: told to stop, or cannot go on
        self._settled = asyncio.Event()  # nothing is under way any more
        self._write_now = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._fault: BaseException | None = None
        self._begun = 0  # fetches, in this pass of the event loop
        self._under_way: dict[asyncio.Task[None], Order] = {}

    def _counts(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What was counted since the run began, and what is under way now."""
        return self._counting.summary(arguments) | {"under_way": len(self._under_way), "waiting": self._keeper.waiting}

    def _learned(self) -> dict[str, str | None]:
        """What is learned of all pages together, by the names under which the store holds it."""
        of_kinds = {} if self._kinds is None else self._kinds.values(self.engine.first)
        of_searches = {} if self._searching is None else self._searching.values()
        learned = {**self._dates.values(self.engine), **self._foretold.values()}
        of_costs = {} if self._costing is None else self._costing.values()
        return {**of_kinds, **learned, **of_searches, **of_costs, **self._grading.values(), **self._counting.values()}

    def copy(self, url: str) -> Copy | None:
        """The copy of a page as it is now, durable or not; it may read the store."""
        return self._keeper.copy(url)

    @property
    def pages(self) -> int:
        """How many pages are kept fresh, those that wait for their first turn included."""
        return len(self.engine)

    def repeated(self, url: str, sender: str) -> None:
        """A hint that a receiver dropped, since its sender counts once until the next crawl."""
        self._desk.repeated(url, sender)

    def stop(self) -> None:
        """Give no more orders; let what is under way finish."""
        self._ended.set()

    def wake(self) -> None:
        """Look into the inbox now."""
        self._write_now.set()

    def _carried_out(self, edit: Edit) -> None:
        """A wish is durable."""
        if (since := edit.values.get(WATCHED)) is not None:
            self.engine.requests_since(float(since))
        if PAUSED in edit.values:
            self.control.paused(understood(PAUSED, lambda: Pauses.from_text(edit.values[PAUSED])))
        if PINNED in edit.values:
            self._grading.pinned(edit.values[PINNED])
        for name, text in edit.values.items():
            if name.startswith(DEFINITIONS):
                self.sources.said(name, text)

    async def observe(self, evidence: Iterable[Signal | Request], key: str = "") -> int:
        """Take signals and requests in; they are durable when this returns, and take effect once, within a second.

        Evidence with a `key` that was given recently is the same sent again. Returns how many batches are new;
        InboxFull if there is no room; ConfigError if any of it makes no sense, and then none is taken.
        """
        heard, now = list(evidence), self.clock()
        for each in heard:
            require_evidence(each)
        signals = of_signals((each for each in heard if isinstance(each, Signal)), now, key and f"s {key}")
        requests = of_requests((each for each in heard if isinstance(each, Request)), now, key and f"r {key}")
        new = await asyncio.to_thread(self.store.post, [*signals, *requests])
        self.wake()
        return new

    async def run(self) -> None:
        """Crawl until `stop`; StoreError if the store can no longer be written."""
        self.store.claim()
        before = sys.getswitchinterval()
        sys.setswitchinterval(min(before, SWITCH_SECONDS))
        try:
            await self._run()
        finally:
            sys.setswitchinterval(before)

    def _recall_learned_rates(self) -> None:
        by_costs, rates = self.engine.first.by_costs, self.store.get(LEARNED_RATES)
        if by_costs is None or rates is None:
            return
        if not understood(LEARNED_RATES, lambda: by_costs.recall(rates)):
            _log.warning("Learned rates begin anew: those in the store were learned from another cost.")

    async def _run(self) -> None:
        self._restore_hosts()
        get = self.store.get
        self.engine.calibration = understood("calibration", lambda: Calibration.from_text(get("calibration")))
        self.engine.senders = understood("senders", lambda: Senders.recalled(get))
        first = self.engine.first
        if first.activity is not None and not len(first):
            width = first.activity.width
            first.activity = understood(
                "activity", lambda: activity_from_text(get("activity"), width=width, now=self.clock())
            )
        self._recall_learned_rates()
        await self.sources.begin(self._desk)
        if (since := get(WATCHED)) is not None:
            self.engine.requests_since(understood(WATCHED, lambda: float(since)))
        self.control.begin()
        self._counting.begin()
        understood("requests_foretold", lambda: self._foretold.begin(get))
        self._grading.begin(get)
        understood("dates", lambda: self._dates.begin(self.engine, get))
        if self._kinds is not None:
            kinds = self._kinds
            understood("kinds", lambda: kinds.begin(self.engine.first, get))
        await asyncio.to_thread(site_of, "example.org")  # reads the list of public suffixes, which takes a while
        await self._keeper.take_in()
        self._entering.look()
        if self._answers is not None:
            await self._answers.open()
        self._tell(Started(self.pages))
        writer = asyncio.create_task(self._keep_store())
        writer.add_done_callback(lambda _: self._ended.set())
        beside = self._begin_beside()
        try:
            self._give_orders()
            await self._ended.wait()
        finally:
            self._ended.set()
            for task in beside:
                task.cancel()
            if self._timer is not None:
                self._timer.cancel()
            released = await self._settle()
            self._settled.set()
            self._write_now.set()
            if self._searching is not None:
                self._searching.ending = True
            try:
                await writer  # writes the rest, and raises what it could not write
            finally:
                await self._close()
        if self._fault is not None:
            raise self._fault
        self._tell(Stopped(released))

    def _begin_beside(self) -> list[asyncio.Task[None]]:
        """Begin what goes on beside the crawl."""
        beside = [asyncio.create_task(self.overview.keep())]
        beside[0].add_done_callback(self._surveyed)
        beside.append(asyncio.create_task(self.evicting.keep()))
        beside[1].add_done_callback(self._evicted)
        if self._searching is not None:
            self._searching.begin()
            beside.append(asyncio.create_task(self._searching.keep()))
            beside[2].add_done_callback(self._searched)
        return beside

    async def _close(self) -> None:
        """Let go of threads and of the socket."""
        self._reader.close()
        if self._costing is not None:
            self._costing.close()
        if self._searching is not None:
            await self._searching.close()
        if self._answers is not None:
            await self._answers.close()

    def _give_orders(self) -> None:
        """Give the orders that may be given now, each to a task of its own."""
        while len(self._under_way) < self.concurrency and (order := self._next_order()) is not None:
            task = asyncio.create_task(self._work(order))
            self._under_way[task] = order
            task.add_done_callback(self._worked)

    def _worked(self, task: asyncio.Task[None]) -> None:
        order = self._under_way.pop(task)
        if task.cancelled():
            self._release(order)
        elif (error := task.exception()) is not None:  # not even the loss of an order could be noted
            self._fault = error
            self._ended.set()

    def _surveyed(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._complain("what is said of all pages is not brought up to date any more", error)

    def _evicted(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._complain("what is asked for least is not let go any more", error)

    def _searched(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._complain("searches are not followed any more", error)

    def _next_order(self) -> Order | None:
        """The next order, if there is one now; if not, see to it that this is asked again when there may be."""
        if self._ended.is_set():
            return None
        if self.control.pauses.everything:
            self._ask_again(LONGEST_SLEEP)
            return None
        if self._begun >= AT_ONCE:
            self._ask_again(0.0)
            return None
        if not self._pressure.room(len(self._under_way), self.sources.arriving):
            self._write_now.set()
            self._ask_again(PATIENCE)
            return None
        try:
            now = self.clock()
            self.control.tick(now)
            decision = self._keeper.next(now)
            if not isinstance(decision, Wait):
                if not self._begun:
                    asyncio.get_running_loop().call_soon(self._new_pass)
                self._begun += 1
                if self.engine.current(decision.url) is not None and self._shedding.puts_off(decision.value):
                    self.engine.release(decision, now, REST_SECONDS)
                    self._ask_again(0.0)
                    return None
                self._tell(Ordered(decision))
                return decision
            self._ask_again(min(max(decision.until - now, 0.0), LONGEST_SLEEP))
        except Exception as error:
            self._fault = error
            self._ended.set()
        return None

    def _ask_again(self, pause: float) -> None:
        """Call `_give_orders` after a pause, or sooner: a timer that runs out before is left to do so."""
        loop = asyncio.get_running_loop()
        when = loop.time() + pause
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = loop.call_at(when, self._in_time)

    def _new_pass(self) -> None:
        self._begun = 0

    def _in_time(self) -> None:
        if self._timer is not None:
            self._shedding.late(asyncio.get_running_loop().time() - self._timer.when())
        self._timer = None
        self._give_orders()

    async def _work(self, order: Order) -> None:
        """Carry out an order, and then those that come up at that moment: a new task for each would cost more."""
        task = cast(asyncio.Task[None], asyncio.current_task())
        while True:
            try:
                await self._carry_out(order)
            except Exception as error:
                self._lose(order, error)
            if (following := self._next_order()) is None:
                return
            self._under_way[task] = order = following
            self._give_orders()

    def _lose(self, order: Order, error: Exception) -> None:
        """A fault of ours, not of the page's; still the host was asked, and must not be asked at once again."""
        fetched, verdict = (
            Fetched(order.url, self.clock(), 0.0, reason="fault"),
            Verdict(Outcome.FAILED, reason="fault"),
        )
        was_out = self.engine.is_out(order)
        crawl = self.engine.finish(order, fetched, verdict, self.clock())
        self._complain(f"the crawl of {order.url} failed", error)
        try:
            if was_out:
                before = self._keeper.state(order.url)
                self._keeper.keep(before, crawl, fetched, verdict, before.noise)
                self._tell(Finished(crawl))
                return
        except Exception as second:
            self._complain(f"the failed crawl of {order.url} cannot be kept", second)
        self._tell(Released(order))

    def _importance(self, url: str) -> float:
        return self.engine.beliefs(url, self.clock()).request_rate if url in self.engine else 0.0

    def _release(self, order: Order, gap: float = 0.0) -> None:
        self.engine.release(order, self.clock(), gap)
        self._tell(Released(order))

    @staticmethod
    def _complain(message: str, error: BaseException) -> None:
        """Let everybody see a fault that must not stop the crawl."""
        asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})

    async def _carry_out(self, order: Order) -> None:
        if not self._keeper.room.for_new_pages and order.url in self.engine and self._leave_out(order):
            return
        if order.url not in self.engine:  # it was removed meanwhile
            self._release(order)
            return
        before = self._keeper.state(order.url)
        fetched = await self._get(before)
        if isinstance(fetched, Later):
            self._release(order, fetched.gap)
            return
        if order.url not in self.engine:  # it was removed while it was fetched
            self._release(order)
            return
        self._pressure.hold(len(fetched.body))
        try:
            known = self.engine.kind(order.url) if self._kinds is not None else 0
            read = await self._reader.read(before, fetched, self.clock(), kind=known)
            await self._follow(before.page, fetched, read)
            verdict, loss = read.verdict, None
            if self._searching is not None:
                loss = await self._searching.judged(before, fetched, verdict, probe=order.probe)
            if self._costing is not None:
                verdict = await self._costing.judged(order, before, fetched, verdict, loss)
            verdict = await self._keeper.returned(before, verdict)
            if order.url not in self.engine:  # it was removed meanwhile
                self._release(order)
                return
            brings = verdict.outcome in (Outcome.NEW, Outcome.CHANGED) and verdict.reason != BACK
            if brings and not self._keeper.room.for_bodies:
                verdict = Verdict(Outcome.REFUSED, reason=STORE_FULL)
            rest = rest_after(fetched, read.links) if self._keeper.newcomers_of(order.url).compete else 0.0
            self._finish(order, before, fetched, verdict, read, rest)
        finally:
            self._pressure.release(len(fetched.body))
        if verdict.outcome is Outcome.MOVED and fetched.location and (finder := self.sources.finder(order.url)):
            self._keeper.welcome(finder.moved(before.page, fetched))

    async def _get(self, before: PageState) -> Fetched | Later:
        """Have its source get a thing."""
        url = before.page.url
        known = Known(await self._keeper.conditions(before), before.fetched, before.checked)
        source = self.sources.of(url)
        if source is None:
            return Fetched(url, self.clock(), 0.0, reason=NO_SOURCE, blame=Blame.NOBODY)
        got = await source.get(url, known)
        return got.failure if isinstance(got, Later) and got.failure is not None else got

    async def _follow(self, page: Page, fetched: Fetched, read: Read) -> None:
        """Take in what a thing leads to, some at a time.

        Before its crawl is queued: were that durable first, this would not be read again after a kill.
        """
        finder = self.sources.finder(page.url)
        if finder is not None and read.links is not None and read.met is not None:
            self._foretold.linked(self.engine.part_of(page.url), read.links, self.clock())
            for nth, some in enumerate(finder.follow(page, fetched, read.links, read.met)):
                if nth:
                    await asyncio.sleep(0)  # others have a turn
                self._keeper.welcome(some)
                self._foretold.found(self.engine.part_of(page.url), page, read.links, some, self.clock())
        source = self.sources.of(page.url)
        if source is None or not self._keeper.room.for_new_pages:
            return
        for piece in in_pieces(fetched.leads, len):
            led = []
            for key in self.sources.led(page.url, piece):
                if key not in self.engine:
                    led.append(key)
                else:  # it may have been gone, or no plain file
                    self.engine.looks_again(key, self.clock())
            pages = (Page(key, source.lane(key), fetched.started, depth=page.depth + 1) for key in led)
            self._keeper.welcome([each for each in pages if each.host not in self._never])
            await asyncio.sleep(0)

    async def _receive(self, fetched: Fetched) -> bool:
        """Take in what another process has got, as if it had been ordered; whether it was any news."""
        before = self._keeper.state(fetched.url)
        self._pressure.hold(len(fetched.body))
        try:
            read = await self._reader.read(before, fetched, self.clock(), kind=self.engine.kind(fetched.url))
            verdict = await self._keeper.returned(before, read.verdict)
            if fetched.url not in self.engine or not self._keeper.room.for_bodies:
                self.engine.charge(fetched.url, fetched.cost, self.clock())
                return False
            crawl = self.engine.receive(fetched, verdict, self.clock())
            if crawl is not None:
                self.sources.received(fetched)
                self._keeper.keep(before, crawl, fetched, verdict, read.noise)
                self._tell(Finished(crawl, ordered=False))
            return crawl is not None
        finally:
            self._pressure.release(len(fetched.body))

    def _leave_out(self, order: Order) -> bool:
        """Whether there is no room for what an order would bring: a first copy. Then the page is not asked for."""
        before = self._keeper.state(order.url)
        if before.fetched is None:
            unasked = Fetched(order.url, self.clock(), 0.0, reason=STORE_FULL)
            refused = Verdict(Outcome.REFUSED, reason=STORE_FULL)
            self._finish(order, before, unasked, refused, Read(refused, before.noise))
        return before.fetched is None

    def _finish(
        self,
        order: Order,
        before: PageState,
        fetched: Fetched,
        verdict: Verdict,
        read: Read,
        rest: float = 0.0,
    ) -> None:
        """Learn from a crawl, and keep what it leaves; its host rests at least for `rest`."""
        if not before.crawls:
            self._entering.tried(order, before.page, verdict)
        crawl = self.engine.finish(order, fetched, verdict, self.clock(), rest=rest)
        kind = read.kind or self.engine.kind(order.url)
        if (
            self._kinds is not None
            and verdict.outcome.refreshed
            and self.engine.part_of(order.url) is self.engine.first
        ):
            self._kinds.costs.learn(kind, fetched.cost, new=verdict.outcome is not Outcome.UNCHANGED)
        if read.kind:
            self.engine.tell_kind(order.url, kind, self.clock())
        if verdict.outcome.refreshed:
            self._dates.hear(self.engine, before, fetched, verdict, self.clock(), read.written, told=crawl.signals > 0)
            self._foretold.crawled(self.engine.part_of(order.url), order.url, kind, self.clock())
            self._grading.crawled(before, fetched, verdict)
        self._keeper.keep(before, crawl, fetched, verdict, read.noise)
        if self._keeper.full:
            self._write_now.set()
        self._tell(Finished(crawl))

    async def _keep_store(self) -> None:
        """Write batches, and take in pages that others added, until the end and all is written."""
        heard_all = False  # that was wished before the start: pages may be to leave
        while not self._settled.is_set():
            self._write_now.clear()
            self._grading.tick()
            self._counting.tick()
            await self._write()
            if await self._intake.take():
                self._write_now.set()
            else:
                heard_all = True
            await self._keeper.take_in()
            if heard_all:
                await self._entering.leave()
                await self._entering.enter()
            self._give_orders()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.write_every):
                    await self._write_now.wait()
        await self._grading.end()
        await self._write(alive=0.0)

    async def _write(self, alive: float | None = None) -> None:
        began = time.monotonic()
        handed = self._entering.handed
        if stored := await self._keeper.write(alive):
            self._counting.wrote(time.monotonic() - began)
            self._tell(Stored(stored))
        self._entering.settle(handed)
        if filled := await self._keeper.room.look():
            self._tell(filled)
        room = self._keeper.room
        for finder in self.sources.finders:
            finder.closed = not room.for_new_pages
        if self.engine.without_room and room.opened():
            while self.engine.room_again(self.clock(), PIECE, first_copies=room.for_new_pages):  # noqa: ASYNC110
                await asyncio.sleep(0)  # others have a turn

    def _restore_hosts(self) -> None:
        now = self.clock()
        for host in self.store.hosts():
            self.engine.lanes.restore(host, now)

    async def _settle(self) -> int:
        """Wait for what is under way, up to the grace time; give the rest back."""
        tasks = set(self._under_way)
        if not tasks:
            return 0
        _, late = await asyncio.wait(tasks, timeout=self.grace)
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return len(late)

    def _tell(self, event: Event) -> None:
        self._counting.hear(event)
        for listener in self.listeners:
            try:
                listener(event)
            except Exception as error:
                self._complain(f"a listener failed at {type(event).__name__}", error)

"""The loop, live: asyncio and the wall clock around the pure engine.

It takes the pages out of the store, asks the engine for orders at the pace of the budget, carries each out as a task of
its own, and writes what came of them in batches. A crawl is acknowledged (`Stored`) once its batch is durable.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from afresh.daemon.clock import SteadyClock
from afresh.daemon.discovery import Discovery
from afresh.daemon.events import Event, Finished, Listener, Ordered, Released, Started, Stopped, Stored
from afresh.daemon.permits import Permits
from afresh.detect import Detector
from afresh.engine import Engine
from afresh.errors import StoreError
from afresh.estimate import Calibration
from afresh.fetch import Fetcher
from afresh.frontier import put_off
from afresh.store import PageState, Record, Store
from afresh.types import Copy, Crawl, Fetched, Order, Outcome, Verdict, Wait

LONGEST_SLEEP = 0.5  # so that new evidence, a changed budget and the store's new pages are noticed soon


class Daemon:
    """Runs an engine against the world until it is told to stop.

    Invariants: a page is fetched by one task at a time; every record of a batch is durable before it is acknowledged;
    after `run` returns, nothing is under way and all that was finished is stored.
    """

    def __init__(
        self,
        *,
        engine: Engine,
        fetcher: Fetcher,
        store: Store,
        detector: Detector | None = None,
        permits: Permits | None = None,
        discovery: Discovery | None = None,
        clock: Callable[[], float] | None = None,
        concurrency: int = 64,
        grace: float = 10.0,
        write_every: float = 0.2,
        listeners: Sequence[Listener] = (),
    ) -> None:
        self.engine = engine
        self.fetcher = fetcher
        self.store = store
        self.detector = detector or Detector()
        self.permits = permits
        self.discovery = discovery
        self.clock = clock or SteadyClock()
        self.concurrency = concurrency
        self.grace = grace
        self.write_every = write_every
        self.listeners = list(listeners)
        self._stopping = asyncio.Event()
        self._settled = asyncio.Event()  # nothing is under way any more
        self._wake = asyncio.Event()
        self._under_way: dict[asyncio.Task[None], Order] = {}
        self._unwritten: list[Record] = []
        self._newest: dict[str, PageState] = {}  # states that are not durable yet
        self._last_page = 0
        self._alive = 0.0  # when a sign of life was last written

    def stop(self) -> None:
        """Give no more orders; let what is under way finish."""
        self._stopping.set()
        self._wake.set()

    async def run(self) -> None:
        """Crawl until `stop`; StoreError if the store can no longer be written."""
        self.store.claim()
        self._restore_hosts()
        self.engine.calibration = Calibration.read(self.store.get("calibration"))
        self._take_in_pages()
        self._tell(Started(len(self.engine)))
        keeper = asyncio.create_task(self._keep_store())
        try:
            while not self._stopping.is_set() and not keeper.done():
                await self._step()
        finally:
            released = await self._settle()
            self._settled.set()
            await keeper  # writes the rest, and raises what it could not write
        self._tell(Stopped(released))

    async def _step(self) -> None:
        """Give one order, or sleep until there may be one."""
        if len(self._under_way) >= self.concurrency:
            await self._sleep(LONGEST_SLEEP)
            return
        decision = self.engine.next(self.clock())
        if isinstance(decision, Wait):
            await self._sleep(min(decision.until - self.clock(), LONGEST_SLEEP))
            return
        self._tell(Ordered(decision))
        task = asyncio.create_task(self._carry_out(decision))
        self._under_way[task] = decision
        task.add_done_callback(self._carried_out)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, but no longer than until something happens."""
        self._wake.clear()
        if seconds > 0 and not self._stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), seconds)
        else:
            await asyncio.sleep(0)

    def _carried_out(self, task: asyncio.Task[None]) -> None:
        order = self._under_way.pop(task)
        self._wake.set()
        if task.cancelled():
            self._release(order)
        elif error := task.exception():
            # A fault of ours, not of the page's; still the host was asked, and must not be asked at once again.
            fetched = Fetched(order.url, self.clock(), 0.0, reason="fault")
            self.engine.finish(order, fetched, Verdict(Outcome.FAILED, reason="fault"), self.clock())
            self._tell(Released(order))
            self._complain(f"the crawl of {order.url} failed", error)

    def _release(self, order: Order, gap: float = 0.0) -> None:
        self.engine.release(order, self.clock(), gap)
        self._tell(Released(order))

    @staticmethod
    def _complain(message: str, error: BaseException) -> None:
        """Let everybody see a fault that must not stop the crawl."""
        asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})

    async def _carry_out(self, order: Order) -> None:
        before = self._newest.get(order.url) or self.store.state(order.url)
        if before is None:
            raise StoreError(f"The page {order.url} is not in the store any more.", hint="Was the file replaced?")
        fetched = await self._fetch(order, before)
        if fetched is None:
            return
        verdict = self.detector.compare(before.validators, fetched, order.host)
        crawl = self.engine.finish(order, fetched, verdict, self.clock())
        self._keep(before, crawl, fetched, verdict)
        if self.discovery is not None and crawl.outcome in (Outcome.NEW, Outcome.CHANGED):
            self.discovery.read(before.page, fetched)
        self._tell(Finished(crawl))

    async def _fetch(self, order: Order, before: PageState) -> Fetched | None:
        """The page, if robots.txt permits; None if the host's turn went to robots.txt instead."""
        if self.permits is None:
            return await self.fetcher.fetch(order.url, before.validators)
        if self.permits.must_ask(order.url, self.clock()):
            await self._ask_permission(order, self.permits)
            return None
        now = self.clock()
        if (closed := self.permits.closed_until(order.url, now)) is not None:
            self._release(order, max(closed - now, 0.0))
            return None
        if not self.permits.allowed(order.url, now):
            return Fetched(order.url, now, 0.0, reason="robots")
        return await self.fetcher.fetch(order.url, before.validators)

    async def _ask_permission(self, order: Order, permits: Permits) -> None:
        """Give the host's turn to its robots.txt; the host rests before it is asked for the page."""
        answer = await permits.ask(order.url, self.fetcher, self.clock)
        now = self.clock()
        delay = permits.crawl_delay(order.url, now)
        self.engine.hosts.wants(order.host, delay)
        closed = permits.closed_until(order.url, now)
        gap = self.engine.hosts.answered(
            order.host, failed=closed is not None, now=now, took=answer.took, retry_after=answer.retry_after
        )
        self._release(order, max(gap, delay or 0.0, (closed or now) - now))

    def _keep(self, before: PageState, crawl: Crawl, fetched: Fetched, verdict: Verdict) -> None:
        """Queue what the crawl leaves behind."""
        url, now = crawl.url, self.clock()
        after = replace(
            before,
            beliefs=self.engine.beliefs(url, now),
            signals=self.engine.signals(url),
            crawls=before.crawls + 1,
            changes=before.changes + (crawl.outcome is Outcome.CHANGED),
            failures=self.engine.failures(url),
            learned=self.engine.learned(url),
        )
        copy = None
        if crawl.outcome.refreshed:
            after = replace(after, checked=crawl.time)
            if fetched.status != 304:
                after = replace(after, fetched=crawl.time, validators=verdict.validators)
                copy = Copy(url, fetched.body, fetched.content_type, crawl.time, crawl.time, verdict.validators)
        self._newest[url] = after
        self._unwritten.append(Record(crawl, after, copy, self.engine.hosts.state(after.page.host)))

    async def _keep_store(self) -> None:
        """Write batches, and take in pages that others added, until the end and all is written."""
        while not self._settled.is_set():
            await self._write_batch()
            self._take_in_pages()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), self.write_every)
        await self._write_batch(alive=0.0)

    async def _write_batch(self, alive: float | None = None) -> None:
        """Make what is queued durable, with the price and a sign of life for those who look at the store."""
        batch, self._unwritten = self._unwritten, []
        found = self.discovery.take() if self.discovery is not None else []
        now = self.clock() if alive is None else alive
        values = {"budget": repr(self.engine.scheduler.budget), "alive": repr(now)}
        if self.engine.scheduler.price > 0:
            values["price"] = repr(self.engine.scheduler.price)
        if self.engine.calibration.brier is not None:
            values["calibration"] = self.engine.calibration.text()
        if found:
            # Before the crawls that found them: once those are durable, their links are not read again.
            await asyncio.to_thread(self.store.add, found)
        if batch:
            await asyncio.to_thread(self.store.write, batch)
            self._tell(Stored(tuple(record.crawl for record in batch if record.crawl)))
        if batch or alive is not None or now - self._alive >= 1.0:
            await asyncio.to_thread(self.store.put, values)
            self._alive = now
        for record in batch:
            if self._newest.get(record.state.page.url) is record.state:
                del self._newest[record.state.page.url]

    def _take_in_pages(self) -> None:
        now = self.clock()
        for number, state in self.store.states(after=self._last_page):
            self.engine.add(
                state.page,
                now,
                current=state.checked,
                signals=state.signals,
                failures=state.failures,
                not_before=self._not_before(state),
                learned=state.learned,
            )
            self._last_page = number
            if self.discovery is not None:
                self.discovery.know(state.page.url)
            self._wake.set()

    def _not_before(self, state: PageState) -> float:
        """Until when a page that failed before a restart is put off."""
        last = self.store.history(state.page.url, 1) if state.failures else []
        return last[0].time + put_off(last[0].outcome, state.failures) if last else 0.0

    def _restore_hosts(self) -> None:
        # A clock that was wrong when this was written must not rest a host for ever.
        latest = self.clock() + self.engine.hosts.politeness.longest_back_off
        for host in self.store.hosts():
            self.engine.hosts.restore(replace(host, ready=min(host.ready, latest)))
            self.engine.scheduler.host_rests(self.engine.hosts.number(host.host), min(host.ready, latest))

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
        for listener in self.listeners:
            try:
                listener(event)
            except Exception as error:
                self._complain(f"a listener failed at {type(event).__name__}", error)

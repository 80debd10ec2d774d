"""The live loop against the synthetic web, and against scripted answers where moments must be chosen."""

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable

import numpy as np
import pytest

from afresh.daemon import Daemon, Event, Finished, Ordered, Released, Stopped, Stored
from afresh.detect import Detector, Look
from afresh.engine import Engine
from afresh.errors import StoreError
from afresh.estimate import Activity, Calibration, Grid
from afresh.fetch import Http, Scripted
from afresh.frontier import Lanes, Politeness, host_of
from afresh.schedule import Scheduler
from afresh.sim.web import Server, Site, SiteOptions, read_mark
from afresh.sources.web import Permits, Web
from afresh.store import KeepVersions, Memory, Record
from afresh.types import BACK, Crawl, Fetched, HostState, Outcome, Page, Validators

NO_GAPS = Politeness(factor=0, shortest_gap=0, longest_gap=0)


MACHINES = {
    "exact": lambda budget: Scheduler.live(budget=budget),
    "many": lambda budget: Scheduler(budget=budget, lease=120.0),
}
kind = "exact"


@pytest.fixture(autouse=True, params=list(MACHINES))
def every_scheduler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "kind", request.param)


def engine(budget: float, politeness: Politeness = NO_GAPS) -> Engine:
    return Engine(scheduler=MACHINES[kind](budget), estimator=Grid(typical_rate=0.1), lanes=Lanes(politeness))


def pages(count: int) -> list[Page]:
    return [Page(f"http://h{number}.example/", f"h{number}.example") for number in range(count)]


def text(url: str, body: bytes = b"text") -> Fetched:
    return Fetched(url, time.time(), 0.001, status=200, body=body, content_type="text/plain")


def always() -> Scripted:
    return Scripted(lambda url, known: text(url))


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compile what the loop calls before any moment is measured."""
    machine = engine(1.0)
    machine.add(pages(1)[0], 0.0, current=0.0)
    machine.next(10.0)


class Scene:
    """A daemon with its events and the moments at which it gave orders."""

    def __init__(
        self, store: Memory, fetcher: Scripted | Http | Web, *, budget: float = 50.0, **options: float
    ) -> None:
        self.events: list[Event] = []
        self.ordered: list[float] = []
        self.early: list[Crawl] = []  # acknowledged before they were durable
        web = fetcher if isinstance(fetcher, Web) else Web(fetcher)
        self.daemon = Daemon(engine=engine(budget), sources=web, store=store, **options)  # type: ignore[arg-type]
        self.daemon.listeners.append(self.hear)

    def hear(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, Stored):
            self.early += [crawl for crawl in event.crawls if crawl not in self.daemon.store.history(crawl.url, 100)]
        if isinstance(event, Ordered):
            self.ordered.append(event.order.time)

    async def run(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self.daemon.stop)
        await self.daemon.run()

    async def run_until(self, reached: Callable[[], bool], seconds: float = 60.0) -> None:
        """Run until something is so, however slow the machine is."""
        running = asyncio.create_task(self.daemon.run())
        for _ in range(int(seconds / 0.05)):
            await asyncio.sleep(0.05)
            if reached() or running.done():
                break
        self.daemon.stop()
        await running


def test_copies_of_a_real_site_are_kept_whole_and_current() -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        site = Site(SiteOptions(pages=40, hosts=8, seed=3, day=5.0, processes="poisson"))
        server = Server(site, clock=lambda: loop.time() - began)
        await server.start()
        store = Memory()
        store.add(Page(url, host_of(url)) for url in server.urls())
        fetcher = Http(user_agent="afresh/test", allow_private=True)
        scene = Scene(store, fetcher, budget=60.0)
        counts = server.ledger.client("afresh/test").counts
        await scene.run_until(
            lambda: store.totals().copies == 40 and counts.not_modified > 20 and store.totals().changes > 5
        )
        await fetcher.close()
        await server.stop()
        copies = {url: copy.body for url in server.urls() if (copy := store.copy(url))}
        assert len(copies) == 40
        assert all(mark and mark.whole for mark in map(read_mark, copies.values()))
        # Lists of the site, such as its feeds, have turns of their own: the order of a page is given back for one.
        given_back = sum(isinstance(event, Released) for event in scene.events)
        assert counts.requests == len(scene.ordered) - given_back == store.totals().crawls
        assert counts.not_modified > 20
        assert store.totals().changes > 5
        assert server.ledger.score(copies, server.clock()).broken == 0

    asyncio.run(go())


@pytest.mark.parametrize("budget", [20.0, 100.0])
def test_the_budget_holds_in_every_second_and_is_spent(budget: float) -> None:
    store = Memory()
    store.add(pages(400))
    scene = Scene(store, always(), budget=budget)
    asyncio.run(scene.run(3.0))
    times = scene.ordered
    most = max(bisect_left(times, start + 1.0 - 1e-5) - index for index, start in enumerate(times))
    assert most <= budget, "within the microsecond that the pace forgives to rounding"
    # From the second order on: the first one may have waited for functions to be compiled.
    assert len(times) - 2 >= 0.8 * (times[-1] - times[1]) * budget


def test_what_is_finished_is_stored_before_the_end() -> None:
    store = Memory()
    store.add(pages(30))
    scene = Scene(store, always(), write_every=10.0)
    asyncio.run(scene.run(0.5))
    finished = [event.crawl for event in scene.events if isinstance(event, Finished)]
    stored = [crawl for event in scene.events if isinstance(event, Stored) for crawl in event.crawls]
    assert finished
    assert stored == finished
    assert not scene.early
    assert store.totals().crawls == len(finished)
    assert isinstance(scene.events[-1], Stopped)


class Slow(Scripted):
    """Answers after a while."""

    def __init__(self, seconds: float) -> None:
        super().__init__(always().answer)
        self.seconds = seconds
        self.at_once = self.most_at_once = 0

    async def fetch(self, url: str, known: Validators, *, beginning: int = 0) -> Fetched:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(self.seconds)
        self.at_once -= 1
        return await super().fetch(url, known)


def test_stopping_lets_fetches_finish_within_the_grace_time() -> None:
    store = Memory()
    store.add(pages(10))
    scene = Scene(store, Slow(0.4), grace=30.0)
    asyncio.run(scene.run_until(lambda: len(scene.ordered) == 10))
    assert scene.events[-1] == Stopped(0)
    assert store.totals().crawls == len(scene.ordered) == 10


def test_fetches_that_outlast_the_grace_time_go_back() -> None:
    store = Memory()
    store.add(pages(3))
    scene = Scene(store, Slow(60.0), grace=0.1)
    asyncio.run(scene.run_until(lambda: len(scene.ordered) == 3))
    assert scene.events[-1] == Stopped(3)
    assert store.totals().crawls == 0
    assert scene.daemon.engine.failures("http://h0.example/") == 0


def test_no_more_fetches_than_allowed_at_once() -> None:
    store = Memory()
    store.add(pages(50))
    slow = Slow(0.1)
    scene = Scene(store, slow, budget=400.0, concurrency=5)
    began = time.monotonic()
    asyncio.run(scene.run_until(lambda: len(slow.asked) >= 20))
    assert len(slow.asked) <= 5 * (1 + (time.monotonic() - began) / 0.1)
    assert slow.most_at_once == 5


class Passes(Scripted):
    """Answers after so many passes of the event loop, without waiting for anything."""

    def __init__(self, passes: int) -> None:
        super().__init__(always().answer)
        self.passes = passes
        self.at_once: list[int] = [0]

    async def fetch(self, url: str, known: Validators, *, beginning: int = 0) -> Fetched:
        self.at_once.append(self.at_once[-1] + 1)
        for _ in range(self.passes):
            await asyncio.sleep(0)
        self.at_once.append(self.at_once[-1] - 1)
        return await super().fetch(url, known)


def test_few_fetches_are_under_way_when_it_is_not_the_network_that_takes_time() -> None:
    """Time in our own queue would count as the hosts' own, and make them rest for ten times as long."""
    store = Memory()
    store.add(pages(200))
    busy = Passes(3)
    scene = Scene(store, busy, budget=1e5, concurrency=256)
    asyncio.run(scene.run_until(lambda: len(busy.asked) >= 200))
    assert max(busy.at_once) <= 4 * (3 + 2), "of 256 that might be"


def test_as_many_fetches_as_allowed_are_under_way_when_it_is_the_network_that_takes_time() -> None:
    store = Memory()
    store.add(pages(200))
    slow = Slow(0.3)
    scene = Scene(store, slow, budget=1e5, concurrency=150)
    asyncio.run(scene.run_until(lambda: len(slow.asked) >= 200))
    assert slow.most_at_once == 150


def test_hosts_are_asked_when_they_have_rested_and_soon_after() -> None:
    store = Memory()
    store.add(pages(30))
    scene = Scene(store, always(), budget=1e5)
    hosts = scene.daemon.engine.lanes = Lanes(Politeness(factor=0, shortest_gap=0.2, longest_gap=0.2))
    late: list[float] = []

    def hear(event: Event) -> None:
        if isinstance(event, Ordered) and hosts.state(event.order.host).ready:
            late.append(event.order.time - hosts.state(event.order.host).ready)

    scene.daemon.listeners.append(hear)
    asyncio.run(scene.run_until(lambda: len(late) >= 200))
    late.sort()
    assert late[0] >= -1e-6
    assert late[len(late) // 2] < 0.1, "within half a gap, also on a busy machine"


def test_pages_added_while_it_runs_are_taken_in() -> None:
    async def go() -> None:
        store = Memory()
        store.add(pages(1))
        scene = Scene(store, always(), write_every=0.05)
        running = asyncio.create_task(scene.run_until(lambda: store.totals().copies == 5))
        await asyncio.sleep(0.2)
        store.add(pages(5))
        await running
        assert store.totals().copies == 5

    asyncio.run(go())


def test_a_restart_resumes_with_copies_beliefs_and_resting_hosts() -> None:
    store = Memory()
    store.add(pages(3))
    first = Scene(store, always())
    asyncio.run(first.run_until(lambda: len(first.ordered) > 10))
    before = store.state("http://h1.example/")
    assert before is not None
    assert before.beliefs is not None
    crawls = store.totals().crawls
    checked = Calibration.from_text(store.get("calibration")).statements
    resting = HostState("h0.example", ready=4e9, failures=2)
    store.write([Record(None, before, None, resting)])
    again = Scene(store, always())
    asyncio.run(again.run_until(lambda: len(again.ordered) > 10))
    assert store.totals().crawls > crawls
    finished = [event.crawl for event in again.events if isinstance(event, Finished)]
    assert all(crawl.outcome is Outcome.UNCHANGED for crawl in finished)
    assert "http://h0.example/" not in {crawl.url for crawl in finished}
    after = store.state("http://h1.example/")
    assert after is not None
    assert after.beliefs is not None
    assert after.beliefs.observations > before.beliefs.observations
    asyncio.run(again.daemon.overview.renew())
    stated = again.daemon.overview.stated
    assert stated is not None
    assert stated.pages == 3
    assert 0 < stated.share < 1
    assert Calibration.from_text(store.get("calibration")).statements > checked > 0


def test_what_is_known_of_whole_sites_survives_a_restart() -> None:
    def broken(url: str, known: object) -> Fetched:  # which teaches nothing
        return Fetched(url, time.time(), 0.001, status=500)

    def run(fetcher: Scripted, orders: int) -> Activity:
        scene = Scene(store, fetcher)
        scene.daemon.engine.activity = Activity(width=0.5)
        asyncio.run(scene.run_until(lambda: len(scene.ordered) >= orders))
        assert scene.daemon.engine.activity is not None
        return scene.daemon.engine.activity

    store = Memory()
    store.add(Page(f"http://h{number}.example/docs/", f"h{number}.example") for number in range(20))
    first = run(Scripted(lambda url, known: text(url, repr(time.monotonic()).encode())), orders=60)
    again = run(Scripted(broken), orders=5)
    assert first.found.sum() > 1.0
    for number in range(20):
        for name in (f"h{number}.example", f"h{number}.example/docs"):
            (one,), (two,) = first.branches((name,)), again.branches((name,))
            np.testing.assert_allclose(again.found[two], first.found[one], rtol=1e-6)
            assert again.usual[two] == first.usual[one]


def test_pages_that_an_engine_has_before_it_runs_keep_their_branches() -> None:
    store = Memory()
    store.add(pages(40))
    first = Scene(store, always())
    first.daemon.engine.activity = Activity(width=0.5)
    asyncio.run(first.run_until(lambda: len(first.ordered) >= 60))
    second = Scene(store, always())
    second.daemon.engine.activity = before = Activity(width=0.5)
    for page in reversed(pages(40)):
        second.daemon.engine.add(page, time.time())
    asyncio.run(second.run_until(lambda: len(second.ordered) >= 60))
    assert second.daemon.engine.activity is before


class Full(Memory):
    """A store whose disk fills up."""

    def write(self, records: object, **more: object) -> int:
        raise StoreError("The disk is full.", hint="Make room.")


def test_a_store_that_cannot_be_written_stops_the_daemon_with_the_reason() -> None:
    store = Full()
    store.add(pages(3))
    with pytest.raises(StoreError, match="disk is full"):
        asyncio.run(Scene(store, always()).run(5.0))


def test_a_failed_fetch_never_replaces_a_copy() -> None:
    answers = iter([b"first", b""])

    def answer(url: str, known: Validators) -> Fetched:
        body = next(answers, b"")
        if body:
            return text(url, body)
        return Fetched(url, time.time(), 0.001, body=b"fir", reason="truncated")

    store = Memory()
    store.add(pages(1))
    scene = Scene(store, Scripted(answer))
    asyncio.run(scene.run_until(lambda: store.totals().crawls == 2))
    copy = store.copy("http://h0.example/")
    assert copy is not None
    assert copy.body == b"first"
    assert [crawl.outcome for crawl in store.history("http://h0.example/")] == [Outcome.FAILED, Outcome.NEW]


def test_a_page_that_is_back_as_it_was_has_changed_and_keeps_its_copy() -> None:
    """Who dropped it when it was gone had never heard of it again."""
    url = "http://h0.example/"

    async def go(store: Memory) -> Memory:
        now = [200, b"text"]

        def answer(url: str, known: Validators) -> Fetched:
            status, body = now
            return Fetched(url, time.time(), 0.001, status=status, body=body, content_type="text/plain")  # type: ignore[arg-type]

        daemon = Daemon(engine=engine(50.0), sources=Web(Scripted(answer)), store=store)
        running = asyncio.create_task(daemon.run())

        async def found(status: int, body: bytes, outcome: Outcome) -> None:
            """The page answers so from now on, is asked once more, and this comes of it."""
            now[:] = [status, body]
            began = time.time()
            async with asyncio.timeout(30.0):
                while not any(each.time >= began and each.outcome is outcome for each in store.history(url, 99)):
                    if url in daemon.engine:
                        daemon.engine.looks_again(url, daemon.clock())
                        daemon.engine.crawl_now(url, daemon.clock())
                    await asyncio.sleep(0.02)

        await found(200, b"text", Outcome.NEW)
        await found(404, b"", Outcome.GONE)
        await found(200, b"text", Outcome.CHANGED)
        await found(200, b"text", Outcome.UNCHANGED)  # and that once
        await found(410, b"", Outcome.GONE)
        await found(500, b"", Outcome.FAILED)  # decides nothing
        await found(304, b"", Outcome.CHANGED)
        daemon.stop()
        await running
        return store

    store = Memory()
    store.keep_versions = KeepVersions(count=9)
    store.add(pages(1))
    asyncio.run(go(store))
    changes = [(crawl.outcome, crawl.reason) for _, crawl in store.changes()]
    gone, back = [(Outcome.GONE, f"status_{status}") for status in (404, 410)], (Outcome.CHANGED, BACK)
    assert changes == [(Outcome.NEW, ""), gone[0], back, gone[1], back]
    assert [each.number for each in store.versions(url)] == [1], "the same content is no second version"
    kept = store.copy(url)
    assert kept is not None
    assert kept.body == b"text"
    assert store.totals().changes == 2


def failing(url: str, known: Validators) -> Fetched:
    return Fetched(url, time.time(), 0.001, status=404)


def test_a_runner_says_of_a_gone_page_that_it_is_not_fresh_also_after_a_restart() -> None:
    asked: list[str] = []

    def answer(url: str, known: Validators) -> Fetched:
        asked.append(url)
        return failing(url, known) if url == "http://h0.example/" and asked.count(url) > 1 else text(url, b"here")

    def said(scene: Scene) -> object:
        return scene.daemon.questions["fresh"](
            {"urls": ["http://h0.example/", "http://h1.example/", "http://no.example/"]}
        )

    store = Memory()
    store.add(pages(2))
    scene = Scene(store, Scripted(answer))
    asyncio.run(scene.run_until(lambda: bool(store.failing())))
    again = Scene(store, Scripted(answer))
    asyncio.run(again.run(0.2))
    for each in (said(scene), said(again)):
        assert isinstance(each, list)
        assert each[0] == 0.0
        assert each[1] > 0.0
        assert each[2] is None


def test_a_page_that_was_put_off_stays_so_after_a_restart() -> None:
    store = Memory()
    store.add(pages(1))
    for _ in range(2):
        fetcher = Scripted(failing)
        scene = Scene(store, fetcher)
        asyncio.run(scene.run_until(lambda: store.totals().crawls == 1, seconds=1.0))
    assert store.totals().crawls == 1


def test_a_fault_of_ours_puts_the_page_off_and_rests_the_host() -> None:
    class Broken(Detector):
        def look(self, known: Validators, fetched: Fetched, host: str = "", **others: object) -> Look:
            raise RuntimeError("broken")

    async def go() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context["message"]))
        store = Memory()
        store.add(pages(1))
        fetcher = always()
        scene = Scene(store, fetcher, detector=Broken())  # type: ignore[arg-type]
        await scene.run(0.5)
        assert len(fetcher.asked) == 1
        assert scene.daemon.engine.failures("http://h0.example/") == 1
        assert [crawl.reason for crawl in store.history("http://h0.example/")] == ["fault"], "it is in the history"

    complaints: list[str] = []
    asyncio.run(go())
    assert complaints == ["the crawl of http://h0.example/ failed"]


def test_a_fault_that_cannot_even_be_noted_stops_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("broken for good")

    store = Memory()
    store.add(pages(3))
    scene = Scene(store, always())
    monkeypatch.setattr(scene.daemon.engine, "finish", broken)
    with pytest.raises(RuntimeError, match="broken for good"):
        asyncio.run(scene.run(20.0))


def test_a_listener_cannot_change_the_flow() -> None:
    def unruly(event: Event) -> None:
        raise RuntimeError("no")

    async def go() -> int:
        complaints = 0

        def count(loop: object, context: object) -> None:
            nonlocal complaints
            complaints += 1

        asyncio.get_running_loop().set_exception_handler(count)
        scene.daemon.listeners.insert(0, unruly)
        await scene.run_until(lambda: store.totals().crawls >= 5)
        return complaints

    store = Memory()
    store.add(pages(5))
    scene = Scene(store, always())
    assert asyncio.run(go()) > 10
    assert store.totals().copies == 5


def test_a_host_whose_robots_cannot_be_had_is_left_alone_and_nothing_is_refused() -> None:
    """A passing failure of robots.txt must not put the pages off for a day."""

    def answer(url: str, known: Validators) -> Fetched:
        if url.endswith("/robots.txt"):
            return Fetched(url, time.time(), 0.001, reason="dns")
        return text(url)

    store = Memory()
    store.add(pages(1))
    fetcher = Scripted(answer)
    scene = Scene(store, Web(fetcher, permits=Permits("afresh")))
    asyncio.run(scene.run(1.0))
    assert fetcher.asked == ["http://h0.example/robots.txt"]
    assert [(crawl.outcome, crawl.reason) for crawl in store.history(pages(1)[0].url)] == [(Outcome.FAILED, "dns")]
    assert scene.daemon.engine.explain("http://h0.example/", time.time()).held_by == "host resting"
    assert scene.daemon.engine.lanes.state("h0.example").failures == 1

"""Searches beside a live crawl: the index follows, queries are learned, quality is measured, and it may steer."""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from afresh.daemon import Daemon
from afresh.daemon.searching import Searching
from afresh.engine import Engine
from afresh.estimate import Learner
from afresh.fetch import Scripted
from afresh.frontier import Lanes, Politeness
from afresh.index import FullText, Search, check
from afresh.mirror.costs import COSTS
from afresh.mirror.scheduler import ByCosts
from afresh.schedule import Scheduler, Schedules
from afresh.store import PageState, Sqlite
from afresh.types import Copy, Fetched, Outcome, Page, Verdict

NO_GAPS = Politeness(factor=0, shortest_gap=0, longest_gap=0)
PAGES = 40


@dataclass
class Site:
    """Pages of which the first ten are about ferries, and change what they say of them."""

    versions: dict[str, int] = field(default_factory=dict)

    @property
    def urls(self) -> list[str]:
        return [f"http://h{nth}.example/" for nth in range(PAGES)]

    def body(self, url: str) -> bytes:
        nth, version = self.urls.index(url), self.versions.get(url, 0)
        rng = random.Random(f"{nth} {version}")
        about = "ferry " * rng.randint(1, 9) if nth < 10 else "tram "
        others = " ".join(f"w{rng.randint(0, 200)}" for _ in range(40))
        return f"<title>Page {nth}</title><p>{about}{others}".encode()

    def get(self, url: str) -> Fetched:
        now = time.time()
        self.versions[url] = int(now / 1.5 + 0.1 * self.urls.index(url))
        return Fetched(url, now, 0.001, 200, self.body(url), "text/html")


async def crawl(
    store: Sqlite,
    site: Site,
    until: Callable[[Daemon], bool],
    *,
    steers: bool = False,
    scheduler: Schedules | None = None,
    seconds: float = 90.0,
) -> Daemon:
    index = FullText()
    store.accompany(index)

    async def get(url: str, *_: object, **__: object) -> Fetched:
        return site.get(url)

    engine = Engine(
        scheduler=Scheduler.live(budget=40.0) if scheduler is None else scheduler,
        estimator=Learner(typical_rate=1.0),
        lanes=Lanes(NO_GAPS),
    )
    daemon = Daemon(
        engine=engine,
        fetcher=Scripted(lambda url, *_: site.get(url)),
        store=store,
        cost=COSTS["query-quality"],
        searching=lambda made: Searching(
            store=store,
            index=index,
            engine=made.engine,
            clock=made.clock,
            copy=made.copy,
            steers=steers,
            steer_every=0.5,
        ),
    )
    running, end = asyncio.create_task(daemon.run()), time.monotonic() + seconds
    while not running.done() and time.monotonic() < end and not until(daemon):  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    daemon.stop()
    await running
    return daemon


def enough(daemon: Daemon, crawls: int, queries: int = 1) -> bool:
    """Whether so many crawls have judged the answers to so many queries."""
    followed = searching_of(daemon)
    if len(followed.quality.rankings) < queries:
        followed.measured.crawls = 0
    return followed.measured.crawls > crawls


def searching_of(daemon: Daemon) -> Searching:
    assert daemon._searching is not None
    return daemon._searching


def test_a_crawl_keeps_the_index_and_learns_what_stale_copies_cost(tmp_path: Path) -> None:
    site = Site()
    with Sqlite(tmp_path / "afresh.db") as store:
        store.add(Page(url, url[7:-1]) for url in site.urls)
        store.accompany(FullText())
        store.companion = None
        with Search(store.path) as search:
            for _ in range(5):
                search.search("ferry")
            search.search("w1 OR w2")
            search.tell()
            daemon = asyncio.run(crawl(store, site, lambda made: enough(made, 150, queries=2)))
            followed = searching_of(daemon)
            assert followed.asked.frequent(time.time())["ferry"] > 0.8
            said = followed.summary()
            assert said["queries"] == 2
            assert 0.3 < said["quality"]["rbo"]["mean"] < 1.0
            assert 0.0 < said["quality"]["rbo"]["error"] < 0.3
            ferries, others = (
                np.mean([followed.quality.weight(url) for url in some]) for some in (site.urls[:10], site.urls[10:])
            )
            assert ferries > 2 * others
            kept = search.search("ferry", fresh=0.0)
            assert kept.kept
            assert {each.url for each in kept.results} <= set(site.urls[:10])
            began = time.perf_counter()
            for _ in range(1000):
                search.search("ferry", fresh=0.0)
            assert (time.perf_counter() - began) / 1000 < 0.002
        assert not list(check.problems(store, FullText()))
        assert not check.sound_inside(store, FullText())

        def recalled(made: Daemon) -> bool:
            return len(searching_of(made).quality.rankings) == 2

        again = searching_of(asyncio.run(crawl(store, site, recalled)))
        assert again.asked.frequent(time.time())["ferry"] > 0.8
        assert again.quality.weight(site.urls[0]) > 0.0


def test_quality_steers(tmp_path: Path) -> None:
    """Pages that searches find are refreshed more often than others that change as often, until nobody wants that."""
    site = Site()
    with Sqlite(tmp_path / "afresh.db") as store:
        store.add(Page(url, url[7:-1]) for url in site.urls)
        store.accompany(FullText())
        store.companion = None
        with Search(store.path) as search:
            for _ in range(20):
                search.search("ferry")
        daemon = asyncio.run(crawl(store, site, lambda made: enough(made, 300), steers=True))
        weights = daemon.engine.estimator.asking.wanted["importance"]  # type: ignore[attr-defined]
        assert weights[:PAGES].min() > 0.0
        crawls = {state.page.url: state.crawls for _, state in store.states()}
        ferries, others = (np.mean([crawls[url] for url in some]) for some in (site.urls[:10], site.urls[10:]))
        assert ferries > 1.5 * others


def test_the_mirror_learns_from_the_quality_of_answers(tmp_path: Path) -> None:
    site = Site()
    with Sqlite(tmp_path / "afresh.db") as store:
        store.add(Page(url, url[7:-1]) for url in site.urls)
        store.accompany(FullText())
        with Search(store.path) as search:
            search.search("ferry")
        mirror = ByCosts(budget=100.0, rng=np.random.default_rng(1), epsilon=0.2, cost="query-quality")

        def learned(made: Daemon) -> bool:
            return bool(np.nanmax(mirror.timetable.rows["cost"], initial=0.0) > 0.0)

        daemon = asyncio.run(crawl(store, site, lambda made: enough(made, 200) and learned(made), scheduler=mirror))
        costs = {url: float(mirror.timetable.rows[daemon.engine.names.slot(url)]["cost"]) for url in site.urls}
        assert max(costs[url] for url in site.urls[:10]) > 0.0
        assert max(costs[url] for url in site.urls[10:]) == 0.0


def test_a_report_of_ones_own_takes_the_place_of_searches(tmp_path: Path) -> None:
    """How many pages are about trams: each change of that moves the report by a tenth."""

    def report(url: str, old: Copy | None, new: Copy | None) -> float:
        return 0.1 * abs((old is not None and b"tram" in old.body) - (new is not None and b"tram" in new.body))

    url = "http://h0.example/"
    with Sqlite(tmp_path / "afresh.db") as store:
        store.accompany(index := FullText())
        engine = Engine(scheduler=Scheduler.live(budget=1.0), estimator=Learner(typical_rate=1.0))
        old = Copy(url, b"ferry", "text/plain", 0.0, 0.0)
        searching = Searching(
            store=store, index=index, engine=engine, clock=lambda: 100.0, copy=lambda _: old, report=report
        )
        before = PageState(Page(url, "h0.example"), fetched=0.0, checked=0.0)

        async def judge(body: bytes, outcome: Outcome = Outcome.CHANGED) -> float | None:
            return await searching.judged(before, Fetched(url, 50.0, 0.1, 200, body), Verdict(outcome))

        async def play() -> list[float | None]:
            found = [await judge(b"tram"), await judge(b"boat"), await judge(b"", Outcome.UNCHANGED)]
            found.append(await judge(b"", Outcome.FAILED))
            await searching.close()
            return found

        assert asyncio.run(play()) == [0.1, 0.0, 0.0, None]
        assert searching.measured.crawls == 3

"""Between the loop and the store: what is remembered is what is or will be stored, and in which order it is stored."""

import asyncio
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.daemon import Daemon, keeping
from afresh.daemon.keeping import Keeper
from afresh.detect import compare
from afresh.engine import Engine
from afresh.errors import StoreError
from afresh.estimate import Grid
from afresh.fetch import Scripted
from afresh.frontier import Lanes, Politeness, Scope
from afresh.schedule import Scheduler
from afresh.sources.web import Discovery, Web
from afresh.store import Memory, PageState, Record
from afresh.types import BACK, Copy, Crawl, Fetched, Order, Outcome, Page, Validators, Verdict

PAGES = [Page(f"http://h{number}.example/", f"h{number}.example") for number in range(6)]
MOVES = st.lists(
    st.tuples(st.sampled_from(["crawl", "crawl", "write", "write slowly", "take in", "find"]), st.integers(0, 5))
)
NO_GAPS = Politeness(factor=0, shortest_gap=0, longest_gap=0)


class Scene:
    """A keeper on a store in memory, with the newest state of every page beside it, kept in the plainest way."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.store = Memory()
        self.engine = Engine(scheduler=Scheduler.live(budget=1.0), estimator=Grid())
        self.keeper = Keeper(store=self.store, engine=self.engine, clock=lambda: self.now)
        self.newest: dict[str, PageState] = {}
        self.store.add(PAGES[:4])

    def crawl(self, page: Page) -> None:
        if page.url not in self.engine:
            return
        self.now += 1.0
        before = self.keeper.state(page.url)
        fetched = Fetched(page.url, self.now, 0.1, status=200, body=b"%d" % self.now, content_type="text/plain")
        verdict = compare(before.validators, fetched)
        slot = self.engine.names.slot(page.url)
        order = self.engine._out[slot] = Order(slot, page.url, page.host, self.now)
        crawl = self.engine.finish(order, fetched, verdict, self.now)
        self.keeper.keep(before, crawl, fetched, verdict)
        copy = self.keeper.copy(page.url)
        assert copy is not None
        assert copy.body == fetched.body
        changes = before.changes + (crawl.outcome is Outcome.CHANGED)
        self.newest[page.url] = PageState(
            page,
            self.engine.beliefs(page.url, self.now),
            verdict.validators,
            self.now,
            self.now,
            crawls=before.crawls + 1,
            changes=changes,
            learned=self.engine.learned(page.url),
        )

    def check(self) -> None:
        for page in PAGES:
            if page.url in self.newest:
                newest = self.newest[page.url]
                assert self.keeper.state(page.url) == newest
                assert self.store.state(page.url) == newest or self.keeper._newest[page.url] == newest
            elif page.url in self.engine:
                assert self.keeper.state(page.url) == PageState(page)


@settings(deadline=None)
@given(MOVES)
def test_the_newest_state_is_known_whatever_of_it_is_durable(moves: list[tuple[str, int]]) -> None:
    async def go() -> None:
        scene = Scene()
        await scene.keeper.take_in()
        for move, number in moves:
            if move == "crawl":
                scene.crawl(PAGES[number])
            elif move == "find":
                scene.store.add([PAGES[number]])
            elif move == "take in":
                await scene.keeper.take_in()
            elif move == "write slowly":
                writing = asyncio.create_task(scene.keeper.write())
                await asyncio.sleep(0)
                scene.crawl(PAGES[number])
                await writing
            else:
                await scene.keeper.write()
                assert not scene.keeper._newest, "nothing is remembered for ever"
                assert not scene.keeper._copies
                assert {url: scene.store.state(url) for url in scene.newest} == scene.newest
            scene.check()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keeping, "RECENT", 2)
        asyncio.run(go())


class Watched(Memory):
    """A store that knows in which order it was written, and who else adds to it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_for_states = 0
        self.known: set[str] = set()
        self.crawled: list[str] = []

    def add(self, pages: Iterable[Page]) -> int:
        added = list(pages)
        self.known |= {page.url for page in added}
        return super().add(added)

    def write(self, records: Iterable[Record], **more: Any) -> int:
        batch = list(records)
        for record in batch:
            number = int(record.state.page.url.rpartition("/")[2])
            assert {f"http://e.example/{link}" for link in links_of(number)} <= self.known, "found pages come first"
            self.crawled.append(record.state.page.url)
        return super().write(batch, **more)

    def state(self, url: str) -> PageState | None:
        self.asked_for_states += 1
        return super().state(url)


def links_of(number: int) -> range:
    return range(min(2 * number, 300), min(2 * number + 2, 300))


def answer(url: str, known: Validators) -> Fetched:
    body = "".join(f"<a href=/{link}>x</a>" for link in links_of(int(url.rpartition("/")[2])))
    return Fetched(url, time.time(), 0.001, status=200, body=body.encode(), content_type="text/html")


def run(store: Watched, enough: int) -> list[str]:
    """Crawl until so many fetches were made; their addresses."""

    async def go() -> list[str]:
        engine = Engine(scheduler=Scheduler.live(budget=1e5), estimator=Grid(), lanes=Lanes(NO_GAPS))
        fetcher = Scripted(answer)
        daemon = Daemon(engine=engine, sources=Web(fetcher, discovery=Discovery(Scope())), store=store)
        daemon.listeners.append(lambda event: daemon.stop() if len(fetcher.asked) >= enough else None)
        await daemon.run()
        assert not daemon._keeper._newest, "nothing is remembered for ever"
        return fetcher.asked

    return asyncio.run(go())


def test_found_pages_are_crawled_at_once_and_stored_before_the_crawl_that_found_them() -> None:
    store = Watched()
    store.add([Page("http://e.example/1", "e.example")])
    asked = run(store, 299)
    assert len(set(asked)) == len(asked) >= 299, "no page is refreshed while new ones are known"
    assert store.totals().copies == len(asked)
    assert store.asked_for_states == 0, "all that is needed of a page just found is in memory"


def test_a_run_that_goes_on_finds_the_rest() -> None:
    store = Watched()
    store.add([Page("http://e.example/1", "e.example")])
    first = run(store, 100)
    second = run(store, 199)
    assert len({*first, *second}) >= 299


def test_a_page_that_is_gone_from_the_store_is_a_clear_error() -> None:
    scene = Scene()
    with pytest.raises(StoreError, match="not in the store any more"):
        scene.keeper.state("http://nowhere.example/")


def test_whether_a_page_is_back_is_looked_up_away_from_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The history of a page that failed before may take a while to read."""
    scene, threads = Scene(), list[threading.Thread]()
    page, gone = PAGES[0], Crawl(PAGES[0].url, 1001.0, Outcome.GONE)
    before = PageState(page, fetched=1000.0, checked=1000.0, crawls=2, failures=1)
    first = Record(Crawl(page.url, 1000.0, Outcome.NEW), before, Copy(page.url, b"text", "text/plain", 1000.0, 1000.0))
    scene.store.write([first, Record(gone, before)])
    read = scene.store.history

    def history(url: str, limit: int = 20) -> list[Crawl]:
        threads.append(threading.current_thread())
        return read(url, limit)

    monkeypatch.setattr(scene.store, "history", history)
    same = Verdict(Outcome.UNCHANGED)
    back = asyncio.run(scene.keeper.returned(before, same))
    assert (back.outcome, back.reason) == (Outcome.CHANGED, BACK)
    assert asyncio.run(scene.keeper.returned(replace(before, failures=0), same)) is same
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()

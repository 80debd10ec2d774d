"""Pages that wait come in through a small door: no host has it for itself, and what is worth little makes room."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from afresh.daemon.entering import Entering
from afresh.daemon.intake import Intake
from afresh.daemon.keeping import Keeper
from afresh.engine import Engine
from afresh.estimate import Grid
from afresh.fetch import Scripted
from afresh.frontier import Lanes, Politeness, Scope, Traps, host_of
from afresh.schedule import Greedy, Plain
from afresh.sources import Sources
from afresh.sources.web import Discovery, Web
from afresh.sources.web.backlog import MIN_MEMORY, Backlog
from afresh.store import PageState, Sqlite
from afresh.store.messages import packed
from afresh.types import Fetched, Importance, Order, Outcome, Page, Validators, Verdict

START = "http://start.example/"
KNOWN = Validators(fingerprint=1)


class Scene:
    """A runner's memory, its store, and what waits, in made-up time; each `with` is a process of its own."""

    def __init__(self, folder: Path, max_kept: int | None) -> None:
        self.now = 1000.0
        self.store = Sqlite(folder / "s.db")
        self.backlog = Backlog(folder / "found", memory=MIN_MEMORY, name="one", numbers=self.store.numbers)
        self.discovery = Discovery(Scope(traps=Traps(pages_per_host=10_000)), backlog=self.backlog)
        politeness = Politeness(factor=0, shortest_gap=0, longest_gap=0)
        self.engine = Engine(scheduler=Plain(Greedy(), budget=10.0), estimator=Grid(), lanes=Lanes(politeness))
        sources = Sources([Web(Scripted(lambda url, now: Fetched(url, now, 0.1)), discovery=self.discovery)])
        shared: dict[str, Any] = {"store": self.store, "engine": self.engine, "clock": lambda: self.now}
        self.keeper = Keeper(sources=sources, **shared)
        self.entering = Entering(
            engine=self.engine,
            keeper=self.keeper,
            sources=sources,
            clock=lambda: self.now,
            wake=lambda: None,
            max_kept=max_kept,
        )
        self.intake = Intake(keeper=self.keeper, **shared)

    def __enter__(self) -> "Scene":
        asyncio.run(self.keeper.take_in())
        self.entering.look()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run(self.keeper.write())
        self.entering.settle(self.entering.handed)
        self.backlog.close()
        self.store.close()

    def found(self, urls: list[str], depth: int = 0) -> None:
        """A page has links: what is new goes on, or waits."""
        body = "".join(f'<a href="{url}">x</a>' for url in urls).encode()
        fetched = Fetched(START, self.now, 0.1, status=200, body=body, content_type="text/html")
        self.keeper.welcome(self.discovery.read(Page(START, host_of(START), depth=depth), fetched))

    def turn(self) -> None:
        """What the runner does again and again."""

        async def go() -> None:
            await self.keeper.write()
            await self.intake.take()
            await self.keeper.take_in()
            await self.entering.leave()
            await self.entering.enter()

        self.now += 1.1
        asyncio.run(go())

    def crawled(self, chosen: Callable[[Page], bool], outcome: Outcome = Outcome.NEW, *, again: bool = False) -> None:
        """First crawls of those pages that are in and were not tried; or further ones."""
        asyncio.run(self.keeper.write())
        for state in self.states():
            if (state.crawls and not again) or not chosen(state.page):
                continue
            url = state.page.url
            verdict = Verdict(outcome, 1.0, KNOWN if outcome.refreshed else Validators())
            fetched = Fetched(url, self.now, 0.1, status=200, body=b"x", content_type="text/plain")
            slot = self.engine.names.slot(url)
            order = self.engine._out[slot] = Order(slot, url, state.page.host, self.now, 1.0)
            if not state.crawls:
                self.entering.tried(order, state.page, verdict)
            self.keeper.keep(state, self.engine.finish(order, fetched, verdict, self.now), fetched, verdict)
        asyncio.run(self.keeper.write())

    def states(self) -> list[PageState]:
        return [state for _, state in self.store.states() if state.page.url in self.engine]

    def untried(self) -> Counter[str]:
        asyncio.run(self.keeper.write())
        return Counter(state.page.host for state in self.states() if not state.crawls)


def test_no_host_has_more_than_a_quarter_of_the_places_also_after_restarts(tmp_path: Path) -> None:
    trap = [f"http://trap.example/{nth}" for nth in range(400)]
    good = [f"http://h{host}.example/{nth}" for host in range(3) for nth in range(200)]
    with Scene(tmp_path, 2_000) as scene:
        scene.found(trap)
        for _ in range(3):
            scene.turn()
        assert scene.untried() == {"trap.example": 25}
        scene.found(good)
        scene.turn()
        assert set(scene.untried().values()) == {25}
    for _ in range(3):
        with Scene(tmp_path, 2_000) as scene:
            scene.turn()
            scene.turn()
            assert scene.untried()["trap.example"] == 25
            assert sum(scene.untried().values()) == 100
            scene.crawled(lambda page: page.host != "trap.example")
            scene.turn()
            assert scene.untried()["trap.example"] == 25, "its pages were not tried: nothing comes after them"
            scene.crawled(lambda page: page.host == "trap.example" and page.url.endswith("3"), Outcome.FAILED)
            scene.turn()
            assert scene.untried()["trap.example"] == 25
            assert scene.keeper.untried == sum(scene.untried().values())
            gone = next(
                state.page for state in scene.states() if state.page.host == "trap.example" and not state.crawls
            )
            scene.store.post(packed("remove", [gone.url], scene.now))
            scene.turn()
            assert gone.url not in scene.engine
            assert scene.untried()["trap.example"] == 25


def test_where_many_hosts_wait_they_share_the_places(tmp_path: Path) -> None:
    with Scene(tmp_path, 2_000) as scene:
        scene.found([f"http://start.example/{nth}" for nth in range(30)])  # from here on pages wait
        scene.crawled(lambda page: True)
        scene.found([f"http://h{host}.example/{nth}" for host in range(40) for nth in range(50)])
        scene.turn()
        assert len(scene.untried()) >= 10
        assert max(scene.untried().values()) <= 10


def test_pages_that_were_found_gone_before_the_bound_was_reached_make_room(tmp_path: Path) -> None:
    with Scene(tmp_path, 60) as scene:
        scene.store.add([Page("http://a.example/named3", "a.example")])
        asyncio.run(scene.keeper.take_in())
        scene.entering.look()
        scene.found([f"http://h{host}.example/{nth}" for host in range(6) for nth in range(6)])
        scene.turn()
        assert len(scene.engine) < 60
        gone = {state.page.url for state in scene.states() if state.page.url.endswith("/3")}
        assert gone
        scene.crawled(lambda page: page.url.endswith("3"), Outcome.GONE)
        scene.crawled(lambda page: True)
        scene.found([f"http://h{host}.example/{nth}" for host in range(6) for nth in range(6, 20)])
        for _ in range(4):
            scene.turn()
            scene.crawled(lambda page: True)
        assert len(scene.engine) == 60
        kept = {state.page.url for state in scene.states()}
        assert not kept & gone
        assert "http://a.example/named3" in kept
        scene.found(sorted(gone))
        hosts = len(scene.backlog.waiting.names)
        waits = [url for number in range(hosts) for url, _ in scene.backlog.waiting.take(number, 1_000)]
        assert not gone & set(waits), "nobody asks again for what is gone"
        assert not kept & set(waits)


def test_a_page_that_fails_again_and_again_waits_while_others_are_held(tmp_path: Path) -> None:
    with Scene(tmp_path, 40) as scene:
        scene.found([f"http://h{host}.example/{nth}" for host in range(5) for nth in range(20)])
        scene.turn()
        (failing,) = [state for state in scene.states() if state.page.url == "http://h0.example/1"]
        for _ in range(3):
            scene.crawled(lambda page: page.url == failing.page.url, Outcome.FAILED, again=True)
        for _ in range(5):
            scene.turn()
            scene.crawled(lambda page: True)
        assert failing.page.url not in scene.engine
        assert len(scene.engine) == 40


def test_a_bound_that_was_lowered_holds_after_a_while_and_what_leaves_waits(tmp_path: Path) -> None:
    everything = {f"http://h{host}.example/{nth}" for host in range(10) for nth in range(30)}
    with Scene(tmp_path, None) as scene:
        scene.entering.max_untried = 10_000
        scene.entering.look()
        scene.store.add([Page("http://a.example/", "a.example")])
        said = Page("http://b.example/x", "b.example", depth=3, importance=Importance(2.0))
        scene.store.add([said])
        scene.found(sorted(everything))
        for _ in range(3):
            scene.turn()
        scene.crawled(lambda page: not page.url.endswith("7"))
        assert len(scene.engine) == 302
    with Scene(tmp_path, 50) as scene:
        for _ in range(4):
            scene.turn()
        assert len(scene.engine) == 50
        assert scene.discovery.counts()["full_at"] == 50
        kept = {state.page.url for state in scene.states()}
        assert {"http://a.example/", said.url} <= kept
        assert not [url for url in kept if url.endswith("7")], "no crawl was spent on these"
        waits = [url for number in range(10) for url, _ in scene.backlog.waiting.take(number, 1_000)]
        assert len(waits) == len(set(waits)) == 252
        assert set(waits) | kept == everything | {"http://a.example/", said.url}

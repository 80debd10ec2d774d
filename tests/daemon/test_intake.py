"""What others hand to a running daemon: durable before it is acknowledged, and taking effect once."""

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from afresh.daemon import Daemon, Stored
from afresh.daemon.heard import HeardOf
from afresh.engine import Engine
from afresh.errors import ConfigError
from afresh.estimate import Grid
from afresh.estimate.grades import Grades
from afresh.fetch import Scripted
from afresh.frontier import Lanes, Politeness, host_of
from afresh.schedule import Scheduler
from afresh.store import Memory, Sqlite, Store
from afresh.store.messages import Pauses, drain, of_pages, of_requests, of_signals, packed
from afresh.store.socket_file import ask, socket_path
from afresh.types import Fetched, Importance, Page, Request, Signal, Validators

URLS = [f"http://h{nth}.example/" for nth in range(6)]
QUIET = Politeness(factor=0.0, shortest_gap=0.0, longest_gap=0.0)


def page(url: str, **said: Any) -> Page:
    return Page(url, host_of(url), **said)


def answer(url: str, known: Validators) -> Fetched:
    return Fetched(url, time.time(), 0.001, 200, url.encode(), "text/plain")


def daemon_on(store: Store, *, budget: float = 50.0, **more: Any) -> Daemon:
    engine = Engine(scheduler=Scheduler.live(budget=budget), estimator=Grid(typical_rate=0.01), lanes=Lanes(QUIET))
    return Daemon(engine=engine, fetcher=Scripted(answer), store=store, write_every=0.02, grace=0.2, **more)


async def until(holds: Callable[[], bool], seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


def has_copy(daemon: Daemon, url: str) -> bool:
    return url in daemon.engine and daemon.engine.current(url) is not None


async def with_runner(daemon: Daemon, play: Callable[[], Any]) -> None:
    running = asyncio.create_task(daemon.run())
    try:
        await asyncio.wait_for(play(), 20)
    finally:
        daemon.stop()
        await running


def test_evidence_is_durable_before_it_is_acknowledged_and_takes_effect_once() -> None:
    store = Memory()
    store.add(map(page, URLS))
    daemon = daemon_on(store)

    async def play() -> None:
        await until(lambda: has_copy(daemon, URLS[0]))
        daemon.engine.scheduler.budget = 0.001  # no more crawls
        await asyncio.sleep(0.05)
        now = daemon.clock()
        heard = [
            Signal(URLS[0], now),
            Signal(URLS[0], now),
            Request(URLS[1], now, 7.0),
            Signal("http://no.example/", now),
        ]
        assert await daemon.observe(heard, key="first") == 2
        assert store.totals().inbox_entries in (0, 2)
        assert await daemon.observe(heard, key="first") == 0, "the same again"
        await until(lambda: not store.inbox())
        state = store.state(URLS[0])
        assert state is not None
        assert state.signals == daemon.engine.signals(URLS[0]) == 2
        moment = daemon.clock()  # soon after the first request a rate falls by the second
        rates = [daemon.engine.beliefs(url, moment).request_rate for url in URLS]
        assert rates[1] > 2 * rates[2]
        kept = store.state(URLS[1])
        assert kept is not None
        assert kept.beliefs is not None
        # It was kept between the two moments.
        at_first = daemon.engine.beliefs(URLS[1], now).request_rate
        assert rates[1] <= kept.beliefs.request_rate * (1 + 1e-6)
        assert kept.beliefs.request_rate <= at_first * (1 + 1e-6)

    asyncio.run(with_runner(daemon, play))


@pytest.mark.parametrize(
    ("each", "words"),
    [
        (Signal(URLS[0], "now", "cms"), "evidence.time must be"),  # type: ignore[arg-type]
        (Signal(URLS[0], math.nan, "cms"), "evidence.time must be"),
        (Signal(URLS[0], 1.0, "c\0ms"), "no name for a sender"),
        (Signal(URLS[0], 1.0, "ETag"), "one of afresh's own"),
        (Signal(URLS[0], 1.0, "sitemap"), "one of afresh's own"),
        (Signal(7, 1.0), "evidence.url must be"),  # type: ignore[arg-type]
        (Request(URLS[0], 1.0, math.inf), "evidence.count must be"),
        (URLS[0], "evidence must be a Signal or Request"),
    ],
)
def test_what_makes_no_sense_is_refused_whole(each: Any, words: str) -> None:
    store = Memory()
    daemon = daemon_on(store)
    with pytest.raises(ConfigError, match=words):
        asyncio.run(daemon.observe([Signal(URLS[0], 1.0), each]))
    assert not store.inbox()


def test_what_is_said_of_a_sender_on_one_host_holds_there() -> None:
    daemon = daemon_on(Memory())
    senders = daemon.engine.senders
    numbers = [senders.number(name) for name in ("good", "cms")]
    for number in numbers:
        senders.learn("e.org", {(number, -1): 1}, by_time=0.1, weight=2.0, changed=True)
    daemon._grading.pinned('[["cms", "e.org", 0.0], ["cms", "", 1.0]]')
    assert senders.weight("e.org", numbers[1]) < 0.01
    assert senders.weight("other.org", numbers[1]) > 0.9


def test_grades_are_kept_at_the_end_and_taken_up_again() -> None:
    store = Memory()
    store.add(map(page, URLS))
    first, again = daemon_on(store), daemon_on(store)

    def graded(daemon: Daemon) -> list[tuple[str, float]]:
        return [(each["sender"], each["heard"]) for each in daemon._grading.told()]

    async def play() -> None:
        await until(lambda: has_copy(first, URLS[0]))
        await first.observe([Signal(URLS[0], first.clock() + 1e-3, "cms")])
        await until(lambda: graded(first) == [("cms", 1.0)])

    async def look() -> None:
        await until(lambda: graded(again) == [("cms", 1.0)])

    asyncio.run(with_runner(first, play))
    assert Grades.from_text(store.get("grades")).grade("cms", host_of(URLS[0])).heard == 1.0, "also without a runner"
    assert HeardOf.from_text(store.get("heard")).of(URLS[0])[0]["became"].startswith("taken")
    asyncio.run(with_runner(again, look))


def test_a_signal_from_before_the_copy_says_nothing() -> None:
    store = Memory()
    store.add(map(page, URLS))
    daemon = daemon_on(store)

    async def play() -> None:
        await until(lambda: has_copy(daemon, URLS[0]))
        daemon.engine.scheduler.budget = 0.001
        await asyncio.sleep(0.05)
        current = daemon.engine.current(URLS[0])
        assert current is not None
        await daemon.observe([Signal(URLS[0], current - 1.0)])
        await until(lambda: not store.inbox())
        assert daemon.engine.signals(URLS[0]) == 0

    asyncio.run(with_runner(daemon, play))


def test_wishes_reach_a_runner_and_the_store(tmp_path: Path) -> None:
    with Sqlite(tmp_path / "s.db") as store:
        store.add(map(page, URLS))
        crawled: list[str] = []
        daemon = daemon_on(
            store,
            socket=socket_path(store.path),
            listeners=[
                lambda event: crawled.extend(each.url for each in event.crawls) if isinstance(event, Stored) else None
            ],
        )

        def post(kind: str, items: Iterable[Any]) -> None:
            store.post(packed(kind, items, 0.0))
            assert ask(store.path, "wake") == {}

        async def play() -> None:
            await until(lambda: set(crawled) == set(URLS))
            await asyncio.to_thread(post, "remove", [URLS[0]])
            await until(lambda: store.state(URLS[0]) is None)
            assert URLS[0] not in daemon.engine
            told = page("http://new.example/", importance=Importance(3.0))
            store.post(of_pages([told, page(URLS[1], importance=Importance(2.0, times=True))], 0.0))
            daemon.wake()
            await until(lambda: told.url in crawled)
            known = store.state(URLS[1])
            assert known is not None
            assert known.page.importance == Importance(2.0, times=True)
            said = await asyncio.to_thread(ask, store.path, "page", {"url": told.url})
            assert said["beliefs"]["request_rate"] == 3.0
            assert (await asyncio.to_thread(ask, store.path, "status"))["pages"] == 6
            # A page that nobody wants is not crawled by itself any more, but at once if it is asked for.
            store.post(of_pages([page(URLS[4], importance=Importance(0.0))], 0.0))
            daemon.wake()
            await until(lambda: daemon.engine.beliefs(URLS[4], daemon.clock()).request_rate == 0.0)
            await asyncio.sleep(0.2)
            before = len(crawled)
            await asyncio.sleep(0.3)
            assert URLS[4] not in crawled[before:]
            await asyncio.to_thread(post, "refresh", [URLS[4]])
            await until(lambda: URLS[4] in crawled[before:], 1.0)

        asyncio.run(with_runner(daemon, play))
        assert list(store.problems()) == []
        assert [state.urgent for _, state in store.states()] == [False] * 6


def test_without_a_runner_wishes_are_carried_out_on_the_store_alone_and_evidence_waits() -> None:
    store = Memory()
    store.post([*of_pages(map(page, URLS), 0.0), *of_signals([Signal(URLS[0], 5.0)], 5.0)])
    assert drain(store) == 6
    assert [entry.kind for entry in store.inbox()] == ["signals"]
    for kind, items in (
        ("remove", URLS[:1]),
        ("pause", URLS[1:2]),
        ("pause-host", ["h2.example"]),
        ("pause-all", [True]),
        ("refresh", [URLS[3], "http://no.example/"]),
        ("remove-host", ["h4.example"]),
        ("popularity", [[URLS[5], 4.0]]),
        ("nonsense", [1]),
        ("add", ["no page"]),
    ):
        store.post(packed(kind, items, 0.0))
    assert drain(store) == 0
    states = {state.page.url: state for _, state in store.states()}
    assert list(states) == [URLS[1], URLS[2], URLS[3], URLS[5]]
    assert [states[URLS[1]].page.paused, states[URLS[3]].urgent, states[URLS[5]].page.popularity] == [True, True, 4.0]
    assert Pauses.from_text(store.get("paused")) == Pauses(True, frozenset({"h2.example"}))
    store.post(packed("resume", [URLS[1]], 0.0) + packed("resume-all", [True], 0.0))
    drain(store)
    assert Pauses.from_text(store.get("paused")) == Pauses(False, frozenset({"h2.example"}))


def test_many_items_become_entries_of_bounded_size() -> None:
    requests = [Request(f"http://h.example/{'x' * 300}{nth}", 1.0, 2.0) for nth in range(2_000)]
    entries = of_requests(requests, 1.0, "key")
    assert max(len(entry.body) for entry in entries) <= 64 << 10
    assert len({entry.key for entry in entries}) == len(entries)


def test_entries_that_make_no_sense_are_dropped_and_stop_nobody() -> None:
    store = Memory()
    store.add(map(page, URLS))
    for kind, items in (("signals", [1]), ("requests", [["u", "v", "w"]]), ("wonder", []), ("pause-what", [1])):
        store.post(packed(kind, items, 0.0) or [])
    store.post(list(of_signals([Signal(URLS[0], 10**400, "x")], 0.0)))  # which no float can hold
    daemon = daemon_on(store)

    async def play() -> None:
        await until(lambda: not store.inbox())
        await until(lambda: has_copy(daemon, URLS[5]))

    asyncio.run(with_runner(daemon, play))


def test_text_that_is_none_is_dropped_and_stops_nobody(tmp_path: Path) -> None:
    """Half of a pair of code units, as JSON can hold it: no store can keep that."""
    half = "http://h0.example/\ud800"
    with Sqlite(tmp_path / "afresh.db") as store:
        store.add(map(page, URLS))
        for kind in ("refresh", "remove", "pause", "remove-host", "pause-host"):
            store.post(packed(kind, [half], 0.0))
        store.post(packed("popularity", [[half, 4.0]], 0.0))
        store.post(packed("add", [{"url": half, "host": "h0.example", "added": 0.0, "depth": 0}], 0.0))
        store.post(packed("requests", [[half, 1.0, 1.0], "?", [URLS[0], 1.0, 3.0]], 0.0))
        daemon = daemon_on(store)

        async def play() -> None:
            await until(lambda: not store.inbox())
            await until(lambda: all(has_copy(daemon, URLS[nth]) for nth in (0, 1, 5)))

        asyncio.run(with_runner(daemon, play))
        assert len(list(store.states())) == len(URLS)
        beliefs = {state.page.url: state.beliefs for _, state in store.states()}
        # The item beside those that make no sense has been heard.
        assert beliefs[URLS[0]].request_rate > beliefs[URLS[1]].request_rate

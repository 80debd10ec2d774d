"""Reading what was fetched: away from the event loop, links and all, with noise that outlives a restart."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from afresh.daemon import Daemon
from afresh.daemon.pressure import Pressure
from afresh.daemon.reader import NAME, Reader
from afresh.detect import Detector, Habits
from afresh.engine import Engine
from afresh.estimate import Grid
from afresh.fetch import Scripted
from afresh.frontier import Lanes, Links, Politeness, Scope
from afresh.reading import read
from afresh.schedule import Scheduler
from afresh.sources import Sources
from afresh.sources.pieces import PIECE, PIECE_BYTES
from afresh.sources.web import Discovery, Web
from afresh.store import Memory, PageState, Sqlite, Store
from afresh.types import Copy, Fetched, Outcome, Page, Validators

URL, HOST = "http://e.org/", "e.org"
STORY = "<p>The harbour was rebuilt after the great storm of last year, and the ferry runs again.</p>" * 5


def finding(discovery: Discovery) -> Sources:
    return Sources([Web(Scripted({}), discovery=discovery)])


def html(body: str | bytes) -> Fetched:
    whole = body.encode() if isinstance(body, str) else body
    return Fetched(URL, 100.0, 0.1, 200, whole, "text/html")


def engine() -> Engine:
    hosts = Lanes(Politeness(factor=0.0, shortest_gap=0.0))
    return Engine(scheduler=Scheduler.live(budget=200.0), estimator=Grid(), lanes=hosts)


def known(body: bytes) -> tuple[PageState, Copy]:
    first = Detector().look(Validators(), html(body)).verdict.validators
    state = PageState(Page(URL, HOST), validators=first, fetched=1.0, checked=1.0)
    return state, Copy(URL, body, "text/html", 1.0, 1.0, first)


HOSTILE = {
    "lines": b"<p>The ferry runs every day but Sunday, as it did.</p>\n",
    "hidden in comments": b"<div><!--</div>-->",
    "hidden in attributes": b'<div title="</div>">',
    "hidden in scripts": b"<div><script></div></script>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_page_stops_the_event_loop(name: str) -> None:
    """Deciding whether one page of 270 kB changed had cut a run from 339 crawls to 7."""
    unit = HOSTILE[name]
    old, new = (unit * (8_000_000 // len(unit)) + end for end in (b"<p>one", b"<p>two"))
    state, copy = known(old)
    read(b"<p>compile")

    async def go() -> tuple[float, float, Outcome]:
        reader = Reader(Detector(), copy=lambda url: copy, sources=finding(Discovery(Scope())))
        await reader.read(known(b"<p>a")[0], html(b"<p>b"), 0.0)  # compile
        reading = asyncio.create_task(reader.read(state, html(new), 100.0))
        longest, before = 0.0, time.perf_counter()
        began = before
        while not reading.done():
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            longest, before = max(longest, now - before), now
        reader.close()
        return longest, before - began, (await reading).verdict.outcome

    longest, took, outcome = asyncio.run(go())
    assert outcome is Outcome.CHANGED
    # On a busy machine any program may stand still for a while; not for as long as the reading takes.
    assert longest < max(0.1, took / 2), f"the event loop stood still for {longest:.3f} s of {took:.3f} s"


def test_large_pages_hold_up_their_like_alone() -> None:
    state, copy = known(b"<p>a")
    large = html(b"<p>The ferry runs every day.</p>" * 400_000)

    async def go() -> list[str]:
        reader = Reader(Detector(), copy=lambda url: copy)
        await reader.read(state, html(b"<p>b"), 0.0)
        order: list[str] = []

        async def one(name: str, fetched: Fetched) -> None:
            await reader.read(state, fetched, 0.0)
            order.append(name)

        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(one("large", large))
            for _ in range(3):
                group.create_task(one("small", html(b"<p>b")))
        reader.close()
        return order

    assert asyncio.run(go())[:3] == ["small"] * 3


def run(
    store: Store,
    fetcher: Scripted,
    enough: int | Callable[[], object],
    discovery: Discovery | None = None,
    **options: object,
) -> Daemon:
    """Run a daemon until there are so many crawls, or something is so."""

    def reached() -> object:
        return store.totals().crawls >= enough if isinstance(enough, int) else enough()

    async def go() -> Daemon:
        web = Web(fetcher, discovery=discovery)
        daemon = Daemon(engine=engine(), sources=web, store=store, **options)  # type: ignore[arg-type]
        running = asyncio.create_task(daemon.run())
        while not reached() and not running.done():  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.01)
        daemon.stop()
        await running
        return daemon

    return asyncio.run(asyncio.wait_for(go(), 60))


def ticking(nth: int) -> str:
    return f"{STORY}<footer>It is {nth}:00</footer>"


def answers(*bodies: object) -> Scripted:
    ticks = count()

    def answer(url: str, known: Validators) -> Fetched:
        nth = next(ticks)
        body = bodies[min(nth, len(bodies) - 1)]
        return replace(html(body(nth) if callable(body) else str(body)), url=url, started=time.time())

    return Scripted(answer)


def test_links_added_where_no_text_changed_are_found() -> None:
    """Links in a menu were read only if what was called the main text had changed."""
    store = Memory()
    store.add([Page(URL, HOST)])
    more = STORY + '<nav><a href="/new"><img src=x></a></nav>'
    run(store, answers(STORY, more), 4, discovery=Discovery(Scope(hosts=[HOST])))
    assert store.state("http://e.org/new") is not None
    assert {crawl.outcome for crawl in store.history(URL, 1000)} == {Outcome.NEW, Outcome.UNCHANGED}


def test_noise_outlives_a_restart(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with Sqlite(tmp_path / "s.db") as store:
        store.add([Page(URL, HOST)])
        run(store, answers(ticking), 8)
        last = store.history(URL, 1)[0]
        assert (last.outcome, last.reason) == (Outcome.UNCHANGED, "noise")
    with Sqlite(tmp_path / "s.db") as store:
        before = store.totals().crawls
        run(store, answers(lambda nth: ticking(nth + 1000)), before + 2)
        again = store.history(URL, store.totals().crawls - before)
        assert {(crawl.outcome, crawl.reason) for crawl in again} == {(Outcome.UNCHANGED, "noise")}


def test_noise_of_a_host_outlives_a_restart(tmp_path) -> None:  # type: ignore[no-untyped-def]
    urls = [f"http://e.org/{name}" for name in "abc"]
    with Sqlite(tmp_path / "s.db") as store:
        store.add(Page(url, HOST) for url in urls)
        run(store, answers(ticking), lambda: Habits.from_text(store.get(NAME + HOST)).noise)
    with Sqlite(tmp_path / "s.db") as store:
        store.add([Page("http://e.org/d", HOST)])
        run(store, answers(lambda nth: ticking(nth + 1000)), lambda: len(store.history("http://e.org/d")) >= 2)
        new, again = reversed(store.history("http://e.org/d")[-2:])
        assert (new.outcome, again.outcome, again.reason) == (Outcome.NEW, Outcome.UNCHANGED, "noise")


def test_thousands_of_links_do_not_hold_up_the_event_loop() -> None:
    """A page of 5,000 new links took a third of a second, in one go."""
    store = Memory()
    store.add([Page(URL, HOST)])
    many = "".join(f'<a href="/{nth:x}/{nth * 7919:x}">x</a>' for nth in range(3_000))
    turns: list[int] = []  # of somebody else, while the links of each page were looked at

    class Watched(Discovery):
        def follow(self, *arguments):  # type: ignore[no-untyped-def]
            had: list[None] = []
            for some in super().follow(*arguments):
                asyncio.get_running_loop().call_soon(had.append, None)
                yield some
            turns.append(len(had))

    run(store, answers(STORY + many), 2, discovery=Watched(Scope(hosts=[HOST])))
    assert turns[0] >= 3_000 / PIECE
    assert store.totals().pages == 3_001


def test_few_long_links_do_not_hold_up_the_event_loop_either() -> None:
    """Two hundred links of 1,900 characters were one piece, and took fifteen seconds."""
    discovery, page = Discovery(Scope()), Page(URL, HOST)
    long = [f"http://e.org/{nth}/" + "a" * 1_900 for nth in range(200)]
    pieces = list(discovery.follow(page, html(""), Links(tuple(long)), set()))
    assert sum(map(len, pieces)) == 200
    assert max(sum(len(new.url) for new in piece) for piece in pieces) <= PIECE_BYTES


def test_links_are_not_followed_where_the_header_forbids_it() -> None:
    """X-Robots-Tag was never handed to what reads links."""
    for tag, found in {"": 1, "nofollow": 0, "none": 0, "noindex": 1}.items():
        state, copy = known(b"<p>a")

        async def go(tag: str = tag, state: PageState = state, copy: Copy = copy) -> int:
            reader = Reader(Detector(), copy=lambda url: copy, sources=finding(Discovery(Scope())))
            got = await reader.read(state, replace(html('<p>b<a href="/new">new</a>'), robots=tag), 0.0)
            reader.close()
            assert got.links is not None
            return len(got.links.urls)

        assert asyncio.run(go()) == found, tag


# Between fetching and storing ----------------------------------------------------------------------------------------


def test_no_order_is_given_while_too_much_is_not_durable() -> None:
    """Forty hosts with bodies of 15 MB had made the process grow to 5 GB."""
    size, bound = 1_000_000, 5_000_000
    held: list[int] = []

    class SlowStore(Memory):
        def write(self, records, **more) -> int:  # type: ignore[no-untyped-def]
            time.sleep(0.2)
            return super().write(records, **more)

    def answer(url: str, known: Validators) -> Fetched:
        held.append(daemons[0]._pressure.held)
        return Fetched(url, time.time(), 0.0, 200, b"x" * size, "text/plain")

    store, daemons = SlowStore(), []
    store.add(Page(f"http://h{nth}.org/", f"h{nth}.org") for nth in range(60))

    async def go() -> None:
        daemon = Daemon(engine=engine(), fetcher=Scripted(answer), store=store, max_unwritten=bound)
        daemons.append(daemon)
        running = asyncio.create_task(daemon.run())
        while store.totals().crawls < 60:  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.01)
        daemon.stop()
        await running

    asyncio.run(asyncio.wait_for(go(), 60))
    assert max(held) <= bound
    assert max(held) >= bound / 2, "the bound was not even reached"
    assert daemons[0]._pressure.held == 0


def test_pressure_lets_one_fetch_go_whatever_the_bound() -> None:
    pressure = Pressure(10)
    pressure.hold(100)
    assert not pressure.room(0)
    pressure.release(100)
    assert pressure.room(0)
    assert not pressure.room(1)


def test_bodies_that_are_still_arriving_do_not_weigh_nothing() -> None:
    """Small bodies had made the crawler forget how large others are, and many large ones arrived at once."""
    pressure = Pressure(100)
    pressure.hold(1)
    pressure.release(1)
    assert pressure.room(5)
    assert not pressure.room(5, arriving=100)


def test_bodies_that_nobody_keeps_weigh_nothing() -> None:
    store = Memory()
    store.add([Page(URL, HOST)])
    ticks = count()

    def answer(url: str, known: Validators) -> Fetched:
        return Fetched(url, time.time(), 0.0, 200 if next(ticks) % 2 else 404, b"x" * 1000, "text/plain")

    assert run(store, Scripted(answer), 1)._pressure.held == 0


def test_an_order_is_whole_after_a_page_that_cannot_be_read() -> None:
    """Whatever reading does, the page's bytes are let go of."""

    class Broken(Detector):
        def look(self, *arguments: object, **options: object) -> object:  # type: ignore[override]
            raise RuntimeError("broken")

    async def go() -> Daemon:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        store = Memory()
        store.add([Page(URL, HOST)])
        daemon = Daemon(engine=engine(), fetcher=answers(STORY), store=store, detector=Broken())
        asyncio.get_running_loop().call_later(0.3, daemon.stop)
        await daemon.run()
        return daemon

    assert asyncio.run(go())._pressure.held == 0

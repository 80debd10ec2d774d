"""At `store.max_bytes`: what is kept stays and is confirmed, nothing grows, and everybody is told."""

import asyncio
import random
import time
from pathlib import Path

from afresh.cli.stated import stated_freshness
from afresh.daemon import Daemon, Event, Filled
from afresh.daemon.room import Room
from afresh.frontier import Scope
from afresh.sources.web import Discovery
from afresh.store import Memory, Sqlite, Store
from afresh.store.base import EVERYTHING, NO_NEW_BODIES, NO_NEW_PAGES
from afresh.types import Fetched, Outcome, Page
from live_site import Crawl, LiveSite, html

NONE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def noise(size: int) -> str:
    """A text that hardly compresses."""
    return random.Random(time.monotonic_ns()).randbytes(size // 2).hex()


def crawl(store: Store, answer: dict[str, str], reached: object, *paths: str, told: list[Event] | None = None) -> None:
    site = LiveSite(lambda host, path: html(answer[path]) if path in answer else NONE)

    async def go() -> None:
        await site.start()
        try:
            running = Crawl(site, store, names=lambda host: "127.0.0.1")
            running.listeners = ((told if told is not None else []).append,)
            site_url = "http://a.test:{port}"
            urls = [f"{site_url.format(port=site.port)}{path}" for path in paths]
            await running.until(reached, *urls)  # type: ignore[arg-type]
        finally:
            site.stop()

    asyncio.run(go())


def reasons(store: Store) -> set[str]:
    return {each.reason for each in store.failing()}


def test_a_full_store_takes_no_first_copies_and_keeps_what_it_has() -> None:
    store, told = Memory(max_bytes=10_000), []
    pages = {f"/{nth}": f"<p>{noise(2_000)}" for nth in range(10)}
    crawl(store, pages, lambda: reasons(store) == {"store_full"}, *pages, told=told)
    totals = store.totals()
    assert 0 < totals.copies < 10
    assert totals.body_bytes <= 10_000 + 2_100
    refused = [
        crawl for _, state in store.states() for crawl in store.history(state.page.url) if crawl.reason == "store_full"
    ]
    assert {crawl.outcome for crawl in refused} == {Outcome.REFUSED}
    assert {crawl.status for crawl in refused} <= {0, 200}
    assert next(event.takes for event in told if isinstance(event, Filled)) in (NO_NEW_PAGES, NO_NEW_BODIES)


def test_no_body_is_written_at_the_bound_and_the_old_copy_stays(tmp_path: Path) -> None:
    first = {"/": f"<p>{noise(30_000)}"}
    with Sqlite(tmp_path / "s.db") as store:
        crawl(store, first, lambda: store.totals().copies == 1, "/")
        used = store.space().used
        url = next(iter(store.states()))[1].page.url
        copy = store.copy(url)
    port = int(url.split(":")[2].strip("/"))
    assert copy is not None
    with Sqlite(tmp_path / "s.db", max_bytes=used - 1) as store:
        assert store.space().takes == NO_NEW_BODIES
        site = LiveSite(lambda host, path: html(f"<p>another text {noise(60_000)}") if path == "/" else NONE)

        async def go() -> None:
            site._server = await asyncio.start_server(site._talk, "127.0.0.1", port)
            site.port = port
            running = Crawl(site, store, names=lambda host: "127.0.0.1")
            await running.until(lambda: reasons(store) == {"store_full"})
            site.stop()

        asyncio.run(go())
        after = store.copy(url)
        assert after is not None
        assert (after.body, after.fetched) == (copy.body, copy.fetched)
        assert after.checked <= store.history(url)[0].time, "it is not said to be current"
        assert store.history(url)[0].outcome is Outcome.REFUSED
        assert store.space().used <= used + 8 * 4096


def test_the_history_of_a_full_store_grows_no_more(tmp_path: Path) -> None:
    from afresh.testing.store_model import page, record

    with Sqlite(tmp_path / "s.db", keep_crawls=100) as store:
        store.add([page(1)])
        for nth in range(10):
            state = store.state(page(1).url)
            assert state is not None
            store.write([record(state, Outcome.UNCHANGED, float(nth))])
    with Sqlite(tmp_path / "s.db", keep_crawls=100, max_bytes=1) as store:
        for nth in range(10, 30):
            state = store.state(page(1).url)
            assert state is not None
            store.write([record(state, Outcome.UNCHANGED, float(nth))])
        assert [crawl.time for crawl in store.history(page(1).url, 100)] == [float(nth) for nth in range(29, 19, -1)]
        assert list(store.problems()) == []


def test_what_is_found_while_there_is_no_room_is_found_again_later() -> None:
    discovery = Discovery(Scope(hosts=["a.test"]))
    page = Page("http://a.test/", "a.test")
    fetched = Fetched(page.url, 1.0, 0.1, 200, b'<a href="/x">x</a>', "text/html")
    discovery.closed = True
    assert discovery.read(page, fetched) == []
    assert discovery.listed(["http://a.test/y"], 1.0) == []
    discovery.closed = False
    assert [each.url for each in discovery.read(page, fetched)] == ["http://a.test/x"]
    assert [each.url for each in discovery.listed(["http://a.test/y"], 1.0)] == ["http://a.test/y"]
    assert Memory().space().takes == EVERYTHING


def fetched_copy(path: Path, text: str) -> tuple[str, int]:
    """Let a page be crawled into a store; its address, and how many bytes the store uses then."""
    with Sqlite(path) as store:
        crawl(store, {"/": text}, lambda: store.totals().copies == 1, "/")
        return next(iter(store.states()))[1].page.url, store.space().used


def crawl_again(store: Store, url: str, text: str, reached: object, *, shift: float = 0.0) -> Daemon:
    """Crawl a page once more at the same address; the daemon, which has stopped."""
    site = LiveSite(lambda host, path: html(text) if path == "/" else NONE)

    async def go() -> Daemon:
        site.port = int(url.split(":")[2].strip("/"))
        site._server = await asyncio.start_server(site._talk, "127.0.0.1", site.port)
        try:
            running = Crawl(site, store, names=lambda host: "127.0.0.1")
            running.clock.shift = shift
            return await running.until(reached, seconds=5.0)  # type: ignore[arg-type]
        finally:
            site.stop()

    return asyncio.run(go())


def test_a_copy_known_to_be_outdated_is_still_known_to_be_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    url, used = fetched_copy(path, f"<p>{noise(30_000)}")
    other = f"<p>another text {noise(60_000)}"
    with Sqlite(path, max_bytes=used - 1) as store:
        crawl_again(store, url, other, lambda: reasons(store) == {"store_full"})
    with Sqlite(path, max_bytes=used - 1) as store:
        store.write([], values={"paused": '{"everything": true, "hosts": []}'})
        began = time.monotonic()
        daemon = crawl_again(store, url, other, lambda: time.monotonic() > began + 0.3)
        assert daemon.engine.is_outdated(url)
        assert daemon.engine.fresh_probability(url, time.time()) == 0.0
        stated = stated_freshness(store, time.time(), {})
        assert stated is not None
        assert stated[0] == 0.0, "nor does a command that looks at the store say anything else"


def test_pages_that_were_put_off_come_back_at_once_after_a_restart_with_more_room(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    url, used = fetched_copy(path, f"<p>{noise(30_000)}")
    other = f"<p>another text {noise(60_000)}"
    with Sqlite(path, max_bytes=used - 1) as store:
        crawl_again(store, url, other, lambda: reasons(store) == {"store_full"})
        before = store.totals().changes
        crawl_again(store, url, other, lambda: store.totals().changes > before)
        assert store.totals().changes == before, "while there is no room it waits"
    with Sqlite(path, max_bytes=100 * used) as store:
        crawl_again(store, url, other, lambda: store.totals().changes > before)
        assert store.totals().changes == before + 1


def test_pages_that_were_put_off_come_back_at_once_when_the_bound_is_raised() -> None:
    store, pages = Memory(max_bytes=10_000), {f"/{nth}": f"<p>{noise(2_000)}" for nth in range(10)}

    def reached() -> bool:
        if reasons(store) == {"store_full"} and store.max_bytes == 10_000:
            store.max_bytes = 1_000_000
        return store.totals().copies == len(pages)

    crawl(store, pages, reached, *pages)
    assert store.totals().copies == len(pages)


def test_a_store_that_is_nearly_full_does_not_bring_pages_back_again_and_again() -> None:
    store = Memory(max_bytes=100)
    room = Room(store)
    assert room.opened(), "after a start once"
    room.waiting = 92
    assert not room.opened(), "one of them would fit in, and the others be refused"
    store.max_bytes = 101
    asyncio.run(room.look())
    assert room.opened()
    assert not room.opened()
    room.waiting = 50
    assert room.opened(), "much is free again"

"""At `store.max_bytes`: what is kept stays and is confirmed, nothing grows, and everybody is told."""

import asyncio
import random
import time
from pathlib import Path

from afresh.daemon import Discovery, Event, Filled
from afresh.frontier import Scope
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

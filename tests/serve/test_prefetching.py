"""Fetching ahead: what comes next is there before its reader asks, in turns of the runner's, and in nobody's way."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from afresh.cli.serve import not_ahead
from afresh.cli.status import ahead_lines
from afresh.cli.why import rest_of
from afresh.config import parse
from afresh.daemon import Daemon
from afresh.engine import Engine
from afresh.errors import InputError
from afresh.estimate import Grid
from afresh.fetch import Guard, Http, Limits
from afresh.frontier import Lanes, Politeness, host_of, links
from afresh.schedule import Greedy, Plain
from afresh.serve.proxy.candidates import Candidates
from afresh.serve.proxy.prefetching import Wish, _may
from afresh.serve.proxy.routes import Site
from afresh.serve.proxy.segments import Parts, parts_of, segments_of
from afresh.sources.web import Permits, Web
from afresh.store import Sqlite
from afresh.store.messages import of_pages
from afresh.store.socket_file import ask, socket_path
from afresh.types import Page
from serving import Got, Heard, Serving, Told, serving

POLITE = Politeness(factor=0, shortest_gap=0.02, longest_gap=0.02, first_back_off=0.1)


def html(*links: str, files: str = "") -> bytes:
    return f"<html><body>{files}{''.join(f'<a href={each}>{each}</a>' for each in links)}</body></html>".encode()


PAGES = {
    "/": html("/a", "/b", "/logout", "/find?q=1", "/forbidden", "http://elsewhere.example/x"),
    "/a": html("/", "/c", files="<img src=/picture.png>"),
    "/b": html("/"),
    "/c": html("/"),
    "/forbidden": html("/"),
    "/logout": html("/"),
    "/robots.txt": b"User-agent: *\nDisallow: /forbidden\n",
    "/picture.png": b"picture",
}


def play(heard: Heard, wait: float = 0.0) -> Told:
    body = PAGES.get(heard.target)
    kind = "image/png" if heard.target.endswith(".png") else "text/html"
    if heard.target == "/robots.txt":
        kind = "text/plain"
    headers = {"Content-Type": kind, "Cache-Control": "max-age=3600"}
    return Told(404, {}, b"") if body is None else Told(200, headers, body, wait=wait)


@asynccontextmanager
async def both(
    folder: Path,
    answer: Callable[[Heard], Told] = play,
    *,
    budget: float = 100.0,
    settings: str = "",
    seeds: tuple[str, ...] = ("/",),
) -> AsyncIterator[tuple[Serving, Daemon]]:
    """A runner and a serving cache beside it, on one store."""
    with Sqlite(folder / "s.db") as store:
        text = f'[store]\npath = "{folder / "s.db"}"\n[[serve]]\nprefix = "/"\norigin = "{{origin}}"\nprefetch = true\n'
        async with serving(answer, settings=text + settings, store=store, origin=False) as proxy:
            fetcher = Http(user_agent="afresh/test", guard=Guard(allow_private=True), limits=Limits())
            engine = Engine(scheduler=Plain(Greedy(), budget=budget), estimator=Grid(), lanes=Lanes(POLITE))
            web = Web(fetcher, permits=Permits("afresh"))
            daemon = Daemon(engine=engine, sources=web, store=store, socket=socket_path(store.path), write_every=0.05)
            url = proxy.origin.url
            store.add([Page(url + seed, host_of(url + seed)) for seed in seeds])
            running = asyncio.create_task(daemon.run())
            try:
                yield proxy, daemon
            finally:
                daemon.stop()
                await running
                await web.close()


async def until(done: Callable[[], object], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.02)


async def crawled(daemon: Daemon, *urls: str) -> None:
    """Until the runner has copies of these; it knows what robots.txt says by then."""
    await until(lambda: all(url in daemon.engine and daemon.engine.current(url) is not None for url in urls))


def asked(proxy: Serving, path: str) -> int:
    """How often the serving cache asked for a path."""
    return sum(heard.target == path and "test" not in heard.headers["user-agent"] for heard in proxy.origin.heard)


def hit(got: Got) -> bool:
    return "afresh; hit" in got["cache-status"]


async def _ahead(folder: Path) -> None:
    async with both(folder) as (proxy, daemon):
        url, prefetching = proxy.origin.url, proxy.parts.prefetching
        assert prefetching is not None
        await crawled(daemon, f"{url}/")
        daemon.engine.scheduler.budget = 50.0
        assert (await proxy.ask("/", {"User-Agent": "reader"})).status == 200
        await until(lambda: asked(proxy, "/a") and asked(proxy, "/b"))
        await until(lambda: asked(proxy, "/picture.png"))  # what a page needs comes after its text
        assert not hit(await proxy.ask("/c", {"User-Agent": "other"}))
        await until(lambda: prefetching.counts.fetched >= 3)
        got = await proxy.ask("/a", {"User-Agent": "reader"})
        assert hit(got)
        assert got.body == PAGES["/a"]
        assert hit(await proxy.ask("/picture.png", {"User-Agent": "reader"}))
        counts = prefetching.counts
        assert counts.used == 2
        assert counts.used_bytes == len(PAGES["/a"]) + len(PAGES["/picture.png"])
        assert counts.wasted_bytes == counts.fetched_bytes - counts.used_bytes > 0
        await asyncio.sleep(0.5)
        for never in ("/logout", "/find?q=1", "/forbidden"):
            assert asked(proxy, never) == 0, never
        # Readers are known by address and browser; nothing of them is sent.
        assert all("reader" not in heard.headers["user-agent"] for heard in proxy.origin.heard)


def test_what_a_reader_is_likely_to_want_is_there_and_what_must_not_be_asked_is_not(tmp_path: Path) -> None:
    asyncio.run(_ahead(tmp_path))


async def _doubtful(folder: Path) -> None:
    async with both(folder) as (proxy, daemon):
        url, cache = proxy.origin.url, proxy.parts.service.cache
        prefetching = proxy.parts.prefetching
        assert prefetching is not None
        await crawled(daemon, f"{url}/")
        await proxy.ask("/", {"User-Agent": "reader"})
        await until(lambda: asked(proxy, "/a") and asked(proxy, "/b"))
        before = asked(proxy, "/a"), asked(proxy, "/b")
        entries = [cache.get(url + path, {}) for path in ("/a", "/b")]
        for entry in entries:
            assert entry is not None
            assert entry.outlook is not None
            entry.good_until = 1.0  # a reader would be told to wait: many ask for it
            entry.confirmed = entry.look_again = time.time() + 200.0
        worth = prefetching._missing(f"{url}/a"), prefetching._missing(f"{url}/b"), prefetching._missing(f"{url}/none")
        assert worth == (0.0, 0.0, 1.0)
        doubtful = entries[1]
        assert doubtful is not None
        doubtful.confirmed -= 200.0 + 3000.0  # its lifetime is an hour
        assert 0.1 < prefetching._missing(f"{url}/b") < 0.6
        prefetching._clock = lambda: time.time() + 100.0  # who was there has left
        await until(lambda: not any(each._readers for sites in prefetching._sites.values() for _, each in sites))
        await proxy.ask("/", {"User-Agent": "another"})
        await until(lambda: asked(proxy, "/b") > before[1])
        assert asked(proxy, "/a") == before[0]
        # The runner hears how it goes, and a status of it tells.
        told: dict[str, float] | None = None
        for _ in range(100):
            told = (await asyncio.to_thread(ask, folder / "s.db", "status"))["ahead"]
            if told is not None and told["fetched"] >= 3:
                break
            await asyncio.sleep(0.1)
        assert told is not None
        lines = list(ahead_lines(told))
        assert lines[0].startswith(f"ahead        {told['fetched']:.0f} answers fetched ahead of readers (")
        assert all(len(line) <= 80 for line in lines)
        with pytest.raises(InputError, match="counts"):
            await asyncio.to_thread(ask, folder / "s.db", "fetched ahead", {"who": "x", "counts": {"fetched": "1"}})


def test_a_copy_that_is_here_counts_by_how_probably_it_is_not_fresh(tmp_path: Path) -> None:
    asyncio.run(_doubtful(tmp_path))


async def _turns(folder: Path) -> None:
    async with both(folder) as (proxy, daemon):
        url = proxy.origin.url
        await crawled(daemon, f"{url}/")
        lane, scheduler = daemon.engine.lanes.lane(host_of(f"{url}/")), daemon.engine.scheduler

        def turn(*wanted: tuple[str, float]) -> object:
            return ask(folder / "s.db", "turn", {"wanted": [[url + path, worth] for path, worth in wanted]})["key"]

        async def in_thread(*wanted: tuple[str, float]) -> object:
            return await asyncio.to_thread(turn, *wanted)

        assert await in_thread(("/forbidden", 9.0), ("/a", 8.0), ("/b", 7.0)) == f"{url}/a"
        assert lane.visited
        assert await asyncio.to_thread(turn, ("/b", 9.0)) is None  # one at a time
        over = {"key": f"{url}/a", "took": 0.01, "failed": False}
        assert await asyncio.to_thread(ask, folder / "s.db", "turn over", over) == {}
        assert lane.ready > daemon.clock() - 0.02  # it rests as after an order
        daemon.control.pauses = type(daemon.control.pauses)(everything=True)
        assert await in_thread(("/a", 9.0)) is None
        daemon.control.pauses = type(daemon.control.pauses)()
        scheduler.budget = 0.001  # the tokens of the next hour are spent by two turns
        keys = []
        for _ in range(3):
            keys.append(await in_thread(("/a", 9.0)))
            if keys[-1]:
                await asyncio.to_thread(ask, folder / "s.db", "turn over", over)
        assert keys[-1] is None
        failed = {"key": f"{url}/a", "took": "long"}
        with pytest.raises(Exception, match="took some seconds"):
            await asyncio.to_thread(ask, folder / "s.db", "turn over", failed)


def test_turns_cost_tokens_and_obey_what_orders_obey(tmp_path: Path) -> None:
    asyncio.run(_turns(tmp_path))


async def _shared(folder: Path) -> None:
    pages = tuple(f"/n{nth}" for nth in range(200))
    async with both(folder, lambda heard: Told(200, {"Content-Type": "text/plain"}, heard.target.encode())) as (
        proxy,
        daemon,
    ):
        url, store = proxy.origin.url, folder / "s.db"
        await crawled(daemon, f"{url}/")
        await asyncio.to_thread(ask, store, "wake")
        with Sqlite(store) as other:
            other.post(of_pages([Page(url + path, host_of(url)) for path in pages], time.time()))
        await asyncio.to_thread(ask, store, "wake")
        lent = 0
        for _ in range(200):  # readers always want another one
            wanted = {"wanted": [[f"{url}/w{lent}", 9.0]]}
            if (await asyncio.to_thread(ask, store, "turn", wanted))["key"] is None:
                await asyncio.sleep(0.02)
                continue
            await asyncio.sleep(0.05)  # the fetch takes longer than the host would rest: an order comes in between
            over = {"key": f"{url}/w{lent}", "took": 0.05, "failed": False}
            await asyncio.to_thread(ask, store, "turn over", over)
            lent += 1
            if lent == 10:
                break
        crawls = len(proxy.origin.heard) - 2  # besides robots.txt and the first page
        said = await asyncio.to_thread(ask, store, "page", {"url": f"{url}/n199"})
        assert 8 < said["host_lent"] <= 10
        waits = rest_of(said | {"host_ready": time.time() + 9.0}, time.time())
        assert [("rests until" in each, "10 in the last minute" in each) for each in waits] == [
            (True, False),
            (False, True),
        ]
        assert lent == 10
        assert crawls >= 0.8 * lent


def test_the_runner_keeps_every_second_turn_of_a_host(tmp_path: Path) -> None:
    asyncio.run(_shared(tmp_path))


async def _price(folder: Path) -> None:
    async with both(folder, seeds=("/", "/a", "/b", "/c")) as (proxy, daemon):
        url = proxy.origin.url
        await crawled(daemon, *(f"{url}{path}" for path in ("/", "/a", "/b", "/c")))
        scheduler = daemon.engine.scheduler
        scheduler.price = 5.0  # type: ignore[misc]
        scheduler.budget = 0.5
        for worth, granted in ((4.0, None), (6.0, f"{url}/a")):
            said = await asyncio.to_thread(ask, folder / "s.db", "turn", {"wanted": [[f"{url}/a", worth]]})
            assert said["key"] == granted
            assert said["price"] == pytest.approx(5.0, rel=0.1)
            scheduler.price = 5.0  # type: ignore[misc]


def test_a_fetch_ahead_must_gain_the_price_of_a_refresh(tmp_path: Path) -> None:
    asyncio.run(_price(tmp_path))


async def _gives_way(folder: Path) -> None:
    def slow(heard: Heard) -> Told:
        return play(heard, wait=0.0 if heard.target in ("/", "/robots.txt") else 0.6)

    async with both(folder, slow) as (proxy, daemon):
        url, prefetching = proxy.origin.url, proxy.parts.prefetching
        assert prefetching is not None
        await crawled(daemon, f"{url}/")
        await proxy.ask("/")
        await until(lambda: asked(proxy, "/a") + asked(proxy, "/b") == 1)
        first = "/a" if asked(proxy, "/a") else "/b"
        got = await proxy.ask("/c", {"User-Agent": "other"})  # another page: what nobody waits for is called off
        assert got.status == 200
        assert prefetching.counts.called_off == 1
        await until(lambda: asked(proxy, first) == 2 or asked(proxy, "/b") + asked(proxy, "/a") > 1)
        running = [path for path in ("/a", "/b") if f"{url}{path}" in proxy.parts.service.asking.under_way]
        got = await proxy.ask(running[0])  # the very page: the reader joins, and it is completed
        assert "collapsed" in got["cache-status"] or hit(got)
        assert prefetching.counts.called_off == 1


def test_readers_come_first_and_join_what_is_on_its_way(tmp_path: Path) -> None:
    asyncio.run(_gives_way(tmp_path))


async def _later(folder: Path) -> None:
    whole = html("/", files="x" * 5000)

    def half(heard: Heard) -> Told:
        if heard.target != "/a":
            return play(heard, wait=0.3 if heard.target == "/c" else 0.0)
        fields = {"Content-Type": "text/html", "Cache-Control": "max-age=3600"}
        fields |= {"Accept-Ranges": "bytes", "ETag": '"one"'}
        if "range" in heard.headers:
            fields["Content-Range"] = f"bytes 2000-{len(whole) - 1}/{len(whole)}"
            return Told(206, fields, whole[2000:])
        return Told(200, fields | {"Content-Length": str(len(whole))}, whole[:2000])  # and no more

    async with both(folder, half) as (proxy, daemon):
        url, prefetching = proxy.origin.url, proxy.parts.prefetching
        assert prefetching is not None
        service = proxy.parts.service
        await crawled(daemon, f"{url}/")
        await proxy.ask("/")
        await until(lambda: (begun := service.asking.under_way.get(f"{url}/a")) is not None and begun.size == 2000)
        await proxy.ask("/c", {"User-Agent": "other"})
        assert prefetching.counts.called_off == 1
        await until(lambda: prefetching.counts.taken_up == 1)
        counts = prefetching.counts
        assert counts.called_off_bytes == 0
        got = await proxy.ask("/a")
        assert hit(got)
        assert got.body == whole
        assert [heard.headers.get("range") for heard in proxy.origin.heard if heard.target == "/a"][-1] == "bytes=2000-"


def test_what_was_called_off_is_completed_when_nobody_waits(tmp_path: Path) -> None:
    asyncio.run(_later(tmp_path))


async def _in_vain(folder: Path) -> None:
    async def drip() -> AsyncIterator[bytes]:
        while True:
            yield b"x"
            await asyncio.sleep(0.1)

    def answer(heard: Heard) -> Told:
        if heard.target == "/a":
            return Told(200, {"Content-Type": "text/html"}, pieces=drip)
        told = play(heard)
        return Told(200, {"Cache-Control": "no-store"}, told.body) if heard.target == "/b" else told

    async with both(folder, answer) as (proxy, daemon):
        prefetching = proxy.parts.prefetching
        assert prefetching is not None
        await crawled(daemon, f"{proxy.origin.url}/")
        for reader in ("one", "two"):
            await proxy.ask("/", {"User-Agent": reader})
            await until(lambda: asked(proxy, "/a") and asked(proxy, "/b") and not prefetching._running)
            await asyncio.sleep(0.3)
        assert (asked(proxy, "/a"), asked(proxy, "/b")) == (1, 1)
        assert prefetching.counts.wasted_bytes >= len(PAGES["/b"]) + 3


def test_what_drips_or_may_not_be_kept_is_not_fetched_ahead_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("afresh.serve.proxy.prefetching.LONGEST", 0.5)
    asyncio.run(_in_vain(tmp_path))


async def _alone(folder: Path) -> None:
    with Sqlite(folder / "s.db") as store:
        text = f'[store]\npath = "{folder / "s.db"}"\n[[serve]]\nprefix = "/"\norigin = "{{origin}}"\nprefetch = true\n'
        async with serving(play, settings=text, store=store, origin=False) as proxy:
            await proxy.ask("/")
            await asyncio.sleep(0.5)
            assert [heard.target for heard in proxy.origin.heard] == ["/"]
        async with serving(play, settings=text + "strict = true\n", store=store, origin=False) as proxy:
            assert proxy.parts.prefetching is None


def test_without_a_runner_or_in_strict_mode_nothing_is_fetched_ahead(tmp_path: Path) -> None:
    asyncio.run(_alone(tmp_path))


def test_addresses_that_do_something_are_told_by_their_names() -> None:
    site = parse('[[serve]]\nhost = "a"\norigin = "http://o.example"\n').serve[0]
    may = _may(Wish(Site(site.origin), but=site.prefetch_except))
    for path in (
        *(
            "/Logout",
            "/x/logout.php",
            "/logoff",
            "/a?delete=1",
            "/delete/5",
            "/x;delete",
            "/users/5/delete",
            "/sign-out",
        ),
        *("/cart/add/1", "/checkout", "/buy/now", "/vote/up", "/session/destroy", "/purge", "/unsubscribe/me"),
    ):
        assert not may("http://o.example" + path), path
    assert may("http://o.example/posts/1")
    assert not may("http://o.example.evil/posts/1")
    assert links(b"<a href='/log%6Fut'>", "http://o.example/", content_type="text/html").urls == (
        "http://o.example/logout",
    )


def test_what_is_not_fetched_ahead_is_said_in_a_sentence_each() -> None:
    table = '[[serve]]\nhost = "{}.example"\norigin = "http://10.0.0.{}"\nprefetch = {}\nstrict = {}\n'
    both = parse(table.format("a", 1, "true", "true") + table.format("b", 2, "true", "false"))
    said = not_ahead(both, runs=False)
    assert [("10.0.0.1" in each, "afresh run" in each) for each in said] == [(True, False), (False, True)]
    assert len(not_ahead(both, runs=True)) == 1
    assert not not_ahead(parse(table.format("a", 1, "false", "true")), runs=False)


def test_segments_of_a_page() -> None:
    body = b"<head><link rel=stylesheet href=/s.css><script src=/x.js></script></head><body><img src=/1.png><p>"
    body += b"word " * 1000 + b"<p><img src=/2.png><a href=/next>next</a>"
    parts = parts_of(body, "http://e.org/p", "text/html")
    assert parts == Parts(
        ("http://e.org/next",),
        ("http://e.org/s.css", "http://e.org/x.js"),
        ("http://e.org/1.png",),
        ("http://e.org/2.png",),
    )
    segments = segments_of("http://e.org/p", parts, {"http://e.org/1.png": 500.0}, page=1000.0, part=2000.0)
    assert segments.urls == ("http://e.org/p", *parts.head, *parts.above, *parts.below)
    assert segments.curve.ends == [1000.0, 3000.0, 5000.0, 5500.0, 7500.0]
    assert segments.curve.worths[-1] == pytest.approx(1.0)
    assert [segments.starting(at) for at in (0.0, 1000.0, 5000.0)] == [
        segments.urls[0],
        segments.urls[1],
        "http://e.org/1.png",
    ]
    assert parts_of(b"\x00<<<\xff" * 1000, "http://e.org/", "").links == ()


def test_candidates_of_many_readers() -> None:
    site = Candidates("http://e.org", 0.0, lambda url: "no" not in url)
    site.come("ann", [("http://e.org/a", 0.5), ("http://e.org/no", 0.9), ("http://e.org/b", 0.4)], 0.0)
    site.come("bob", [("http://e.org/b", 0.4)], 1.0)
    best = site.best(0.0)
    assert best is not None
    assert (best[0], best[1].gain) == ("http://e.org/b", pytest.approx(1 - 0.6 * 0.6))
    site.not_now(*best)
    site.come("ann", [("http://e.org/a", 0.5)], 2.0)  # she went on: b is bob's alone
    best = site.best(0.0)
    assert best is not None
    assert (best[0], best[1].gain) == ("http://e.org/a", pytest.approx(0.5))
    site.here(
        "http://e.org/a", Parts(above=("http://e.org/a.png", "http://other.example/x.png", "http://e.org/no.png"))
    )
    order = [each[0] for each in iter(lambda: site.best(0.0), None)]
    assert order == ["http://e.org/b", "http://e.org/a.png"]
    site.expire(61.5)  # bob has not come back
    assert len(site.downloads) == 1
    site.expire(100.0)
    assert len(site.downloads) == 0
    dear = Candidates("http://e.org", 0.012, lambda url: True)
    dear.come("ann", [("http://e.org/a", 0.5)], 0.0)
    assert dear.best(0.0) is not None  # 0.5 requests for 30 kB
    dear.come("ann", [("http://e.org/a", 0.5)], 0.0)
    assert dear.best(1.0) is None  # while a reader waits it costs twice that


def test_sizes_that_are_known_beforehand_decide_on_the_order() -> None:
    site = Candidates("http://e.org", 0.0, lambda url: True)
    site.come("ann", [("http://e.org/a", 0.5), ("http://e.org/b", 0.3), ("http://e.org/c", 0.2)], 0.0)
    assert site.left("http://e.org/b", 300e3)
    assert site.left("http://e.org/c", 3e3)
    assert not site.left("http://e.org/c", 3e3)
    order = [site.best(0.0) for _ in range(3)]
    assert [best[0][-1] for best in order if best] == ["c", "a", "b"]
    assert [best[1].size for best in order if best] == [3e3, 30e3, 300e3]
    assert site.left("http://e.org/a", 3.0)  # what was fetched stays fetched
    assert site.best(0.0) is None
    site.here("http://e.org/a", Parts(above=("http://e.org/1.png", "http://e.org/2.png")))
    site.left("http://e.org/2.png", 10.0, of="http://e.org/a")
    order = [site.best(0.0) for _ in range(2)]
    assert [best[1].size for best in order if best] == [30e3, 10.0]
    assert order[0] is not None
    site.left("http://e.org/1.png", 5.0, of="http://e.org/a")  # it was called off, and this is left of it
    site.not_now(*order[0])
    best = site.best(0.0)
    assert best is not None
    assert (best[0], best[1].size) == ("http://e.org/1.png", 5.0)

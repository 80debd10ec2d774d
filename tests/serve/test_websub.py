"""The subscriber's side of WebSub, over real sockets, by the numbers of the public test page; and rows G1 to G3."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from afresh.daemon import Daemon
from afresh.serve.receive.bodies import SECONDS
from afresh.signals.websub import in_header, lease_of
from afresh.sources.web import subscriptions
from afresh.store import Memory
from hub import Answer, Hub, free_port
from live_site import Crawl, LiveSite
from receiving import raw


def html_page(head: str = "", *, link: str = "", text: str = "Hello") -> Answer:
    headers = {"Content-Type": "text/html"} | ({"Link": link} if link else {})
    return 200, headers, f"<!doctype html><head>{head}</head><p>{text}</p>".encode()


def atom(hub: Hub, *pages: str, head: str = "", when: float | None = None) -> bytes:
    moment = datetime.fromtimestamp(time.time() if when is None else when, UTC).isoformat()
    entries = "".join(
        f'<entry><id>{page}</id><link href="{hub.url(page)}"/><updated>{moment}</updated></entry>' for page in pages
    )
    return f'<feed xmlns="http://www.w3.org/2005/Atom">{head}{entries}</feed>'.encode()


def rss(hub: Hub, *pages: str, head: str = "") -> bytes:
    items = "".join(f"<item><link>{hub.url(page)}</link></item>" for page in pages)
    return f'<rss xmlns:atom="http://www.w3.org/2005/Atom"><channel>{head}{items}</channel></rss>'.encode()


FEED = {"Content-Type": "application/atom+xml"}
NAMES_FEED = '<link rel="alternate" type="application/atom+xml" href="/feed">'


def crawls(
    folder: Path,
    hub: Hub,
    act: Callable[[Daemon], Awaitable[object]],
    *pages: str,
    store: Memory | None = None,
    seconds: float = 25.0,
) -> Memory:
    """Crawl pages of a hub's own host, until `act` has ended."""
    store = store or Memory()

    async def go() -> None:
        await hub.start()
        crawl = Crawl(LiveSite(lambda host, path: b""), store, receive=(free_port(), folder / "tokens"), budget=20)
        done: list[object] = []
        daemons: list[Daemon] = []

        async def acting() -> None:
            while not daemons:  # noqa: ASYNC110 - of the test's own
                await asyncio.sleep(0.02)
            done.append(await act(daemons[0]))

        crawl.began = daemons.append
        task = asyncio.create_task(acting())
        try:
            until = crawl.until(lambda: task.done(), *map(hub.url, pages or ("/",)), seconds=seconds)
            await until
            if not task.done():
                task.cancel()
            await task
        finally:
            await hub.stop()

    asyncio.run(go())
    return store


async def until(reached: Callable[[], object], seconds: float = 15.0) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "it did not come to that"
        await asyncio.sleep(0.02)


def signals_of(daemon: Daemon, *urls: str) -> int:
    return sum(daemon.engine.signals(url) for url in urls if url in daemon.engine)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(subscriptions, "LOOK_SECONDS", 0.05)
    return


def the_hub(where: str) -> tuple[Hub, dict[str, Callable[[], Answer]]]:
    """A publisher who names hub and topic in one place."""
    hub = Hub()
    links = '<link rel="hub" href="/hub"><link rel="self" href="/topic">'
    topics: dict[str, dict[str, Callable[[], Answer]]] = {
        "header": {"/": lambda: html_page(link='</hub>; rel="hub", </topic>; rel="self"')},
        "html": {"/": lambda: html_page(links)},
        "atom": {
            "/": lambda: html_page(NAMES_FEED),
            "/feed": lambda: (200, FEED, atom(hub, "/", head=links.replace('">', '"/>'))),
        },
        "rss": {
            "/": lambda: html_page(NAMES_FEED),
            "/feed": lambda: (200, {}, rss(hub, "/", head=links.replace('">', '"/>').replace("<link", "<atom:link"))),
        },
        "priority": {
            "/": lambda: html_page(
                '<link rel="hub" href="/wrong"><link rel="self" href="/wrong">',
                link="</hub>; rel=hub, </topic>; rel=self",
            )
        },
    }
    hub.topics = topics[where]
    return hub, topics[where]


@pytest.mark.parametrize("where", ["header", "html", "atom", "rss", "priority"])
def test_100_to_104_hub_and_topic_are_found_wherever_they_are_announced(tmp_path: Path, where: str) -> None:
    hub, _ = the_hub(where)

    async def act(daemon: Daemon) -> None:
        await until(lambda: hub.subscriptions)

    crawls(tmp_path, hub, act)
    assert list(hub.subscriptions) == [hub.url("/topic")], "200: its own name counts, not where it was read"
    said = hub.asked[0]
    assert (said["hub.mode"], said["hub.topic"]) == ("subscribe", hub.url("/topic"))
    assert 0 < len(said["hub.secret"]) < 200
    assert hub.verified == [(200, "a-challenge")]
    assert "POST /wrong" not in hub.log


@pytest.mark.parametrize("status", [301, 302])
def test_201_and_202_a_topic_may_be_reached_by_a_redirect(tmp_path: Path, status: int) -> None:
    hub = Hub()
    hub.topics = {
        "/": lambda: html_page(NAMES_FEED),
        "/feed": lambda: (status, {"Location": "/moved"}, b""),
        "/moved": lambda: (200, FEED, atom(hub, "/", head='<link rel="hub" href="/hub"/>')),
    }

    async def act(daemon: Daemon) -> None:
        await until(lambda: hub.subscriptions)

    crawls(tmp_path, hub, act)
    assert list(hub.subscriptions) == [hub.url("/moved")]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_203_and_204_a_hub_may_redirect(tmp_path: Path, status: int) -> None:
    hub, _ = the_hub("header")
    hub.redirects = {"/hub": (status, "/other")}

    async def act(daemon: Daemon) -> None:
        await until(lambda: hub.subscriptions)

    crawls(tmp_path, hub, act)
    assert hub.log.count("POST /other") == 1
    assert list(hub.subscriptions) == [hub.url("/topic")]


def test_205_and_g2_only_what_was_asked_for_is_confirmed(tmp_path: Path) -> None:
    hub, _ = the_hub("header")
    hub.verifies = False

    async def act(daemon: Daemon) -> None:
        await until(lambda: hub.asked)
        said = hub.asked[0]
        port = int(said["hub.callback"].split(":")[2].split("/")[0])
        path = said["hub.callback"].split(str(port))[1]
        assert (await hub.verify(said, hub_topic=hub.url("/wrong")))[0] == 404
        assert (await hub.verify(said, hub_mode="unsubscribe"))[0] == 404
        assert (await hub.verify(said, hub_challenge=""))[0] == 404
        assert (await hub.verify(said, hub_challenge="x" * 20_000))[0] == 404
        assert (await hub.verify({**said, "hub.callback": said["hub.callback"][:-1]}))[0] == 404
        assert (await raw(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())).status == 404
        assert (
            await raw(port, f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx".encode())
        ).status == 410
        query = f"hub.mode=subscribe&hub.topic={said['hub.topic']}&hub.challenge=%3Cscript%3E&hub.lease_seconds=-1"
        answered = await raw(port, f"GET {path}?{query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert (answered.status, answered.body) == (200, b"<script>")
        assert answered.headers["content-type"].startswith("text/plain")
        assert answered.headers["x-content-type-options"] == "nosniff"
        assert (await hub.verify(said))[0] == 404, "nothing is asked any more"
        subscription = daemon.sources.all[0].subscriptions.all()[0]  # type: ignore[attr-defined]
        lease = subscription.until - daemon.clock()
        assert 200 < lease <= 300, "a lease of -1 is the shortest there is"
        assert subscription.next_try < subscription.until, "renewed before it ends"

    crawls(tmp_path, hub, act)


@pytest.mark.parametrize(("said", "seconds"), [("0", 300.0), ("-1", 300.0), ("1e12", 30 * 86400.0), ("nan", 864000.0)])
def test_g2_leases_are_clamped(said: str, seconds: float) -> None:
    assert lease_of(said) == seconds


def test_g1_and_300_to_302_what_is_delivered_counts_if_it_is_signed(tmp_path: Path) -> None:
    hub, _ = the_hub("atom")
    pages = ("/", "/a", "/b", "/c")
    hub.topics |= {page: lambda: html_page() for page in pages[1:]}
    heard: list[int] = []

    async def act(daemon: Daemon) -> None:
        urls = [hub.url(page) for page in pages[1:]]
        topic, engine = hub.url("/topic"), daemon.engine
        await until(lambda: hub.subscriptions and all(url in engine and engine.current(url) for url in urls))
        daemon.control.pauses = type(daemon.control.pauses)(everything=True)  # signals stay as they were heard
        await asyncio.sleep(0.3)
        before = signals_of(daemon, *urls)
        body = atom(hub, "/a")
        other = {**hub.subscriptions[topic], "hub.secret": "that of another topic"}
        good = hub.subscriptions[topic]
        for options in (
            {"signature": ""},
            {"signature": "sha256=" + "0" * 64},
            {"signature": "md5=" + "0" * 32},
            {"signature": "nonsense"},
            {"signature": "sha256=" + "é" * 64},
            {"secret": other["hub.secret"]},
            {"secret": "x" * 200},
        ):
            assert 200 <= await hub.publish(topic, body, **options) < 300  # type: ignore[arg-type]
        await asyncio.sleep(0.5)
        assert signals_of(daemon, *urls) == before, "it must not count"
        assert 200 <= await hub.publish(topic, body) < 300
        await until(lambda: signals_of(daemon, *urls) == before + 1)
        assert 200 <= await hub.publish(topic, atom(hub, "/b"), method="sha1") < 300
        await asyncio.sleep(0.4)
        assert signals_of(daemon, *urls) == before + 1, "weaker than what was agreed"
        assert good["hub.secret"]
        assert 200 <= await hub.publish(topic, atom(hub, "/b", when=time.time() - 1e6), method="sha512") < 300
        await asyncio.sleep(0.4)
        assert signals_of(daemon, *urls) == before + 1, "older than the copy"
        heard.append(signals_of(daemon, *urls))

    crawls(tmp_path, hub, act, *pages)
    assert heard


def test_g3_deliveries_are_bounded(tmp_path: Path) -> None:
    hub, _ = the_hub("header")

    async def act(daemon: Daemon) -> None:
        await until(lambda: hub.subscriptions)
        callback = next(iter(hub.subscriptions.values()))["hub.callback"]
        port = int(callback.split(":")[2].split("/")[0])
        head = f"POST {callback.split(str(port))[1]} HTTP/1.1\r\nHost: x\r\n"
        assert (await raw(port, f"{head}Content-Length: 1073741824\r\n\r\n".encode())).status == 413
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        began = time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() - began < SECONDS / 2:
                writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
                await writer.drain()
                if reader.at_eof() or (reader._buffer):  # type: ignore[attr-defined]
                    break
        assert time.monotonic() - began < SECONDS / 2
        writer.close()
        import gzip

        bomb = gzip.compress(b"<feed>" + b" " * 80_000_000)
        assert await hub.publish(hub.url("/topic"), bomb) in (202, 413)

    crawls(tmp_path, hub, act)


def test_it_renews_survives_a_restart_and_unsubscribes_when_nobody_needs_it(tmp_path: Path) -> None:
    hub, topics = the_hub("header")
    hub.lease = "300"
    names: list[str] = []

    async def subscribe(daemon: Daemon) -> None:
        await until(lambda: hub.subscriptions)
        await asyncio.sleep(0.3)

    store = crawls(tmp_path, hub, subscribe)
    names += [name for name, _ in store.names(subscriptions.KEPT)]
    assert len(names) == 1

    port = hub.port

    async def again(daemon: Daemon) -> None:
        mine = daemon.sources.all[0].subscriptions  # type: ignore[attr-defined]
        found = mine.all()
        assert [each.name for each in found] == [name.removeprefix(subscriptions.KEPT) for name in names]
        assert found[0].is_active(daemon.clock())
        daemon.clock.shift += 250.0  # type: ignore[attr-defined] # 80 % of the lease are over
        await until(lambda: len(hub.asked) == 1, 10.0)
        assert hub.asked[0]["hub.secret"] == found[0].secret
        await until(lambda: found[0].until > daemon.clock() + 200)
        mine.leave(found[0])
        await until(lambda: hub.asked[-1]["hub.mode"] == "unsubscribe" and not mine.all())

    hub.asked.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hub.free_port", lambda: port)
        crawls(tmp_path, hub, again, store=store)
    assert hub.subscriptions == {}
    assert topics


def test_without_an_address_for_hubs_nobody_is_asked() -> None:
    hub, _ = the_hub("header")

    async def go() -> None:
        await hub.start()
        crawl = Crawl(LiveSite(lambda host, path: b""), budget=50)
        await crawl.until(lambda: hub.log.count("GET /") >= 10, hub.url("/"), seconds=10.0)
        await hub.stop()

    asyncio.run(go())
    assert hub.asked == []


def test_link_headers_are_read_in_linear_time() -> None:
    began = time.process_time()
    for text in ("<" * 16_000, "<a>;" * 4_000, '<a>; rel="' + "x" * 16_000, "<a>" + "; a=b" * 3_000, "<a> " * 4_000):
        in_header(text)
    assert time.process_time() - began < 1.0

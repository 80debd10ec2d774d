"""A crawl that was told nothing but an address hears sitemap, feed and hub of the site; and row S4 over all of them."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from afresh.daemon import Daemon, Event, Listed
from afresh.frontier import Scope
from afresh.sources.web import Discovery, lists, subscriptions
from afresh.store import Memory
from hub import Answer, Hub, free_port
from live_site import Crawl, LiveSite, html

FEED_LINK = '<link rel="alternate" type="application/rss+xml" href="/feed">'


def moment(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).isoformat()


def crawls(
    folder: Path, hub: Hub, reached: Callable[[Daemon, list[Listed]], bool], *, discovers: bool = True
) -> tuple[Memory, list[Listed]]:
    """Crawl the front page of a hub's host until something is so."""
    store, told, daemons = Memory(), [], []

    def hear(event: Event) -> None:
        if isinstance(event, Listed):
            told.append(event)

    async def go() -> None:
        await hub.start()
        discovery = Discovery(Scope(hosts=["127.0.0.1"])) if discovers else None
        port = free_port()
        crawl = Crawl(
            LiveSite(lambda host, path: b""),
            store,
            discovery=discovery,
            receive=(port, folder / "tokens"),
            budget=20,
            listeners=(hear,),
            began=daemons.append,
        )
        try:
            await crawl.until(lambda: bool(daemons) and reached(daemons[0], told), hub.url("/"), seconds=20.0)
        finally:
            await hub.stop()

    asyncio.run(go())
    return store, told


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(lists, "LOOK_SECONDS", 0.05)


def text(body: str, kind: str = "text/html") -> Callable[[], Answer]:
    return lambda: (200, {"Content-Type": kind}, body.encode())


def test_a_crawl_ends_up_listening_to_everything_without_being_told(tmp_path: Path) -> None:
    hub = Hub()
    old = moment(time.time() - 86_400)

    def robots() -> Answer:
        return 200, {}, b"Sitemap: /map.xml"

    def feed() -> Answer:
        items = "".join(f"<item><link>{hub.url(p)}</link><pubDate>{old}</pubDate></item>" for p in ("/fed", "/"))
        head = '<a:link rel="hub" href="/hub"/><a:link rel="self" href="/feed"/>'
        return 200, {}, f'<rss xmlns:a="http://www.w3.org/2005/Atom"><channel>{head}{items}</channel></rss>'.encode()

    hub.topics = {
        "/robots.txt": robots,
        "/": text(f"<head>{FEED_LINK}</head><p>Hello <a href='/linked'>there</a>"),
        "/map.xml": lambda: (200, {}, f"<urlset><url><loc>{hub.url('/mapped')}</loc></url></urlset>".encode()),
        "/feed": feed,
        **{path: text("<p>page") for path in ("/linked", "/mapped", "/fed")},
    }

    def reached(daemon: Daemon, told: list[Listed]) -> bool:
        return bool(hub.subscriptions) and daemon.store.totals().copies >= 4

    store, told = crawls(tmp_path, hub, reached)
    assert {state.page.url for _, state in store.states()} == {hub.url(p) for p in ("/", "/linked", "/mapped", "/fed")}
    assert list(hub.subscriptions) == [hub.url("/feed")]
    assert {event.url for event in told} == {hub.url("/map.xml"), hub.url("/feed")}


def test_a_feed_is_heard_and_polled_by_value_and_its_news_are_signals() -> None:
    """Without discovery, as `afresh run` does: hints alone."""
    site, store, told, old = LiveSite(lambda host, path: b""), Memory(), [], time.time() - 60.0

    def answer(host: str, path: str) -> bytes:
        if path == "/feed":
            when = moment(time.time() if told else old)  # from the second reading on newer than any copy
            urls = (site.url("a.test"), site.url("a.test", "/x"), site.url("a.test", "/new"))
            rows = "".join(f'<entry><id>{u}</id><link href="{u}"/><updated>{when}</updated></entry>' for u in urls)
            return html(f'<feed xmlns="http://www.w3.org/2005/Atom">{rows}</feed>', kind="application/atom+xml")
        if path == "/robots.txt":
            return b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"
        return html(f"<head>{FEED_LINK}</head><p>{path}")

    site.answer = answer

    async def go() -> None:
        await site.start()
        crawl = Crawl(
            site, store, budget=5, listeners=(lambda event: told.append(event) if isinstance(event, Listed) else None,)
        )
        pages = [site.url("a.test"), site.url("a.test", "/x")]
        await crawl.until(lambda: sum(event.signals for event in told) >= 1, *pages, seconds=40.0)
        site.stop()

    asyncio.run(go())
    assert sum(event.signals for event in told) >= 1
    assert {event.found for event in told} == {0}
    assert store.totals().pages == 2


INSIDE = "http://169.254.169.254/latest"


@pytest.mark.parametrize(
    "entrance",
    [
        "sitemap entry",
        "index entry",
        "feed link",
        "hub",
        "topic",
        "Sitemap line",
        "redirect",
        "canonical",
        "feed entry",
    ],
)
def test_s4_no_entrance_leads_past_the_guard(tmp_path: Path, entrance: str) -> None:
    hub = Hub()
    link = {
        "feed link": f'<link rel="alternate" type="application/rss+xml" href="{INSIDE}">',
        "hub": f'<link rel="hub" href="{INSIDE}"><link rel="self" href="/">',
        "topic": f'<link rel="hub" href="/hub"><link rel="self" href="{INSIDE}">',
        "canonical": f'<link rel="canonical" href="{INSIDE}">',
        "feed entry": FEED_LINK,
    }.get(entrance, "")
    maps = {
        "sitemap entry": f"<urlset><url><loc>{INSIDE}</loc></url></urlset>",
        "index entry": f"<sitemapindex><sitemap><loc>{INSIDE}</loc></sitemap></sitemapindex>",
    }
    hub.topics = {
        "/robots.txt": text(f"Sitemap: {INSIDE if entrance == 'Sitemap line' else '/map.xml'}"),
        "/": text(f"<head>{link}</head><p>Hello <a href='/next'>n</a>"),
        "/next": (lambda: (302, {"Location": INSIDE}, b"")) if entrance == "redirect" else text("<p>next"),
        "/map.xml": text(maps.get(entrance, "<urlset></urlset>"), "text/xml"),
        "/feed": text(f"<rss><channel><item><link>{INSIDE}</link></item></channel></rss>", "text/xml"),
    }
    connected: list[str] = []
    import afresh.fetch.connect as connect

    real = connect.start_connection

    async def watched(infos, **more):  # type: ignore[no-untyped-def]
        connected.extend(info[4][0] for info in infos)
        return await real(infos, **more)

    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connect, "start_connection", watched)
        store, _ = crawls(
            tmp_path, hub, lambda daemon, told: time.monotonic() - began > 2.0 and len(hub.log) > 6, discovers=True
        )
    assert connected
    assert set(connected) == {"127.0.0.1"}
    assert all("169.254" not in state.page.url for _, state in store.states())

"""Sitemaps over real sockets: what they name is found, what they call new is looked at, and nobody is hurried."""

import asyncio
import gzip
import time
import tracemalloc
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from afresh.daemon import Event, Listed
from afresh.daemon.desk import Desk
from afresh.frontier import Politeness, Scope, host_of
from afresh.sources.web import Discovery
from afresh.store import Memory
from afresh.store.messages import FOLLOWED
from afresh.types import Outcome
from live_site import NONE, Crawl, LiveSite, html, to

HOUR = 3600.0


def play(site: LiveSite, act: Callable[[], object]) -> None:
    async def go() -> None:
        await site.start()
        try:
            await act()  # type: ignore[misc]
        finally:
            site.stop()

    asyncio.run(go())


def answer_of(kind: str, body: bytes, *headers: str) -> bytes:
    more = "".join(f"{header}\r\n" for header in headers)
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


def xml(root: str, entry: str, *urls: str, changed: dict[str, float] | None = None) -> bytes:
    """A list or an index of sitemaps, with the moments of some."""
    rows = []
    for url in urls:
        when = (changed or {}).get(url)
        lastmod = f"<lastmod>{datetime.fromtimestamp(when, UTC).isoformat()}</lastmod>" if when is not None else ""
        rows.append(f"<{entry}><loc>{url}</loc>{lastmod}</{entry}>")
    return f"<?xml version='1.0'?><{root}>{''.join(rows)}</{root}>".encode()


def heard(into: list[Listed]) -> Callable[[Event], None]:
    return lambda event: into.append(event) if isinstance(event, Listed) else None


def kept(store: Memory) -> dict[str, int]:
    return {state.page.url: state.page.depth for _, state in store.states()}


def test_pages_that_only_a_sitemap_names_are_found_each_once() -> None:
    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return html("User-agent: *\nDisallow: /no\nSitemap: /index.xml\nSitemap: /no/list.xml", kind="text/plain")
        if path == "/index.xml":
            names = ("/index.xml", "/one.xml", "/two.xml.gz", "/text.txt", "/gone.xml")
            return answer_of("text/xml", xml("sitemapindex", "sitemap", *(site.url("a.test", name) for name in names)))
        if path == "/one.xml":
            urls = [site.url("a.test", "/a#x"), site.url("a.test", "/a"), site.url("b.test", "/other"), "/rooted"]
            return answer_of("text/html", xml("urlset", "url", *urls, "http://a.test/other-port", "file:///etc/passwd"))
        if path == "/two.xml.gz":
            return answer_of("application/x-gzip", gzip.compress(xml("urlset", "url", site.url("a.test", "/b"))))
        if path == "/text.txt":
            return answer_of("text/plain", f"{site.url('a.test', '/c')}\n{site.url('a.test', '/out')}".encode())
        return NONE if path == "/gone.xml" else html(f"<p>{path}</p>")

    site, store, told = LiveSite(answer), Memory(), []
    pages = {"/start": 0, "/a": 1, "/rooted": 1, "/b": 1, "/c": 1}

    async def act() -> None:
        crawl = Crawl(site, store, discovery=Discovery(Scope(exclude=["/out"])), listeners=(heard(told),))
        await crawl.until(lambda: store.totals().copies >= len(pages) and len(told) >= 5, site.url("a.test", "/start"))

    play(site, act)
    assert kept(store) == {site.url("a.test", path): depth for path, depth in pages.items()}
    asked = site.asked("a.test")
    sitemaps = ["/index.xml", "/one.xml", "/two.xml.gz", "/text.txt", "/gone.xml"]
    assert [asked.count(name) for name in sitemaps] == [1] * 5
    assert "/no/list.xml" not in asked, "robots.txt is obeyed, also where it contradicts itself"
    assert all(len([path for path in asked if path == page]) >= 1 for page in pages)
    assert {each.host for each in site.log} == {"a.test"}
    said = {event.url.rpartition("/")[2]: event for event in told}
    assert (said["one.xml"].entries, said["one.xml"].found) == (5, 2)
    assert said["gone.xml"].problem == "It could not be fetched: status_404."
    assert said["list.xml"].problem == "It could not be fetched: robots."


def test_depth_0_means_the_seeds_alone() -> None:
    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return html("Sitemap: /list.xml", kind="text/plain")
        return answer_of("text/xml", xml("urlset", "url", "/a")) if path == "/list.xml" else html("<p>hello")

    site, store, told = LiveSite(answer), Memory(), []

    async def act() -> None:
        crawl = Crawl(site, store, discovery=Discovery(Scope(depth=0)), listeners=(heard(told),))
        await crawl.until(lambda: bool(told), site.url("a.test"))

    play(site, act)
    assert list(kept(store)) == [site.url("a.test")]


def script(*steps: tuple[Callable[[], bool], Callable[[], object]]) -> Callable[[], bool]:
    """True once every step has come true, each after the one before it and followed by what it is to bring about."""
    left = list(steps)

    def reached() -> bool:
        while left and left[0][0]():
            left.pop(0)[1]()
        return not left

    return reached


def test_a_page_said_to_be_newer_than_its_copy_is_signalled_and_nothing_else_is() -> None:
    changed: dict[str, float] = {}
    version = 1

    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return html("Sitemap: /list.xml", kind="text/plain")
        if path == "/list.xml":
            if f'If-None-Match: "{version}"' in site.log[-1].head:
                return b"HTTP/1.1 304 Not Modified\r\n\r\n"
            if version == 2:  # now, hence after whatever crawl came before
                changed[site.url("a.test", "/new")] = crawl.clock()
                changed[site.url("a.test", "/future")] = crawl.clock() + 99 * HOUR
            return answer_of("text/xml", xml("urlset", "url", *changed, changed=changed), f'ETag: "{version}"')
        return html(f"<p>{path}</p>")

    site, store, told = LiveSite(answer), Memory(), []
    crawl = Crawl(site, store, discovery=Discovery(Scope()), listeners=(heard(told),), budget=50)

    async def act() -> None:
        old, new, future, unsaid = (site.url("a.test", f"/{name}") for name in ("old", "new", "future", "unsaid"))
        changed.update(dict.fromkeys((old, new, future, unsaid), crawl.clock() - 10 * HOUR))

        def later(hours: float) -> None:
            crawl.clock.shift += hours * HOUR

        def say() -> None:
            nonlocal version, asked_before
            version, asked_before = 2, site.asked("a.test").count("/list.xml")

        def heard_again() -> bool:
            """An answer that was on its way at a step of the clock begins the rest of the list anew: one more step."""
            if site.asked("a.test").count("/list.xml") == asked_before:
                later(1)
            return len(told) == 2

        asked_before = 0
        daemon = await crawl.until(
            script(
                (lambda: store.totals().copies >= 5, lambda: later(7)),
                (lambda: site.asked("a.test").count("/list.xml") >= 2, say),
                (heard_again, lambda: None),
            ),
            site.url("a.test"),
        )
        known = daemon._grading.grades._hosts[host_of(new)]
        assert known.tallies[known.senders.index("sitemap")].readings >= 1.0, "what it does not say counts from now on"

    play(site, act)
    assert [(event.entries, event.found, event.signals) for event in told] == [(4, 4, 0), (4, 0, 1)]
    asked = [each.head for each in site.log if each.path == "/list.xml"]
    assert "If-None-Match" not in asked[0]
    assert all('If-None-Match: "1"' in head for head in asked[1:])


def test_a_signal_is_not_repeated_while_the_page_waits_to_be_crawled() -> None:
    """The page fails from its second crawl on, so that it stays as it was."""

    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return html("Sitemap: /list.xml", kind="text/plain")
        if path == "/list.xml":
            page = site.url("a.test", "/page")
            return answer_of("text/xml", xml("urlset", "url", page, changed={page: crawl.clock()}))
        return NONE if path == "/page" and len(told) > 1 else html("<p>hello")

    site, store, told = LiveSite(answer), Memory(), []
    crawl = Crawl(site, store, discovery=Discovery(Scope()), listeners=(heard(told),), budget=50)

    def later() -> None:
        crawl.clock.shift += 8 * 24 * HOUR  # longer than any list is left alone

    async def act() -> None:
        gone = (lambda: store.history(site.url("a.test", "/page"))[0].outcome is Outcome.GONE, later)
        steps = [(lambda number=number: len(told) == number, later) for number in range(3, 6)]
        first = (lambda: store.totals().copies >= 2, later)
        await crawl.until(script(first, gone, *steps), site.url("a.test"))

    play(site, act)
    assert [event.signals for event in told][:5] == [0, 1, 0, 0, 0]


def test_a_large_index_hurries_nobody_and_starves_nobody() -> None:
    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return html("Sitemap: /index.xml", kind="text/plain")
        if path == "/index.xml":
            return answer_of("text/xml", xml("sitemapindex", "sitemap", *(f"/part{n}.xml" for n in range(100))))
        return (
            answer_of("text/xml", xml("urlset", "url", path.replace("xml", "html"))) if "xml" in path else html("<p>x")
        )

    site, store = LiveSite(answer), Memory()
    polite = Politeness(factor=0, shortest_gap=0.05, longest_gap=0.05)

    async def act() -> None:
        crawl = Crawl(site, store, discovery=Discovery(Scope()), politeness=polite)
        await crawl.until(lambda: len(site.log) >= 40, site.url("a.test"))

    play(site, act)
    assert min(site.gaps()) >= 0.049
    assert site.most_at_once() == 1
    turns = ["xml" in path for path in site.asked("a.test")]
    assert sum(turns) >= 10
    assert not any(one and other for one, other in pairwise(turns)), "never two sitemaps in a row"


@pytest.mark.parametrize("whole", [True, False])
def test_what_an_index_names_no_longer_is_forgotten_unless_it_breaks_off(whole: bool) -> None:
    names = ["/a.xml", "/b.xml"]

    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return html("Sitemap: /index.xml", kind="text/plain")
        if path == "/index.xml":
            body = xml("sitemapindex", "sitemap", *names)
            return answer_of("text/xml", body if whole or len(names) > 1 else body[:-5])
        return answer_of("text/xml", xml("urlset", "url", "/page")) if "xml" in path else html("<p>hello")

    site, told, marks = LiveSite(answer), [], []
    crawl = Crawl(site, discovery=Discovery(Scope()), listeners=(heard(told),), budget=50)

    def later() -> None:
        names[1:] = []
        crawl.clock.shift += 7 * HOUR

    async def act() -> None:
        # Read, and not only asked for: what is read after the clock was moved is as of then.
        first = (lambda: {"/a.xml", "/b.xml"} <= {event.url[-6:] for event in told}, later)
        again = (lambda: site.asked("a.test").count("/a.xml") == 2, lambda: marks.append(len(site.log)))
        rest = (lambda: len(site.log) > marks[0] + 8, lambda: None)
        await crawl.until(script(first, again, rest), site.url("a.test"))

    play(site, act)
    assert site.asked("a.test").count("/index.xml") == 2
    assert site.asked("a.test").count("/b.xml") == (1 if whole else 2)
    assert any(event.problem for event in told) is not whole


def test_a_sitemap_on_another_host_is_read_in_that_hosts_turn_and_speaks_for_the_one_that_names_it() -> None:
    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            line = f"Sitemap: http://store.test:{site.port}/a.xml"
            return html(line, kind="text/plain") if host == "a.test" else NONE
        if path == "/a.xml":
            hosts = ("a.test", "store.test", "b.test")
            return answer_of("text/xml", xml("urlset", "url", *(site.url(name, "/page") for name in hosts)))
        return html("<p>hello")

    site, store, told = LiveSite(answer), Memory(), []

    async def act() -> None:
        scope = Scope(hosts=["a.test", "b.test"])
        crawl = Crawl(site, store, discovery=Discovery(scope), listeners=(heard(told),))
        await crawl.until(lambda: store.totals().copies >= 2, site.url("a.test"))

    play(site, act)
    assert set(kept(store)) == {site.url("a.test"), site.url("a.test", "/page")}
    assert site.asked("store.test") == ["/robots.txt", "/a.xml"]
    assert [(event.entries, event.found) for event in told] == [(3, 1)]


def test_without_discovery_a_sitemap_is_heard_and_what_is_known_of_it_survives_a_restart() -> None:
    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return html("Sitemap: /list.xml", kind="text/plain")
        return answer_of("text/xml", xml("urlset", "url", "/a")) if path == "/list.xml" else html("<p>hello")

    site, store = LiveSite(answer), Memory()

    async def act() -> None:
        await Crawl(site, store).until(lambda: len(site.log) >= 6, site.url("a.test"))
        assert site.asked("a.test").count("/list.xml") == 1
        assert list(kept(store)) == [site.url("a.test")], "nobody wanted its pages"
        await Crawl(site, store, discovery=Discovery(Scope())).until(lambda: store.totals().copies >= 2)
        asked = len(site.log)
        await Crawl(site, store, discovery=Discovery(Scope())).until(lambda: len(site.log) >= asked + 4)

    play(site, act)
    assert site.asked("a.test").count("/robots.txt") == 1
    assert site.asked("a.test").count("/list.xml") == 2, "once for hints, once for its pages"


def test_a_reading_tells_for_which_pages_all_is_heard_that_lists_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for those that another list of the same sender names; also if the list is as it was."""

    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return html("Sitemap: /a.xml\nSitemap: /b.xml", kind="text/plain")
        if path.endswith(".xml"):
            if 'If-None-Match: "1"' in site.log[-1].head:
                return b"HTTP/1.1 304 Not Modified\r\n\r\n"
            return answer_of("text/xml", xml("urlset", "url", path.removesuffix(".xml")), 'ETag: "1"')
        return html(f"<p>{path}</p>")

    site, told, urls = LiveSite(answer), list[tuple[str, str, list[str]]](), list[str]()
    crawl = Crawl(site, discovery=Discovery(Scope()), budget=50)

    def read(self: Desk, lane: str, sender: str, until: float, keys: Iterable[str]) -> None:
        assert crawl.clock() - HOUR < until < crawl.clock()
        told.append((lane, sender, sorted(keys)))
        crawl.clock.shift += 8 * 24 * HOUR if len(told) >= 2 else 0.0  # longer than any list is left alone

    monkeypatch.setattr(Desk, "unread", lambda self, lane: urls)
    monkeypatch.setattr(Desk, "read", read)

    async def act() -> None:
        urls.extend(site.url("a.test", f"/{name}") for name in "abc")
        await crawl.until(lambda: len(told) >= 4, site.url("a.test"))

    play(site, act)
    a, b, c = urls
    assert {(lane, sender) for lane, sender, _ in told} == {(host_of(a), "sitemap")}
    assert [a, c] in [keys for _, _, keys in told[2:4]]
    assert [b, c] in [keys for _, _, keys in told[1:4]]


BOMB = gzip.compress(b"<urlset>" + b" " * 80_000_000)
HOSTILE = {
    "a bomb": (BOMB, 0, "It is larger than 50 MiB; the rest was left out."),
    "entities": (
        b'<!DOCTYPE u [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>',
        0,
        "It declares entities, which are not read.",
    ),
    "60,000 addresses": (xml("urlset", "url", *(f"/p{n}" for n in range(60_000))), 50_000, "It names more than 50,000"),
    "half a file": (
        gzip.compress(xml("urlset", "url", *(f"/{n * n}" for n in range(999))))[:2000],
        100,
        "It breaks off",
    ),
    "17 MB": (b"<urlset>" + b" " * 17_000_000 + b"<url><loc>/a</loc></url>", 1, "It breaks off before its end."),
    "60 MB": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 60000000\r\n\r\n<urlset>",
        0,
        "It could not be fetched: too_large.",
    ),
    "a page": (b"<!doctype html><title>Sorry</title>", 0, "It is a page of HTML, not a sitemap."),
    "an endless way": (to("/list.xml?again"), 0, "It could not be fetched: redirect_loop."),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_g6_a_hostile_sitemap_is_a_clear_sentence_and_costs_bounded_memory(name: str) -> None:
    body, least, problem = HOSTILE[name]

    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return html("Sitemap: /list.xml", kind="text/plain")
        if path.startswith("/list.xml"):
            return body if body.startswith(b"HTTP") else answer_of("text/xml", body)
        return html("<p>hello")

    site, store, told = LiveSite(answer), Memory(), []

    async def act() -> None:
        crawl = Crawl(site, store, discovery=Discovery(Scope(), most_pages=1_000), listeners=(heard(told),))
        await crawl.until(lambda: bool(told) and store.totals().copies >= 1, site.url("a.test"), seconds=60.0)

    if name != "60,000 addresses":  # tracing so many takes long; a part of them is traced where they are read
        tracemalloc.start()
    play(site, act)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert told[0].problem.startswith(problem)
    assert told[0].entries >= least
    assert store.totals().pages <= 1_000
    assert store.copy(site.url("a.test")) is not None, "the pages do not notice"
    assert peak < 2.5 * 50 * 1024 * 1024


def test_a_followed_sitemap_has_all_its_pages_kept_and_one_that_vanishes_may_be_gone() -> None:
    """Without discovery, as `afresh add --sitemap` and `afresh run` do."""
    names, began = ["/a", "/b"], time.time()

    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return NONE
        if path == "/map.xml":
            urls = [site.url("a.test", name) for name in names]
            return answer_of("text/xml", xml("urlset", "url", *urls, changed=dict.fromkeys(urls, began - 60.0)))
        return html(f"<p>{path}")

    site, store, told, daemons = LiveSite(answer), Memory(), [], []

    async def act() -> None:
        store.put({f"{FOLLOWED}{site.url('a.test', '/map.xml')}": "{}"})
        crawl = Crawl(site, store, budget=10, listeners=(heard(told),), began=daemons.append)

        def gone() -> bool:
            if store.totals().copies >= 3:
                names[1:] = []
            return "sitemap-gone" in daemons[0].engine.senders.names if daemons else False

        await crawl.until(gone, site.url("a.test"), seconds=40.0)

    play(site, act)
    assert set(kept(store)) == {site.url("a.test", path) for path in ("/", "/a", "/b")}
    assert told[0].found == 2
    assert told[-1].signals == 1

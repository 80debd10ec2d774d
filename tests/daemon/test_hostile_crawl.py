"""Rows T1 to T5, F14 and S4 of what must be survived, over real sockets: traps, robots.txt, addresses, entrances."""

import asyncio
import time
import tracemalloc
from collections.abc import Callable
from itertools import count, pairwise

import pytest

from afresh.daemon import Listed
from afresh.frontier import AddressLimits, Politeness, Scope, Traps
from afresh.sources.web import Discovery
from afresh.store import Memory
from afresh.types import Outcome
from live_site import NONE, Crawl, LiveSite, html, to


def play(site: LiveSite, act: Callable[[], object]) -> None:
    """Have the site up while something happens."""

    async def go() -> None:
        await site.start()
        try:
            await act()  # type: ignore[misc]
        finally:
            site.stop()

    asyncio.run(go())


def test_t1_a_trap_gets_its_cap_and_the_other_site_is_found_whole() -> None:
    fresh = count()

    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return NONE
        if host == "trap.test":
            links = [f"/cal?month={next(fresh)}", f"/p?sid={next(fresh)}", f"{path}/a/b", f"/gone/{next(fresh)}"]
            return html("".join(f'<a href="{link}">x</a>' for link in links) + f'<a href="//good.test:{site.port}/">')
        return html(f'<p>page {path}</p><a href="/{"x" * len(path)}">' if len(path) < 31 else "<p>the last</p>")

    site, store = LiveSite(answer), Memory()
    traps = Traps(variants=5, pattern=10, pages_per_host=60)

    async def act() -> None:
        crawl = Crawl(site, store, discovery=Discovery(Scope(traps=traps)), names={"trap.test": "127.0.0.2"})
        await crawl.until(lambda: "/" + "x" * 30 in site.asked("good.test"), site.url("trap.test", "/start"))

    tracemalloc.start()
    play(site, act)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert {"/" + "x" * number for number in range(31)} <= set(site.asked("good.test"))
    trapped = set(site.asked("trap.test")) - {"/robots.txt"}
    assert 10 < len(trapped) <= 60
    assert sum("?month=" in path for path in trapped) <= 5
    assert not any("sid=" in path for path in trapped)
    assert peak < 60_000_000


def test_t1_the_caps_of_a_host_hold_over_a_restart() -> None:
    fresh = count()
    site = LiveSite(lambda host, path: NONE if path == "/robots.txt" else html(f'<a href="/x{next(fresh)}y">'))
    store = Memory()

    async def act() -> None:
        for _ in range(3):
            discovery = Discovery(Scope(traps=Traps(pages_per_host=40, pattern=15)))
            refused = discovery.refused
            crawl = Crawl(site, store, discovery=discovery)
            await crawl.until(lambda: bool(refused), site.url("a.test"), seconds=10.0)  # noqa: B023
            assert discovery.refused.get("pattern")

    play(site, act)
    assert store.totals().pages <= 1 + 15


def test_t2_a_page_that_differs_on_every_fetch_is_known_for_noise() -> None:
    ticks = count()

    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return NONE
        now = next(ticks)
        story = "The harbour was rebuilt after the storm and the lighthouse keeper stayed on. " * 5
        return html(
            f"<main><p>{story}</p><p>Updated {now % 24}:{now % 60:02}:00, token {now:032x}</p></main>"
            f"<div class=ad>{now}</div>"
        )

    site, store = LiveSite(answer), Memory()
    url = ""

    async def act() -> None:
        nonlocal url
        url = site.url("clock.test")
        await Crawl(site, store).until(lambda: store.totals().crawls >= 8, url)

    play(site, act)
    new, *later = reversed(store.history(url, 100))
    assert new.outcome is Outcome.NEW
    assert {crawl.outcome for crawl in later[:3]} == {Outcome.CHANGED}
    assert {(crawl.outcome, crawl.reason) for crawl in later[4:]} == {(Outcome.UNCHANGED, "noise")}


AGENTS = "".join(f"User-agent: robot{number}\n" for number in range(100_000))
UTF_16 = "User-agent: *\nDisallow: /no\n".encode("utf-16")
HOSTILE: dict[str, tuple[str | bytes, bool]] = {
    "UTF-16": (UTF_16, False),
    "a line of 16,664 bytes": ("User-agent: *\nDisallow: /" + "a" * 16_664 + "\nDisallow: /no\n", False),
    "2 MB": ("User-agent: *\nDisallow: /no\n" + "# filling\n" * 200_000, False),
    "21 MB": ("User-agent: *\nDisallow: /no\n" + "# filling\n" * 2_100_000, False),
    "HTML": ("<!doctype html><html><body>User-agent: *<br>Disallow: /no</body></html>", True),
    "a rule before any agent": ("Disallow: /no\nUser-agent: other\nDisallow: /", True),
    "100,000 agents": (AGENTS + "Disallow: /\nUser-agent: *\nDisallow: /no", True),  # the rest is beyond 500 KiB
    "a bomb of wildcards": ("User-agent: *\nDisallow: /" + "*a" * 2_000 + "b\nDisallow: /no", False),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_t3_a_hostile_robots_file_is_read_as_far_as_it_makes_sense(name: str) -> None:
    text, allowed = HOSTILE[name]
    rules = text if isinstance(text, bytes) else text.encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(rules)}\r\n\r\n".encode()
    site = LiveSite(lambda host, path: head + rules if path == "/robots.txt" else html("<p>hello"))
    store = Memory()

    async def act() -> None:
        urls = site.url("a.test", "/no/" + "a" * 1_500), site.url("a.test", "/yes")
        await Crawl(site, store).until(lambda: store.totals().crawls >= 2, *urls)

    began = time.process_time()
    tracemalloc.start()
    play(site, act)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert time.process_time() - began < 20
    assert peak < 40_000_000 + 2 * len(rules)  # the server has them, too
    assert "/yes" in site.asked("a.test")
    assert any(path.startswith("/no") for path in site.asked("a.test")) is allowed


def test_t4_rules_that_appear_while_pages_are_queued_hold_for_them() -> None:
    """5xx: nothing is asked for; 404: everything may be; 200: it is obeyed, also by what was found before."""
    state = "503"

    def answer(host: str, path: str) -> bytes:
        if path != "/robots.txt":
            return html("<p>hello")
        if state == "503":
            return b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
        return NONE if state == "404" else html("User-agent: *\nDisallow: /", kind="text/plain")

    site, store = LiveSite(answer), Memory()

    async def act() -> None:
        nonlocal state
        crawl = Crawl(site, store, budget=100)
        urls = [site.url("a.test", f"/{number}") for number in range(20)]
        await crawl.until(lambda: False, *urls, seconds=0.7)
        assert set(site.asked("a.test")) == {"/robots.txt"}
        state = "404"
        crawl.clock.shift += 2 * 3600  # the failure is forgiven
        await crawl.until(lambda: len(site.asked("a.test")) > 12)
        state = "200"
        crawl.clock.shift += 13 * 3600  # and the answer too old
        before = len(site.log)
        await crawl.until(lambda: len(site.log) > before and store.totals().crawls > 25, seconds=5.0)
        assert {each.path for each in site.log[before:]} == {"/robots.txt"}

    play(site, act)


def test_t4_a_loop_of_redirects_in_place_of_robots_ends() -> None:
    site = LiveSite(lambda host, path: to("/robots.txt") if path == "/robots.txt" else html("<p>hello"))

    async def act() -> None:
        await Crawl(site).until(lambda: False, site.url("a.test"), seconds=1.0)

    play(site, act)
    assert 1 <= len(site.log) <= 3
    assert set(site.asked("a.test")) == {"/robots.txt"}


def test_t5_many_names_on_one_address_share_its_limits() -> None:
    site, store = LiveSite(lambda host, path: html("<p>hello"), takes=0.02), Memory()
    polite = Politeness(factor=0, shortest_gap=0.3, longest_gap=0.3)

    async def act() -> None:
        crawl = Crawl(
            site,
            store,
            politeness=polite,
            limits=AddressLimits(at_once=2, gap_share=0.1, names=50, loopback=True),
            names=lambda name: "127.0.0.9" if name.endswith("many.test") else "127.0.0.3",
            robots=False,
        )
        many = [site.url(f"n{number}.many.test") for number in range(300)]
        await crawl.until(
            lambda: len({each.host for each in site.log}) >= 51, *many, site.url("other.test"), seconds=15
        )

    play(site, act)
    shared = LiveSite(site.answer, log=[each for each in site.log if each.address == "127.0.0.9"])
    assert shared.most_at_once() <= 2
    assert len({each.host for each in shared.log}) <= 50, "no more names than are let in"
    assert len({each.host for each in shared.log}) >= 40
    begun = sorted(each.begun for each in shared.log)
    assert (begun[-1] - begun[0]) >= 0.03 * (len(begun) - 1) / 2 * 0.9, "the address rests after every answer"
    assert min(shared.gaps(), default=1.0) >= 0.29
    assert site.asked("other.test"), "the others do not wait for it"
    refused = [crawl for number in range(300) for crawl in store.history(site.url(f"n{number}.many.test"))]
    assert {crawl.reason for crawl in refused if crawl.outcome is Outcome.REFUSED} == {"names_of_address"}


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("wait", ["0", "-5", "1000000000", "Thu, 01 Jan 1970 00:00:00 GMT", "soon", ""])
def test_f14_a_busy_host_is_left_alone_as_a_whole_and_no_other_is(wait: str, status: int) -> None:
    def answer(host: str, path: str) -> bytes:
        if host == "calm.test":
            return html("<p>hello")
        return f"HTTP/1.1 {status} Busy\r\nRetry-After: {wait}\r\nContent-Length: 0\r\n\r\n".encode()

    site, store = LiveSite(answer), Memory()
    polite = Politeness(factor=0, shortest_gap=0.01, longest_gap=0.01, first_back_off=0.2, longest_back_off=60)

    async def act() -> None:
        crawl = Crawl(site, store, politeness=polite, robots=False, budget=200)
        busy = [site.url("busy.test", f"/{number}") for number in range(30)]
        daemon = await crawl.until(lambda: False, *busy, site.url("calm.test"), seconds=1.5)
        state = daemon.engine.lanes.state("busy.test:" + str(site.port))
        assert state.ready - crawl.clock() <= 60, "the rest that it asks for is cut to the longest"
        assert wait != "1000000000" or state.ready - crawl.clock() > 50
        assert state.failures == len(site.asked("busy.test"))

    play(site, act)
    # After 0, 0.2, 0.6 and 1.4 s at the earliest, whichever page: one storm would be hundreds.
    assert len(site.asked("busy.test")) in ((1,) if wait == "1000000000" else (2, 3, 4))
    busy = [each.begun for each in site.log if each.host == "busy.test"]
    assert all(after - before >= 0.19 * 2**nth for nth, (before, after) in enumerate(pairwise(busy)))
    assert len(site.asked("calm.test")) > 4
    busy_pages = [site.url("busy.test", f"/{number}") for number in range(30)]
    assert {crawl.outcome for url in busy_pages for crawl in store.history(url)} == {Outcome.BUSY}


ENTRANCES = {
    "a link": '<a href="{}">x</a>',
    "an iframe": '<iframe src="{}"></iframe>',
    "a canonical tag": '<link rel=canonical href="{}">',
    "a refresh": '<meta http-equiv=refresh content="0; url={}">',
    "a base": '<base href="{}"><a href="x">x</a>',
    "an image map": '<area href="{}">',
}
PRIVATE = ("http://inner.test:{}/", "http://127.0.0.9:{}/", "http://0x7f000009:{}/", "http://[::ffff:127.0.0.9]:{}/")


LISTS = {
    "a Sitemap line": "",
    "a sitemap that moves": "",
    "an index of sitemaps": "<sitemapindex><sitemap><loc>{}</loc></sitemap></sitemapindex>",
    "an entry of a sitemap": "<urlset><url><loc>{}</loc></url></urlset>",
    "an entry of a feed": "<rss><channel><item><link>{}</link></item></channel></rss>",
    "a line of a text": "{}",
}


@pytest.mark.parametrize("target", PRIVATE)
@pytest.mark.parametrize("entrance", [*ENTRANCES, *LISTS, "a redirect", "robots.txt", "the list of pages"])
def test_s4_no_entrance_leads_to_a_private_address(entrance: str, target: str) -> None:
    """The guard lets 127.0.0.1 through here; whatever is sent to 127.0.0.9 got past it."""

    def answer(host: str, path: str) -> bytes:
        inner = target.format(site.port)
        if path == "/robots.txt":
            line = inner if entrance == "a Sitemap line" else "/list"
            return to(inner) if entrance == "robots.txt" else html(f"Sitemap: {line}", kind="text/plain")
        if path == "/list":
            return to(inner) if entrance == "a sitemap that moves" else html(LISTS[entrance].format(inner))
        if entrance == "a redirect" and path == "/":
            return to(inner)
        return html(ENTRANCES.get(entrance, "").format(inner) + '<p>hello <a href="/end">')

    site, store, told = LiveSite(answer), Memory(), []

    def decided() -> bool:
        crawls = [crawl for _, state in store.states() for crawl in store.history(state.page.url)]
        return (
            any(crawl.reason in ("refused_address", "bad_url") for crawl in crawls)
            or any(isinstance(event, Listed) for event in told)
            or any(each.address != "127.0.0.1" for each in site.log)
        )

    async def act() -> None:
        urls = [site.url("outer.test")]
        if entrance == "the list of pages":
            urls.append(target.format(site.port))
        crawl = Crawl(site, store, discovery=Discovery(Scope()), names={"inner.test": "127.0.0.9"})
        crawl.listeners = (told.append,)
        crawl.networks, crawl.robots = ("127.0.0.1/32",), entrance == "robots.txt" or entrance in LISTS
        await crawl.until(decided, *urls, seconds=1.0 if entrance == "robots.txt" else 10.0)
        if entrance in LISTS:  # what it named may be asked for only now
            await crawl.until(lambda: False, seconds=0.2)

    play(site, act)
    assert site.log
    assert {each.address for each in site.log} == {"127.0.0.1"}
    assert decided() or entrance == "robots.txt"  # after which nothing may be asked at all

"""Redirects to other hosts, and what is known of robots.txt, over real sockets."""

import asyncio
from collections.abc import Callable

from afresh.fetch import Scripted
from afresh.frontier import Lanes, Politeness, Scope, host_of
from afresh.sources import Later
from afresh.sources.web import Discovery
from afresh.sources.web.asking import Asker
from afresh.store import Memory
from afresh.types import Fetched, Outcome, Validators
from live_site import NONE, Clock, Crawl, LiveSite, html, to

POLITE = Politeness(factor=0, shortest_gap=0.4, longest_gap=0.4)


def play(site: LiveSite, act: Callable[[], object]) -> None:
    async def go() -> None:
        await site.start()
        try:
            await act()  # type: ignore[misc]
        finally:
            site.stop()

    asyncio.run(go())


def test_a_redirect_to_another_host_is_followed_in_that_hosts_turn_and_with_its_permission() -> None:
    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return html("User-agent: *\nDisallow: /private\n", kind="text/plain") if host == "b.test" else NONE
        return to(f"http://b.test:{site.port}{path}") if host == "a.test" else html(f"<p>here {path}</p>")

    site, store = LiveSite(answer), Memory()

    async def act() -> None:
        urls = [site.url("a.test", "/open"), site.url("a.test", "/private"), site.url("b.test", "/own")]
        await Crawl(site, store, politeness=POLITE).until(
            lambda: all(store.history(url) for url in urls) and store.totals().copies == 2, *urls
        )
        copy = store.copy(urls[0])
        assert copy is not None
        assert copy.body == b"<p>here /open</p>"
        assert copy.validators.etag == ""
        refused = store.history(urls[1])[0]
        assert (refused.outcome, refused.reason) == (Outcome.REFUSED, "robots")

    play(site, act)
    assert "/private" not in site.asked("b.test")
    assert min(site.gaps()) >= 0.39, "a redirect does not shorten the rest of the host it leads to"
    assert LiveSite(site.answer, log=[each for each in site.log if each.host == "b.test"]).most_at_once() == 1


def test_an_order_that_was_given_before_its_host_was_visited_waits_for_the_rest_after_that() -> None:
    lanes, now = Lanes(POLITE), 10.0
    fetcher = Scripted(lambda url, known: Fetched(url, now, 0.1, status=200, body=b"here"))
    asker = Asker(fetcher=fetcher, lanes=lanes, clock=lambda: now)
    lanes.lane("b.test")
    got = asyncio.run(asker.ask("http://b.test/own", Validators()))
    assert isinstance(got, Fetched)
    lanes.rest_until("b.test", now + 0.4)  # as after a visit
    got = asyncio.run(asker.ask("http://b.test/own", Validators()))
    assert isinstance(got, Later)
    assert 0.39 < got.gap < 0.41


def test_a_redirect_on_the_same_host_does_not_escape_its_rules() -> None:
    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return html("User-agent: *\nDisallow: /private\n", kind="text/plain")
        return to({"/one": "/private", "/two": "/open"}[path]) if path in ("/one", "/two") else html("<p>hello")

    site, store = LiveSite(answer), Memory()

    async def act() -> None:
        urls = [site.url("a.test", "/one"), site.url("a.test", "/two")]
        await Crawl(site, store).until(lambda: all(store.history(url) for url in urls), *urls)
        assert store.history(urls[0], 100)[-1].reason == "robots"
        assert store.history(urls[1], 100)[-1].outcome is Outcome.NEW

    play(site, act)
    assert "/open" in site.asked("a.test")
    assert "/private" not in site.asked("a.test")


def test_a_host_that_rests_for_long_is_not_waited_for() -> None:
    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return NONE
        return to(f"http://b.test:{site.port}/") if host == "a.test" else html("<p>hello")

    site, store = LiveSite(answer), Memory()
    slow = Politeness(factor=0, shortest_gap=60, longest_gap=60)

    async def act() -> None:
        crawl = Crawl(site, store, politeness=slow, robots=False)
        await crawl.until(lambda: len(site.log) >= 1, site.url("b.test"))
        await crawl.until(lambda: bool(store.history(site.url("a.test"))), site.url("a.test"))
        assert store.history(site.url("a.test"))[0].outcome is Outcome.MOVED

    play(site, act)
    assert len(site.asked("b.test")) == 1


def test_what_robots_said_is_known_after_a_restart() -> None:
    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return html("User-agent: *\nDisallow: /private\nCrawl-delay: 0.5", kind="text/plain")
        return html("<p>hello")

    site, store = LiveSite(answer), Memory()

    async def act() -> None:
        urls = [site.url("a.test", "/open"), site.url("a.test", "/private")]
        for times in (1, 3):
            crawl = Crawl(site, store, politeness=Politeness(factor=0, shortest_gap=0, longest_gap=1))
            await crawl.until(lambda: len(site.asked("a.test")) > times, *urls)  # noqa: B023
        assert site.asked("a.test").count("/robots.txt") == 1
        assert "/private" not in site.asked("a.test")
        assert min(site.gaps()) >= 0.49, "the delay that it asks for is known too"
        later = Crawl(site, store)
        later.clock.shift = 13 * 3600
        await later.until(lambda: site.asked("a.test").count("/robots.txt") == 2)
        assert site.asked("a.test").count("/robots.txt") == 2, "and asked for again when it is old"

    play(site, act)


def test_a_robots_txt_that_failed_is_not_asked_for_again_at_once_after_a_restart() -> None:
    answers = {"/robots.txt": b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "/page": html("<p>hello")}
    site, store = LiveSite(lambda host, path: answers.get(path, NONE)), Memory()

    def tries() -> int:
        return site.asked("a.test").count("/robots.txt")

    async def run_at(shift: float, reached: Callable[[], bool], seconds: float) -> None:
        clock = Clock()
        clock.shift = shift
        await Crawl(site, store, clock=clock).until(reached, site.url("a.test", "/page"), seconds=seconds)

    async def act() -> None:
        await run_at(0.0, lambda: tries() == 1, 20.0)
        await run_at(5.0, lambda: tries() > 1, 1.0)
        assert tries() == 1, "a minute has not passed"
        await run_at(70.0, lambda: tries() == 2, 20.0)
        await run_at(150.0, lambda: tries() > 2, 1.0)
        assert tries() == 2, "the second time it is two minutes: failures are counted over restarts"
        assert "/page" not in site.asked("a.test")
        answers["/robots.txt"] = NONE
        await run_at(300.0, lambda: "/page" in site.asked("a.test"), 20.0)
        assert tries() == 3
        await run_at(310.0, lambda: site.asked("a.test").count("/page") > 1, 20.0)
        assert tries() == 3, "what it said is known, and the failures are forgotten"

    play(site, act)


def test_rules_of_the_last_day_hold_while_robots_txt_fails_and_over_restarts() -> None:
    rules = html("User-agent: *\nDisallow: /private\n", kind="text/plain")
    answers = {"/robots.txt": rules, "/open": html("<p>hello"), "/private": html("<p>secret")}
    site, store = LiveSite(lambda host, path: answers.get(path, NONE)), Memory()
    urls: list[str] = []

    async def run_at(hours: float, reached: Callable[[], bool], seconds: float = 20.0) -> None:
        clock = Clock()
        clock.shift = 3600 * hours
        urls[:] = [site.url("a.test", "/open"), site.url("a.test", "/private")]
        await Crawl(site, store, clock=clock).until(reached, *urls, seconds=seconds)

    def asked(path: str) -> int:
        return site.asked("a.test").count(path)

    async def act() -> None:
        await run_at(0.0, lambda: store.totals().copies == 1)
        answers["/robots.txt"] = b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n"
        await run_at(13.0, lambda: asked("/robots.txt") == 2)
        before = asked("/open")
        await run_at(13.01, lambda: asked("/open") > before)
        assert asked("/robots.txt") == 2, "it failed a minute ago"
        assert asked("/private") == 0
        await run_at(25.0, lambda: asked("/robots.txt") == 3)
        before = asked("/open")
        await run_at(25.01, lambda: asked("/open") > before, 1.0)
        assert (asked("/open"), asked("/robots.txt")) == (before, 3), "rules of more than a day ago permit nothing"
        assert asked("/private") == 0

    play(site, act)


def test_links_of_a_page_whose_header_says_nofollow_are_not_followed() -> None:
    answers = {
        "/": html('<a href="/a">x</a><a href="/b">y</a>'),
        "/a": html('<a href="/hidden">x</a>', "X-Robots-Tag: noarchive", "X-Robots-Tag: afresh: nofollow"),
        "/b": html('<a href="/seen">x</a>', "X-Robots-Tag: otherbot: nofollow"),
    }
    site = LiveSite(lambda host, path: answers.get(path, NONE))

    async def act() -> None:
        crawl = Crawl(site, discovery=Discovery(Scope()))
        await crawl.until(lambda: {"/a", "/seen"} <= set(site.asked("a.test")), site.url("a.test"))
        await crawl.until(lambda: "/hidden" in site.asked("a.test"), seconds=0.3)
        assert {"/a", "/seen"} <= set(site.asked("a.test"))
        assert "/hidden" not in site.asked("a.test")

    play(site, act)


def test_a_host_whose_robots_txt_fails_rests_as_one_that_fails_though_its_rules_still_hold() -> None:
    rules = html("User-agent: *\nDisallow: /private\n", kind="text/plain")
    answers = {"/robots.txt": rules, "/open": html("<p>hello")}
    site, store = LiveSite(lambda host, path: answers.get(path, NONE)), Memory()
    patient = Politeness(factor=0, shortest_gap=0, longest_gap=0, first_back_off=0.5)

    async def act() -> None:
        url, clock = site.url("a.test", "/open"), Clock()
        await Crawl(site, store, politeness=patient).until(lambda: store.totals().copies == 1, url)
        answers["/robots.txt"] = b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n"
        clock.shift = 13 * 3600.0
        del site.log[:]
        later = Crawl(site, store, clock=clock, politeness=patient)
        daemon = await later.until(lambda: "/open" in site.asked("a.test"))
        assert site.asked("a.test")[:2] == ["/robots.txt", "/open"]
        assert next(iter(site.gaps())) >= 0.49
        assert daemon.engine.lanes.state(host_of(url)).failures == 0, "and is well again once a page comes"

    play(site, act)


def test_a_redirect_to_a_host_that_fails_is_no_fault_of_the_one_that_points_there() -> None:
    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return NONE
        if host == "b.test":
            return b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n"
        return to(f"http://b.test:{site.port}{path}")

    site, store = LiveSite(answer), Memory()

    async def act() -> None:
        url = site.url("a.test", "/page")
        await Crawl(site, store, politeness=POLITE).until(lambda: bool(store.history(url)), url)
        assert store.history(url)[0].reason == "status_500"
        assert {state.host: state.failures for state in store.hosts()} == {host_of(url): 0}

    play(site, act)

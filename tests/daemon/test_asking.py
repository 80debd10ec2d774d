"""Redirects to other hosts, and what is known of robots.txt, over real sockets."""

import asyncio
from collections.abc import Callable

from afresh.frontier import Politeness
from afresh.store import Memory
from afresh.types import Outcome
from live_site import NONE, Crawl, LiveSite, html, to

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


def test_a_redirect_on_the_same_host_does_not_escape_its_rules() -> None:
    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return html("User-agent: *\nDisallow: /private\n", kind="text/plain")
        return to({"/one": "/private", "/two": "/open"}[path]) if path in ("/one", "/two") else html("<p>hello")

    site, store = LiveSite(answer), Memory()

    async def act() -> None:
        urls = [site.url("a.test", "/one"), site.url("a.test", "/two")]
        await Crawl(site, store).until(lambda: all(store.history(url) for url in urls), *urls)
        assert store.history(urls[0])[-1].reason == "robots"
        assert store.history(urls[1])[-1].outcome is Outcome.NEW

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

"""Hosts that asked not to be crawled: no entrance leads to them."""

import asyncio

import pytest

from afresh.daemon.events import Listed
from afresh.fetch import Guard, Http
from afresh.frontier import HostPatterns, Scope
from afresh.sources.web import Discovery
from afresh.store import Memory
from afresh.types import Validators
from live_site import NONE, Crawl, LiveSite, html, to

NEVER = HostPatterns(["never.test", "*.never.example"])
NAMES = ["never.test", "never.test.", "NEVER.test", "a.b.never.example", "never.example"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "entrance", ["link", "redirect", "robots.txt", "sitemap", "entry of a sitemap", "stored page", "second redirect"]
)
def test_no_entrance_leads_to_a_host_that_is_never_to_be_asked(entrance: str, name: str) -> None:
    def answer(host: str, path: str) -> bytes:
        there = f"http://{name}:{site.port}/there"
        if path == "/robots.txt" and host == "outer.test":
            if entrance == "robots.txt":
                return to(there)
            lines = {"sitemap": there, "entry of a sitemap": "/map.xml"}
            sitemap = f"Sitemap: {lines[entrance]}\n" if entrance in lines else ""
            return html(f"User-agent: *\nAllow: /\n{sitemap}", kind="text/plain")
        if path == "/map.xml":
            return html(f"<urlset><url><loc>{there}</loc></url></urlset>", kind="text/xml")
        if path == "/":
            return html(f'<a href="{there}">x</a> <a href="/moved">y</a> <a href="/end">z</a>')
        if path == "/moved" and entrance == "redirect":
            return to(there)
        if path == "/moved" and entrance == "second redirect":
            return to(f"http://other.test:{site.port}/away")
        if path == "/away":
            return to(there)
        return html("<p>end") if path == "/end" else NONE

    site, store = LiveSite(answer), Memory()

    async def act() -> None:
        await site.start()
        try:
            crawl = Crawl(site, store, discovery=Discovery(Scope(never=["never.test", "*.never.example"])), never=NEVER)
            urls = [site.url("outer.test")]
            if entrance == "stored page":
                urls.append(f"http://{name.lower()}:{site.port}/stored")
            reached = (lambda: "/robots.txt" in site.asked("outer.test")) if entrance == "robots.txt" else _walked
            await crawl.until(lambda: reached(), *urls, seconds=5.0)
            await crawl.until(lambda: False, seconds=0.15)
        finally:
            site.stop()

    def _walked() -> bool:
        return {"/end", "/moved"} <= set(site.asked("outer.test"))

    asyncio.run(act())
    assert site.asked("outer.test")
    assert {each.host for each in site.log} <= {"outer.test", "other.test"}
    assert _walked() or entrance == "robots.txt"
    kept = {state.page.host for _, state in store.states()}
    assert entrance == "stored page" or all(host not in NEVER for host in kept)


def test_a_sitemap_on_such_a_host_is_not_said_to_have_failed() -> None:
    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return html(f"Sitemap: http://never.test:{site.port}/map.xml\n", kind="text/plain")
        return html("<p>end")

    site, told = LiveSite(answer), []

    async def act() -> None:
        await site.start()
        try:
            listeners = [lambda event: told.append(event.problem) if isinstance(event, Listed) else None]
            crawl = Crawl(site, Memory(), discovery=Discovery(Scope()), never=NEVER, listeners=listeners)
            await crawl.until(lambda: bool(told), site.url("outer.test"), seconds=5.0)
        finally:
            site.stop()

    asyncio.run(act())
    assert told[0] == "It was not fetched: its host is never to be crawled (crawl.never)."


def test_the_fetcher_itself_refuses_such_a_host_whoever_asks() -> None:
    http = Http(user_agent="test/1", guard=Guard(allow_private=True, never=NEVER))
    for name in NAMES:
        assert asyncio.run(http.fetch(f"http://{name}:1/", Validators())).reason == "scope"
    assert asyncio.run(http.fetch("http://notnever.test:1/", Validators())).reason != "scope"

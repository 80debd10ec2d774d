"""Hosts that cannot be reached: every attempt is a crawl in the history, with its reason."""

import asyncio
import socket
from dataclasses import replace

from afresh.daemon import Finished
from afresh.frontier import Politeness
from afresh.store import Memory
from afresh.types import Outcome
from live_site import NONE, Crawl, LiveSite, html

UNAVAILABLE = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
PATIENT = Politeness(factor=0, shortest_gap=0, longest_gap=0, first_back_off=10)


def closed_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


async def not_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 This is no TLS\r\n\r\n")
    writer.close()


def names(host: str) -> str:
    if host == "nosuch.test":
        raise OSError("no such name")
    return "127.0.0.9" if host == "private.test" else "127.0.0.1"


def test_every_attempt_at_a_host_that_cannot_be_reached_is_a_crawl_with_its_reason() -> None:
    def answer(host: str, path: str) -> bytes:
        if path == "/robots.txt":
            return UNAVAILABLE if host == "busy.test" else NONE
        return html("<p>hello")

    site, store, told = LiveSite(answer), Memory(), []

    async def go() -> dict[str, str]:
        await site.start()
        plain = await asyncio.start_server(not_tls, "127.0.0.1", 0)
        urls = {
            site.url("nosuch.test"): "dns",
            f"http://closed.test:{closed_port()}/": "no_connection",
            site.url("private.test"): "refused_address",
            f"https://plain.test:{plain.sockets[0].getsockname()[1]}/": "tls",
            site.url("busy.test"): "robots_status_503",
            site.url("well.test"): "",
        }
        crawl = Crawl(site, store, names=names, networks=("127.0.0.1/32",), politeness=PATIENT)
        crawl.listeners = (told.append,)
        await crawl.until(lambda: all(store.history(url) for url in urls), *urls)
        site.stop()
        plain.close()
        return urls

    urls = asyncio.run(go())
    for url, reason in urls.items():
        history = store.history(url, 1000)
        assert (history[-1].reason, history[-1].status) == (reason, 0 if reason else 200)
        assert len(history) == 1 or not reason
        outcomes = {"": Outcome.NEW, "refused_address": Outcome.REFUSED}
        assert history[-1].outcome is outcomes.get(reason, Outcome.FAILED)
    heard = [event.crawl.reason for event in told if isinstance(event, Finished)]
    assert {*urls.values()} <= {*heard}, "and listeners hear of each"
    hosts = {state.host.partition(":")[0]: state for state in store.hosts()}
    assert {name: state.reason for name, state in hosts.items()} == {
        url.split("/")[2].partition(":")[0]: reason for url, reason in urls.items()
    }
    assert all(state.failures == (name not in ("well.test", "private.test")) for name, state in hosts.items())
    assert hosts["nosuch.test"].ready - (hosts["nosuch.test"].since or 0.0) > 50, "robots.txt sets the pace"
    assert hosts["well.test"].since is None
    assert {each.reason for each in store.failing()} == set(urls.values()) - {""}


def test_a_host_that_fails_for_a_week_fills_nobodys_history_and_is_found_again_within_the_hour() -> None:
    site, store, down = LiveSite(lambda host, path: NONE if path == "/robots.txt" else html("<p>hello")), Memory(), []

    def where(host: str) -> str:
        if down:
            raise OSError("no such name")
        return "127.0.0.1"

    async def go() -> None:
        await site.start()
        url = site.url("a.test")
        crawl = Crawl(site, store, names=where, politeness=PATIENT)
        await crawl.until(lambda: store.totals().copies == 1, url)
        down.append(True)
        before = store.totals().crawls
        later = Crawl(site, store, names=where, politeness=PATIENT)
        for attempt in range(30):
            later.clock.shift += 3601.0
            later = replace(later)
            await later.until(lambda: store.totals().crawls > before + attempt)  # noqa: B023
        state = store.state(url)
        assert state is not None
        history = store.history(url, 1000)
        assert [crawl.reason for crawl in history] == ["dns"] * 10 + ["same_bytes"] * (before - 1) + [""]
        assert state.failures == store.totals().crawls - before == 30
        assert store.copy(url) is not None
        down.clear()
        later = replace(later)
        later.clock.shift += 3601.0
        await later.until(lambda: store.history(url)[0].outcome is Outcome.UNCHANGED)
        site.stop()

    asyncio.run(go())


def test_a_page_that_settings_forbade_is_crawled_at_once_when_a_run_begins_with_others() -> None:
    site, store = LiveSite(lambda host, path: NONE if path == "/robots.txt" else html("<p>hello")), Memory()

    async def go() -> None:
        await site.start()
        url = site.url("private.test")
        forbids = Crawl(site, store, names=names, networks=("127.0.0.1/32",), politeness=PATIENT)
        await forbids.until(lambda: store.history(url), url)
        assert store.history(url)[0].reason == "refused_address"
        allows = Crawl(site, store, names=names, networks=("127.0.0.0/8",), politeness=PATIENT)
        await allows.until(lambda: len(store.history(url)) > 1)
        assert store.history(url)[0].reason != "refused_address"
        site.stop()

    asyncio.run(go())

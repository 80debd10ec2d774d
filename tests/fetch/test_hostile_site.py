"""The whole loop against a site that turns hostile: the last good copy stays, and the other pages do not notice."""

import asyncio
import gzip
from collections import Counter
from typing import Any

from aiohttp import web

from afresh.daemon import Daemon, Event, Finished
from afresh.engine import Engine
from afresh.estimate import Grid
from afresh.fetch import Http, Limits
from afresh.frontier import Lanes, Politeness, host_of
from afresh.schedule import Greedy, Plain
from afresh.sim.web import Server, Site, SiteOptions
from afresh.store import Memory
from afresh.types import Outcome, Page

GOOD = b"<html><body><p>The last good copy of this page.</p></body></html>"
PATIENT = Politeness(factor=0, shortest_gap=0, longest_gap=0, first_back_off=0.01, longest_back_off=0.02)

BOMB = gzip.compress(b"\0" * 5_000_000)
HOSTILE = {
    "truncated": b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n<html><body><p>Half",
    "too_large": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB,
    "bad_protocol": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nfive!",
    "bad_coding": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain",
    "bad_redirect": b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
    "refused_port": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:6379/\r\nContent-Length: 0\r\n\r\n",
    "not_modified_without_copy": b'HTTP/1.1 304 Not Modified\r\nETag: "other"\r\n\r\n',
    "timeout": b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n<html>",
}


def test_a_hostile_page_keeps_its_last_good_copy_and_hurts_nobody() -> None:
    crawls: list[Any] = []
    faults: list[Any] = []

    async def go() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: faults.append(context))
        server = Server(Site(SiteOptions(pages=len(HOSTILE) + 20, hosts=28, seed=5)), clock=loop.time)
        await server.start()
        hostile = dict(zip(server.urls(), HOSTILE, strict=False))
        asked = dict.fromkeys(hostile, 0)

        def play(url: str, name: str) -> None:
            async def action(request: web.BaseRequest) -> web.StreamResponse | None:
                asked[url] += 1
                if asked[url] == 1:
                    return web.Response(body=GOOD, content_type="text/html", headers={"ETag": '"1"'})
                assert request.transport is not None
                request.transport.write(HOSTILE[name])
                if name == "timeout":
                    await server.pause(5.0)
                request.transport.close()
                return None

            server.play(url, action)

        for url, name in hostile.items():
            play(url, name)
        store = Memory()
        store.add(Page(url, host_of(url)) for url in server.urls())
        fetcher = Http(user_agent="afresh/test", allow_private=True, limits=Limits(seconds=2.0, body=1_000_000))
        engine = Engine(scheduler=Plain(Greedy(), budget=80.0), estimator=Grid(typical_rate=1.0), lanes=Lanes(PATIENT))
        daemon = Daemon(engine=engine, fetcher=fetcher, store=store)
        wanted = Counter({url: 2 if url in hostile else 1 for url in server.urls()})

        def hear(event: Event) -> None:
            if isinstance(event, Finished):
                crawls.append(event.crawl)
                if Counter(crawl.url for crawl in crawls) >= wanted:
                    daemon.stop()

        daemon.listeners.append(hear)
        loop.call_later(30.0, daemon.stop)
        await daemon.run()
        await fetcher.close()
        await server.stop()

        for url, name in hostile.items():
            copy = store.copy(url)
            assert copy is not None
            assert copy.body == GOOD
            mine = [crawl for crawl in crawls if crawl.url == url]
            assert len(mine) >= 2
            assert mine[0].outcome is Outcome.NEW
            assert {crawl.reason for crawl in mine[1:]} == {name}
            assert not any(crawl.outcome.refreshed for crawl in mine[1:])
        for url in server.urls()[len(hostile) :]:
            assert store.copy(url) is not None
            assert all(crawl.outcome.refreshed for crawl in crawls if crawl.url == url)

    asyncio.run(go())
    assert faults == []

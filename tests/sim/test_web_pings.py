import asyncio
import json
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from afresh.errors import ConfigError
from afresh.sim.web import Pinger, Server

Play = Callable[..., None]


class Inbox:
    """A real receiver of pings on loopback."""

    def __init__(self, status: int = 200) -> None:
        self.status, self.messages = status, []

    async def __aenter__(self) -> "Inbox":
        async def take(request: web.BaseRequest) -> web.Response:
            self.messages.append(json.loads(await request.read()))
            return web.Response(status=self.status)

        self._runner = web.ServerRunner(web.Server(take))
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/ping"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


def test_index_now_pings_arrive_by_host_with_a_key_that_the_host_confirms(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        async with Inbox() as inbox:
            pinger = Pinger(server, inbox.url)
            for clock.time in (3.0, 6.0):
                await pinger.step(session, clock.time)
        expected = [server.url(page) for t, page in server.site.signals(0.0, 6.0)]
        got = [url for message in inbox.messages for url in message["urlList"]]
        assert len(got) > 20
        assert sorted(got) == sorted(expected)
        assert (pinger.sent, pinger.lost) == (len(got), 0)
        for message in inbox.messages:
            assert all(url.startswith(f"http://{message['host']}/") for url in message["urlList"])
            async with session.get(message["keyLocation"]) as answer:
                assert await answer.text() == message["key"]

    play(scene, day=1.0, ping_share=1.0)


def test_webhook_pings_are_plain_lists(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        async with Inbox() as inbox:
            pinger = Pinger(server, inbox.url, style="webhook")
            await pinger.step(session, 5.0)
            await pinger.step(session, 5.0)
        assert [message["urls"] for message in inbox.messages] == [
            [server.url(page) for _, page in server.site.signals(0.0, 5.0)]
        ]

    play(scene, day=1.0)


def test_undelivered_pings_are_lost_and_counted(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        async with Inbox(status=429) as inbox:
            refused = Pinger(server, inbox.url, style="webhook")
            await refused.step(session, 5.0)
            assert (refused.sent, refused.lost > 0, refused.problem) == (0, True, "HTTP 429")
        nobody = Pinger(server, inbox.url, style="webhook")
        await nobody.step(session, 5.0)
        assert nobody.lost == refused.lost
        assert nobody.problem

    play(scene, day=1.0)


def test_pings_are_sent_while_time_passes(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        async with Inbox() as inbox:
            pinger = Pinger(server, inbox.url, style="webhook")
            task = asyncio.create_task(pinger.run(every=0.01))
            while pinger.sent < 30:
                clock.time += 0.5
                await asyncio.sleep(0.01)
            task.cancel()
        assert len(inbox.messages) > 3

    play(scene, day=1.0)


def test_unusable_targets_are_refused(play: Play) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Any) -> None:
        with pytest.raises(ConfigError, match="carrier"):
            Pinger(server, "http://127.0.0.1/", style="carrier pigeon")
        with pytest.raises(ConfigError, match="ftp"):
            Pinger(server, "ftp://127.0.0.1/")

    play(scene)

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from afresh.sim.web import LoopbackResolver, Server, Site, SiteOptions, read_mark

Scene = Callable[[Server, aiohttp.ClientSession, "Hands"], Awaitable[None]]


class Hands:
    """A site clock that tests turn by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def play(scene: Scene, **options: object) -> None:
    """Run a scene against a live server, as the client "tester"."""

    async def main() -> None:
        clock = Hands()
        settings: dict[str, object] = {"pages": 60, "hosts": 6, "processes": "poisson", **options}
        server = Server(Site(SiteOptions(**settings)), clock=clock, epoch=1_700_000_000.0)  # type: ignore[arg-type]
        await server.start()
        connector = aiohttp.TCPConnector(resolver=LoopbackResolver())
        try:
            async with aiohttp.ClientSession(connector=connector, headers={"User-Agent": "tester 1.0"}) as session:
                await scene(server, session, clock)
        finally:
            await server.stop()

    asyncio.run(main())


def test_every_page_is_served_whole_under_its_own_host_name() -> None:
    async def scene(server: Server, session: aiohttp.ClientSession, clock: Hands) -> None:
        for page, url in enumerate(server.urls()):
            async with session.get(url) as answer:
                mark = read_mark(await answer.read())
            assert answer.status == 200
            assert mark is not None
            assert (mark.page, mark.version, mark.whole) == (page, 0, True)
        counts = server.ledger.client("tester").counts
        assert (counts.requests, counts.full, counts.broken) == (60, 60, 0)
        assert server.ledger.fresh_now("tester", 0.0) == pytest.approx(1.0)

    play(scene)

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from afresh.sim.web import LoopbackResolver, Server, Site, SiteOptions


class ManualClock:
    """A site clock that tests set by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


Scene = Callable[[Server, aiohttp.ClientSession, ManualClock], Awaitable[None]]


def run_scene(scene: Scene, **options: Any) -> None:
    """Run a scene against a live server, as the client "tester"; 60 Poisson pages on 6 hosts unless told otherwise."""

    async def main() -> None:
        clock = ManualClock()
        settings: dict[str, Any] = {"pages": 60, "hosts": 6, "processes": "poisson", **options}
        server = Server(Site(SiteOptions(**settings)), clock=clock, epoch=1_700_000_000.0)
        await server.start()
        connector = aiohttp.TCPConnector(resolver=LoopbackResolver())
        try:
            async with aiohttp.ClientSession(connector=connector, headers={"User-Agent": "tester 1.0"}) as session:
                await scene(server, session, clock)
        finally:
            await server.stop()

    asyncio.run(main())


@pytest.fixture
def play() -> Callable[..., None]:
    return run_scene

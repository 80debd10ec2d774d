"""The console's application: the API, the feed, metrics and pages, behind one door."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from afresh.errors import AfreshError
from afresh.serve.console.api import Api, as_refused
from afresh.serve.console.door import Door, Guarded
from afresh.serve.console.facts import Facts, Reading
from afresh.serve.console.feed import Feed
from afresh.serve.console.metrics import MEDIA, exposition
from afresh.serve.console.site import Site
from afresh.serve.receive.application import application

PATIENCE = 6.0  # seconds that a scrape waits for what takes long: Prometheus gives up after ten


class ConsoleApp:
    """All of the console; `app` is what a listener serves."""

    def __init__(self, make: Callable[[], Facts], door: Door, version: str, reason: Callable[[str], str]) -> None:
        self.door = door
        self.reading = Reading(make)
        self.feed = Feed(self.reading)
        self.tally: Counter[str] = Counter()
        site = Site(self.reading, door, self.feed, version, reason)
        routes = [
            *Api(self.reading, door, self.feed, version).routes(),
            *site.routes(),
            ("GET", "/metrics", self.metrics),
        ]
        self.app: ASGIApp = Guarded(application(routes, self.tally, site.refused))

    async def metrics(self, request: Request) -> Response:
        """What Prometheus asks for."""
        self.door.require_name(request)
        self.door.require(request, "read")
        ask, long = self.reading.ask, self.reading.ask_long
        try:
            # Whether a runner answers, and what it counted, is as of now. What takes long may be older: that is told.
            counts, collection, senders = await asyncio.gather(
                ask(lambda facts: facts.counts()),
                long("collection", lambda facts: facts.collection(), seconds=PATIENCE, older=math.inf),
                long("senders", lambda facts: facts.senders(), seconds=PATIENCE, older=math.inf),
            )
        except AfreshError as error:
            raise as_refused(error) from None
        return Response(exposition(collection, counts, senders["grades"], time.time()), media_type=MEDIA)

    async def end_streams(self) -> None:
        """End what would go on for ever, so that the listener can stop."""
        await self.feed.close()

    def close(self) -> None:
        """Let go of everything."""
        self.reading.close()

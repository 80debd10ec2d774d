"""The console's application: the API, the feed, metrics and pages, behind one door."""

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
        try:
            text = await self.reading.ask_long("metrics", exposition)
        except AfreshError as error:
            raise as_refused(error) from None
        return Response(text, media_type=MEDIA)

    async def end_streams(self) -> None:
        """End what would go on for ever, so that the listener can stop."""
        await self.feed.close()

    def close(self) -> None:
        """Let go of everything."""
        self.reading.close()

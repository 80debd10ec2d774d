"""The callback of WebSub: hubs ask whether they were asked, and push what is new."""

from collections.abc import Callable
from typing import Protocol

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from afresh.serve.receive.bodies import Refused, body_of
from afresh.serve.receive.inlet import Inlet
from afresh.signals.websub import Intent, intent_of
from afresh.store.messages import of_signals
from afresh.types import Signal


class Delivered(Protocol):
    """What was pushed, once it was checked."""

    @property
    def signals(self) -> tuple[Signal, ...]:
        """To be stored."""

    @property
    def problem(self) -> str:
        """Why nothing comes of it."""


class Subscriber(Protocol):
    """Who has subscribed."""

    def verify(self, name: str, intent: Intent) -> str | None:
        """The challenge to be echoed; None: nobody asked for that."""

    async def deliver(self, name: str, body: bytes, signature: str) -> Delivered | None:
        """What was pushed; None: nobody asked for it."""


class Callback:
    """Where hubs come to."""

    def __init__(self, subscriber: Subscriber, inlet: Inlet, *, max_body: int, clock: Callable[[], float]) -> None:
        self.subscriber, self.inlet, self.max_body, self.clock = subscriber, inlet, max_body, clock

    async def get(self, request: Request) -> Response:
        """A hub asks back."""
        intent = intent_of(request.query_params)
        challenge = None if intent is None else self.subscriber.verify(request.path_params["name"], intent)
        if challenge is None:
            raise Refused(404, "Nothing like that was asked for.")
        return PlainTextResponse(challenge, headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"})

    async def post(self, request: Request) -> Response:
        """A hub delivers. What is not signed as it should be is acknowledged and has no effect."""
        body = await body_of(request, self.max_body)
        signature = request.headers.get("x-hub-signature", "")[:200]
        delivered = await self.subscriber.deliver(request.path_params["name"], body, signature)
        if delivered is None:
            raise Refused(410, "Nobody is subscribed here.")
        if delivered.signals:
            entries, now = delivered.signals, self.clock()
            await self.inlet.take(lambda: (of_signals(entries, now), None))
        return Response(status_code=202)

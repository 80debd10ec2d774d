"""A publisher and its hub on loopback, whose every answer a test decides."""

import asyncio
import hmac
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

import aiohttp
from aiohttp import web

Answer = tuple[int, dict[str, str], bytes]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class Hub:
    """Serves topics by `topics[path]()`, takes subscriptions at /hub, verifies them, and publishes."""

    topics: dict[str, Callable[[], Answer]] = field(default_factory=dict)
    redirects: dict[str, tuple[int, str]] = field(default_factory=dict)  # of the hub: path → (status, where)
    lease: str = "864000"
    verifies: bool = True
    topic_asked_back: str | None = None  # instead of the one that was asked for
    port: int = 0
    asked: list[dict[str, str]] = field(default_factory=list)  # of the hub
    log: list[str] = field(default_factory=list)
    verified: list[tuple[int, str]] = field(default_factory=list)  # what the subscriber answered
    subscriptions: dict[str, dict[str, str]] = field(default_factory=dict)  # by topic

    _tasks: list[asyncio.Task[tuple[int, str]]] = field(default_factory=list)

    async def start(self) -> None:
        self.port = free_port()
        self._runner = web.ServerRunner(web.Server(self._answer, access_log=None))
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self._session = aiohttp.ClientSession()

    async def stop(self) -> None:
        await self._session.close()
        await self._runner.cleanup()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.raw_path
        self.log.append(f"{request.method} {path}")
        if request.method == "POST":
            return await self._subscribed(request, path)
        if path == "/robots.txt" and path not in self.topics:
            return web.Response(status=404)
        if path not in self.topics:
            return web.Response(status=404)
        status, headers, body = self.topics[path]()
        return web.Response(status=status, headers=headers, body=body)

    async def _subscribed(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        if path in self.redirects:
            status, where = self.redirects[path]
            return web.Response(status=status, headers={"Location": where})
        said = dict(parse_qsl((await request.read()).decode()))
        self.asked.append(said)
        if self.verifies:
            self._tasks.append(asyncio.create_task(self.verify(said)))
        return web.Response(status=202)

    async def verify(self, said: dict[str, str], **changed: str) -> tuple[int, str]:
        """Ask the subscriber whether it was him."""
        query = {
            "hub.mode": said["hub.mode"],
            "hub.topic": self.topic_asked_back or said["hub.topic"],
            "hub.challenge": "a-challenge",
            "hub.lease_seconds": self.lease,
        } | {name.replace("_", ".", 1): value for name, value in changed.items()}
        async with self._session.get(said["hub.callback"], params=query) as answer:
            found = answer.status, await answer.text()
        self.verified.append(found)
        if found == (200, query["hub.challenge"]):
            if said["hub.mode"] == "subscribe":
                self.subscriptions[said["hub.topic"]] = said
            else:
                self.subscriptions.pop(said["hub.topic"], None)
        return found

    async def publish(
        self,
        topic: str,
        body: bytes,
        *,
        signature: str | None = None,
        method: str = "sha256",
        secret: str | None = None,
    ) -> int:
        """Deliver to who has subscribed; the status that came back."""
        said = self.subscriptions[topic]
        key = (said["hub.secret"] if secret is None else secret).encode()
        signed = f"{method}={hmac.new(key, body, method).hexdigest()}" if signature is None else signature
        headers = {"X-Hub-Signature": signed} if signed else {}
        async with self._session.post(said["hub.callback"], data=body, headers=headers) as answer:
            return answer.status

"""The synthetic web over real HTTP: one port on loopback, many host names.

The host name comes from the Host header: http://news-03.localhost:8400/ and http://blog-01.localhost:8400/ arrive at
the same socket. The bare host (localhost, or the address itself) answers the control area under /_site/.
"""

import asyncio
import errno
import os
import time
from collections.abc import Awaitable, Callable

from aiohttp import web

from afresh.errors import ConfigError
from afresh.sim.web import control, dress
from afresh.sim.web.answers import PageAnswers
from afresh.sim.web.documents import Documents
from afresh.sim.web.ledger import Client, Ledger
from afresh.sim.web.site import Site

Clock = Callable[[], float]
Play = Callable[[web.BaseRequest], Awaitable[web.StreamResponse | None]]


def client_name(user_agent: str | None) -> str:
    """The first word of a User-Agent, which is how the ledger tells clients apart.

    >>> client_name("afresh/0.1 (+https://example.org)"), client_name(None)
    ('afresh/0.1', '(unnamed)')
    """
    words = (user_agent or "").split(maxsplit=1)
    return words[0][:64] if words else "(unnamed)"


class Server:
    """Serves a site. `clock` gives the site's time; `epoch` is the Unix time at which it showed 0.

    `await start()`, then `port`, `url(page)` and `urls()` tell where everything is; `await stop()` ends it.
    """

    def __init__(
        self,
        site: Site,
        *,
        clock: Clock,
        ledger: Ledger | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        epoch: float | None = None,
    ) -> None:
        self.site = site
        self.clock = clock
        self.ledger = Ledger(site) if ledger is None else ledger
        self.host = host
        self.port = port
        self.epoch = time.time() - clock() if epoch is None else epoch
        self.plays: dict[tuple[str, str], Play] = {}  # (host name, path) → what to do there instead
        self._folders: list[tuple[str, str, Play]] = []  # the same for all paths that start so
        self._stopping = asyncio.Event()
        self._runner: web.ServerRunner | None = None
        self._pages = PageAnswers(site, self.ledger, clock=clock, epoch=self.epoch, pause=self.pause)
        self.documents = Documents(site, port=port, epoch=self.epoch)

    async def start(self) -> None:
        """Listen; afterwards `port` is the real one."""
        self._stopping.clear()
        server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=2.0)
        await self._runner.setup()
        listener = web.TCPSite(self._runner, self.host, self.port, backlog=1024)
        try:
            await listener.start()
        except OSError as error:
            await self._runner.cleanup()
            raise ConfigError(
                f"Port {self.port} of {self.host} cannot be listened on: {_reason(error)}.",
                hint="Choose another port.",
            ) from error
        self.port = self._pages.port = self.documents.port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening; answers that wait are cut short."""
        self._stopping.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def url(self, page: int) -> str:
        """The address of a page."""
        return self.site.url(page, self.port)

    def urls(self) -> list[str]:
        """The addresses of all pages, by page number."""
        return [self.site.url(page, self.port) for page in range(self.site.options.pages)]

    def play(self, url: str, action: Play) -> None:
        """Answer this address (any path on any host name) by `action(request)` from now on.

        A * at the end stands for any rest, which makes traps without end. The action returns a response, or writes to
        `request.transport` whatever it likes and returns None: hostile answers are played this way.
        """
        host, _, path = url.removeprefix("http://").partition("/")
        name = host.partition(":")[0].lower()
        if path.endswith("*"):
            self._folders.append((name, f"/{path[:-1]}", action))
        else:
            self.plays[name, f"/{path}"] = action

    def _played(self, name: str, path: str) -> Play | None:
        if (action := self.plays.get((name, path))) is not None:
            return action
        return next((action for host, start, action in self._folders if host == name and path.startswith(start)), None)

    async def pause(self, seconds: float) -> None:
        """Wait, but not longer than the server runs."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

    def _client(self, request: web.BaseRequest) -> Client:
        return self.ledger.client(client_name(request.headers.get("User-Agent")))

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        name = request.headers.get("Host", "").lower().partition(":")[0]
        path = request.raw_path
        if (self.plays or self._folders) and (action := self._played(name, path)) is not None:
            self._client(request).counts.other_requests += 1
            return await action(request) or web.Response()
        host = self.site.host_number(name)
        if host is None:
            return control.answer(self, request, name)
        client = self._client(request)
        page = self.site.page_at(host, path)
        if request.method not in ("GET", "HEAD"):
            client.counts.other_requests += 1
            return web.Response(status=405, headers={"Allow": "GET, HEAD"})
        if page is not None:
            return await self._pages.answer(request, client, page)
        client.counts.other_requests += 1
        options = self.site.options
        if options.dressed and (part := dress.part(options.seed, host, path)) is not None:
            return web.Response(body=part[1], content_type=part[0], headers={"Cache-Control": "max-age=3600"})
        found = self.documents.document(host, path, self.clock())
        if found is None:
            return web.Response(status=404, text="There is no such page.\n")
        return web.Response(text=found[1], content_type=found[0], charset="utf-8")


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another program does"
    return os.strerror(error.errno).lower() if error.errno else "no such port"

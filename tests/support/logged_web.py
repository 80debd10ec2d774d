"""A web of many host names on loopback that writes down every request: of which host, from when to when."""

import asyncio
import threading
import time
from collections import defaultdict
from contextlib import suppress
from itertools import pairwise

from aiohttp import web

SECONDS = 0.03  # that an answer takes: two requests at once are seen


class LoggedWeb:
    """Serves every path of every name; each page links to a few others, some of them on other hosts."""

    def __init__(self, hosts: int, pages: int) -> None:
        self.hosts, self.pages = hosts, pages
        self.log: list[tuple[str, str, float, float]] = []  # (host, path, begin, end)
        self.seconds = SECONDS
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)

    async def _start(self) -> int:
        async def answer(request: web.Request) -> web.Response:
            began = time.time()
            try:
                await asyncio.sleep(self.seconds)
            finally:
                self.log.append((request.host, request.path, began, time.time()))
            if request.path == "/robots.txt":
                return web.Response(status=404)
            host, number = int(request.host.split(".")[0][1:]), int(request.path.strip("/") or 0)
            others = [self.url((host * 7 + number) % self.hosts, (number + 1) % self.pages), self.url(host, 0)]
            links = " ".join(f'<a href="{url}">{url}</a>' for url in others)
            return web.Response(text=f"<p>{time.time() // 5} {links}</p>", content_type="text/html")

        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        self._runner = web.AppRunner(app, handler_cancellation=True)  # who hangs up is not being answered
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return int(self._runner.addresses[0][1])

    def url(self, host: int, page: int) -> str:
        """The address of a page."""
        return f"http://h{host}.localhost:{self.port}/{page}"

    def urls(self) -> list[str]:
        """All pages."""
        return [self.url(host, page) for host in range(self.hosts) for page in range(self.pages)]

    def rate(self, seconds: float = 5.0) -> float:
        """Requests a second, of late."""
        now = time.time()
        return sum(begin > now - seconds for _, _, begin, _ in list(self.log)) / seconds

    def at_once(self) -> list[tuple[str, float, float]]:
        """Hosts that were asked while they were being asked: (host, end of one, begin of the next)."""
        by_host: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for host, _, begin, end in self.log:
            by_host[host].append((begin, end))
        found = []
        for host, asked in by_host.items():
            asked.sort()
            found += [(host, a[1], b[0]) for a, b in pairwise(asked) if b[0] < a[1]]
        return found

    def too_soon(self, gap: float) -> list[tuple[str, float]]:
        """Hosts that were asked again before they had rested for so long."""
        by_host: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for host, _, begin, end in self.log:
            by_host[host].append((begin, end))
        return [
            (host, later[0] - earlier[1])
            for host, asked in by_host.items()
            for earlier, later in pairwise(sorted(asked))
            if later[0] - earlier[1] < gap
        ]

    def close(self) -> None:
        """Serve no more."""
        with suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

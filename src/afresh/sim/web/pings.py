"""Sends the site's pings to a crawler: "this page has changed", true or not."""

import asyncio
from collections.abc import Callable
from itertools import groupby
from typing import Any

import aiohttp

from afresh.errors import ConfigError
from afresh.sim.web.announce import Listing
from afresh.sim.web.resolve import LoopbackResolver
from afresh.sim.web.server import Server

STYLES = ("indexnow", "webhook")
MOST = 10_000  # addresses in one POST, as IndexNow allows


class Pinger:
    """Posts the pings of a served site to `target` while they happen.

    "indexnow" sends one POST a host with host, key, keyLocation and urlList; "webhook" sends {"urls": […]}. As on the
    real web, a ping that cannot be delivered is lost; `sent` and `lost` count pings, `problem` is the latest reason.
    """

    def __init__(self, server: Server, target: str, *, style: str = "indexnow", timeout: float = 10.0) -> None:
        if style not in STYLES:
            raise ConfigError(f"{style!r} is not a style of pings.", hint=f"Choose one of {', '.join(STYLES)}.")
        if not target.startswith(("http://", "https://")):
            raise ConfigError(f"{target!r} is not an address for pings.", hint="Give one that starts with http://.")
        self.server, self.target, self.style = server, target, style
        self.sent = 0
        self.lost = 0
        self.problem = ""
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._listing = Listing(server.site.pings, server.clock())

    def messages(self, t: float) -> list[tuple[dict[str, Any], int]]:
        """The messages due up to `t`, each with the number of pings in it."""
        pages = [page for _, page in self._listing.advance(t)]
        if self.style == "webhook":
            return [({"urls": urls}, len(urls)) for urls in _chunks([self.server.url(page) for page in pages])]
        host_of, documents, found = self.server.site.host_of, self.server.documents, []
        for host, group in groupby(sorted(pages, key=lambda page: int(host_of[page])), lambda page: int(host_of[page])):
            key = documents.ping_key(host)
            for urls in _chunks([self.server.url(page) for page in group]):
                place = f"{documents.home(host)}/{key}.txt"
                name = documents.home(host).removeprefix("http://")
                found.append(({"host": name, "key": key, "keyLocation": place, "urlList": urls}, len(urls)))
        return found

    async def step(self, session: aiohttp.ClientSession, t: float) -> None:
        """Send what is due up to `t`."""
        for message, count in self.messages(t):
            try:
                async with session.post(self.target, json=message, timeout=self._timeout) as answer:
                    good, problem = answer.status < 300, f"HTTP {answer.status}"
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                good, problem = False, str(error) or type(error).__name__
            if good:
                self.sent += count
            else:
                self.lost += count
                self.problem = problem

    async def run(self, *, every: float = 0.25, running: Callable[[], bool] = lambda: True) -> None:
        """Send pings as they happen, until cancelled (or `running` says no)."""
        connector = aiohttp.TCPConnector(resolver=LoopbackResolver())
        async with aiohttp.ClientSession(connector=connector, headers={"User-Agent": "afresh-web"}) as session:
            while running():
                await asyncio.sleep(every)
                await self.step(session, self.server.clock())


def _chunks(urls: list[str]) -> list[list[str]]:
    return [urls[start : start + MOST] for start in range(0, len(urls), MOST)]

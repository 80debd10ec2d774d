"""How a page answers one request: in full, 304, gone, refused or broken, and what the ledger is told.

A copy counts as handed over only when all of it went to the operating system and the connection still stood.
"""

import asyncio
from collections.abc import Callable
from math import floor

import numpy as np
from aiohttp import web

from afresh.sim.web import dice, faults
from afresh.sim.web.dice import Stream
from afresh.sim.web.ledger import Client, Ledger
from afresh.sim.web.render import Noise
from afresh.sim.web.site import GONE, Site
from afresh.sim.web.validators import http_date, offer, unchanged

_HTML = "text/html; charset=utf-8"


class PageAnswers:
    """Answers requests for pages, and tells the ledger what was really sent."""

    def __init__(
        self,
        site: Site,
        ledger: Ledger,
        *,
        clock: Callable[[], float],
        epoch: float,
        pause: faults.Pause,
    ) -> None:
        self.site, self.ledger, self.clock, self.epoch, self.pause = site, ledger, clock, epoch, pause
        self.port = 0
        self.asked = [0] * site.options.pages  # requests for each page so far
        self._faults = faults.Faults(site.options)
        self._latency_key = dice.key(site.options.seed, Stream.LATENCY)

    async def answer(self, request: web.BaseRequest, client: Client, page: int) -> web.StreamResponse:
        """Answer one GET or HEAD."""
        number = self.asked[page] = self.asked[page] + 1
        client.counts.requests += 1
        if self.site.options.latency > 0:
            await self.pause(self._latency(page, number))
        t = self.clock()
        version = self.site.version(page, t)
        fault = self._faults.choose(page, number)
        if fault in ("error", "busy"):
            return await self._refuse(request, client, self._refusal(fault, t))
        if fault == "reset":
            client.counts.broken += 1
            faults.reset(request)
            return web.Response()
        if version == GONE:
            return await self._gone(request, client, page, t)
        return await self._present(request, client, page, version, t, number=number, fault=fault)

    def _latency(self, page: int, number: int) -> float:
        """Each host has its own pace, and half of each wait is luck."""
        host = int(self.site.host_of[page])
        pace = float(np.exp(0.5 * dice.normal_many(self._latency_key, host)[0] - 0.125))
        luck = dice.uniform(self._latency_key, page, number + 2)
        return self.site.options.latency * pace * (0.5 + luck)

    def _date(self, t: float) -> str:
        return http_date(floor(self.epoch + t))

    def _refusal(self, fault: str, t: float) -> web.Response:
        headers = {"Date": self._date(t)}
        if fault == "error":
            return web.Response(status=500, text="Something went wrong.\n", headers=headers)
        headers["Retry-After"] = f"{self.site.options.retry_after:.0f}"
        return web.Response(status=503, text="Too busy, come back later.\n", headers=headers)

    async def _refuse(self, request: web.BaseRequest, client: Client, response: web.Response) -> web.Response:
        if await self._send(request, response):
            client.counts.errors += 1
        else:
            client.counts.broken += 1
        return response

    async def _gone(self, request: web.BaseRequest, client: Client, page: int, t: float) -> web.Response:
        response = web.Response(status=410, text="This page is gone.\n", headers={"Date": self._date(t)})
        before = client.counts.errors
        await self._refuse(request, client, response)
        if client.counts.errors > before:
            self.ledger.handed(client, page, GONE, self.clock())
        return response

    async def _present(
        self, request: web.BaseRequest, client: Client, page: int, version: int, t: float, *, number: int, fault: str
    ) -> web.StreamResponse:
        offered = offer(self.site, page, version, t, epoch=self.epoch, request=number)
        headers = {"Date": self._date(t)}
        if offered.etag:
            headers["ETag"] = offered.etag
        if offered.modified is not None:
            headers["Last-Modified"] = http_date(offered.modified)
        conditions = request.headers
        same, honest = unchanged(offered, conditions.get("If-None-Match"), conditions.get("If-Modified-Since"))
        if same and not fault:
            return await self._not_modified(request, client, page, version, headers, honest=honest)
        headers["Content-Type"] = _HTML
        body = self.site.body(page, version, port=self.port, moment=Noise(t, number))
        if request.method == "HEAD":
            response = web.Response(body=body, headers=headers)
            if await self._send(request, response):
                client.counts.heads += 1
            return response
        if fault:
            return await self._broken(request, client, page, version, headers, body, fault)
        response = web.Response(body=body, headers=headers)
        self._book(client, page, version, len(body), await self._send(request, response))
        return response

    async def _not_modified(
        self,
        request: web.BaseRequest,
        client: Client,
        page: int,
        version: int,
        headers: dict[str, str],
        *,
        honest: bool,
    ) -> web.Response:
        response = web.Response(status=304, headers=headers)
        if not await self._send(request, response):
            client.counts.broken += 1
            return response
        client.counts.not_modified += 1
        if honest:  # a lying 304 leaves the client with whatever it held
            self.ledger.handed(client, page, version, self.clock())
        return response

    async def _broken(
        self,
        request: web.BaseRequest,
        client: Client,
        page: int,
        version: int,
        headers: dict[str, str],
        body: bytes,
        fault: str,
    ) -> web.StreamResponse:
        response, options = web.StreamResponse(headers=headers), self.site.options
        if fault == "drip":
            try:
                await faults.drip(request, response, body, self.pause, options.drip_seconds)
                self._book(client, page, version, len(body), await self._sent(request))
            except (ConnectionError, asyncio.CancelledError):
                client.counts.broken += 1
                raise
            return response
        client.counts.broken += 1
        client.counts.bytes_sent += len(body) // 2
        await faults.cut(request, response, body, self.pause, options.stall_seconds if fault == "stall" else 0.0)
        return response

    def _book(self, client: Client, page: int, version: int, size: int, whole: bool) -> None:
        if not whole:
            client.counts.broken += 1
            return
        client.counts.full += 1
        client.counts.bytes_sent += size
        self.ledger.handed(client, page, version, self.clock())

    async def _send(self, request: web.BaseRequest, response: web.Response) -> bool:
        """Send the answer; whether all of it left."""
        try:
            await response.prepare(request)
            await response.write_eof()
        except ConnectionError:
            return False
        return await self._sent(request)

    @staticmethod
    async def _sent(request: web.BaseRequest) -> bool:
        """Wait until nothing is left to send; whether the connection still stood then."""
        while (transport := request.transport) is not None and not transport.is_closing():
            if transport.get_write_buffer_size() == 0:
                return True
            await asyncio.sleep(0.005)
        return False

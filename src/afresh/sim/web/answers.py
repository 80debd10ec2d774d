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

Answered = tuple[web.StreamResponse, bool]  # the answer, and whether all of it left
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
        hosts = np.arange(site.options.hosts)
        # Log-normal with mean 1, so that the set latency is the mean over hosts.
        self._pace = np.exp(0.5 * dice.normal_many(dice.key(site.options.seed, Stream.HOST_PACE), hosts) - 0.125)

    async def answer(self, request: web.BaseRequest, client: Client, page: int) -> web.StreamResponse:
        """Answer one GET or HEAD. In the end each request is one of full, not modified, error, head or broken."""
        number = self.asked[page] = self.asked[page] + 1
        client.counts.requests += 1
        whole = False
        try:
            if self.site.options.latency > 0:
                await self.pause(self._latency(page, number))
            response, whole = await self._answer(request, client, page, number)
        finally:  # also when the client left and the answer was called off
            client.counts.broken += not whole
        return response

    async def _answer(self, request: web.BaseRequest, client: Client, page: int, number: int) -> Answered:
        t = self.clock()
        version = self.site.version(page, t)
        fault = self._faults.choose(page, number)
        if fault in ("error", "busy"):
            return await self._refuse(request, client, self._refusal(fault, t))
        if fault == "reset":
            faults.reset(request)
            return web.Response(), False
        if version == GONE:
            response = web.Response(status=410, text="This page is gone.\n", headers={"Date": self._date(t)})
            answered = await self._refuse(request, client, response)
            if answered[1]:
                self.ledger.handed(client, page, GONE, self.clock())
            return answered
        return await self._present(request, client, page, version, t, number=number, fault=fault)

    def _latency(self, page: int, number: int) -> float:
        """Each host has its own pace, and half of each wait is luck."""
        pace = float(self._pace[self.site.host_of[page]])
        return self.site.options.latency * pace * (0.5 + dice.uniform(self._latency_key, page, number))

    def _date(self, t: float) -> str:
        return http_date(floor(self.epoch + t))

    def _refusal(self, fault: str, t: float) -> web.Response:
        headers = {"Date": self._date(t)}
        if fault == "error":
            return web.Response(status=500, text="Something went wrong.\n", headers=headers)
        headers["Retry-After"] = f"{self.site.options.retry_after:.0f}"
        return web.Response(status=503, text="Too busy, come back later.\n", headers=headers)

    async def _refuse(self, request: web.BaseRequest, client: Client, response: web.Response) -> Answered:
        whole = await self._send(request, response)
        client.counts.errors += whole
        return response, whole

    async def _present(
        self, request: web.BaseRequest, client: Client, page: int, version: int, t: float, *, number: int, fault: str
    ) -> Answered:
        offered = offer(self.site, page, version, t, epoch=self.epoch, request=number)
        headers = {"Date": self._date(t)}
        if offered.etag:
            headers["ETag"] = offered.etag
        if offered.modified is not None:
            headers["Last-Modified"] = http_date(offered.modified)
        conditions = request.headers
        same, honest = unchanged(offered, conditions.get("If-None-Match"), conditions.get("If-Modified-Since"))
        if same and not fault:
            response = web.Response(status=304, headers=headers)
            whole = await self._send(request, response)
            client.counts.not_modified += whole
            if whole and honest:  # a lying 304 leaves the client with whatever it held
                self.ledger.handed(client, page, version, self.clock())
            return response, whole
        headers["Content-Type"] = _HTML
        body = self.site.body(page, version, port=self.port, moment=Noise(t, number))
        if request.method == "HEAD":
            response = web.Response(body=body, headers=headers)
            whole = await self._send(request, response)
            client.counts.heads += whole
            return response, whole
        answered = await self._full(request, headers, body, fault)
        if answered[1]:
            client.counts.full += 1
            client.counts.bytes_sent += len(body)
            self.ledger.handed(client, page, version, self.clock())
        return answered

    async def _full(self, request: web.BaseRequest, headers: dict[str, str], body: bytes, fault: str) -> Answered:
        options = self.site.options
        if not fault:
            response = web.Response(body=body, headers=headers)
            return response, await self._send(request, response)
        stream = web.StreamResponse(headers=headers)
        if fault == "drip":
            await faults.drip(request, stream, body, self.pause, options.drip_seconds)
            return stream, await is_sent(request)
        await faults.cut(request, stream, body, self.pause, options.stall_seconds if fault == "stall" else 0.0)
        return stream, False

    async def _send(self, request: web.BaseRequest, response: web.Response) -> bool:
        """Send the answer; whether all of it left."""
        try:
            await response.prepare(request)
            await response.write_eof()
        except ConnectionError:
            return False
        return await is_sent(request)


async def is_sent(request: web.BaseRequest) -> bool:
    """Wait until nothing is left to send; whether the connection still stood then."""
    while (transport := request.transport) is not None and not transport.is_closing():
        if transport.get_write_buffer_size() == 0:
            return True
        await asyncio.sleep(0.005)
    return False

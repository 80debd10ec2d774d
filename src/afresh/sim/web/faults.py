"""Answers that go wrong: which requests they hit, and what then happens on the wire."""

import socket
import struct
from collections.abc import Awaitable, Callable

from aiohttp import web

from afresh.sim.web import dice
from afresh.sim.web.dice import Stream
from afresh.sim.web.options import FAULTS, SiteOptions

Pause = Callable[[float], Awaitable[None]]
DRIPS = 100  # bits that a dripping answer comes in


class Faults:
    """Chooses faults by (seed, page, number of the request), in the shares that the options set."""

    def __init__(self, options: SiteOptions) -> None:
        self._key = dice.key(options.seed, Stream.FAULT)
        self._shares = [(name.removesuffix("_share"), float(getattr(options, name))) for name in FAULTS]
        self._any = any(share > 0 for _, share in self._shares)

    def choose(self, page: int, request: int) -> str:
        """ "error", "busy", "reset", "truncated", "stall", "drip", or "" for an answer as it should be."""
        if not self._any:
            return ""
        luck = dice.uniform(self._key, page, request)
        for name, share in self._shares:
            if luck < share:
                return name
            luck -= share
        return ""


def reset(request: web.BaseRequest) -> None:
    """Break the connection so that the client sees a reset, not an orderly end."""
    transport = request.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    if connection is not None:
        # Lingering for zero seconds makes the kernel send RST.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def cut(request: web.BaseRequest, response: web.StreamResponse, body: bytes, wait: Pause, seconds: float) -> None:
    """Announce the whole body, send half of it, wait, and end the connection."""
    response.content_length = len(body)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if seconds > 0:
        await wait(seconds)
    if request.transport is not None:
        request.transport.close()


async def drip(
    request: web.BaseRequest, response: web.StreamResponse, body: bytes, wait: Pause, seconds: float
) -> None:
    """Send the whole body, but in small bits over this many seconds."""
    response.content_length = len(body)
    await response.prepare(request)
    size = max(1, -(-len(body) // DRIPS))
    for start in range(0, len(body), size):
        await response.write(body[start : start + size])
        await wait(seconds / DRIPS)
    await response.write_eof()

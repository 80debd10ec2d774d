"""Reading a body off the network, within its limit."""

import asyncio
from collections.abc import Callable

from afresh.fetch.headers import codings
from afresh.fetch.inflate import STEP, Body, Spoiled
from afresh.fetch.wire import Answer

_SLICE = 1 << 12  # bytes undone between two looks at how much came out of them
_BREATH = 1 << 20  # bytes made before others get their turn


class Meter:
    """How many bytes of a body have arrived, before inflation."""

    def __init__(self) -> None:
        self.received = 0


async def read(answer: Answer, limit: int, meter: Meter) -> bytes:
    """The whole body, its codings undone; Spoiled if it is too large, cut off, or cannot be understood.

    The limit holds for what arrives as well as for what comes out: some codings can be fed for ever and make nothing.
    """
    body = Body(codings(answer.headers.getall("Content-Encoding", [])), limit)
    if answer.content_length > limit:
        raise Spoiled("too_large")
    broken = _reset_watch(answer)
    await _pour(answer, body, limit, meter)
    if broken():
        raise Spoiled("reset")
    return body.finish()


async def _pour(answer: Answer, body: Body, limit: int, meter: Meter) -> None:
    """From the network into the body, giving way to others now and then."""
    rested, step = 0, _SLICE if body.coded else STEP
    async for chunk in answer.content.iter_chunked(STEP):
        meter.received += len(chunk)
        if meter.received > limit:
            raise Spoiled("too_large")
        for start in range(0, len(chunk), step):
            body.feed(chunk[start : start + step])
            if body.size - rested > _BREATH:
                rested = body.size
                await asyncio.sleep(0)


def _reset_watch(answer: Answer) -> Callable[[], bool]:
    """Tells, after reading, whether the connection was reset.

    Where nothing but the end of the connection ends a body, the library takes a reset for that end, and half a page
    would pass for a whole one.
    """
    connection = answer.connection
    closed = connection.protocol.closed if connection is not None and connection.protocol is not None else None

    def was_reset() -> bool:
        return closed is not None and closed.done() and not closed.cancelled() and closed.exception() is not None

    return was_reset

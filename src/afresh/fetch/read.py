"""Reading a body off the network, within its limit."""

import asyncio

from afresh.fetch.answer import Answer
from afresh.fetch.headers import codings
from afresh.fetch.inflate import STEP, Body, Spoiled

_SLICE = 1 << 12  # bytes undone between two looks at how much came out of them
_BREATH = 1 << 20  # bytes made before others get their turn


async def read(answer: Answer, limit: int) -> bytes:
    """The whole body, its codings undone; Spoiled if it is too large, cut off, or cannot be understood.

    An answer that says how long it is may be empty. One that ends with its connection right after the head was cut off.

    The limit holds for what arrives as well as for what comes out: some codings can be fed for ever and make nothing.
    """
    coded = codings(answer.headers.all("Content-Encoding"))
    body = Body(coded, limit) if coded else None
    length = answer.headers.get("Content-Length", "")
    if length.isascii() and length.isdecimal() and int(length) > limit:
        raise Spoiled("too_large")
    rested, step = 0, _SLICE if coded else STEP
    while pieces := await answer.more():
        if answer.received > limit:
            raise Spoiled("too_large")
        if body is None and answer.ended:  # a page that came at once, as most do
            return b"".join(pieces)
        body = body or Body(coded, limit)
        piece = b"".join(pieces)  # otherwise each chunk of a few bytes would cost a call
        for start in range(0, len(piece), step):
            body.feed(piece[start : start + step])
            if body.size - rested > _BREATH:  # others get their turn
                rested = body.size
                await asyncio.sleep(0)
    if not answer.received:
        if answer.until_close:
            raise Spoiled("truncated")
        return b""
    return body.finish() if body is not None else b""

"""Reading a body off the network, within its limit.

Undoing a coding may take long, however little comes in or out: blocks may be empty, and a few bytes may become many
megabytes. So a thread does it, a piece at a time, and the fetch's own time limit holds in between. Bodies that are
small before and after are undone at once: handing them over would cost more.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from afresh.fetch.answer import Answer
from afresh.fetch.headers import codings
from afresh.fetch.inflate import STEP, Body, Spoiled

SMALL = 1 << 14  # bytes that arrive, and are undone at once
SMALL_UNDONE = 1 << 18  # if they make no more than this


async def read(
    answer: Answer,
    limit: int,
    threads: Executor | None = None,
    holds: Callable[[int], None] = lambda size: None,
    beginning: int = 0,
) -> bytes:
    """The whole body, its codings undone; Spoiled if it is too large, cut off, or cannot be understood.

    An answer that says how long it is may be empty. One that ends with its connection right after the head was cut off.

    If so many bytes of its `beginning` are enough, what comes after them is not read.

    `holds` is told how many bytes of it are in memory by now. The limit holds for what arrives as well as for what
    comes out: some codings can be fed for ever and make nothing.
    """
    coded = codings(answer.headers.all("Content-Encoding"))
    body = Body(coded, limit)
    length = answer.headers.get("Content-Length", "")
    if not beginning and length.isascii() and length.isdecimal() and int(length) > limit:
        raise Spoiled("too_large")
    fed = False
    while pieces := await answer.more():
        if answer.received > limit:
            raise Spoiled("too_large")
        piece = b"".join(pieces)  # otherwise each chunk of a few bytes would cost a call
        if not fed and answer.ended:  # a page that came at once, as most do
            if not coded:
                return piece
            if (small := _at_once(coded, piece, limit)) is not None:
                return small
        fed = True
        try:
            await _feed(body, piece, threads, at_once=not coded)
        except Spoiled as spoiled:
            if spoiled.reason != "too_large" or not 0 < beginning <= body.size:
                raise
        if 0 < beginning <= body.size:
            return body.so_far()[:beginning]
        holds(body.size)
    if not answer.received:
        if answer.until_close:
            raise Spoiled("truncated")
        return b""
    return body.finish()


async def _feed(body: Body, piece: bytes, threads: Executor | None, *, at_once: bool) -> None:
    """Let a body have the next bytes, some at a time; what is not done at once a thread does."""
    for start in range(0, len(piece), STEP):
        part = piece[start : start + STEP]
        if at_once:
            body.feed(part)
        else:
            await asyncio.get_running_loop().run_in_executor(threads, body.feed, part)


def _at_once(coded: Sequence[str], piece: bytes, limit: int) -> bytes | None:
    """A whole body, if it is small; None if that cannot be found out in no time."""
    if len(piece) > SMALL or len(coded) > 1:
        return None
    body = Body(coded, min(limit, SMALL_UNDONE))
    try:
        body.feed(piece)
    except Spoiled as spoiled:
        if spoiled.reason == "too_large":
            return None
        raise
    return body.finish()

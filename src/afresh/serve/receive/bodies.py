"""What somebody sends, within limits, and what is answered: small JSON objects."""

import asyncio
import json
from collections.abc import Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from afresh.fetch import gunzip

SECONDS = 30.0  # for all of a body


class Refused(Exception):
    """What was sent cannot be used; the answer says why."""

    def __init__(self, status: int, message: str, hint: str = "", **headers: str) -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def too_large(limit: int) -> Refused:
    """What is said of a body that is cut off; its connection is closed, as more of it may be under way."""
    return Refused(413, f"The body is larger than {limit:,} bytes.", "Send it in parts.", Connection="close")


async def body_of(request: Request, limit: int, *, seconds: float = SECONDS) -> bytes:
    """The body as it was sent; Refused if it is too large, too slow, or breaks off."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:18]) > limit:
        raise too_large(limit)
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                size += len(piece)
                if size > limit:
                    raise too_large(limit)
                pieces.append(piece)
    except TimeoutError:
        raise Refused(408, "The body did not come in time.", Connection="close") from None
    except ClientDisconnect:
        raise Refused(400, "The body broke off.", Connection="close") from None
    return b"".join(pieces)


def inflated(body: bytes, coding: str, limit: int) -> bytes:
    """The body without its Content-Encoding; Refused if that is unknown, or if too much would come of it."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return body
    if coding not in ("gzip", "x-gzip"):
        raise Refused(415, "The body has a Content-Encoding that is not read here.", "Send it plain, or as gzip.")
    content, reason = gunzip(body, limit)
    if reason == "too_large":
        raise too_large(limit)
    if reason:
        raise Refused(400, "The body is not the gzip that it claims to be.")
    return content


def answer(status: int, facts: Mapping[str, object], headers: Mapping[str, str] | None = None) -> Response:
    """A JSON object as an answer, which no browser takes for anything else."""
    more = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})}
    return Response(json.dumps(facts) + "\n", status, more, media_type="application/json")


def refusal(refused: Refused) -> Response:
    """The answer that says why."""
    facts = {"error": refused.message} | ({"hint": refused.hint} if refused.hint else {})
    return answer(refused.status, facts, refused.headers)

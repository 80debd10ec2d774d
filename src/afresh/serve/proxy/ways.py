"""What is asked of the proxy itself: to forget a page, and to pass bytes through to a server (CONNECT)."""

import asyncio
import hmac
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from afresh.fetch.inflate import Spoiled
from afresh.fetch.reasons import reason
from afresh.fetch.target import BadTarget, target
from afresh.serve.proxy.cache import Cache
from afresh.serve.proxy.origins import Origins
from afresh.serve.proxy.policy import Policy
from afresh.serve.proxy.request import Refusal, Request

if TYPE_CHECKING:
    from afresh.serve.proxy.protocol import Connection
    from afresh.serve.proxy.routes import Routes
    from afresh.serve.proxy.service import Allowed


def digest(token: str) -> bytes:
    """What is kept of a token."""
    return sha256(token.encode()).digest()


def permitted(request: Request, digests: tuple[bytes, ...]) -> bool:
    """Whether a request carries one of the tokens; each is compared, so that time tells nothing."""
    scheme, _, token = request.fields.get("authorization", "").partition(" ")
    given = digest(token.strip())
    matches = [hmac.compare_digest(given, known) for known in digests]
    return scheme.lower() == "bearer" and any(matches)


def purge(request: Request, url: str, cache: Cache, policy: Policy, allowed: "Allowed") -> Refusal:
    """Forget a page; or with `Soft: 1` only ask before it is handed out again, and have it crawled now."""
    if not allowed.purge:
        return Refusal(405, "Nobody may purge here: no token was given to this proxy.")
    if not permitted(request, allowed.purge):
        return Refusal(403, "To purge takes a token: Authorization: Bearer ....")
    if _foreign(request):
        return Refusal(403, "Pages of other sites may not purge here.")
    soft = request.fields.get("soft", "").strip().lower() in ("1", "true", "yes") or "x-soft-purge" in request.fields
    policy.refresh(url)
    found = cache.spoil(url) if soft else cache.drop(url)
    return Refusal(200, ("Refreshing." if soft else "Purged.") if found else "There was no copy in memory.")


def _foreign(request: Request) -> bool:
    """Whether a browser asks on behalf of a page of another site."""
    origin = request.fields.get("origin")
    if request.fields.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    return origin is not None and origin.lower().partition("://")[2] != request.authority


class _Far(asyncio.Protocol):
    """The other end of a tunnel."""

    def __init__(self, near: "Connection") -> None:
        self._near = near
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if not self._near.transport.is_closing():
            self._near.transport.write(data)
            if self._near.crowded and self.transport is not None:
                self.transport.pause_reading()

    def pause_writing(self) -> None:
        self._near.transport.pause_reading()

    def resume_writing(self) -> None:
        if not self._near.transport.is_closing():
            self._near.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._near.close()


async def tunnel(
    connection: "Connection", request: Request, routes: "Routes", origins: Origins, allowed: "Allowed"
) -> Refusal | None:
    """Join a reader with a server; nothing of what they say is looked at. The refusal, if that is not to be."""
    if not allowed.connect:
        return Refusal(405, "CONNECT is not open here.")
    try:
        where = target(f"https://{request.authority}/")
    except BadTarget:
        return Refusal(400, "CONNECT needs a host and a port.")
    if where.port not in allowed.connect_ports or where.authority in routes.never:
        return Refusal(403, "This host and port are not open here.")
    try:
        made = await origins.dialer(where, named=False).connect(where)
        far = _Far(connection)
        await asyncio.get_running_loop().create_connection(lambda: far, sock=made)
    except (OSError, Spoiled) as error:
        why = reason(error)
        return Refusal(403 if why.startswith("refused") else 504, f"There is no connection: {why}.")
    if connection.transport.is_closing() or far.transport is None:
        if far.transport is not None:
            far.transport.close()
        return None
    connection.open_tunnel(far.transport)
    return None

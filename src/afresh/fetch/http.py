"""Pages over HTTP: conditional, bounded in time and size, and never to an address it must not reach."""

import asyncio
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from afresh.types import Fetched, Validators

_CHUNK = 1 << 16
_LONGEST_HEADER = 1024  # a validator longer than this is not worth keeping
_REDIRECTS = {301, 302, 303, 307, 308}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one fetch may cost at most."""

    seconds: float = 60.0
    body: int = 16 * 1024 * 1024
    redirects: int = 5
    connections: int = 256


class _RefusedAddress(OSError):
    """The one guard at the socket said no."""


class _TooLarge(Exception):
    """The body, after inflation, is over the limit."""


class LocalhostResolver(AbstractResolver):
    """Resolves `localhost` and every name below it to loopback, as RFC 6761 asks of applications."""

    def __init__(self) -> None:
        self._others = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Addresses of a host name."""
        name = host.lower().rstrip(".")
        if name == "localhost" or name.endswith(".localhost"):
            loopback = ResolveResult(
                hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=socket.AI_NUMERICHOST
            )
            return [loopback]
        return await self._others.resolve(host, port, family)

    async def close(self) -> None:
        """Let go of the system's resolver."""
        await self._others.close()


class Http:
    """Gets pages over HTTP and HTTPS.

    Every address is checked where the socket is made, after all name resolution, so no spelling of a URL and no
    redirect can reach an address that is not public, unless `allow_private` says that it may.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        limits: Limits | None = None,
        allow_private: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.user_agent = user_agent
        self.limits = limits or Limits()
        self.allow_private = allow_private
        self.clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def fetch(self, url: str, known: Validators) -> Fetched:
        """Get the page, or hear that it is still what we `known` it to be."""
        started = self.clock()
        began = time.monotonic()

        def took() -> float:
            return time.monotonic() - began

        try:
            async with asyncio.timeout(self.limits.seconds):
                return await self._follow(url, known, started, took)
        except _TooLarge:
            return Fetched(url, started, took(), reason="too_large")
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            return Fetched(url, started, took(), reason=_reason(error))

    async def close(self) -> None:
        """Let go of all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _follow(self, url: str, known: Validators, started: float, took: Callable[[], float]) -> Fetched:
        target = URL(url, encoded=True)
        headers = _conditions(known)
        for _ in range(self.limits.redirects + 1):
            async with self._open().get(target, headers=headers, allow_redirects=False) as answer:
                location = answer.headers.get("Location", "")
                if answer.status in _REDIRECTS and location:
                    target = answer.url.join(URL(location))
                    if target.scheme not in ("http", "https"):
                        return Fetched(url, started, took(), status=answer.status, reason="bad_redirect")
                    headers = {}  # the conditions were about the address that was asked first
                    continue
                body = await self._read(answer)
                return _fetched(url, started, took(), answer, body)
        return Fetched(url, started, took(), reason="too_many_redirects")

    async def _read(self, answer: aiohttp.ClientResponse) -> bytes:
        if answer.content_length is not None and answer.content_length > self.limits.body:
            raise _TooLarge
        parts: list[bytes] = []
        size = 0
        async for part in answer.content.iter_chunked(_CHUNK):
            size += len(part)
            if size > self.limits.body:
                raise _TooLarge
            parts.append(part)
        return b"".join(parts)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=self.limits.connections,
                resolver=LocalhostResolver(),
                socket_factory=self._guarded_socket,
                ttl_dns_cache=60,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers={"User-Agent": self.user_agent, "Accept": "text/html,*/*;q=0.8"},
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return self._session

    def _guarded_socket(self, info: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, proto, _, address = info
        if not self.allow_private and not ipaddress.ip_address(address[0]).is_global:
            raise _RefusedAddress("the address is not public")
        return socket.socket(family=family, type=kind, proto=proto)


def _conditions(known: Validators) -> dict[str, str]:
    headers: dict[str, str] = {}
    if known.fingerprint and known.etag:
        headers["If-None-Match"] = known.etag
    if known.fingerprint and known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    return headers


def _fetched(url: str, started: float, took: float, answer: aiohttp.ClientResponse, body: bytes) -> Fetched:
    header = answer.headers
    return Fetched(
        url,
        started,
        took,
        status=answer.status,
        body=body,
        content_type=header.get("Content-Type", "")[:_LONGEST_HEADER],
        validators=Validators(etag=_kept(header.get("ETag")), last_modified=_kept(header.get("Last-Modified"))),
        retry_after=_retry_after(header.get("Retry-After"), started),
        location="" if str(answer.url) == url else str(answer.url),
    )


def _kept(value: str | None) -> str:
    return value if value and len(value) <= _LONGEST_HEADER else ""


def _retry_after(value: str | None, now: float) -> float | None:
    """Seconds from a Retry-After header in either of its forms; None for one that makes no sense."""
    if not value:
        return None
    if value.strip().isdecimal():
        return float(value[:20])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def _reason(error: Exception) -> str:
    """One word for what went wrong; the only place that knows the library's own exceptions."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, _RefusedAddress):
            return "refused_address"
        cause = cause.__cause__ or getattr(cause, "os_error", None)
    kinds: list[tuple[type[BaseException] | tuple[type[BaseException], ...], str]] = [
        ((TimeoutError, aiohttp.ServerTimeoutError), "timeout"),
        ((aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError, ssl.SSLError), "tls"),
        (aiohttp.ClientConnectorDNSError, "dns"),
        (aiohttp.ClientConnectorError, "no_connection"),
        (aiohttp.ClientPayloadError, "truncated"),
        ((aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError), "reset"),
        ((aiohttp.ClientResponseError, aiohttp.InvalidURL, ValueError), "bad_protocol"),
    ]
    return next((word for kind, word in kinds if isinstance(error, kind)), "network")

"""One word for what went wrong; the only place that knows the library's own exceptions."""

import ssl
from collections.abc import Iterator

import aiohttp

from afresh.fetch.guard import Refused
from afresh.fetch.inflate import Spoiled
from afresh.fetch.resolve import LookupTimeout
from afresh.fetch.target import BadTarget

# OpenSSL's numbers for what is wrong with a certificate.
_CERTIFICATE = {
    9: "tls_not_yet_valid",
    10: "tls_expired",
    18: "tls_self_signed",
    19: "tls_self_signed",
    20: "tls_unknown_issuer",
    21: "tls_unknown_issuer",
    23: "tls_revoked",
    62: "tls_wrong_name",
    64: "tls_wrong_name",
}

_Kinds = tuple[type[BaseException], ...]
_WORDS: list[tuple[_Kinds, str]] = [
    ((aiohttp.ConnectionTimeoutError,), "connect_timeout"),
    ((TimeoutError,), "timeout"),
    ((aiohttp.ClientSSLError, ssl.SSLError), "tls"),
    ((aiohttp.ClientConnectorDNSError,), "dns"),
    ((aiohttp.ClientConnectorError,), "no_connection"),
    ((aiohttp.ClientPayloadError,), "truncated"),
    ((aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError), "reset"),
    ((BadTarget, aiohttp.InvalidURL), "bad_url"),
    ((aiohttp.ClientResponseError, ValueError), "bad_protocol"),
]


def reason(error: BaseException) -> str:
    """The word for an exception that ended a fetch.

    >>> reason(TimeoutError()), reason(aiohttp.ServerDisconnectedError()), reason(OSError("?"))
    ('timeout', 'reset', 'network')
    """
    for cause in _causes(error):
        if isinstance(cause, Refused | Spoiled):
            return cause.reason
        if isinstance(cause, LookupTimeout):
            return "dns_timeout"
        if (code := getattr(cause, "verify_code", None)) is not None:  # an ssl.SSLCertVerificationError
            return _CERTIFICATE.get(code, "tls")
        # asyncio has no type of its own for this one, nor has aiohttp for a reset in the middle of a body.
        if isinstance(cause, ConnectionAbortedError) and "handshake" in str(cause):
            return "tls_timeout"
        if isinstance(cause, aiohttp.ClientPayloadError) and "ConnectionResetError" in str(cause):
            return "reset"
    return next((word for kinds, word in _WORDS if isinstance(error, kinds)), "network")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and what led to it, as far back as is told."""
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or getattr(cause, "os_error", None)

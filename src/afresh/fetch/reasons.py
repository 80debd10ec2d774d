"""One word for what went wrong."""

import ssl

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
    ((LookupTimeout,), "dns_timeout"),
    ((TimeoutError,), "timeout"),
    ((ssl.SSLError,), "tls"),
    ((ConnectionError,), "reset"),
    ((BadTarget,), "bad_url"),
    ((ValueError,), "bad_protocol"),
]


def reason(error: BaseException) -> str:
    """The word for an exception that ended a fetch.

    >>> reason(TimeoutError()), reason(ConnectionResetError()), reason(OSError("?"))
    ('timeout', 'reset', 'network')
    """
    if isinstance(error, Refused | Spoiled):
        return error.reason
    if isinstance(error, ssl.SSLCertVerificationError):
        return _CERTIFICATE.get(error.verify_code, "tls")
    return next((word for kinds, word in _WORDS if isinstance(error, kinds)), "network")

"""One request as it came, and the guard that lets nothing through that two parsers could read in two ways.

The parser below (llhttp) is strict about characters and line ends. What it leaves open is decided here.
"""

import re
from collections import deque
from dataclasses import dataclass

from afresh.serve.proxy.fields import Lines, Named, joined, members

METHODS = frozenset(
    {
        *("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PURGE", "CONNECT"),
        *("PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "SEARCH", "M-SEARCH"),
    }
)
SAFE = frozenset({"GET", "HEAD", "OPTIONS", "PROPFIND", "REPORT", "SEARCH"})
LONGEST_TARGET = 8192
LARGEST_HEAD = 32 << 10
MOST_FIELDS = 100

_LENGTH = re.compile(r"[0-9]{1,18}")
_NOT_IN_TARGETS = re.compile(rb"[^\x21\x22\x24-\x7e]")
_HOST = re.compile(r"(?:\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._~-]{1,253})(?::[0-9]{1,5})?")
_ABSOLUTE = re.compile(r"(https?)://([^/?#@]+)([/?].*)?", re.IGNORECASE)
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
# Gateways turn "_" into "-" or the other way round: these names must mean one thing.
_FRAMING = frozenset({"content-length", "transfer-encoding", "host", "connection", "upgrade"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered: a status, a sentence for whoever sent it, and that in the words of RFC 9211."""

    status: int
    sentence: str
    said: str = "detail=refused"


class Request:
    """A request whose head has arrived."""

    __slots__ = (
        *("authority", "expects", "fields", "has_body", "keep_alive", "length", "lines", "method"),
        *("path", "pieces", "scheme", "target", "unread", "version", "whole"),
    )

    def __init__(self, method: str, target: bytes, version: str, lines: Lines) -> None:
        self.method = method
        self.target = target
        self.version = version
        self.lines = lines
        self.fields: Named = joined(lines)
        self.keep_alive = True
        self.has_body = False
        self.length: int | None = None  # of the body, if it says so beforehand
        self.expects = False
        self.scheme = ""  # "" unless the target is absolute
        self.authority = ""  # host and port as they were asked for, in lower case
        self.path = ""  # with the query, as it came
        self.whole = False  # whether its body is over
        self.pieces: deque[bytes] | None = None  # of its body, that nobody has taken yet
        self.unread = 0  # bytes of them


def _shown(raw: bytes) -> str:
    """Something of a request, in a sentence about it."""
    return raw[:40].decode("ascii", "backslashreplace")


def _framing(request: Request) -> Refusal | None:
    """What is wrong with where the body ends."""
    fields = request.fields
    length, coding = fields.get("content-length"), fields.get("transfer-encoding")
    if coding is not None:
        if length is not None:
            return Refusal(400, "Content-Length and Transfer-Encoding contradict each other.")
        if coding.lower() != "chunked" or request.version == "1.0":
            return Refusal(400, "Transfer-Encoding must be exactly chunked, in HTTP/1.1.")
        request.has_body, request.pieces = True, deque()
    elif length is not None:
        if not _LENGTH.fullmatch(length):
            return Refusal(400, f"Content-Length is not one number: {_shown(length.encode('latin-1'))}.")
        request.length = int(length)
        if request.length:
            request.has_body, request.pieces = True, deque()
    return None


def _names(request: Request) -> Refusal | None:
    """What is wrong with the fields one by one."""
    for raw, value in request.lines:
        if b"_" in raw and raw.decode("latin-1").lower().replace("_", "-") in _FRAMING:
            return Refusal(400, f"The field {_shown(raw)} could be taken for another one.")
        if _CONTROL.search(value):
            return Refusal(400, f"The field {_shown(raw)} holds a control character.")
    return None


def _where(request: Request) -> Refusal | None:
    """What is wrong with target and Host; what they say goes into the request."""
    target, host = request.target, request.fields.get("host")
    if len(target) > LONGEST_TARGET:
        return Refusal(414, "The address is too long.")
    if (wrong := _NOT_IN_TARGETS.search(target)) or not target:
        what = f"holds a byte that belongs in none: 0x{wrong[0].hex()}" if wrong else "is missing"
        return Refusal(400, f"The address {what}.")
    if host is None and request.version == "1.1":
        return Refusal(400, "There is no Host.")
    if host is not None and not _HOST.fullmatch(host):
        return Refusal(400, f"Host is not one host: {_shown(host.encode('latin-1'))}.")
    text = target.decode("ascii")
    request.authority, request.path = (host or "").lower(), text
    if request.method == "CONNECT":
        if not _HOST.fullmatch(text) or ":" not in text.rpartition("]")[2]:
            return Refusal(400, "CONNECT needs a host and a port.")
        request.authority, request.path = text.lower(), ""
        return None
    if text.startswith("/"):
        return None
    if text == "*":
        return None if request.method == "OPTIONS" else Refusal(400, "The address * is for OPTIONS alone.")
    match = _ABSOLUTE.fullmatch(text)
    if match is None or not _HOST.fullmatch(match[2]):
        return Refusal(400, "The address is neither a path nor a whole address of http or https.")
    request.scheme, request.authority = match[1].lower(), match[2].lower()
    request.path = match[3] or "/"
    if request.path.startswith("?"):
        request.path = "/" + request.path
    if host is not None and host.lower() != request.authority:
        return Refusal(400, "The address and Host name different hosts.")
    return None


def check(request: Request) -> Refusal | None:
    """What is wrong with a request, if anything; what is right is read into it.

    >>> lines = [(b"Host", b"a.example"), (b"Content-Length", b"+1")]
    >>> check(Request("POST", b"/", "1.1", lines))
    Refusal(status=400, sentence='Content-Length is not one number: +1.', said='detail=refused')
    """
    if request.version not in ("1.1", "1.0"):
        return Refusal(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.")
    if request.method not in METHODS:
        return Refusal(501, "This method is not known here.")
    wrong = _names(request) or _framing(request) or _where(request)
    if wrong is not None:
        return wrong
    fields = request.fields
    said = fields.get("connection")
    if said is not None or request.version == "1.0":
        options = members(said or "")
        request.keep_alive = "close" not in options and (request.version == "1.1" or "keep-alive" in options)
    if "upgrade" in fields:
        request.keep_alive = False  # what follows could be meant in the other protocol
    expected = fields.get("expect")
    if expected is not None:
        if expected.lower() != "100-continue":
            return Refusal(417, "Nothing but 100-continue can be expected.")
        request.expects = request.version == "1.1"
    if request.has_body and request.method in ("CONNECT", "PURGE"):
        return Refusal(400, "This method has no body.")
    return None

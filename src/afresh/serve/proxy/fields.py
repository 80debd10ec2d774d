"""Header fields: lines as they came, and the same by name."""

from collections.abc import Iterable

Lines = list[tuple[bytes, bytes]]
Named = dict[str, str]

# What is meant for the next hop alone (RFC 9110, 7.6.1), and what concerns this connection's framing.
HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authentication-info",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"http2-settings",
    }
)
_NAMES: dict[bytes, str] = {}
_MOST_NAMES = 1000
_WRITTEN = {
    "etag": "ETag",
    "www": "WWW",
    "md5": "MD5",
    "xss": "XSS",
    "ua": "UA",
    "nel": "NEL",
    "cdn": "CDN",
    "id": "ID",
}


def name_of(raw: bytes) -> str:
    """A field's name in lower case. Names come again and again, so they are remembered.

    >>> name_of(b"ETag")
    'etag'
    """
    name = _NAMES.get(raw)
    if name is None:
        name = raw.decode("latin-1").lower()
        if len(_NAMES) < _MOST_NAMES:
            _NAMES[raw] = name
    return name


def usual(name: str) -> str:
    """A field's name as people write it.

    >>> usual("content-type"), usual("etag"), usual("www-authenticate")
    ('Content-Type', 'ETag', 'WWW-Authenticate')
    """
    return "-".join(_WRITTEN.get(part, part.capitalize()) for part in name.lower().split("-"))


def joined(lines: Iterable[tuple[bytes, bytes]]) -> Named:
    """Values by name; those of several lines are one list.

    >>> joined([(b"Vary", b"A"), (b"vary", b" B")]), joined([(b"Cookie", b"a=1"), (b"Cookie", b"b=2")])
    ({'vary': 'A, B'}, {'cookie': 'a=1; b=2'})
    """
    found: Named = {}
    for raw, value in lines:
        name, text = name_of(raw), value.decode("latin-1").strip(" \t")
        if name in found:
            text = f"{found[name]}{'; ' if name == 'cookie' else ', '}{text}"
        found[name] = text
    return found


def members(value: str) -> list[str]:
    """The members of a comma-separated list without quoted commas, in lower case, without empty ones.

    >>> members(" A,, b ")
    ['a', 'b']
    """
    return [word for part in value.lower().split(",") if (word := part.strip(" \t"))]


def end_to_end(lines: Lines, *, besides: frozenset[bytes] = frozenset()) -> Lines:
    """The lines that go on to the next hop: without what is hop by hop, what Connection names, and what is `besides`.

    >>> end_to_end([(b"Connection", b"close, x-y"), (b"X-Y", b"1"), (b"TE", b"trailers"), (b"Accept", b"*/*")])
    [(b'Accept', b'*/*')]
    """
    named = {
        word.strip(b" \t")
        for name, value in lines
        if name.lower() == b"connection"
        for word in value.lower().split(b",")
    }
    left_out = HOP_BY_HOP | besides | named if named else HOP_BY_HOP | besides
    return [(name, value) for name, value in lines if name.lower() not in left_out]


def packed(lines: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Lines as they are sent."""
    return b"".join([b"%b: %b\r\n" % line for line in lines])

"""What of a request goes on to the origin."""

import re

from afresh.fetch.target import Target
from afresh.serve.proxy.fields import HOP_BY_HOP, Lines, Named, end_to_end
from afresh.serve.proxy.request import Request

# What says of a request something else than it says itself: who can set it decides what is kept for all others.
_OVERRIDES = frozenset(
    {
        *(b"forwarded", b"x-real-ip", b"x-client-ip", b"x-cluster-client-ip", b"x-originating-ip", b"x-remote-ip"),
        *(
            b"x-remote-addr",
            b"true-client-ip",
            b"cf-connecting-ip",
            b"fastly-client-ip",
            b"x-host",
            b"x-http-host-override",
        ),
        *(b"x-rewrite-url", b"x-http-method", b"x-http-method-override", b"x-method-override", b"x-url-scheme"),
        *(b"front-end-https", b"x-scheme", b"x-proto", b"x-override-url", b"x-wap-profile", b"x-backend-host"),
        *(b"client-ip", b"proxy"),  # a program that a gateway starts reads the latter as HTTP_PROXY
    }
)
_PREFIXES = (b"x-forwarded", b"x-original", b"x-rewrite")
_MADE_ANEW = frozenset({b"host", b"content-length", b"expect", b"via"})
_TAKEN_FOR_A_DASH = re.compile(rb"[^a-z0-9-]")  # gateways write "-" and all these as "_", so nobody can tell them apart
CONDITIONS = frozenset(
    {b"if-none-match", b"if-modified-since", b"if-match", b"if-unmodified-since", b"if-range", b"range"}
)


def lines_of(request: Request, *, besides: frozenset[bytes] = frozenset()) -> Lines:
    """A reader's fields as they go on: end to end, and without those that claim to know better than the request."""
    left_out = _OVERRIDES | _MADE_ANEW | besides
    kept = end_to_end(request.lines, besides=left_out)
    return [line for line in kept if not _is_left_out(line[0].lower(), left_out)]


def _is_left_out(name: bytes, names: frozenset[bytes]) -> bool:
    """Whether a field is one of these, or of their kin, or could be taken for one.

    >>> [_is_left_out(name, _OVERRIDES) for name in (b"x_forwarded_host", b"client.ip", b"x-my_own")]
    [True, True, False]
    """
    meant = _TAKEN_FOR_A_DASH.sub(b"-", name)
    return meant.startswith(_PREFIXES) or (meant != name and (meant in names or meant in HOP_BY_HOP))


def head(
    method: str, where: Target, lines: Lines, *, via: str = "", length: int | None = None, chunked: bool = False
) -> bytes:
    """The head of a request."""
    parts = [f"{method} {where.path} HTTP/1.1\r\nHost: {where.authority}\r\n".encode("ascii")]
    parts += [b"%b: %b\r\n" % line for line in lines]
    parts.append(f"Via: {via + ', ' if via else ''}1.1 afresh\r\n".encode("latin-1"))
    if chunked:
        parts.append(b"Transfer-Encoding: chunked\r\n")
    elif length is not None:
        parts.append(b"Content-Length: %d\r\n" % length)
    parts.append(b"\r\n")
    return b"".join(parts)


def conditions(etag: str, modified: str) -> Lines:
    """The fields that ask whether what we have still holds."""
    found = [(b"If-None-Match", etag.encode("latin-1"))] if etag else []
    return found + ([(b"If-Modified-Since", modified.encode("latin-1"))] if modified else [])


def own_lines(agent: str, names: tuple[str, ...], asked_with: Named) -> Lines:
    """What we say in our own name, and of a reader's fields those that the page is known to depend on."""
    said = [(b"User-Agent", agent.encode("latin-1")), (b"Accept", b"*/*"), (b"Accept-Encoding", b"gzip")]
    for name in names:
        if name in asked_with and name != "accept-encoding":
            said = [line for line in said if line[0].lower() != name.encode("latin-1")]
            said.append((name.encode("latin-1"), asked_with[name].encode("latin-1")))
    return said


def absolute(named: str, where: Target) -> str | None:
    """Where a Location points, if it is on the same origin and can be told without guessing.

    >>> absolute("/a", Target("http://e.example/b/c")), absolute("http://other.example/", Target("http://e.example/"))
    ('http://e.example/a', None)
    """
    base = f"{where.scheme}://{where.authority}"
    if named.startswith(base + "/"):
        return named
    if named.startswith("/") and not named.startswith("//"):
        return base + named
    if "://" in named or not named or named.startswith(("?", "#", ".", "//")):
        return None
    return base + where.path.partition("?")[0].rpartition("/")[0] + "/" + named

"""What of a request goes on to the origin."""

from afresh.fetch.target import Target
from afresh.serve.proxy.fields import Lines, Named, end_to_end
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
    }
)
_PREFIXES = (b"x-forwarded", b"x-original", b"x-rewrite")
_MADE_ANEW = frozenset({b"host", b"content-length", b"expect", b"via"})
CONDITIONS = frozenset(
    {b"if-none-match", b"if-modified-since", b"if-match", b"if-unmodified-since", b"if-range", b"range"}
)


def lines_of(request: Request, *, besides: frozenset[bytes] = frozenset()) -> Lines:
    """A reader's fields as they go on: end to end, and without those that claim to know better than the request."""
    kept = end_to_end(request.lines, besides=_OVERRIDES | _MADE_ANEW | besides)
    return [line for line in kept if not line[0].lower().startswith(_PREFIXES)]


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

"""Where a request goes: one parse of the URL that fetcher, guard and library all go by."""

import ada_url
from yarl import URL


class BadTarget(ValueError):
    """Not a URL that may be asked."""


def target(url: str, base: str | None = None) -> URL:
    """The address to ask, parsed as browsers do; BadTarget unless it is http or https, without a user's name.

    >>> str(target("HTTP://0x7f.1:80/a b", None)), str(target("../x#top", "https://example.com/a/b"))
    ('http://127.0.0.1/a%20b', 'https://example.com/x')
    """
    try:
        parsed = ada_url.URL(url, base)
    except (ValueError, UnicodeError):
        raise BadTarget("not a URL") from None
    # `encoded` keeps the library from writing the URL anew in its own way.
    built = URL(str(parsed.href).partition("#")[0], encoded=True)
    if built.scheme not in ("http", "https"):
        raise BadTarget("not a web address")
    if built.raw_authority != parsed.host:
        # Credentials, which would be sent to whoever wrote the URL; or a host that two parsers read differently.
        raise BadTarget("more or other than a host before the path")
    return built


def redirected(location: str, base: URL) -> URL:
    """Where a Location header points; bytes beyond ASCII are escaped as they came, as browsers do."""
    raw = location.encode("utf-8", "surrogateescape")
    return target("".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in raw), str(base))

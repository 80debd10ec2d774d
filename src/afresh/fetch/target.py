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
    if parsed.protocol not in ("http:", "https:"):
        raise BadTarget("not a web address")
    if parsed.username or parsed.password:
        raise BadTarget("credentials in the URL")  # they would be sent to whoever wrote it
    parsed.hash = ""
    # `encoded` keeps the library from writing the URL anew in its own way.
    built = URL(str(parsed.href), encoded=True)
    port = int(parsed.port) if parsed.port else (443 if parsed.protocol == "https:" else 80)
    if built.raw_host != str(parsed.hostname).strip("[]") or built.port != port:
        raise BadTarget("two parsers read it differently")
    return built


def redirected(location: str, base: URL) -> URL:
    """Where a Location header points; bytes beyond ASCII are escaped as they came, as browsers do."""
    raw = location.encode("utf-8", "surrogateescape")
    return target("".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in raw), str(base))

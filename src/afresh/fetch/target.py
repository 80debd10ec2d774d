"""Where a request goes: one parse of the URL that fetcher, guard and connection all go by."""

import ada_url


class BadTarget(ValueError):
    """Not a URL that may be asked."""


class Target:
    """A web address, taken apart: `str` of it is the URL as it is asked, without a fragment."""

    __slots__ = ("authority", "host", "path", "port", "scheme", "url")

    def __init__(self, url: str) -> None:
        """From a URL in the one form that the parser writes: http(s)://authority/path?query."""
        self.url = url
        self.scheme, _, rest = url.partition("://")
        self.authority, _, path = rest.partition("/")
        if "@" in self.authority:  # credentials, which would be sent to whoever wrote the URL
            raise BadTarget("more than a host before the path")
        self.path = "/" + path  # and the query, as they are sent
        name, colon, port = self.authority.rpartition(":")
        if not colon or port.endswith("]"):  # no port, at most an address in brackets
            name, port = self.authority, ""
        self.host = name.strip("[]")
        self.port = int(port) if port else 443 if self.secure else 80

    def __str__(self) -> str:
        return self.url

    @property
    def secure(self) -> bool:
        """Whether it is asked over TLS."""
        return self.scheme == "https"


def target(url: str, base: str | None = None) -> Target:
    """The address to ask, parsed as browsers do; BadTarget unless it is http or https, without a user's name.

    >>> str(target("HTTP://0x7f.1:80/a b", None)), str(target("../x#top", "https://example.com/a/b"))
    ('http://127.0.0.1/a%20b', 'https://example.com/x')
    >>> target("https://[::1]:8080/a?b").host, target("https://[::1]:8080/a?b").port, target("https://[::1]/").port
    ('::1', 8080, 443)
    """
    try:
        whole = ada_url.join_url(base, url) if base is not None else ada_url.normalize_url(url)
    except (ValueError, UnicodeError):
        raise BadTarget("not a URL") from None
    if not whole.startswith(("http://", "https://")):
        raise BadTarget("not a web address")
    return Target(whole.partition("#")[0])


def redirected(location: str, base: Target) -> Target:
    """Where a Location header points; bytes beyond ASCII are escaped as they came, as browsers do."""
    raw = location.encode("utf-8", "surrogateescape")
    return target("".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in raw), base.url)

"""Where a request goes: one parse of the URL that fetcher, guard and connection all go by."""

import re

import ada_url

# What the parser gives back as it is, and nearly all that is asked for: a host in small letters or four numbers, a path
# without anything to resolve or to escape. To see that takes less than half the time of a parse.
_NUMBER = r"(?:0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
_CHARACTERS = r"A-Za-z0-9_.~!$&()*+,;=:@%-"
_PLAIN = re.compile(
    rf"https?://(?:(?:[a-z0-9]+(?:-[a-z0-9]+)*\.)+[a-z]+|{_NUMBER}(?:\.{_NUMBER}){{3}})(?::[1-9][0-9]{{3}}|:[1-5][0-9]{{4}})?"
    rf"(?:/(?![.%])[{_CHARACTERS}]*)+(?:\?[{_CHARACTERS}/?]*)?"
)


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
    if base is None and _PLAIN.fullmatch(url):
        return Target(url)
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

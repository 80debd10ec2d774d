"""One spelling for every URL: the WHATWG serialisation, and four rules of ours on top.

1. The fragment goes: it never reaches the server.
2. An empty query goes, `/a?` is `/a`.
3. Percent signs are written one way: `%c3` is `%C3`, and an escaped letter, digit, `-`, `.`, `_` or `~` is that
   character itself (RFC 3986, 6.2.2: the two mean the same).
4. User names and passwords are refused, and so is everything but http and https.

The form of the form is the form itself, for every text: what robots.txt and scope are asked about is what is sent, byte
by byte. So an escape that would make another one together with what stands before it stays an escape (`%2%65` is not
`%2e`, a dot).

A rule here must never join two different pages, so the order of parameters, doubled slashes, a dot after the host and
session identifiers are all left alone. (Session identifiers are a matter of `scope`.)
"""

import re
from functools import lru_cache

import ada_url

from afresh.errors import InputError

LONGEST = 2083  # what browsers and other crawlers take; longer ones are traps or mistakes

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HEX = frozenset("0123456789ABCDEFabcdef")
# Escapes, in either case, of characters that need none.
_MEANT = {f"%{digits}": chr(code) for code in range(128) for digits in {f"{code:02x}", f"{code:02X}"}}
_MEANT = {escape: character for escape, character in _MEANT.items() if character in _UNRESERVED}
_LOOSE = re.compile(r"%[0-9A-Fa-f]?\Z")  # a percent sign that begins no escape, yet
_SURROGATE = re.compile("[\ud800-\udfff]")

# Paths that are canonical as they stand, each character being one that no rule touches and no segment a dot segment.
_PLAIN = r"(?:/(?!\.{1,2}(?:[/?]|$))[A-Za-z0-9_\-.~!$&()*+,;=:@]*)"
_PLAIN_QUERY = r"(?:\?[A-Za-z0-9_\-.~!$&()*+,;=:@/?]+)?"
_ORIGIN = re.compile(r"https?://[^/?#\\@\s]+(?=/)")
_PLAIN_ABSOLUTE = re.compile(rf"(https?://[a-z0-9.\-]+(?::[0-9]+)?)({_PLAIN}+{_PLAIN_QUERY})")
_PLAIN_ROOTED = re.compile(rf"(?!//){_PLAIN}+{_PLAIN_QUERY}")
_PLAIN_RELATIVE = re.compile(rf"(?!\.{{1,2}}(?:[/?]|$))[A-Za-z0-9_\-.~]+{_PLAIN}*{_PLAIN_QUERY}")


class Url(str):
    """A URL as the WHATWG standard serialises it; the string is its `href`, and its parts are at hand.

    >>> parse("/b?q#top", "HTTP://Example.com:80").pathname
    '/b'
    """

    _parts: ada_url.URL

    @property
    def href(self) -> str:
        """The whole URL."""
        return str(self)

    def __getattr__(self, name: str) -> str:
        # Only what is not found otherwise arrives here: protocol, username, password, host, hostname, port, …
        if name not in ada_url.ada_adapter.PARSE_ATTRIBUTES:
            raise AttributeError(name)
        return str(getattr(self._parts, name))


def parse(url: str, base: str | None = None) -> Url | None:
    """What a browser makes of a URL (WHATWG), any scheme; None if it is none.

    >>> parse("HTTP://Example.COM:80/a/../b#top"), parse("example.com")
    ('http://example.com/b#top', None)
    """
    try:
        parts = ada_url.URL(_SURROGATE.sub("\ufffd", url), base)
    except ValueError:
        return None
    parsed = Url(parts.href)
    parsed._parts = parts
    return parsed


def canonical(url: str, base: str | None = None) -> str:
    """The canonical form of an http or https URL; InputError with the reason if it has none.

    >>> canonical("HTTP://Example.COM:80/a/../%7eb?q=1#top")
    'http://example.com/~b?q=1'
    """
    found = canonical_or_none(url, base)
    return found if found is not None else _refuse(url, base)


def canonical_or_none(url: str, base: str | None = None) -> str | None:
    """The canonical form, or None: for the thousands of links that nobody is to be told about."""
    try:
        href = ada_url.join_url(base, url) if base else ada_url.normalize_url(url)
    except ValueError:
        whole = _SURROGATE.sub("\ufffd", url)  # half a character pair, which a page may well hold
        return canonical_or_none(whole, base) if whole != url else None
    if not href.startswith(("http://", "https://")):
        return None
    end = href.find("#")
    if end >= 0:
        href = href[:end]
    if href[-1] == "?" and href.index("?") == len(href) - 1:
        href = href[:-1]
    if "%" in href:
        href = _ESCAPE.sub(_one_way, href)
    if len(href) > LONGEST or ("@" in href and "@" in href.split("/", 3)[2]):
        return None
    return href


def _one_way(escape: re.Match[str]) -> str:
    written = escape[0]
    character = _MEANT.get(written)
    if character is None:
        return written.upper()
    if character in _HEX:
        start = escape.start()
        if "%" in escape.string[max(start - 2, 0) : start] and _LOOSE.search(escape.string[max(start - 2, 0) : start]):
            return written
    return character


def _refuse(url: str, base: str | None) -> str:
    """Say why a URL has no canonical form."""
    shown = url if len(url) <= 100 else url[:97] + "..."
    parsed = parse(url, base)
    if parsed is None:
        raise InputError(f"{shown!r} is not a URL.", hint="Write it whole, such as https://example.com/page.")
    if parsed.protocol not in ("http:", "https:"):
        raise InputError(
            f"{shown!r} is not a web address: it begins with {parsed.protocol!r}.",
            hint="Only http:// and https:// can be kept fresh.",
        )
    if parsed.username or parsed.password:
        # The sentence must not repeat the secret.
        raise InputError("A URL carries a user name or password.", hint="Remove the part before the @.")
    raise InputError(f"{shown!r} is longer than {LONGEST} characters.", hint="Shorten it or leave it out.")


class Resolver:
    """Canonical forms of the links of one page; the same answers as `canonical_or_none`, most of them faster.

    Most links are plain already, and then the page's own origin or folder and the link need only be joined. A host is
    taken as plain only after the full parser has confirmed one URL of it, since `0x7f.1` is made of plain characters.
    """

    def __init__(self, base: str) -> None:
        self.base = base
        match = _PLAIN_ABSOLUTE.fullmatch(base)
        plain = match is not None and len(base) <= LONGEST and _is_canonical_origin(match[1])
        whole = base if plain else canonical_or_none(base)
        self._origin = self._folder = ""
        if whole is not None:
            host_end = whole.index("/", 8)
            path = whole.partition("?")[0]
            self._origin = whole[:host_end]
            self._folder = path[: path.rindex("/") + 1]
        self._confirmed = {self._origin} if whole is not None else set()

    def __call__(self, link: str) -> str | None:
        """The link's canonical form, None if it has none that can be crawled."""
        end = link.find("#")
        # Spaces around a link are nothing; one before its fragment is part of the path.
        plain = link.strip(" ") if end < 0 else link[:end].lstrip(" ")
        found = None
        if self._origin and plain:
            if plain[0] == "/":
                found = self._origin + plain if _PLAIN_ROOTED.fullmatch(plain) else None
            elif match := _PLAIN_ABSOLUTE.fullmatch(plain):
                return self._absolute(plain, match[1], match[2])
            elif ":" not in plain:
                folder = self._folder
                while plain[:3] == "../":
                    plain, folder = plain[3:], self._above(folder)
                found = folder + plain if _PLAIN_RELATIVE.fullmatch(plain) else None
        if found is not None and len(found) <= LONGEST:
            return found
        return canonical_or_none(link, self.base)

    def _above(self, folder: str) -> str:
        return folder[: max(folder.rindex("/", 0, -1), len(self._origin)) + 1]

    def _absolute(self, plain: str, origin: str, rest: str) -> str | None:
        if origin in self._confirmed and len(plain) <= LONGEST:
            return plain
        found = canonical_or_none(plain, self.base)
        if found == origin + rest:
            self._confirmed.add(origin)
        return found


def host_of(url: str) -> str:
    """The host and port of a canonical URL: what politeness is counted by.

    >>> host_of("http://example.com:8080/a")
    'example.com:8080'
    """
    origin = _ORIGIN.match(url)
    return _host(origin[0]) if origin is not None else _host.__wrapped__(url)


def front_page(url: str) -> str:
    """The front page of the host of a canonical URL.

    >>> front_page("http://example.com:8080/a?b")
    'http://example.com:8080/'
    """
    return url[: url.index("/", url.index("//") + 2) + 1]


@lru_cache(maxsize=1024)
def _host(url: str) -> str:
    return str(ada_url.URL(url).host)


@lru_cache(maxsize=1024)
def _is_canonical_origin(origin: str) -> bool:
    """Whether scheme, host and port stay as they are; a host such as `0x7f.1` does not."""
    return canonical_or_none(origin + "/") == origin + "/"

"""robots.txt as RFC 9309 reads it, and as Google's own parser does where the RFC is silent.

Only the first 500 KiB count, and 16,664 bytes of a line. Groups for the same agent are joined; the longest matching
rule decides, and of two equally long ones the one that allows. Percent signs are written one way on both sides before
they are compared. Matching is linear in the length of the path, and what is kept is linear in the file: agents
that stand together share their rules.
"""

import re
from dataclasses import dataclass, field

from afresh.frontier.glob import Glob

LARGEST = 500 * 1024  # bytes of the file that are read
LONGEST_LINE = 16_664  # bytes of a line that are read: eight of the longest URLs that browsers take
LONGEST_DELAY = 86_400.0
MOST_SITEMAPS = 1_000

_TOKEN = re.compile(rb"[A-Za-z_-]+")
_ESCAPED = re.compile(rb"%[0-9A-Fa-f]{2}")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_DELAY = re.compile(rb"[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}")
# A key counts if it begins like this; the second and later spellings are common mistakes.
_KEYS = {
    "agent": (b"user-agent", b"useragent", b"user agent"),
    "allow": (b"allow",),
    "disallow": (b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"),
    "sitemap": (b"sitemap", b"site-map"),
    "delay": (b"crawl-delay", b"crawldelay", b"crawl delay"),
}


@dataclass(slots=True)
class _Group:
    """Rules, or a delay, that several agents share."""

    rules: list[tuple[bytes, bool]] = field(default_factory=list)  # pattern, allowed
    delay: float | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    length: int
    allowed: bool
    glob: Glob


class Robots:
    """What one robots.txt allows.

    >>> robots = Robots("User-agent: *\\nDisallow: /private/\\nCrawl-delay: 2\\nSitemap: https://example.org/map.xml")
    >>> robots.allowed("afresh", "https://example.org/private/x"), robots.allowed("afresh", "https://example.org/")
    (False, True)
    >>> robots.crawl_delay("afresh"), robots.sitemaps
    (2.0, ('https://example.org/map.xml',))
    """

    def __init__(self, text: str | bytes = b"") -> None:
        self.sitemaps: tuple[str, ...] = ()
        self._groups: dict[bytes, list[_Group]] = {}  # by agent, lower case; b"*" for all others
        self._chosen: dict[str, tuple[_Rule, ...]] = {}
        self._read(_content(text))

    def allowed(self, agent: str, url: str) -> bool:
        """Whether the agent (its product name, such as `afresh`) may fetch a URL.

        The URL must be canonical, hence ASCII: a rule for `/é` is a rule for `/%C3%A9`, never for a bare `/é`.
        """
        rules = self._rules(agent)
        if not rules:
            return True
        path = _path(url)
        # The longest come first, and of equally long ones those that allow.
        return next((rule.allowed for rule in rules if rule.glob.matches(path)), True)

    def crawl_delay(self, agent: str) -> float | None:
        """Seconds that the host wants between two requests of this agent; None if it does not say."""
        return max((group.delay for group in self._of(agent) if group.delay is not None), default=None)

    def _of(self, agent: str) -> list[_Group]:
        name = agent.partition("/")[0].strip().lower().encode("utf-8", "replace")
        return self._groups.get(name) or self._groups.get(b"*", [])

    def _rules(self, agent: str) -> tuple[_Rule, ...]:
        found = self._chosen.get(agent)
        if found is None:
            if len(self._chosen) >= 16:  # a crawler has one name or two
                self._chosen.clear()
            unique = {rule for group in self._of(agent) for rule in group.rules}
            ordered = sorted(unique, key=lambda rule: (-len(rule[0]), not rule[1], rule[0]))
            found = tuple(_Rule(len(pattern), allowed, Glob(pattern.decode("latin-1"))) for pattern, allowed in ordered)
            self._chosen[agent] = found
        return found

    def _read(self, content: bytes) -> None:
        sitemaps: dict[str, None] = {}
        rules, delays = _Grouping(self._groups), _Grouping(self._groups)
        for line in content.replace(b"\r", b"\n").split(b"\n"):
            key, value = _key_and_value(line[:LONGEST_LINE])
            if key == "agent":
                name = _agent(value)
                rules.agent(name)
                delays.agent(name)
            elif key in ("allow", "disallow"):
                for pattern in _patterns(value, key):
                    rules.current().rules.append((pattern, key == "allow"))
                rules.close()
                delays.close()
            elif key == "delay":
                # A delay belongs to the agents just above it, and must not come between agents and their rules.
                if _DELAY.fullmatch(value):
                    group = delays.current()
                    group.delay = max(group.delay or 0.0, min(float(value), LONGEST_DELAY))
                delays.close()
            elif key == "sitemap" and value and len(sitemaps) < MOST_SITEMAPS:
                sitemaps[value.decode("utf-8", "replace")] = None
        self.sitemaps = tuple(sitemaps)


class _Grouping:
    """Which agents the next line speaks of: all since the last line that closed a group."""

    def __init__(self, groups: dict[bytes, list[_Group]]) -> None:
        self._groups = groups
        self._group = _Group()  # before any agent: rules for nobody
        self._closed = True

    def agent(self, name: bytes) -> None:
        if self._closed:
            self._group, self._closed = _Group(), False
        known = self._groups.setdefault(name, [])
        if not known or known[-1] is not self._group:
            known.append(self._group)

    def current(self) -> _Group:
        return self._group

    def close(self) -> None:
        self._closed = True


def _content(text: str | bytes) -> bytes:
    """The bytes that count, as UTF-8 without a byte order mark; a line that the limit cuts in two does not count."""
    raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
    cut = len(raw) > LARGEST
    raw = raw[:LARGEST]
    zeros = raw[:512].count(0)
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or zeros * 3 > len(raw[:512]):
        # UTF-16; without a mark the zero half of the first characters tells which way round.
        order = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-16-be" if raw[:1] == b"\0" else "utf-16-le"
        raw = raw.decode(order, "replace").encode("utf-8", "replace")
    if cut:
        raw = raw[: max(raw.rfind(b"\n"), raw.rfind(b"\r"), 0)]
    for byte in b"\xef\xbb\xbf":  # a mark that was cut short is left out all the same
        if raw[:1] == bytes((byte,)):
            raw = raw[1:]
    return raw


def _key_and_value(line: bytes) -> tuple[str, bytes]:
    line = line.partition(b"#")[0].strip(b" \t\0\v\f")
    name, colon, value = line.partition(b":")
    if not colon:
        words = line.split()
        if len(words) != 2:  # the colon may be missing, but only if it is plain where it belongs
            return "", b""
        name, value = words
    name = name.strip().lower()
    for key, spellings in _KEYS.items():
        if name.startswith(spellings):
            return key, value.strip(b" \t\0\v\f")
    return "", b""


def _agent(value: bytes) -> bytes:
    """The product name that a line begins with, in lower case; b"*" for everybody."""
    if value == b"*" or (value[:1] == b"*" and value[1:2].isspace()):
        return b"*"
    match = _TOKEN.match(value)
    return match[0].lower() if match else b""


def _patterns(value: bytes, key: str) -> list[bytes]:
    if not value:
        return []
    pattern = _one_way(_NOT_ASCII.sub(lambda match: b"%%%02X" % match[0][0], value))
    # Only a dollar sign at the end is special.
    body, end = (pattern[:-1], b"$") if pattern.endswith(b"$") else (pattern, b"")
    found = [body.replace(b"$", b"%24") + end]
    folder, slash, name = pattern.rpartition(b"/")
    if key == "allow" and slash and name.startswith(b"index.htm"):
        found.append(folder + b"/$")  # who allows the index page means the folder too
    return found


def _one_way(text: bytes) -> bytes:
    return _ESCAPED.sub(_escape, text)


def _escape(match: re.Match[bytes]) -> bytes:
    byte = int(match[0][1:], 16)
    return bytes((byte,)) if byte in _UNRESERVED else match[0].upper()


def _path(url: str) -> str:
    """Path and query of a URL in the one spelling; `*` and `$` are escaped, since rules can only name them so."""
    raw = url.encode("utf-8", "surrogateescape")
    start = raw.find(b"//")
    start = 0 if start < 0 else start + 2
    slash = min((place for place in (raw.find(b"/", start), raw.find(b"?", start)) if place >= 0), default=-1)
    path = raw[slash:] if slash >= 0 else b"/"
    path = path.partition(b"#")[0]
    if not path.startswith(b"/"):
        path = b"/" + path
    return _one_way(path).replace(b"*", b"%2A").replace(b"$", b"%24").decode("latin-1")

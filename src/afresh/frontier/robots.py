"""robots.txt as RFC 9309 reads it, and as Google's own parser does where the RFC is silent.

Only the first 500 KiB count, and 16,664 bytes of a line. Groups for the same agent are joined; the longest matching
rule decides, and of two equally long ones the one that allows. Rules and paths are brought into one form before they
are compared (`robots_form`). Reading a file is linear in its size, and of it only the rules for one agent are kept
(`robots_rules`), in less memory than the file takes. `/robots.txt` itself is always allowed.
"""

import re
from typing import Any, Self

from afresh.frontier.robots_form import path_form, rule_forms
from afresh.frontier.robots_rules import Rules
from afresh.reading import utf8

LARGEST = 500 * 1024  # bytes of the file that are read
LONGEST_LINE = 16_664  # bytes of a line that are read: eight of the longest URLs that browsers take
LONGEST_DELAY = 86_400.0
MOST_SITEMAPS = 1_000

_BLANK = b" \t\0\v\f"
_TOKEN = re.compile(rb"[A-Za-z_-]+")
_DELAY = re.compile(rb"[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}")
# A key counts if it begins like this; the second and later spellings are common mistakes.
_KEYS = {
    "agent": (b"user-agent", b"useragent", b"user agent"),
    "allow": (b"allow",),
    "disallow": (b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"),
    "sitemap": (b"sitemap", b"site-map"),
    "delay": (b"crawl-delay", b"crawldelay", b"crawl delay"),
}
_LONGEST_KEY = 64  # bytes of what is remembered of a key as it is written
_MOST_KEYS = 256


class Robots:
    """What one robots.txt allows one agent (its product name, such as `afresh`).

    >>> text = "User-agent: *\\nDisallow: /private/\\nCrawl-delay: 2\\nSitemap: https://example.org/map.xml"
    >>> robots = Robots(text, "afresh")
    >>> robots.allowed("https://example.org/private/x"), robots.allowed("https://example.org/")
    (False, True)
    >>> robots.crawl_delay, robots.sitemaps
    (2.0, ('https://example.org/map.xml',))
    """

    __slots__ = ("_rules", "crawl_delay", "sitemaps")

    def __init__(self, text: str | bytes = b"", agent: str = "*") -> None:
        found = _Reader(agent)
        found.read(_content(text))
        self.sitemaps: tuple[str, ...] = tuple(found.sitemaps)
        # Seconds that the host wants between two requests; None if it does not say.
        self.crawl_delay: float | None = found.mine.delay
        self._rules = Rules.of(rule_forms(found.mine.allowed), rule_forms(found.mine.disallowed))

    def allowed(self, url: str) -> bool:
        """Whether a URL may be fetched.

        The URL must be canonical, hence ASCII: a rule for `/é` is a rule for `/%C3%A9`, never for a bare `/é`.
        """
        if self._rules.forbid_nothing:
            return True
        path = path_form(url)
        return path == b"/robots.txt" or self._rules.allow(path)

    @property
    def size(self) -> int:
        """About how many bytes of memory this takes."""
        return 256 + self._rules.size + sum(64 + len(line) for line in self.sitemaps)

    def to_json(self) -> dict[str, Any]:
        """What is to be kept, so that it need not be read again."""
        return {"rules": self._rules.to_json(), "delay": self.crawl_delay, "sitemaps": self.sitemaps}

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> Self:
        """What was kept."""
        robots = cls.__new__(cls)
        robots._rules = Rules.from_json(kept["rules"])
        robots.crawl_delay, robots.sitemaps = kept["delay"], tuple(kept["sitemaps"])
        return robots


class _Found:
    """What was found for one agent."""

    def __init__(self) -> None:
        self.named = False  # whether a line speaks of it at all
        self.allowed: list[bytes] = []
        self.disallowed: list[bytes] = []
        self.delay: float | None = None


class _Reader:
    """Reads a file line by line, and collects what it says of one agent and of all that it does not name."""

    def __init__(self, agent: str) -> None:
        self._name = agent.partition("/")[0].strip().lower().encode("utf-8", "replace")
        self._own, self._all = _Found(), _Found()
        self.sitemaps: dict[str, None] = {}

    @property
    def mine(self) -> _Found:
        """What counts for the agent."""
        return self._own if self._own.named else self._all

    def read(self, content: bytes) -> None:
        """Take in a whole file."""
        rules = _Grouping()  # whom the next rule speaks of,
        delays = _Grouping()  # and the next delay: that must not come between agents and their rules
        keys: dict[bytes, str] = {}  # by how they are written
        for line in content.replace(b"\r", b"\n").split(b"\n"):
            if not line:
                continue
            if len(line) > LONGEST_LINE:
                line = line[:LONGEST_LINE]
            if b"#" in line:
                line = line.partition(b"#")[0]
            name, colon, value = line.partition(b":")
            if not colon:
                name, value = _two_words(line)
            key = keys.get(name)
            if key is None:
                key = _key(name)
                if len(name) <= _LONGEST_KEY and len(keys) < _MOST_KEYS:
                    keys[name] = key
            if key == "disallow" or key == "allow":
                if value := value.strip(_BLANK):
                    for each in rules.of:
                        (each.disallowed if key == "disallow" else each.allowed).append(value)
                rules.closed = delays.closed = True
            elif key:
                self._take(key, value.strip(_BLANK), rules, delays)

    def _take(self, key: str, value: bytes, rules: "_Grouping", delays: "_Grouping") -> None:
        """A line that is no rule."""
        if key == "agent":
            name = _agent(value)
            speaks_of = self._all if name == b"*" else self._own if name == self._name else None
            rules.agent(speaks_of)
            delays.agent(speaks_of)
        elif key == "delay":
            if _DELAY.fullmatch(value):
                for each in delays.of:
                    each.delay = max(each.delay or 0.0, min(float(value), LONGEST_DELAY))
            delays.closed = True
        elif value and len(self.sitemaps) < MOST_SITEMAPS:
            self.sitemaps[value.decode("utf-8", "replace")] = None


class _Grouping:
    """Which agents the next line speaks of: all since the last line that closed a group."""

    def __init__(self) -> None:
        self.of: list[_Found] = []  # before any agent: nobody
        self.closed = True

    def agent(self, found: _Found | None) -> None:
        """One more agent; None if it is of no interest here."""
        if self.closed:
            self.of, self.closed = [], False
        if found is not None:
            found.named = True
            if found not in self.of:
                self.of.append(found)


def _content(text: str | bytes) -> bytes:
    """The bytes that count, as UTF-8 without a byte order mark; a line that the limit cuts in two does not count."""
    raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
    cut = len(raw) > LARGEST
    raw = raw[:LARGEST]
    label = "utf-8"  # whatever the file says of itself, unless it has a mark
    if raw[:512].count(0) * 3 > len(raw[:512]):
        label = "utf-16be" if raw[:1] == b"\0" else "utf-16le"  # the zero half of the first characters tells
    raw = utf8(raw, f"charset={label}")
    if cut:
        raw = raw[: max(raw.rfind(b"\n"), raw.rfind(b"\r"), 0)]
    for byte in b"\xef\xbb\xbf":  # a mark that was cut short is left out all the same
        if raw[:1] == bytes((byte,)):
            raw = raw[1:]
    return raw


def _two_words(line: bytes) -> tuple[bytes, bytes]:
    """Key and value without a colon between them: only if it is plain where it belongs."""
    words = line.split()
    return (words[0], words[1]) if len(words) == 2 else (b"", b"")


def _key(name: bytes) -> str:
    """What a key means, however it is written; "" if nothing."""
    name = name.strip(_BLANK).strip().lower()
    return next((key for key, spellings in _KEYS.items() if name.startswith(spellings)), "")


def _agent(value: bytes) -> bytes:
    """The product name that a line begins with, in lower case; b"*" for everybody."""
    if value == b"*" or (value[:1] == b"*" and value[1:2].isspace()):
        return b"*"
    match = _TOKEN.match(value)
    return match[0].lower() if match else b""

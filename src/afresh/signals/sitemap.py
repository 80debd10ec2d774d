"""Sitemaps: what a publisher says there is on a site, and when each page last changed.

All forms that sitemaps.org allows are read: lists in XML, indexes of further sitemaps, feeds (RSS, Atom) and plain text
with one address a line. Only what is said of pages is taken; pictures, films and translations that extensions name are
left alone. Whatever cannot be used is left out: the result says in one sentence what was wrong, and holds all that was
understood before.
"""

from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from itertools import islice

from afresh.reading import utf8
from afresh.signals.markup import Enough, read_markup
from afresh.signals.moments import moment

LARGEST = 50 * 1024 * 1024  # bytes of one sitemap, by the protocol
MOST_ENTRIES = 50_000  # of one sitemap, by the protocol
MOST_LINES = 1_000_000  # of a plain text
LONGEST_ADDRESS = 2_083  # characters
LONGEST_TEXT = 4_096  # characters of any text that is looked at
# What publishers say of how often a page changes, in seconds.
FREQUENCIES = {
    "always": 60.0,
    "hourly": 3600.0,
    "daily": 86400.0,
    "weekly": 7 * 86400.0,
    "monthly": 30 * 86400.0,
    "yearly": 365 * 86400.0,
    "never": 10 * 365 * 86400.0,
}

# What an entry is called in each kind of document, and which of its parts mean what. A name with a colon stands for
# itself; one without has the prefix of the entry.
_ENTRY = {"urlset": "url", "sitemapindex": "sitemap", "rss": "item", "rdf": "item", "feed": "entry"}
_LIST = {"loc": "url", "lastmod": "lastmod", "changefreq": "changefreq", "priority": "priority"}
_ITEM = {"link": "url", "guid": "other_url", "pubdate": "lastmod", "dc:date": "lastmod"}
_PARTS = {
    "urlset": _LIST,
    "sitemapindex": _LIST,
    "rss": _ITEM,
    "rdf": _ITEM,
    "feed": {"updated": "lastmod", "published": "other_lastmod"},
}
_TOO_MANY = f"It names more than {MOST_ENTRIES:,} addresses; the rest was left out."
_HTML = "It is a page of HTML, not a sitemap."


@dataclass(frozen=True, slots=True)
class Entry:
    """One address that a sitemap names, as it is written there (whole, or from the root), and what is said of it."""

    url: str
    lastmod: float | None = None  # seconds since 1970; of a day its beginning
    changefreq: str = ""
    priority: float | None = None


@dataclass(frozen=True, slots=True)
class Sitemap:
    """What one sitemap says."""

    kind: str = ""  # urlset, sitemapindex, rss, rdf, feed, text; "": none of them
    entries: tuple[Entry, ...] = ()  # pages
    children: tuple[Entry, ...] = ()  # further sitemaps
    problem: str = ""  # what is wrong with it, in one sentence


def read_sitemap(body: bytes) -> Sitemap:
    """What a sitemap says, in any of its forms.

    >>> said = read_sitemap(b"<urlset><url><loc>http://e.org/a?b&amp;c</loc><lastmod>1970-01-02</lastmod></url></urlset>")
    >>> said.entries
    (Entry(url='http://e.org/a?b&c', lastmod=86400.0, changefreq='', priority=None),)
    >>> read_sitemap(b"<html><body>Not found").problem
    'It is a page of HTML, not a sitemap.'
    """
    if len(body) > LARGEST:
        said = read_sitemap(body[:LARGEST])
        problem = f"It is larger than {LARGEST >> 20} MiB; the rest was left out."
        return Sitemap(said.kind, said.entries, said.children, problem)
    start = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")
    if not start.startswith((b"<", b"\xff\xfe<", b"\xfe\xff\0<")):
        return _text(body)
    if start[:15].lower().startswith((b"<!doctype html", b"<html")):  # which is seldom well-formed
        return Sitemap(problem=_HTML)
    reader, problem = read_markup(body, _Listing)
    found = tuple(reader.found)
    if not found and not problem:
        problem = "It names no address."
    if reader.kind == "sitemapindex":
        return Sitemap(reader.kind, children=found, problem=problem)
    return Sitemap(reader.kind, entries=found, problem=problem)


def _text(body: bytes) -> Sitemap:
    """One address a line; lines that are none are left out."""
    entries: list[Entry] = []
    for line in islice(TextIOWrapper(BytesIO(utf8(body)), "utf-8", errors="replace"), MOST_LINES):
        if _is_address(url := line.strip()):
            if len(entries) >= MOST_ENTRIES:
                return Sitemap("text", tuple(entries), problem=_TOO_MANY)
            entries.append(Entry(url))
    if not entries:
        return Sitemap(problem="It is neither markup nor a list of addresses." if body else "It is empty.")
    return Sitemap("text", tuple(entries))


def _is_address(text: str) -> bool:
    """Whether this may be the address of a page; the caller checks it in full."""
    return (
        text[:8].lower().startswith(("http://", "https://")) and len(text) <= LONGEST_ADDRESS and "\ufffd" not in text
    )


class _Listing:
    """Hears a document and keeps what it lists."""

    def __init__(self) -> None:
        self.kind = ""
        self.found: list[Entry] = []
        self._parts: dict[str, str] = {}
        self._entry = 0  # the depth of the entry that is being read; 0: none
        self._prefix = ""
        self._name = ""  # of the part that is being read; "": of none that matters
        self._text: list[str] = []
        self._length = 0

    def start(self, depth: int, name: str, attributes: dict[str, str]) -> None:
        prefix, _, local = name.lower().rpartition(":")
        if depth == 1:
            self._begin(local)
        elif not self._entry:
            if local == _ENTRY[self.kind]:
                self._entry, self._prefix, self._parts = depth, prefix, {}
                self._listen("own")
        elif depth == self._entry + 1:
            parts = _PARTS[self.kind]
            self._keep()  # what the entry itself said before this part
            self._listen(parts.get(local if prefix == self._prefix else f"{prefix}:{local}", ""))
            if self.kind == "feed" and local == "link" and prefix == self._prefix:
                self._link(attributes)

    def text(self, text: str) -> None:
        if self._name and self._length <= LONGEST_TEXT:
            self._text.append(text)
            self._length += len(text)

    def end(self, depth: int, name: str) -> None:
        if not self._entry:
            return
        if depth == self._entry + 1:
            self._keep()
            self._listen("own")
        elif depth == self._entry:
            self._keep()
            self._entry = 0
            self._close()

    def _begin(self, root: str) -> None:
        if root not in _ENTRY:
            raise Enough(_HTML if root == "html" else "Its root is not that of a sitemap.")
        self.kind = root

    def _listen(self, name: str) -> None:
        self._name, self._text, self._length = name, [], 0

    def _keep(self) -> None:
        """Keep the part that was read; of several with one name the first counts."""
        if self._name and self._length <= LONGEST_TEXT and (text := "".join(self._text).strip()):
            self._parts.setdefault(self._name, text)

    def _link(self, attributes: dict[str, str]) -> None:
        """Atom writes addresses as attributes, of the page itself and of others."""
        if attributes.get("rel", "alternate") == "alternate" and (url := attributes.get("href", "").strip()):
            self._parts.setdefault("url", url)

    def _close(self) -> None:
        parts = self._parts
        # Some indexes leave <loc> out; an item of a feed may have its address as its identifier alone.
        url = parts.get("url") or parts.get("own", "") or parts.get("other_url", "")
        url = url.replace("&amp;", "&")  # escaped once too often
        rooted = "url" in parts and url.startswith("/") and _is_address("http://" + url)
        if not rooted and not _is_address(url):
            return
        if len(self.found) >= MOST_ENTRIES:
            raise Enough(_TOO_MANY)
        lastmod = moment(parts.get("lastmod") or parts.get("other_lastmod", ""))
        frequency = parts.get("changefreq", "").lower()
        self.found.append(
            Entry(url, lastmod, frequency if frequency in FREQUENCIES else "", _priority(parts.get("priority", "")))
        )


def _priority(text: str) -> float | None:
    """A share between 0 and 1; None for whatever else."""
    if len(text) > 10 or not text.replace(".", "", 1).isdecimal() or not text.isascii():
        return None
    return float(text) if 0.0 <= float(text) <= 1.0 else None

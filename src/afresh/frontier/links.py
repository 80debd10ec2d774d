"""The links of an HTML page: absolute, canonical, each once, and no more than a page may reasonably have.

Followed are a, area, iframe, frame, refreshes, citations, and those `link` tags that lead to other pages. Pictures,
scripts and style sheets are left out unless they are asked for, and so are forms, since sending one may do something.
What a page asks robots not to follow is not followed. Feeds are named apart: they are signals rather than pages.
"""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from html.entities import html5

import numpy as np

from afresh.frontier.anchors import anchors
from afresh.frontier.url import LONGEST, Resolver
from afresh.reading import Document, Wanted, read

MOST = 5_000  # links of a page that are kept,
MOST_BYTES = 512 << 10  # and bytes of them: what a link costs grows with its length
LONGEST_KNOWN = 400  # bytes of a tag that is recognised when it comes again,
MOST_IDLE = 4_096  # and how many such tags are remembered
MOST_CANDIDATES = 100  # words of a srcset that are read

_TO_PAGES = frozenset(
    [
        "alternate",
        "canonical",
        "next",
        "prev",
        "previous",
        "first",
        "last",
        "start",
        "up",
        "index",
        "contents",
        "chapter",
        "section",
    ]
)
_TO_FILES = frozenset(["stylesheet", "icon", "apple-touch-icon", "manifest", "preload", "modulepreload", "image_src"])
_HUBS = frozenset(["hub", "self"])
MOST_HUBS = 8
_FEEDS = ("application/rss+xml", "application/atom+xml", "application/feed+json")
_ROBOTS = frozenset(["robots", "afresh"])  # names under which a page's own `meta` speaks to all robots, and to this one
# Which attribute of a tag holds a link to a page, and which to a part of this one.
_PAGE_LINKS = {
    "a": ("href", "xlink:href"),
    "area": ("href",),
    "iframe": ("src",),
    "frame": ("src",),
    "blockquote": ("cite",),
    "q": ("cite",),
    "ins": ("cite",),
    "del": ("cite",),
}
_FILE_LINKS = {
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "script": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "input": ("src",),
    "body": ("background",),
}
_TAGS = (*_PAGE_LINKS, "link", "base", "meta", "form")
_ATTRIBUTES = ("href", "xlink:href", "src", "cite", "action", "method", "rel", "type", "content", "http-equiv", "name")
_FILE_ATTRIBUTES = ("srcset", "poster", "data", "background")

_REFERENCE = re.compile(r"&(?:#[0-9]{1,8};?|#[xX][0-9a-fA-F]{1,7};?|[A-Za-z0-9]{1,32};?)")
_REFRESH = re.compile(r"\s*[0-9.]{0,20}\s*[;,\s]\s*(?:url\s*=\s*)?(['\"]?)(.*)", re.IGNORECASE | re.DOTALL)

NOTHING_COUNTED: Mapping[bytes, str] = {}


@dataclass(frozen=True, slots=True)
class Links:
    """What a page leads to."""

    urls: tuple[str, ...] = ()  # to other pages, in the page's order
    files: tuple[str, ...] = ()  # pictures, scripts, style sheets and the like, if they were asked for
    feeds: tuple[str, ...] = ()
    hubs: tuple[str, ...] = ()  # that push what is new here, and
    itself: str = ""  # the name under which they know it
    canonical: str | None = None  # what the page says its own address is
    nofollow: bool = False  # the page asks that no link of it be followed, and none is
    noindex: bool = False
    left_out: int = 0  # links beyond the limit, or whose address cannot be crawled
    # The links among `urls` that need nothing but the page's folder to be understood: as written, without a fragment,
    # and what they mean (None: nothing that can be crawled). What `links` need not read again on the next page.
    written: dict[bytes, str | None] = field(default_factory=dict)
    anchors: dict[str, str] = field(default_factory=dict)  # the texts of some of them, by what they mean
    met: int = 0  # how many links were left out as `met`
    again: tuple[str, ...] = ()  # links that were left out as `met`, but were to be counted


def links(
    page: Document | bytes | str,
    url: str,
    *,
    content_type: str = "",
    robots_tag: str = "",
    files: bool = False,
    forms: bool = False,
    most: int = MOST,
    most_bytes: int = MOST_BYTES,
    met: Container[bytes] = (),
    counted: Mapping[bytes, str] = NOTHING_COUNTED,
) -> Links:
    """The links of an HTML page that was found at `url`; `robots_tag` is its X-Robots-Tag header.

    A page that was read already must have been asked for what is `wanted`.

    Links that were `written` on another page of the same folder and are in `met` are left out: a site's menu need not
    be understood anew on every page. Of these, those that are `counted` are named by what they mean.

    >>> links(b'<base href="/docs/"><a href="a.html#top">A</a> <a href="b" rel=nofollow>B</a>', "http://e.org/x").urls
    ('http://e.org/docs/a.html',)
    """
    if not isinstance(page, Document):
        body = page.encode("utf-8", "replace") if isinstance(page, str) else page
        page = read(body, "charset=utf-8" if isinstance(page, str) else content_type, wanted=wanted(files, most))
    found = _Collector(url, robots_tag, most=most, most_bytes=most_bytes, files=files, forms=forms)
    for tag, attributes in _tags(page, files=files):
        if isinstance(attributes, dict):
            found.take(tag, attributes)
        elif found.based or attributes not in met:
            found.plain(attributes)
        else:
            found.met += 1
            if counted and (again := counted.get(attributes)) is not None:
                found.again[again] = None
    return found.result(page.page)


class _Collector:
    """Takes tags one by one and keeps what they link to."""

    def __init__(self, url: str, robots_tag: str, *, most: int, most_bytes: int, files: bool, forms: bool) -> None:
        self._resolve, self._own = Resolver(url), url
        self._most, self._want_files, self._forms = most, files, forms
        self._bytes_left = most_bytes
        self._urls: dict[str, None] = {}
        self._files: dict[str, None] = {}
        self._feeds: dict[str, None] = {}
        self._hubs: dict[str, None] = {}
        self._itself = ""
        self._seen: set[str] = set()  # links as written: most are repeated on a page
        self._written: dict[bytes, str | None] = {}
        self.again: dict[str, None] = {}
        self.met = 0
        self.based = self._nofollow = self._noindex = False
        self._canonical: str | None = None
        self._left_out = 0
        self._robots(robots_tag)

    def plain(self, raw: bytes) -> None:
        """Keep a link of the commonest sort: `a` with nothing but an address."""
        if not raw or raw in self._written:
            return
        if self._bytes_left <= 0:
            self._left_out += 1
            return
        link = raw.decode("utf-8", "replace")
        if "&" in link:
            link = _unescaped(link).partition("#")[0]
        if link in self._seen:
            return
        self._seen.add(link)
        before = self._left_out
        found = self._keep(link, self._urls)
        # The query of a page's own address, or nothing at all, makes another address out of every page.
        if link and link[0] != "?" and not link[0].isspace() and (found or self._left_out == before + 1):
            self._written[raw] = found

    def take(self, tag: str, attributes: dict[str, str]) -> None:
        """Keep what a tag links to."""
        if tag == "a":
            self._page_link(attributes.get("href", attributes.get("xlink:href")), attributes)
        elif tag == "link":
            self._link_tag(attributes)
        elif tag == "meta":
            self._meta(attributes)
        elif tag == "base":
            self._base(attributes.get("href"))
        elif tag == "form":
            if self._forms and attributes.get("method", "get").strip().lower() == "get":
                self._page_link(attributes.get("action"), attributes)
        elif tag in _PAGE_LINKS:
            self._page_link(attributes.get(_PAGE_LINKS[tag][0]), attributes)
        elif self._want_files:
            for name in _FILE_LINKS[tag]:
                value = attributes.get(name, "")
                for link in _candidates(value) if name == "srcset" else [value]:
                    self._keep(link, self._files)

    def result(self, page: bytes) -> Links:
        """Everything that was kept."""
        self._urls.pop(self._own, None)
        return Links(
            urls=() if self._nofollow else tuple(self._urls),
            files=tuple(self._files),
            feeds=tuple(self._feeds),
            hubs=tuple(self._hubs),
            itself=self._itself,
            canonical=self._canonical,
            nofollow=self._nofollow,
            noindex=self._noindex,
            left_out=self._left_out,
            written={} if self._nofollow else self._written,
            met=0 if self._nofollow else self.met,
            again=() if self._nofollow else tuple(self.again),
            anchors={} if self._nofollow else anchors(page, self._written),
        )

    def _page_link(self, link: str | None, attributes: dict[str, str]) -> str | None:
        if link is None:
            return None
        link = link.partition("#")[0]
        if link in self._seen:
            return None
        if "rel" in attributes and "nofollow" in attributes["rel"].lower().split():
            return None
        self._seen.add(link)
        return self._keep(link, self._urls)

    def _keep(self, link: str, kept: dict[str, None]) -> str | None:
        if not link or len(link) > 2 * LONGEST or self._bytes_left <= 0:
            self._left_out += bool(link)
            return None
        found = self._resolve(link)
        # A short link may become a long address, and a long one nothing.
        self._bytes_left -= max(len(link), len(found or ""))
        if found is None or (len(kept) >= self._most and found not in kept):
            self._left_out += 1
            return None
        kept[found] = None
        return found

    def _link_tag(self, attributes: dict[str, str]) -> None:
        relations, link = set(attributes.get("rel", "").lower().split()), attributes.get("href", "")
        if "nofollow" in relations:
            return
        if "hub" in relations and len(self._hubs) < MOST_HUBS:
            self._keep(link, self._hubs)
        elif "self" in relations and not self._itself:
            self._itself = self._resolve(link[: 2 * LONGEST]) or ""
        elif "alternate" in relations and attributes.get("type", "").strip().lower() in _FEEDS:
            self._keep(link, self._feeds)
        elif "stylesheet" in relations or (relations & _TO_FILES and not relations & _TO_PAGES):
            if self._want_files:
                self._keep(link, self._files)
        elif relations & _TO_PAGES:
            found = self._keep(link, self._urls)
            if "canonical" in relations and self._canonical is None:
                self._canonical = found

    def _meta(self, attributes: dict[str, str]) -> None:
        content = attributes.get("content", "")
        if attributes.get("name", "").strip().lower() in _ROBOTS:
            self._robots(content)
        elif attributes.get("http-equiv", "").strip().lower() == "refresh":
            match = _REFRESH.match(content)
            if match:
                link = match[2].partition(match[1])[0] if match[1] else match[2]
                self._page_link(link.strip(), attributes)

    def _base(self, link: str | None) -> None:
        if link is None or self.based:
            return
        self.based = True  # only the first counts
        base = self._resolve(link)
        if base is not None:
            self._resolve = Resolver(base)

    def _robots(self, directives: str) -> None:
        # `none` is both; a header may name the robot that it speaks to, and what is meant for others is not ours.
        # Some write blanks instead of commas.
        for word in directives.lower().replace(",", " ").split():
            self._nofollow |= word in ("nofollow", "none")
            self._noindex |= word in ("noindex", "none")


@lru_cache(maxsize=64)
def wanted(files: bool = False, most: int = MOST) -> Wanted:
    """What a page must be asked for when it is read, so that its links can be had."""
    if files:
        return Wanted((*_TAGS, *_FILE_LINKS), (*_ATTRIBUTES, *_FILE_ATTRIBUTES), 4 * most + 64)
    return Wanted(_TAGS, _ATTRIBUTES, 4 * most + 64)


def _tags(page: Document, *, files: bool) -> Iterator[tuple[str, dict[str, str] | bytes]]:
    """Each tag that can hold a link, with those of its attributes that matter.

    Of an `a` that has nothing but an address, this is the address as written, without its fragment and once for all its
    repetitions.
    """
    from afresh.frontier import gather  # compiled code takes a second to load: not before somebody needs it

    names, keys, rows, text = page.wanted.tags, page.wanted.attributes, page.rows, page.page
    gathered, others = np.empty((len(rows), 3), np.int64), np.empty_like(rows)
    plain = (names.index("a") if "a" in names else -1, keys.index("href"))
    count, kept = gather.gather(np.frombuffer(text, np.uint8), rows, plain, gathered, others)
    listed = others[:kept].tolist()  # one by one they cost more
    for kind, first, last in gathered[:count].tolist():
        if kind == 0:
            yield "a", text[first:last]
            continue
        number, _, _, begun = listed[first]
        tag, end = names[number], listed[last - 1][3]
        written = b""
        if not files and (tag == "meta" or tag == "link") and end - begun <= LONGEST_KNOWN:
            written = text[begun - len(tag) : end]
            if written in _IDLE:
                continue
        attributes: dict[str, str] = {}
        for _, key, start, end in listed[first + 1 : last]:
            attributes.setdefault(keys[key], _unescaped(text[start:end].decode("utf-8", "replace")))
        if written and _says_nothing(tag, attributes):
            if len(_IDLE) >= MOST_IDLE:
                _IDLE.clear()
            _IDLE.add(written)
            continue
        yield tag, attributes


# Tags as written that say nothing here: the same on every page of a site, and most of those that are no plain links.
_IDLE: set[bytes] = set()


def _says_nothing(tag: str, attributes: dict[str, str]) -> bool:
    """Whether a `link` or `meta` is of no interest, as most are."""
    if tag == "meta":
        about, does = attributes.get("name", ""), attributes.get("http-equiv", "")
        return about.strip().lower() not in _ROBOTS and does.strip().lower() != "refresh"
    relations = set(attributes.get("rel", "").lower().split())
    return "nofollow" in relations or not relations & (_TO_PAGES | _HUBS)


def _unescaped(value: str) -> str:
    return _REFERENCE.sub(_character, value) if "&" in value else value


def _character(match: re.Match[str]) -> str:
    """What a character reference in an attribute stands for; `&copy=2` is a parameter and not a sign."""
    name = match[0][1:]
    if name[0] != "#":
        if name.endswith(";"):
            return html5.get(name, match[0])
        follower = match.string[match.end() : match.end() + 1]
        return html5.get(name, match[0]) if follower != "=" else match[0]
    digits = name[1:].rstrip(";")
    number = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
    if 0x80 <= number <= 0x9F:  # what these mean in practice
        return bytes((number,)).decode("cp1252", "replace")
    return chr(number) if 0 < number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF else "\ufffd"


def _candidates(srcset: str) -> list[str]:
    """The addresses in a srcset, which are parted by commas that a space follows, or that end a descriptor."""
    found, expected = [], True
    for word in srcset.split(maxsplit=MOST_CANDIDATES)[:MOST_CANDIDATES]:
        if expected:
            found.append(word.rstrip(","))
        expected = word.endswith(",")
    return found

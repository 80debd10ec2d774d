"""Feeds: what a publisher says is new. RSS in all its versions, Atom, and JSON Feed, read without a tree.

Taken are the pages that entries lead to, when each was last changed, and a mark of each entry's text, so that one that
was changed without a new date is noticed; and of the feed itself its hubs and the name under which they know it. What
cannot be used is left out, and said in one sentence.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from afresh.errors import SignalError
from afresh.signals.markup import Enough, read_markup
from afresh.signals.moments import moment
from afresh.signals.strict_json import read_json

MAX_BYTES = 16 << 20
MAX_ENTRIES = 5_000
MAX_ADDRESS = 2_083  # characters
MAX_TEXT = 4_096  # of what is looked at as a whole
MAX_HUBS = 8
MAX_TTL = 86_400.0
_ENTRY = {"rss": "item", "rdf": "item", "feed": "entry"}
_DATES = ("updated", "modified", "pubdate", "date", "published", "issued", "created")  # the best first
_TEXTS = frozenset({"title", "description", "summary", "content", "encoded"})
_TOO_MANY = f"It has more than {MAX_ENTRIES:,} entries; the rest was left out."


@dataclass(frozen=True, slots=True)
class Item:
    """One entry: the page that it leads to, as written there."""

    url: str
    changed: float | None = None  # seconds since 1970
    name: str = ""  # what the publisher calls it for good
    mark: int = 0  # of its text


@dataclass(frozen=True, slots=True)
class Feed:
    """What one feed says."""

    kind: str = ""  # rss, rdf, atom, json; "": none of them
    items: tuple[Item, ...] = ()  # each page once, the latest that is said of it
    hubs: tuple[str, ...] = ()
    itself: str = ""  # its own address, as hubs know it
    ttl: float = 0.0  # seconds for which it asks not to be read again
    problem: str = ""


def read_feed(body: bytes) -> Feed:
    """What a feed says, in any of its forms; never an exception.

    >>> read_feed(b"<rss><channel><item><link>http://e.org/a</link><guid>1</guid></item></channel></rss>").items[0].url
    'http://e.org/a'
    >>> read_feed(b"<html>").problem
    'It is no feed.'
    """
    if len(body) > MAX_BYTES:
        return Feed(problem=f"It is larger than {MAX_BYTES >> 20} MiB.")
    start = body[:256].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"{"):
        return _json_feed(body.removeprefix(b"\xef\xbb\xbf"))
    if b"<" not in body[:1024].replace(b"\0", b""):
        return Feed(problem="It is no feed." if body else "It is empty.")
    reader, problem = read_markup(body, _Listener)
    if not reader.kind:
        return Feed(problem="It is no feed.")
    kind = "atom" if reader.kind == "feed" else reader.kind
    return Feed(kind, _merged(reader.items), tuple(reader.hubs[:MAX_HUBS]), reader.itself, reader.ttl, problem)


def _merged(items: Iterable[Item]) -> tuple[Item, ...]:
    """Each page once, and each name once; the later date counts, or without dates what stands first."""
    by_name: dict[str, Item] = {}
    by_url: dict[str, Item] = {}
    for item in items:
        before = by_url.get(item.url)
        by_url[item.url] = item if before is None else _later(before, item)
        if item.name:
            known = by_name.get(item.name)
            by_name[item.name] = item if known is None else _later(known, item)
    # An entry that has moved is listed where it is now.
    moved = {item.url for item in by_url.values() if item.name and by_name[item.name].url != item.url}
    return tuple(item for item in by_url.values() if item.url not in moved)


def _later(one: Item, other: Item) -> Item:
    later = other if (other.changed or 0.0) > (one.changed or 0.0) else one
    return replace(later, mark=one.mark ^ other.mark if one.mark != other.mark else one.mark)


class _Listener:
    """Hears the tags of a feed."""

    def __init__(self) -> None:
        self.kind = ""
        self.items: list[Item] = []
        self.hubs: list[str] = []
        self.itself = ""
        self.ttl = 0.0
        self._entry = 0  # the depth of the entry that is being read; 0: none
        self._parts: dict[str, str] = {}
        self._mark = 0
        self._name = ""  # of the part that is being read
        self._text: list[str] = []
        self._length = 0

    def start(self, depth: int, name: str, attributes: dict[str, str]) -> None:
        prefix, _, local = name.lower().rpartition(":")
        if depth == 1:
            if local not in _ENTRY:
                raise Enough("")
            self.kind = local
        elif not self._entry:
            if local == _ENTRY[self.kind]:
                self._entry, self._parts, self._mark = depth, {}, 0
                self._listen("")
            elif local == "link" and "href" in attributes:
                self._own_link(attributes)
            else:
                self._listen("ttl" if local == "ttl" else "")
        elif depth == self._entry + 1:
            self._listen(self._part(prefix, local))
            if local == "link" and "href" in attributes and attributes.get("rel", "alternate") == "alternate":
                self._parts.setdefault("link", attributes["href"].strip())
            elif local == "guid" and attributes.get("ispermalink", attributes.get("isPermaLink", "")) == "false":
                self._listen("id")

    def text(self, text: str) -> None:
        if self._entry and (self._name in _TEXTS):
            self._mark = crc32(text.encode("utf-8", "surrogatepass"), self._mark)
        elif self._name and self._length <= MAX_TEXT:
            self._text.append(text)
            self._length += len(text)

    def end(self, depth: int, name: str) -> None:
        if not self._entry:
            if self._name == "ttl":
                minutes = "".join(self._text).strip()
                self.ttl = min(float(minutes) * 60.0, MAX_TTL) if minutes.isdecimal() and len(minutes) < 9 else 0.0
            self._listen("")
        elif depth == self._entry + 1:
            self._keep()
        elif depth == self._entry:
            self._keep()
            self._entry = 0
            self._close()

    @staticmethod
    def _part(prefix: str, local: str) -> str:
        if local in _TEXTS or local in _DATES:
            return local
        if local in ("link", "guid", "id", "origlink") and prefix in ("", "feedburner", "atom", "a10"):
            return local
        return ""

    def _listen(self, name: str) -> None:
        self._name, self._text, self._length = name, [], 0

    def _keep(self) -> None:
        text = "".join(self._text).strip() if self._length <= MAX_TEXT else ""
        if self._name and text:
            self._parts.setdefault(self._name, text)
        self._listen("")

    def _own_link(self, attributes: dict[str, str]) -> None:
        relations, where = attributes.get("rel", "").lower().split(), attributes["href"].strip()
        if "hub" in relations and len(self.hubs) < MAX_HUBS:
            self.hubs.append(where[:MAX_ADDRESS])
        if "self" in relations and not self.itself:
            self.itself = where[:MAX_ADDRESS]

    def _close(self) -> None:
        parts = self._parts
        url = parts.get("origlink") or parts.get("link") or parts.get("guid", "")
        if not url or len(url) > MAX_ADDRESS or any(each in url for each in " \n\t\ufffd"):
            return
        if len(self.items) >= MAX_ENTRIES:
            raise Enough(_TOO_MANY)
        when = next((parts[name] for name in _DATES if name in parts), "")
        self.items.append(Item(url, moment(when), parts.get("id") or parts.get("guid", ""), self._mark))


def _json_feed(body: bytes) -> Feed:
    try:
        said = read_json(body)
    except SignalError as error:
        return Feed(problem=error.message)
    if not isinstance(said, dict) or not isinstance(said.get("items"), list):
        return Feed(problem="It is no feed.")
    found: list[Item] = []
    for entry in said["items"][:MAX_ENTRIES]:
        if isinstance(entry, dict) and (url := _text(entry, "url") or _text(entry, "external_url")):
            when = moment(_text(entry, "date_modified") or _text(entry, "date_published"))
            text = f"{entry.get('title')}{entry.get('content_html')}{entry.get('content_text')}{entry.get('summary')}"
            found.append(Item(url, when, _text(entry, "id"), crc32(text.encode("utf-8", "replace"))))
    hubs = said.get("hubs")
    named = (_text(hub, "url") for hub in (hubs if isinstance(hubs, list) else []) if isinstance(hub, dict))
    problem = _TOO_MANY if len(said["items"]) > MAX_ENTRIES else ""
    return Feed("json", _merged(found), tuple(filter(None, named))[:MAX_HUBS], _text(said, "feed_url"), 0.0, problem)


def _text(said: dict[str, Any], name: str) -> str:
    value = said.get(name)
    return value if isinstance(value, str) and len(value) <= MAX_ADDRESS else ""

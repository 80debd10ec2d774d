"""What a list named, and what is new in it since the last time: read away from the event loop, kept in few bytes.

Of every entry two marks of 32 bits are kept, one of its address and one of its address with what is said of it. So of
50,000 entries only those that are new or were moved need be looked at again, and one that has vanished is noticed.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import nlargest

import numpy as np
import xxhash
from numpy.typing import NDArray

from afresh.fetch import gunzip
from afresh.frontier import Resolver
from afresh.signals import read_sitemap
from afresh.signals.feed import read_feed
from afresh.signals.sitemap import FREQUENCIES, LARGEST, Entry, Sitemap

Marks = NDArray[np.uint32]
LATEST = 8  # moments of change by which it is told how often there is news
SLACK = 300.0  # seconds that a publisher's clock may be ahead of ours

_SPOILED = {
    "too_large": f"It is larger than {LARGEST >> 20} MiB; the rest was left out.",
    "truncated": "It breaks off before its end.",
    "bad_coding": "It is not compressed as it should be; the rest was left out.",
}


@dataclass(frozen=True, slots=True)
class Roll:
    """The marks of what a list named, each in order."""

    urls: Marks
    pairs: Marks

    def to_text(self) -> str:
        """To be kept."""
        return " ".join(b64encode(marks.tobytes()).decode() for marks in (self.urls, self.pairs))

    @classmethod
    def from_text(cls, text: str) -> "Roll":
        """As it was kept; ValueError if that makes no sense."""
        urls, pairs = (np.frombuffer(b64decode(part), np.uint32) for part in text.split(" "))
        return cls(urls, pairs)


@dataclass(slots=True)
class Look:
    """What a reading has found."""

    entries: int = 0
    # Pages that are new in it, or of which something new is said; None: no moment is said.
    pages: dict[str, float | None] = field(default_factory=dict)
    often: dict[str, float] = field(default_factory=dict)  # of these pages, seconds that one is said to last
    children: dict[str, float | None] = field(default_factory=dict)  # further lists
    vanished: Marks = field(default_factory=lambda: np.empty(0, np.uint32))
    roll: Roll | None = None
    news: tuple[int, float] = (0, 0.0)  # so many changes are said to have come within so many seconds
    addresses: Sequence[str] = ()  # as written, for what they cost
    hubs: tuple[str, ...] = ()
    itself: str = ""
    ttl: float = 0.0
    problem: str = ""


def look(kind: str, body: bytes, base: str, speaks_for: Callable[[str], bool], before: Roll | None, now: float) -> Look:
    """Read a sitemap or a feed that was found at `base`."""
    if kind == "feed":
        feed = read_feed(body)
        if feed.problem and not feed.items:
            kind_of = _read_sitemap(body)  # some announce their sitemap as if it were a feed
            if kind_of.entries:
                return _compared(
                    [(entry.url, entry.lastmod, 0) for entry in kind_of.entries], base, speaks_for, before, now
                )
        found = _compared([(item.url, item.changed, item.mark) for item in feed.items], base, speaks_for, before, now)
        resolve = Resolver(base)
        found.hubs = tuple(hub for each in feed.hubs if (hub := resolve(each)) is not None)
        found.itself, found.ttl, found.problem = (
            (resolve(feed.itself) or "") if feed.itself else "",
            feed.ttl,
            feed.problem,
        )
        found.vanished = found.vanished[:0]  # old entries leave a feed as new ones come
        return found
    said = _read_sitemap(body)
    found = _compared([(entry.url, entry.lastmod, 0) for entry in said.entries], base, speaks_for, before, now)
    found.problem = said.problem
    if any(entry.changefreq for entry in said.entries):
        resolve = Resolver(base)
        often = {resolve(entry.url): entry.changefreq for entry in said.entries if entry.changefreq}
        found.often = {url: FREQUENCIES[often[url]] for url in found.pages if url in often}
    found.entries += len(said.children)
    if said.problem:
        found.vanished = found.vanished[:0]  # what was left out may be there
    found.children = _own(said.children, base, speaks_for)
    found.addresses = [*found.addresses, *(entry.url for entry in said.children)]
    return found


def marks_of(urls: Iterable[str]) -> Marks:
    """The mark of each address."""
    digest = xxhash.xxh3_64_intdigest
    return np.array([digest(url.encode()) & 0xFFFFFFFF for url in urls], np.uint32)


def named_by(urls: Sequence[str], own: Marks, others: Iterable[Marks]) -> list[str]:
    """Those that a list names, and those that none of the others does."""
    marks = marks_of(urls)
    elsewhere = np.zeros(len(marks), bool)
    for each in others:
        elsewhere |= _among(marks, each)
    return [urls[nth] for nth in np.flatnonzero(_among(marks, own) | ~elsewhere).tolist()]


def _own(entries: Iterable[Entry], base: str, speaks_for: Callable[[str], bool]) -> dict[str, float | None]:
    resolve = Resolver(base)
    moments = {resolve(entry.url): entry.lastmod for entry in entries}
    return {url: moment for url, moment in moments.items() if url is not None and speaks_for(url)}


def _compared(
    said: Sequence[tuple[str, float | None, int]],
    base: str,
    speaks_for: Callable[[str], bool],
    before: Roll | None,
    now: float,
) -> Look:
    """What is new in this list."""
    resolve = Resolver(base)
    own: dict[str, tuple[float | None, int]] = {}
    for written, moment, mark in said:
        url = resolve(written)
        if url is not None and speaks_for(url):
            own[url] = moment, mark
    urls = list(own)
    marks = marks_of(urls)
    moments = np.array([0.0 if moment is None else moment for moment, _ in own.values()], np.float64)
    texts = np.array([mark for _, mark in own.values()], np.uint64)
    mixed = marks.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ moments.view(np.uint64) ^ (texts << np.uint64(20))
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    pairs = (mixed >> np.uint64(32)).astype(np.uint32)
    roll = Roll(np.unique(marks), np.unique(pairs))
    places = range(len(urls)) if before is None else np.flatnonzero(~_among(pairs, before.pairs)).tolist()
    vanished = np.empty(0, np.uint32) if before is None else before.urls[~_among(before.urls, roll.urls)]
    pages = {urls[nth]: own[urls[nth]][0] for nth in places}
    dated = nlargest(LATEST, (float(each) for each in moments[(moments > 0) & (moments <= now + SLACK)]))
    news = (len(dated), max(now - dated[-1], 1.0)) if dated else (0, 0.0)
    return Look(
        len(said), pages, vanished=vanished, roll=roll, news=news, addresses=[written for written, _, _ in said]
    )


def _among(some: Marks, others: Marks) -> NDArray[np.bool_]:
    """Which of some are among others, which are in order."""
    if not len(others):
        return np.zeros(len(some), bool)
    found: NDArray[np.bool_] = others[np.minimum(np.searchsorted(others, some), len(others) - 1)] == some
    return found


def _read_sitemap(body: bytes) -> Sitemap:
    """What a sitemap says, compressed or not."""
    if not body.startswith(b"\x1f\x8b"):
        return read_sitemap(body)
    content, reason = gunzip(body, LARGEST)
    said = read_sitemap(content)
    return Sitemap(said.kind, said.entries, said.children, _SPOILED[reason]) if reason else said

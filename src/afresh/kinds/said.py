"""What a page says of itself: the types of its JSON-LD, its og:type, what generated it, and its dates."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from afresh.reading import Document

MAX_STATEMENT = 1 << 16  # bytes of a JSON-LD statement that are read,
MAX_SCRIPTS = 200  # scripts that are looked at,
MAX_TYPES = 40  # types that they name,
MAX_META = 150  # `meta` tags,
MAX_VALUE = 300  # bytes of an attribute,
MAX_ATTRIBUTES = 16  # and attributes of a tag

_TYPED = re.compile(rb'"@type"\s{0,9}:\s{0,9}(?:\[\s{0,9})?"([A-Za-z]{1,60})"')
_WORD = re.compile(r"[a-z0-9]+")
_DATED = re.compile(rb'"date(Published|Modified)"\s{0,9}:\s{0,9}"([0-9T:.+Z \-]{8,40})"')
_PUBLISHED = {"article:published_time", "datepublished", "date", "dc.date", "pubdate", "publish-date", "dc.date.issued"}
_MODIFIED = {"article:modified_time", "og:updated_time", "datemodified", "last-modified", "lastmod", "dc.date.modified"}


@dataclass(slots=True)
class Said:
    """What a page says of itself; "" and nothing where it does not."""

    types: frozenset[str] = frozenset()  # of JSON-LD and microdata, in lower case
    og_type: str = ""
    generator: str = ""  # its first word
    published: str = ""  # as the page writes it
    modified: str = ""
    scripts: bool = False  # it has some: a page without any may have lost its JSON-LD with them


def tags_of(page: Document, name: str, most: int) -> Iterator[tuple[int, dict[str, bytes]]]:
    """The first tags of a name: where their attributes begin, and those that were asked for."""
    rows, attributes = page.rows, page.wanted.attributes
    starts = np.flatnonzero((rows[:, 1] < 0) & (rows[:, 0] == page.wanted.tags.index(name)))
    for start in starts[:most].tolist():
        found: dict[str, bytes] = {}
        for _, attribute, begin, end in rows[start + 1 : start + MAX_ATTRIBUTES].tolist():
            if attribute < 0:
                break
            found.setdefault(attributes[attribute], page.page[begin : min(end, begin + MAX_VALUE)])
        yield int(rows[start, 2]), found


def said(page: Document) -> Said:
    """What a page that was read says of itself."""
    itself, types = Said(), set[str]()
    for at, found in tags_of(page, "script", MAX_SCRIPTS):
        itself.scripts = True
        if b"ld+json" in found.get("type", b"") and len(types) < MAX_TYPES:
            end = page.page.find(b"</", at, at + MAX_STATEMENT)
            statement = page.page[at : end if end >= 0 else at + MAX_STATEMENT]
            types.update(each.decode().lower() for each in _TYPED.findall(statement)[:MAX_TYPES])
            for which, date in _DATED.findall(statement)[:8]:
                if which == b"Published":
                    itself.published = itself.published or date.decode()
                else:
                    itself.modified = itself.modified or date.decode()
    for _, found in tags_of(page, "meta", MAX_META):
        name = found.get("property") or found.get("name") or found.get("itemprop") or b""
        _meta(itself, name.lower().decode("utf-8", "replace"), found.get("content", b"").decode("utf-8", "replace"))
    itself.types = frozenset(types)
    return itself


def _meta(itself: Said, name: str, content: str) -> None:
    """Take in what a `meta` tag says."""
    if name == "og:type":
        itself.og_type = itself.og_type or content.strip().lower()[:40]
    elif name == "generator":
        itself.generator = itself.generator or next(iter(_WORD.findall(content.lower())), "")[:40]
    elif name in _PUBLISHED:
        itself.published = itself.published or content.strip()[:40]
    elif name in _MODIFIED:
        itself.modified = itself.modified or content.strip()[:40]

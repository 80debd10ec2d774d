"""What one pass over a page says of its kind: marks of its words, figures of its structure, and what it calls itself.

Everything is bounded: so many tags, blocks and links are looked at, and of each stretch so many bytes. Nothing of a
page's text is kept, only numbers.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from afresh.kinds import address as addresses
from afresh.kinds.said import Said, said
from afresh.reading import Document, Wanted

MAX_ROWS = 6_000  # tags and attributes of a page that are looked at,
MAX_BLOCKS = 1_500  # blocks of its text,
MAX_LINKS = 200  # links, whose addresses are taken apart,
MAX_META = 100  # `meta` tags,
MAX_CLASSES = 800  # classes,
MAX_SPAN = 4_000  # bytes of a stretch of text or of an attribute,
MAX_MARKS = 12_000  # and words of all of them

_TAGS_NAMES = """
a article aside audio blockquote body br button canvas code dd details div dl dt em fieldset figure footer form
h1 h2 h3 h4 h5 h6 header iframe img input label li link main meta nav ol option p picture pre script section
select small span strong svg table tbody td textarea th thead time title tr ul video
"""
TAGS = _TAGS_NAMES.split()
_ATTRIBUTES_NAMES = """
class id href rel type name property content itemtype itemprop role datetime
"""
ATTRIBUTES = _ATTRIBUTES_NAMES.split()
WANTED = Wanted(TAGS, ATTRIBUTES, rows=MAX_ROWS)

# Groups of marks: each has a part of the network's input for itself.
ADDRESS, HEADING, TEXT, LINKS, NAMES, MARKUP = range(6)
GROUPS = ("address", "heading", "text", "links", "names", "markup")
# Salts: the same word means something else in another place. Those below 16 are the address's.
_TITLE, _H1, _ABOUT, _TEXT, _LINK, _NAME, _META = range(16, 23)
_ROLES = {"itemtype": 23, "itemprop": 24, "role": 25, "rel": 26, "type": 27}

_COUNTED_NAMES = """
a img p li ul ol h1 h2 h3 h4 table tr td pre code form input button select textarea time article section nav
video iframe blockquote label span div strong em dt dd option figure svg main aside
"""
_COUNTED = _COUNTED_NAMES.split()
_BLOCKS_NAMES = """
p li a h2 h3 h4 td span div code pre button
"""
_BLOCKS = _BLOCKS_NAMES.split()
FIGURES = (
    *(f"log_{name}" for name in _COUNTED),
    *(f"share_{name}" for name in _COUNTED),
    *(f"text_{name}" for name in _BLOCKS),
    *["text", "tags", "blocks", "mean_block", "longest", "long_blocks", "long_share", "short_share"],
    *["digits", "capitals", "questions", "prices", "years", "words"],
    *["links", "outside", "below", "beside", "repeated", "repeated_share", "heading_in_address"],
    *addresses.FIGURES,
)
_PLACE = {name: place for place, name in enumerate(WANTED.tags)}
_ATTRIBUTE = {name: place for place, name in enumerate(WANTED.attributes)}
_COUNTED_PLACES = np.array([_PLACE[name] for name in _COUNTED])
_BLOCK_PLACES = np.array([_PLACE[name] for name in _BLOCKS])
_WORD = re.compile(r"[a-z0-9]+")

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Criteria:
    """What was read off a page."""

    marks: NDArray[np.uint64]  # of its words,
    groups: Numbers  # and the group of each
    figures: NDArray[np.float32]  # see `FIGURES`
    said: Said


def criteria(page: Document, url: str = "") -> Criteria:
    """What a page says of its kind; it was read for what is `WANTED`.

    >>> from afresh.reading import read
    >>> page = read(b'<meta property=og:type content=article><title>Tides</title><p>High water', wanted=WANTED)
    >>> criteria(page, "http://e.org/2024/tides").said.og_type
    'article'
    """
    from afresh.reading.hashed import COUNTED, mark_words  # compiled code takes a second to load

    where, itself = addresses.address(url), said(page)
    rows, bytes_ = page.rows, np.frombuffer(page.page, np.uint8)
    tags = rows[rows[:, 1] < 0]
    blocks, kinds = _blocks(page, tags)
    links, of_links = _links(page, where)
    marks, groups = np.empty(MAX_MARKS, np.uint64), np.empty(MAX_MARKS, np.int64)
    ignored, counted = np.zeros(COUNTED, np.int64), np.zeros(COUNTED, np.int64)
    text, address_spans = _pieces(where.pieces)
    filled = 0
    for source, spans, count in (
        (np.frombuffer(text, np.uint8), address_spans, ignored),
        (page.text, _headings(blocks, kinds), ignored),
        (bytes_, _abouts(page), ignored),
        (bytes_, np.concatenate((_attributes(rows), links)), ignored),
        (page.text, blocks, counted),
    ):
        filled += mark_words(source, spans, marks[filled:], groups[filled:], count)
    figures = [
        *_figures(tags, blocks, kinds, counted),
        *of_links,
        *_repeated(page),
        _in_heading(page, where.path.rstrip("/").rpartition("/")[2], kinds),
        *where.figures,
    ]
    return Criteria(marks[:filled], groups[:filled], np.array(figures, np.float32), itself)


def _spans(starts: Numbers, ends: Numbers, salt: int, group: int) -> Numbers:
    spans = np.empty((len(starts), 4), np.int64)
    spans[:, 0], spans[:, 1], spans[:, 2], spans[:, 3] = starts, np.minimum(ends, starts + MAX_SPAN), salt, group
    return spans


def _pieces(pieces: list[tuple[str, int]]) -> tuple[bytes, Numbers]:
    """The pieces of an address as one text, and where each stands in it."""
    text, spans = bytearray(), np.empty((len(pieces), 4), np.int64)
    for nth, (piece, salt) in enumerate(pieces):
        start = len(text)
        text += piece.encode("utf-8", "replace")
        spans[nth] = start, len(text), salt, ADDRESS
        text += b"\n"
    return bytes(text), spans


def _blocks(page: Document, tags: Numbers) -> tuple[Numbers, Numbers]:
    """The blocks of text as spans, and the place of the tag that each stands in, −1 if that is none of ours."""
    spans = page.spans[:MAX_BLOCKS]
    found = np.searchsorted(tags[:, 2], spans[:, 2], side="right")
    kinds = np.full(len(spans), -1)
    if len(tags):
        near = tags[np.minimum(found, len(tags) - 1)]
        own = (found < len(tags)) & (spans[:, 2] >= 0) & (near[:, 2] - spans[:, 2] <= _LONGEST_NAME)
        kinds[own] = near[own, 0]
    return _spans(spans[:, 0], spans[:, 1], _TEXT, TEXT), kinds


_LONGEST_NAME = 1 + max(map(len, TAGS))


def _headings(blocks: Numbers, kinds: Numbers) -> Numbers:
    """The title and the first headings once more, as what they are."""
    titles, headings = blocks[kinds == _PLACE["title"]][:2].copy(), blocks[kinds == _PLACE["h1"]][:5].copy()
    titles[:, 2], headings[:, 2] = _TITLE, _H1
    both = np.concatenate((titles, headings))
    both[:, 3] = HEADING
    return both


def _abouts(page: Document) -> Numbers:
    """What `meta` tags say that the page is about, and the names of all of them."""
    found = []
    at = {name: nth for nth, name in enumerate(page.wanted.attributes)}
    rows = page.rows
    for start in np.flatnonzero((rows[:, 1] < 0) & (rows[:, 0] == _PLACE["meta"]))[:MAX_META].tolist():
        name, content = None, None
        for _, attribute, begin, end in rows[start + 1 : start + 8].tolist():
            if attribute < 0:
                break
            if attribute in (at["property"], at["name"]):
                name = (begin, end)
            elif attribute == at["content"]:
                content = (begin, end)
        if name is None:
            continue
        found.append((*name, _META, MARKUP))
        if content is not None and page.page[name[0] : min(name[1], name[0] + 40)].lower() in _TELLING:
            found.append((content[0], min(content[1], content[0] + MAX_SPAN), _ABOUT, HEADING))
    return np.array(found, np.int64).reshape(-1, 4)


_TELLING = frozenset((b"description", b"og:description", b"og:title", b"keywords"))


def _attributes(rows: Numbers) -> Numbers:
    """The words of classes and ids, and of what else markup says of its parts."""
    names = rows[(rows[:, 1] == _ATTRIBUTE["class"]) | (rows[:, 1] == _ATTRIBUTE["id"])]
    parts = [_spans(names[:, 2], names[:, 3], _NAME, NAMES)]
    for role, salt in _ROLES.items():
        own = rows[rows[:, 1] == _ATTRIBUTE[role]]
        parts.append(_spans(own[:, 2], own[:, 3], salt, MARKUP))
    return np.concatenate(parts)


def _links(page: Document, where: addresses.Address) -> tuple[Numbers, list[float]]:
    """The paths of links as spans; and of the links: how many, and the shares that leave, lead below and beside."""
    found, outside, below, beside = [], 0, 0, 0
    path, host = where.path.rstrip("/").encode("utf-8", "replace"), where.host.removeprefix("www.").encode()
    folder = path.rpartition(b"/")[0]
    hrefs = page.rows[(page.rows[:, 1] == _ATTRIBUTE["href"]) & (page.rows[:, 0] == _PLACE["a"])][:MAX_LINKS]
    text, below_path, beside_path = page.page, path + b"/", folder + b"/"
    for start, end in zip(hrefs[:, 2].tolist(), np.minimum(hrefs[:, 3], hrefs[:, 2] + 400).tolist(), strict=True):
        href = text[start:end]
        if href[:2] == b"//" or href[:4].lower() == b"http":
            slash = href.find(b"/", href.find(b"//") + 2)
            slash = slash if slash >= 0 else len(href)
            if host and host not in href[:slash]:
                outside += 1
            start += slash
            href = href[slash:]
        query = href.find(b"?")
        found.append((start, start + query if query >= 0 else end, _LINK, LINKS))
        below += len(href) > len(below_path) and href.startswith(below_path)
        beside += bool(folder) and href.startswith(beside_path)
    many = len(found)
    spans = np.array(found, np.int64).reshape(-1, 4)
    return spans, [math.log1p(many), *(each / (many + 1) for each in (outside, below, beside))]


def _repeated(page: Document) -> list[float]:
    """How often the commonest class is written, in all and of all: a list of like things shows by it."""
    own = page.rows[page.rows[:, 1] == _ATTRIBUTE["class"]][:MAX_CLASSES, 2:4]
    if not len(own):
        return [0.0, 0.0]
    text, ends = page.page, np.minimum(own[:, 1], own[:, 0] + 200).tolist()
    most = max(Counter([text[start:end] for start, end in zip(own[:, 0].tolist(), ends, strict=True)]).values())
    return [math.log1p(most), most / len(own)]


def _in_heading(page: Document, last: str, kinds: Numbers) -> float:
    """The share of the words of the address's last part that the title or first heading has, as an article's have."""
    words = [word for word in _WORD.findall(last.lower()) if len(word) > 2]
    if not words:
        return 0.0
    nth = np.flatnonzero((kinds == _PLACE["title"]) | (kinds == _PLACE["h1"]))[:3].tolist()
    heading = " ".join(page.block(each, 400) for each in nth).lower()
    return sum(word in heading for word in words) / len(words)


def _figures(tags: Numbers, blocks: Numbers, kinds: Numbers, counted: Numbers) -> list[float]:
    """How much there is of what."""
    per_tag = np.bincount(tags[:, 0], minlength=len(TAGS))[_COUNTED_PLACES]
    lengths = blocks[:, 1] - blocks[:, 0]
    total, many = float(lengths.sum()) + 1.0, len(lengths) + 1
    shown = np.bincount(kinds + 1, lengths, len(TAGS) + 1)[1:][_BLOCK_PLACES] / total
    digits, capitals, questions, prices, years, words = counted.tolist()
    return [
        *np.log1p(per_tag).tolist(),
        *(per_tag / (len(tags) + 1)).tolist(),
        *shown.tolist(),
        math.log(total),
        math.log1p(len(tags)),
        math.log(many),
        math.log(total / many),
        math.log1p(int(lengths.max(initial=0))),
        math.log1p(int((lengths > 200).sum())),
        float(lengths[lengths > 120].sum()) / total,
        int((lengths < 30).sum()) / many,
        digits / total,
        capitals / total,
        math.log1p(questions),
        math.log1p(prices),
        math.log1p(years),
        math.log1p(words),
    ]

"""What of a copy is searched: title, headings, text, and the addresses it links to; bounded, whatever the copy is.

HTML and XML are read in the one linear pass that also compares pages. Of other text each line counts. What is no text
is found by its address alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import xxhash

from afresh.frontier.links import links, wanted
from afresh.reading import Document, Wanted, read, utf8

MAX_BODY_BYTES = 4 << 20  # of a copy that are looked at
MAX_TEXT_BYTES = 256 << 10  # of its text that are searched, if nothing else is said
MAX_TITLE_CHARACTERS = 300
MAX_HEADINGS = 200
MAX_TARGETS = 500  # links that count for the authority of others
SNIFFED_BYTES = 1024

_HEADINGS = tuple(f"h{level}" for level in range(1, 7))
_LINKS = wanted()
_WANTED = Wanted((*_LINKS.tags, *_HEADINGS), _LINKS.attributes, _LINKS.rows)
_MARKUP = re.compile(r"html|xml|svg", re.IGNORECASE)
_TEXT = re.compile(r"text/|json|javascript|yaml|toml|x-sh|csv|sql", re.IGNORECASE)
_BEGINS_WITH_MARKUP = re.compile(rb"\s*<(?:!doctype|html|head|body|\?xml|div|p|h1|title)\b", re.IGNORECASE)
_UNSPACED = re.compile("([\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff])")
_FRONT_TITLE = re.compile(r"^title:\s*[\"']?(.{1,300}?)[\"']?\s*$", re.MULTILINE)
_WORDS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Indexed:
    """The searched parts of one copy."""

    title: str = ""
    headings: str = ""  # one a line
    text: str = ""  # one block a line, headings and title left out
    targets: tuple[int, ...] = ()  # marks of the addresses that it links to


def indexed(url: str, body: bytes, content_type: str, *, max_text: int = MAX_TEXT_BYTES) -> Indexed:
    """What of a copy is searched.

    >>> page = indexed("http://e.org/a", b"<title>Ferry</title><h1>Times</h1><p>At nine. <a href=b>b</a>", "text/html")
    >>> page.title, page.headings, page.text, page.targets == (mark_of("http://e.org/b"),)
    ('Ferry', 'Times', 'At nine. b', True)
    """
    body = body[:MAX_BODY_BYTES]
    if _MARKUP.search(content_type) or (not content_type and _BEGINS_WITH_MARKUP.match(body)):
        return _of_markup(url, body, content_type, max_text)
    if _TEXT.search(content_type) or (not content_type and b"\0" not in body[:SNIFFED_BYTES]):
        return _of_text(url, body[: 2 * max_text], content_type, max_text)
    return Indexed(title=_named_by(url))


def _of_markup(url: str, body: bytes, content_type: str, max_text: int) -> Indexed:
    page = read(body, content_type, wanted=_WANTED)
    headings = _heading_blocks(page)
    said: dict[str, list[str]] = {"title": [], "headings": [], "text": []}
    room = max_text
    for nth in range(len(page)):
        if room <= 0:
            break
        block = page.block(nth, room)
        room -= len(block) + 1
        sort = "headings" if nth in headings and len(said["headings"]) < MAX_HEADINGS else "text"
        if not said["title"] and page.place(nth).endswith("<title>"):
            sort = "title"
        said[sort].append(block)
    title = " ".join(said["title"])[:MAX_TITLE_CHARACTERS] or (said["headings"] or [_named_by(url)])[0]
    found = links(page, url).urls if url.startswith("http") else ()
    return Indexed(title, "\n".join(said["headings"]), "\n".join(said["text"]), _marks(url, found))


def mark_of(url: str) -> int:
    """64 bits of an address, as a signed number, which a database can keep."""
    mark = xxhash.xxh3_64_intdigest(url.encode("utf-8", "surrogatepass"))
    return mark - (1 << 64) if mark >> 63 else mark


def _marks(url: str, found: Sequence[str]) -> tuple[int, ...]:
    own = mark_of(url)
    return tuple(mark for mark in dict.fromkeys(map(mark_of, found[:MAX_TARGETS])) if mark != own)


def _heading_blocks(page: Document) -> set[int]:
    """Which blocks are headings: the first that begins behind each heading's start tag."""
    lengths = {page.wanted.tags.index(name): len(name) + 1 for name in _HEADINGS}
    begun = [row[2] - lengths[row[0]] for row in page.rows[:, :3].tolist() if row[0] in lengths and row[1] < 0]
    at, nth, found = page.spans[:, 2].tolist(), 0, set()
    for tag in begun:
        while nth < len(at) and at[nth] < tag:
            nth += 1
        found.add(nth)
    return found


def _of_text(url: str, body: bytes, content_type: str, max_text: int) -> Indexed:
    text = utf8(body, content_type).decode("utf-8", "replace").replace("\0", " ")[:max_text]
    title = ""
    headings: list[str] = []
    if text.startswith("---\n"):  # a front matter, as many writers of Markdown have one
        head, _, rest = text.partition("\n---\n")
        text = rest or text
        title = front[1] if (front := _FRONT_TITLE.search(head)) else ""
    for line in text.splitlines():
        if line.startswith("#") and (heading := line.lstrip("#")).startswith(" ") and len(headings) < MAX_HEADINGS:
            headings.append(heading.strip())
    title = title or (headings[0] if headings else _named_by(url))
    return Indexed(title[:MAX_TITLE_CHARACTERS], "\n".join(headings), text)


def _named_by(url: str) -> str:
    """A title for what has none: the words of the last part of its address.

    >>> _named_by("file:///srv/docs/annual-report_2026.pdf?x=1")
    'annual report 2026 pdf'
    """
    path = url.partition("?")[0].rstrip("/")
    return _WORDS.sub(" ", unquote(path.rpartition("/")[2], errors="replace")).strip()[:MAX_TITLE_CHARACTERS]


def spaced(text: str) -> str:
    """Text with blanks around each sign of a script that is written without them, so that each is a word.

    >>> spaced("渡し船 ferry").split()
    ['渡', 'し', '船', 'ferry']
    """
    return text if text.isascii() else _UNSPACED.sub(r" \1 ", text)

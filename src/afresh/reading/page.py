"""A page that has been read: the blocks of text that it shows, and the tags that were asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.reading.decode import utf8
from afresh.reading.names import name_code
from afresh.reading.select import NONE, Parts

# The limits of one reading. What is larger is not read to its end, and `whole` says so.
MAX_BYTES = 16 << 20  # of the page, in UTF-8
MAX_TOKENS = 2_000_000  # tags, comments and declarations
MAX_BLOCKS = 500_000
SAMPLE = 60  # bytes of a block, or of a tag, that are shown to people


class Wanted:
    """Tags and attributes that somebody wants to hear of, as sorted codes and the names in the same order."""

    def __init__(self, tags: Sequence[str] = (), attributes: Sequence[str] = (), rows: int = 0) -> None:
        self.tags, self.attributes = sorted(tags, key=name_code), sorted(attributes, key=name_code)
        self.tag_codes = np.array([name_code(name) for name in self.tags], np.uint64)
        self.attribute_codes = np.array([name_code(name) for name in self.attributes], np.uint64)
        self.rows = rows  # of tags and attributes together, at most


NOTHING = Wanted()


@dataclass(frozen=True, slots=True)
class Document:
    """What one pass over a page found; see `afresh.reading.tokens` for what the columns are."""

    page: bytes  # in UTF-8
    wanted: Wanted  # what it was asked for
    rows: NDArray[np.int64]
    text: NDArray[np.uint8]
    spans: NDArray[np.int64]
    marks: NDArray[np.uint64]
    tokens: int
    whole: bool  # no limit was met

    def __len__(self) -> int:
        return len(self.spans)

    def block(self, nth: int, most: int = MAX_BYTES) -> str:
        """The text of a block, or its first bytes up to a limit."""
        start, end = self.spans[nth, :2].tolist()
        return self.text[start : min(end, start + most)].tobytes().decode("utf-8", "replace")

    def place(self, nth: int) -> str:
        """Where a block stands, for people: its own tag, and the nearest around it that has an id or a class."""
        at, around = self.spans[nth, 2:4].tolist()
        own, named = self._tag(at), self._tag(around) if around != at else ""
        return f"{named} {own}" if named and named != own else own

    def _tag(self, at: int) -> str:
        if at < 0:
            return ""
        return self.page[at : at + SAMPLE].partition(b">")[0].decode("utf-8", "replace").strip() + ">"


def read(
    body: bytes, content_type: str = "", *, wanted: Wanted = NOTHING, selectors: Parts = NONE, most: int = MAX_BYTES
) -> Document:
    """Read an HTML page in one pass, within the limits.

    >>> page = read(b"<title>Harbour</title><p>The <b>ferry</b>  runs &amp; runs.<p hidden>Secret.<script>x</script>")
    >>> [page.block(nth) for nth in range(len(page))]
    ['Harbour', 'The ferry runs & runs.']
    """
    from afresh.reading.scan import (  # compiled code takes a second to load: not before somebody needs it
        UNUSED,
        new_state,
    )

    room = _Room(body, content_type, wanted, most)
    return room.scan(selectors, new_state(), UNUSED, 0)


def read_both(
    old: tuple[bytes, str], new: tuple[bytes, str], *, wanted: Wanted = NOTHING, selectors: Parts = NONE
) -> tuple[Document, Document]:
    """Read two versions of a page, given with their content types; what they begin with in common is read once.

    Tags are `wanted` of the new one alone.
    """
    from afresh.reading.scan import AT, COUNT, UNUSED, common_bytes, new_state
    from afresh.reading.words import IN_WORD, OUT, START

    before, after = _Room(*old, NOTHING, MAX_BYTES), _Room(*new, wanted, MAX_BYTES)
    saved = new_state()
    page = after.scan(selectors, new_state(), saved, common_bytes(before.array, after.array))
    numbers, gathered = saved[:2]
    if numbers[AT]:
        count, out = numbers[COUNT], gathered[OUT]
        before.text[:out], before.spans[:count], before.marks[:count] = (
            after.text[:out],
            after.spans[:count],
            after.marks[:count],
        )
        if out > gathered[START] and not gathered[IN_WORD]:  # the new page may have written over the last blank
            before.text[out - 1] = 32
    return before.scan(selectors, saved, UNUSED, 0), page


class _Room:
    """A page and the arrays that a pass over it fills."""

    def __init__(self, body: bytes, content_type: str, wanted: Wanted, most: int) -> None:
        page = utf8(body[:most], content_type)
        self.whole = len(body) <= most and len(page) <= most
        self.page, self.wanted = page[:most], wanted
        size = len(self.page)
        blocks = min(MAX_BLOCKS, size // 4 + 1)  # a block needs a tag and a letter
        self.array, self.text = np.frombuffer(self.page, np.uint8), np.empty(size, np.uint8)
        self.rows = np.empty((min(wanted.rows, size // 2 + 1), 4), np.int64)  # no tag and no attribute is shorter
        self.spans, self.marks = np.empty((blocks, 4), np.int64), np.empty((blocks, 3), np.uint64)

    def scan(self, selectors: Parts, state: Any, saved: Any, common: int) -> Document:
        """Let the pass go over the page, or over the rest of it."""
        from afresh.reading.scan import scan

        noted, blocks, length, tokens, read_all = scan(
            self.array,
            self.wanted.tag_codes,
            self.wanted.attribute_codes,
            self.rows,
            self.text,
            self.spans,
            self.marks,
            selectors,
            MAX_TOKENS,
            state,
            saved,
            common,
        )
        return Document(
            self.page,
            self.wanted,
            self.rows[:noted],
            self.text[:length],
            self.spans[:blocks],
            self.marks[:blocks],
            tokens,
            self.whole and read_all,
        )

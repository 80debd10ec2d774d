"""The tags of an HTML page that can hold a link: one compiled pass over the bytes, without building a tree.

A tree is not needed to find links, and building one can be made to cost almost anything: by the standard's own rules a
page of 26 kB (unclosed formatting before many paragraphs) grows to four million elements, and nested blocks or many
attributes take time in the square of their number. This pass follows the standard's tokenizer only, so it is linear in
the page and keeps nothing but the places of the attributes that were asked for.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def name_code(name: str) -> int:
    """A number for a tag's or an attribute's name, as the compiled pass computes it from lower-case letters."""
    code = 0
    for byte in name.encode():
        code = (code * 1_000_003 + byte) & ((1 << 64) - 1)
    return code


# After these nothing is a tag until the same name is closed.
_RAW_NAMES = ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
RAW = np.array([name_code(name) for name in _RAW_NAMES], np.uint64)
_PLAINTEXT = np.uint64(name_code("plaintext"))
_PRIME = np.uint64(1_000_003)


@njit(cache=True, nogil=True, inline="always")
def _is_space(byte: int) -> bool:
    return byte == 32 or byte == 10 or byte == 9 or byte == 13 or byte == 12


@njit(cache=True, nogil=True, inline="always")
def _lower(byte: int) -> int:
    return byte + 32 if 65 <= byte <= 90 else byte


@njit(cache=True, nogil=True)
def _name(page: Bytes, at: int, equals: bool) -> tuple[Any, int]:
    """The code of the name that starts here, and where it ends; an attribute's name ends at an equals sign too."""
    code, start = np.uint64(0), at
    while at < page.size:
        byte = page[at]
        if _is_space(byte) or byte == 47 or byte == 62 or (equals and byte == 61 and at > start):
            break
        code = code * _PRIME + np.uint64(_lower(byte))
        at += 1
    return code, at


@njit(cache=True, nogil=True)
def _find(page: Bytes, at: int, byte: int) -> int:
    while at < page.size and page[at] != byte:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _after_declaration(page: Bytes, at: int) -> int:
    """Behind a comment, or anything else that starts with `<!`, `<?` or a nameless `</`; `at` is the second byte."""
    if not (page[at] == 33 and at + 2 < page.size and page[at + 1] == 45 and page[at + 2] == 45):
        return _find(page, at, 62) + 1
    at += 3
    if at < page.size and page[at] == 62:
        return at + 1
    if at + 1 < page.size and page[at] == 45 and page[at + 1] == 62:
        return at + 2
    while True:
        at = _find(page, at, 62)
        if at >= page.size:
            return at
        if page[at - 1] == 45 and page[at - 2] == 45:
            return at + 1
        if page[at - 1] == 33 and page[at - 2] == 45 and page[at - 3] == 45:
            return at + 1
        at += 1


@njit(cache=True, nogil=True)
def _after_raw(page: Bytes, at: int, code: np.uint64) -> int:
    """Where the tag that closes a raw text begins."""
    while True:
        at = _find(page, at, 60)
        if at + 1 >= page.size:
            return page.size
        if page[at + 1] == 47 and _name(page, at + 2, False)[0] == code:
            return at
        at += 1


@njit(cache=True, nogil=True)
def _value(page: Bytes, at: int) -> tuple[int, int, int]:
    """Start and end of an attribute's value, and where the next attribute may begin; `at` is behind the name."""
    while at < page.size and _is_space(page[at]):
        at += 1
    if at >= page.size or page[at] != 61:
        return at, at, at
    at += 1
    while at < page.size and _is_space(page[at]):
        at += 1
    if at < page.size and (page[at] == 34 or page[at] == 39):
        end = _find(page, at + 1, page[at])
        return at + 1, end, end + 1
    start = at
    while at < page.size and not _is_space(page[at]) and page[at] != 62:
        at += 1
    return start, at, at


@njit(cache=True, nogil=True)
def _attributes(
    page: Bytes, at: int, tag: int, attributes: NDArray[np.uint64], rows: NDArray[np.int64], row: int
) -> tuple[int, int]:
    """Go through the attributes of a tag to its end and note those that are wanted; -1 if the page or the rows end."""
    while True:
        while at < page.size and (_is_space(page[at]) or page[at] == 47):
            at += 1
        if at >= page.size:
            return -1, row
        if page[at] == 62:
            return at + 1, row
        name, at = _name(page, at, True)
        start, end, at = _value(page, at)
        attribute = np.searchsorted(attributes, name)
        if tag >= 0 and attribute < attributes.size and attributes[attribute] == name:
            if row >= rows.shape[0]:
                return -1, row
            rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3] = tag, attribute, start, end
            row += 1


@njit(cache=True, nogil=True)
def _next_tag(page: Bytes, at: int) -> int:
    """Where the next tag's name, or the slash before it, begins; the page's size if there is none."""
    while True:
        at = _find(page, at, 60) + 1
        if at >= page.size:
            return page.size
        closing = page[at] == 47 and at + 1 < page.size
        letter = _lower(page[at + 1] if closing else page[at])
        if 97 <= letter <= 122:
            return at
        if page[at] == 33 or page[at] == 63 or page[at] == 47:
            at = _after_declaration(page, at)


@njit(cache=True, nogil=True)
def scan(page: Bytes, tags: NDArray[np.uint64], attributes: NDArray[np.uint64], rows: NDArray[np.int64]) -> int:
    """Find the wanted attributes of the wanted tags, both given as sorted codes; how many rows were filled.

    Each tag has a row with its place among `tags` and -1, followed by a row for each of its attributes: the tag's place
    again, the attribute's place among `attributes`, start and end of its value. A tag that the page, or the room in
    `rows`, does not hold whole is left out.
    """
    at, row = 0, 0
    while True:
        at = _next_tag(page, at)
        if at >= page.size:
            return row
        closing = page[at] == 47
        code, at = _name(page, at + 1 if closing else at, False)
        place, tag, first = np.searchsorted(tags, code), -1, row
        if not closing and place < tags.size and tags[place] == code:
            if row >= rows.shape[0]:
                return row
            tag = place
            rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3] = tag, -1, at, at
            row += 1
        at, row = _attributes(page, at, tag, attributes, rows, row)
        if at < 0:
            return first
        if not closing:
            if code == _PLAINTEXT:
                return row
            for raw in RAW:
                if code == raw:
                    at = _after_raw(page, at, code)


@njit(cache=True, nogil=True)
def _cut(page: Bytes, start: int, end: int) -> int:
    """Where a link ends if its fragment is left out; one with a character reference, which has the same sign, stays."""
    cut = end
    for at in range(start, end):
        if page[at] == 38:
            return end
        if page[at] == 35 and cut == end:
            cut = at
    return cut


@njit(cache=True, nogil=True)
def _same(page: Bytes, start: int, end: int, other: int, other_end: int) -> bool:
    if end - start != other_end - other:
        return False
    for at in range(end - start):  # noqa: SIM110 - compiled: a generator is not
        if page[start + at] != page[other + at]:
            return False
    return True


@njit(cache=True, nogil=True)
def gather(page: Bytes, rows: NDArray[np.int64], plain: tuple[int, int], out: NDArray[np.int64]) -> int:
    """Gather what `scan` found, tag by tag, into `out`; how many rows of it were filled.

    A tag and an attribute are `plain`: where such a tag has that attribute and no other, its value without the fragment
    becomes a row (0, start, end), once for all its repetitions on the page and not at all if nothing is left. Every
    other tag becomes a row (1, first, last) with the places of its rows.
    """
    size = 64
    while size < 2 * rows.shape[0]:
        size *= 2
    table = np.full(size, -1, np.int64)  # the first of the rows of `out` that hold some value
    count, first = 0, 0
    while first < rows.shape[0]:
        last = first + 1
        while last < rows.shape[0] and rows[last, 1] >= 0:
            last += 1
        if rows[first, 0] == plain[0] and last == first + 2 and rows[first + 1, 1] == plain[1]:
            start = rows[first + 1, 2]
            end = _cut(page, start, rows[first + 1, 3])
            code = np.uint64(0)
            for at in range(start, end):
                code = (code ^ np.uint64(page[at])) * np.uint64(1_099_511_628_211)
            place = np.int64((code ^ (code >> np.uint64(29))) & np.uint64(size - 1))
            known, tries = start == end, 0
            # Values may be made to fall on one place; then a repetition or two is let through instead of searched for.
            while not known and table[place] >= 0 and tries < 16:
                other = table[place]
                known = _same(page, start, end, out[other, 1], out[other, 2])
                place, tries = (place + 1) & (size - 1), tries + 1
            if not known:
                if table[place] < 0:
                    table[place] = count
                out[count, 0], out[count, 1], out[count, 2] = 0, start, end
                count += 1
        else:
            out[count, 0], out[count, 1], out[count, 2] = 1, first, last
            count += 1
        first = last
    return count

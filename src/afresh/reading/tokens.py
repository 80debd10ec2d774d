"""The standard's tokenizer for HTML as far as tags need it: where names, values, comments, raw texts end; compiled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.reading.inlined import inlined
from afresh.reading.names import GOLDEN

Bytes = NDArray[np.uint8]
_LEFT, _RIGHT = np.uint64(5), np.uint64(59)


@inlined
def is_space(byte: int) -> bool:
    """Whether a byte is what HTML takes for white space."""
    return byte == 32 or byte == 10 or byte == 9 or byte == 13 or byte == 12


@inlined
def lower(byte: int) -> int:
    """A letter of ASCII in lower case; any other byte as it is."""
    return byte + 32 if 65 <= byte <= 90 else byte


@inlined
def mixed(mark: np.uint64, byte: int) -> Any:
    """A mark of bytes with one byte more; the product does not wait for the mark, so this is fast in a row."""
    return ((mark << _LEFT) | (mark >> _RIGHT)) + np.uint64(byte) * GOLDEN


@inlined
def name(page: Bytes, at: int, equals: bool) -> tuple[Any, int]:
    """The code of the name that starts here, and where it ends; an attribute's name ends at an equals sign too."""
    code, start = np.uint64(0), at
    while at < page.size:
        byte = page[at]
        if is_space(byte) or byte == 47 or byte == 62 or (equals and byte == 61 and at > start):
            break
        code = mixed(code, lower(byte))
        at += 1
    return code, at


@inlined
def find(page: Bytes, at: int, byte: int) -> int:
    """Where a byte next stands; the page's size if it does not."""
    while at < page.size and page[at] != byte:
        at += 1
    return at


@inlined
def after_declaration(page: Bytes, at: int) -> int:
    """Behind a comment, or anything else that starts with `<!`, `<?` or a nameless `</`; `at` is the second byte."""
    if not (page[at] == 33 and at + 2 < page.size and page[at + 1] == 45 and page[at + 2] == 45):
        return find(page, at, 62) + 1
    at += 3
    if at < page.size and page[at] == 62:
        return at + 1
    if at + 1 < page.size and page[at] == 45 and page[at + 1] == 62:
        return at + 2
    while True:
        at = find(page, at, 62)
        if at >= page.size:
            return at
        if page[at - 1] == 45 and page[at - 2] == 45:
            return at + 1
        if page[at - 1] == 33 and page[at - 2] == 45 and page[at - 3] == 45:
            return at + 1
        at += 1


@inlined
def after_raw(page: Bytes, at: int, code: np.uint64) -> int:
    """Where the tag that closes a raw text begins."""
    while True:
        at = find(page, at, 60)
        if at + 1 >= page.size:
            return page.size
        if page[at + 1] == 47 and name(page, at + 2, False)[0] == code:
            return at
        at += 1


@inlined
def value(page: Bytes, at: int) -> tuple[int, int, int]:
    """Start and end of an attribute's value, and where the next attribute may begin; `at` is behind the name."""
    while at < page.size and is_space(page[at]):
        at += 1
    if at >= page.size or page[at] != 61:
        return at, at, at
    at += 1
    while at < page.size and is_space(page[at]):
        at += 1
    if at < page.size and (page[at] == 34 or page[at] == 39):
        end = find(page, at + 1, page[at])
        return at + 1, end, end + 1
    start = at
    while at < page.size and not is_space(page[at]) and page[at] != 62:
        at += 1
    return start, at, at


@inlined
def next_tag(page: Bytes, at: int) -> int:
    """Where the next `<` begins that is no text: a tag, a comment or a declaration; the page's size: none."""
    while True:
        at = find(page, at, 60)
        if at + 1 >= page.size:
            return page.size
        byte = page[at + 1]
        letter = lower(byte)
        if 97 <= letter <= 122 or byte == 33 or byte == 63 or (byte == 47 and at + 2 < page.size):
            return at
        at += 1

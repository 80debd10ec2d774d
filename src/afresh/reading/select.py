"""CSS selectors of what counts on a site, in the form that the pass over a page asks them in.

Understood are a tag, `#id`, `.class`, `*` and what is made of these, with a blank (anywhere inside) or `>` (directly
inside) between them, and commas. That needs no tree, so there is no page that it is not done for. Anything else (places
among siblings, attributes, pseudo-classes) is refused when the settings are read.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from afresh.reading.names import name_code

MAX_PARTS = 64  # of all selectors of a site together; one bit each
MAX_CLASSES = 4  # in one part
KEEP, DROP = 1, 2
INSIDE, DIRECTLY_INSIDE = 1, 2

_NAME = r"[A-Za-z_\u0080-\U0010ffff-][\w\u0080-\U0010ffff-]*"
_PART = re.compile(rf"(\*|{_NAME})?((?:[#.]{_NAME})*)")
_FNV, _FNV_START, _WORD = 1_099_511_628_211, 14_695_981_039_346_656_037, (1 << 64) - 1

Parts = NDArray[np.uint64]
NONE: Parts = np.zeros((0, 8), np.uint64)


def compile_selectors(keep: Sequence[str], drop: Sequence[str]) -> Parts:
    """The parts of all selectors: tag, id, four classes, how it follows the part before it, and what its end means.

    ValueError, with a sentence, for what is not understood.

    >>> compile_selectors(["main > .price"], []).shape
    (2, 8)
    """
    rows: list[list[int]] = []
    for selectors, meaning in ((keep, KEEP), (drop, DROP)):
        for written in selectors:
            for selector in written.split(","):
                rows += _parts(selector, written, meaning)
    if len(rows) > MAX_PARTS:
        raise ValueError(f"there are more than {MAX_PARTS} parts in the CSS selectors")
    return np.array(rows, np.uint64) if rows else NONE


def _parts(selector: str, written: str, meaning: int) -> list[list[int]]:
    words = selector.replace(">", " > ").split()
    rows: list[list[int]] = []
    follows = 0
    for word in words:
        if word == ">":
            if follows != INSIDE:  # at the beginning, or twice
                raise _refused(written)
            follows = DIRECTLY_INSIDE
            continue
        match = _PART.fullmatch(word)
        if match is None or not word:
            raise _refused(written)
        tag, names = match[1] or "*", re.findall(rf"[#.]{_NAME}", match[2])
        ids = [_mark(name[1:]) for name in names if name[0] == "#"]
        classes = [_mark(name[1:]) for name in names if name[0] == "."]
        if len(ids) > 1 or len(classes) > MAX_CLASSES:
            raise _refused(written)
        code = 0 if tag == "*" else name_code(tag.lower())
        rows.append([code, *(ids or [0]), *classes, *[0] * (MAX_CLASSES - len(classes)), follows, 0])
        follows = INSIDE
    if not rows or words[-1] == ">":
        raise _refused(written)
    rows[-1][-1] = meaning
    return rows


def _refused(selector: str) -> ValueError:
    return ValueError(f"{selector!r} is not a CSS selector of tags, #ids and .classes with blanks or > between them")


def _mark(name: str) -> int:
    """A word of an attribute as the pass marks it."""
    mark = _FNV_START
    for byte in name.encode():
        mark = ((mark ^ byte) * _FNV) & _WORD
    return mark

"""The open elements of a page: where a text stands, whether it is shown, which selectors it answers to; compiled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.reading.inlined import inlined
from afresh.reading.matching import (
    CLASSES,
    DROPPED,
    FIRST_WRITTEN,
    ID_WRITTEN,
    KEPT,
    OWN,
    ask,
    select,
)
from afresh.reading.names import (
    BREAK,
    CELL,
    GOLDEN,
    GROUP,
    ROW,
    SECTION,
    SLOT_CODES,
    SLOT_KINDS,
    SLOTS_BITS,
    UNSEEN,
    P,
    name_code,
)
from afresh.reading.select import Parts
from afresh.reading.tokens import is_space, name, value
from afresh.reading.words import FNV, FNV_START

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]

DEEPEST = 256  # open elements that are told apart
FARTHEST = 64  # open elements that one end tag looks through

_ID, _CLASS, _HIDDEN = (np.uint64(name_code(each)) for each in ("id", "class", "hidden"))
_PRIME = np.uint64(1_000_003)
_SHIFT = np.uint64(64 - SLOTS_BITS)
_NONE = np.uint64(0)

# What an element says of itself: marks of id and class, then what selectors ask for (`afresh.reading.matching`).
_OWN_ID, _OWN_CLASS = 0, 1
# What is known of an open element besides its code.
# Marks: where it stands, selectors that end here, those of all around it, of its last child, and of all its children.
PLACE, _MET, _ABOVE, _LAST, _EARLIER = 0, 1, 2, 3, 4
MARKS = 5
# Flags, where its tag begins, the nearest tag around it that has an id or class, and how many children it has.
_SEEN, TAG, NAMED, _CHILDREN = 0, 1, 2, 3
FACTS = 4
_HIDES = 1  # the flag beside those of selectors


@inlined
def kind(code: np.uint64) -> int:
    """What is known of a tag, by the code of its name; see `afresh.reading.names`."""
    slot = np.int64((code * GOLDEN) >> _SHIFT)
    while SLOT_CODES[slot] != _NONE:
        if SLOT_CODES[slot] == code:
            return int(SLOT_KINDS[slot])
        slot = (slot + 1) & (SLOT_CODES.size - 1)
    return 0


@inlined
def place_of(code: np.uint64, codes: Words) -> int:
    """The place of a code among sorted ones; −1 if it is not there."""
    low, high = 0, codes.size
    while low < high:
        middle = (low + high) // 2
        if codes[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low if low < codes.size and codes[low] == code else -1


@inlined
def forget(own: Words, exact: bool) -> None:
    """Forget what the element before said of itself."""
    own[_OWN_ID] = own[_OWN_CLASS] = _NONE
    if exact:
        for nth in range(ID_WRITTEN, OWN):
            own[nth] = _NONE


@inlined
def _describe(page: Bytes, start: int, end: int, is_id: bool, own: Words, exact: bool) -> None:
    """Mark an id or the words of a class: without its numbers for the place, as written for selectors."""
    into = _OWN_ID if is_id else _OWN_CLASS
    mark, word, classes, was_digit = own[into] ^ FNV_START, FNV_START, 0, False
    for at in range(start, end + 1):
        if at == end or is_space(page[at]):
            if word != FNV_START and exact:
                if is_id:
                    own[ID_WRITTEN] = word
                elif classes < CLASSES:
                    own[FIRST_WRITTEN + classes] = word
                    classes += 1
            word = FNV_START
            continue
        byte = page[at]
        word = (word ^ np.uint64(byte)) * FNV
        digit = 48 <= byte <= 57
        if not (digit and was_digit):
            mark = (mark ^ np.uint64(48 if digit else byte)) * FNV
        was_digit = digit
    own[into] = mark


@inlined
def attributes(
    page: Bytes, at: int, tag: int, wanted: Words, rows: Numbers, row: int, own: Words, selectors: Parts
) -> tuple[int, int, bool, bool]:
    """Go through the attributes of a tag to its end, note those that are wanted, and what the element is called.

    Where the tag ends (−1 if the page does first), rows needed, whether it is hidden, and whether it closes itself.
    """
    hidden, slash, exact = False, False, selectors[0].shape[0] > 0
    while True:
        while at < page.size and (is_space(page[at]) or page[at] == 47):
            slash = page[at] == 47
            at += 1
        if at >= page.size:
            return -1, row, hidden, slash
        if page[at] == 62:
            return at + 1, row, hidden, slash
        slash = False
        called, at = name(page, at, True)
        start, end, at = value(page, at)
        if selectors[1].shape[0] > 0:
            ask(page, called, start, min(end, page.size), selectors[1], selectors[2], own)
        if called in (_ID, _CLASS):
            _describe(page, start, min(end, page.size), called == _ID, own, exact)
        elif called == _HIDDEN:
            hidden = True
        if tag >= 0:
            attribute = place_of(called, wanted)
            if attribute >= 0:
                if row < rows.shape[0]:
                    rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3] = tag, attribute, start, end
                row += 1


@inlined
def implied(codes: Words, depth: int, about: int) -> int:
    """How deep it is once the elements are closed that a start tag of this kind ends without saying so."""
    group = about // GROUP
    if depth and about & BREAK and kind(codes[depth]) // GROUP == P:
        depth -= 1
    if group >= ROW and group != 6 and depth and kind(codes[depth]) // GROUP == CELL:
        depth -= 1
    if group == SECTION and depth and kind(codes[depth]) // GROUP == ROW:
        depth -= 1
    if group and depth and kind(codes[depth]) // GROUP == group:
        depth -= 1
    return depth


@inlined
def closed(codes: Words, depth: int, code: np.uint64) -> int:
    """How deep it is once the nearest element of that name is closed; as before if there is none near."""
    for level in range(depth, max(depth - FARTHEST, 0), -1):
        if codes[level] == code:
            return level - 1
    return depth


@inlined
def arrive(stack: Any, parent: int, code: np.uint64, own: Words, selectors: Parts) -> tuple[Any, int]:
    """Count an element among the children of an open one: which parts of selectors end there, and its flags."""
    _, known, facts = stack
    facts[parent, _CHILDREN] += 1
    around = (known[parent, _MET], known[parent, _ABOVE], known[parent, _LAST], known[parent, _EARLIER])
    met, flags = select(selectors[0], selectors[1], code, own, facts[parent, _CHILDREN], around)
    known[parent, _LAST] = met
    known[parent, _EARLIER] |= met
    return met, flags


@inlined
def push(stack: Any, depth: int, code: np.uint64, about: int, own: Words, selectors: Parts, at: int) -> None:
    """Put an element on the stack; `about` is its kind, and `at` where its tag begins."""
    codes, known, facts = stack
    codes[depth] = code
    called = own[_OWN_ID] * _PRIME + own[_OWN_CLASS]
    known[depth, PLACE] = ((known[depth - 1, PLACE] ^ code) * FNV + called) * GOLDEN
    flags = facts[depth - 1, _SEEN]
    if selectors[0].shape[0] > 0:
        met, found = arrive(stack, depth - 1, code, own, selectors)
        known[depth, _MET], known[depth, _ABOVE] = met, known[depth - 1, _ABOVE] | met
        known[depth, _LAST] = known[depth, _EARLIER] = _NONE
        facts[depth, _CHILDREN] = 0
        flags |= found
    if about & UNSEEN:
        flags |= _HIDES
    facts[depth, _SEEN], facts[depth, TAG] = flags, at
    facts[depth, NAMED] = at if called != _NONE else facts[depth - 1, NAMED]


@inlined
def shown(stack: Any, depth: int, keeping: bool) -> bool:
    """Whether text in the innermost element counts; `keeping`: only what a selector keeps does."""
    seen = stack[2][depth, _SEEN]
    return not seen & (_HIDES | DROPPED) and (not keeping or seen & KEPT != 0)

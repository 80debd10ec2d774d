"""The open elements of a page: where a text stands, whether it is shown, which selectors it answers to; compiled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.reading.inlined import inlined
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
from afresh.reading.select import DIRECTLY_INSIDE, DROP, INSIDE, KEEP
from afresh.reading.tokens import is_space, name, value
from afresh.reading.words import FNV, FNV_START

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]

DEEPEST = 256  # open elements that are told apart
FARTHEST = 64  # open elements that one end tag looks through
CLASSES = 16  # of one element that selectors are asked about

_ID, _CLASS, _HIDDEN = (np.uint64(name_code(each)) for each in ("id", "class", "hidden"))
_PRIME = np.uint64(1_000_003)
_SHIFT = np.uint64(64 - SLOTS_BITS)
_NONE = np.uint64(0)

# What an element says of itself: marks of id, class and id as written, then classes as written.
_OWN_ID, _OWN_CLASS, _ID_WRITTEN, _FIRST_CLASS = 0, 1, 2, 3
OWN = _FIRST_CLASS + CLASSES  # how many marks these are
# What is known of an open element besides its code.
PLACE, _MET, _ABOVE = 0, 1, 2  # marks: where it stands, selectors that end here, and those of all around it
_SEEN, TAG, NAMED = 0, 1, 2  # flags, where its tag begins, and the nearest tag around it that has an id or class
_HIDES, _KEPT, _DROPPED = 1, 2, 4  # the flags


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
        for nth in range(_ID_WRITTEN, OWN):
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
                    own[_ID_WRITTEN] = word
                elif classes < CLASSES:
                    own[_FIRST_CLASS + classes] = word
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
    page: Bytes, at: int, tag: int, wanted: Words, rows: Numbers, row: int, own: Words, exact: bool
) -> tuple[int, int, bool, bool]:
    """Go through the attributes of a tag to its end, note those that are wanted, and what the element is called.

    Where the tag ends (−1 if the page does first), rows needed, whether it is hidden, and whether it closes itself.
    """
    hidden, slash = False, False
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
        if called in (_ID, _CLASS):
            _describe(page, start, min(end, page.size), called == _ID, own, exact)
        elif called == _HIDDEN:
            hidden = True
        elif tag >= 0:
            attribute = place_of(called, wanted)
            if attribute >= 0:
                if row < rows.shape[0]:
                    rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3] = tag, attribute, start, end
                row += 1


@inlined
def _matches(parts: Words, nth: int, code: np.uint64, own: Words) -> bool:
    """Whether an element is what one part of a selector asks for; see `afresh.reading.select` for its columns."""
    if (parts[nth, 0] and parts[nth, 0] != code) or (parts[nth, 1] and parts[nth, 1] != own[_ID_WRITTEN]):
        return False
    for wanted in range(2, 6):
        if parts[nth, wanted] == _NONE:
            break
        found = False
        for each in range(CLASSES):
            if own[_FIRST_CLASS + each] == parts[nth, wanted]:
                found = True
                break
        if not found:
            return False
    return True


@inlined
def _select(parts: Words, code: np.uint64, own: Words, met: np.uint64, above: np.uint64) -> tuple[Any, int]:
    """Which parts of the selectors end at an element, given those of its parent and of all around; and its flags."""
    ends, flags, one = np.uint64(0), 0, np.uint64(1)
    for nth in range(parts.shape[0]):
        before = one << np.uint64(max(nth - 1, 0))
        follows = parts[nth, 6]
        if (follows == np.uint64(INSIDE) and not above & before) or (
            follows == np.uint64(DIRECTLY_INSIDE) and not met & before
        ):
            continue
        if _matches(parts, nth, code, own):
            ends |= one << np.uint64(nth)
            if parts[nth, 7] == np.uint64(KEEP):
                flags |= _KEPT
            elif parts[nth, 7] == np.uint64(DROP):
                flags |= _DROPPED
    return ends, flags


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
def push(stack: Any, depth: int, code: np.uint64, about: int, own: Words, parts: Words, at: int) -> None:
    """Put an element on the stack; `about` is its kind, and `at` where its tag begins."""
    codes, known, facts = stack
    codes[depth] = code
    called = own[_OWN_ID] * _PRIME + own[_OWN_CLASS]
    known[depth, PLACE] = ((known[depth - 1, PLACE] ^ code) * FNV + called) * GOLDEN
    flags = facts[depth - 1, _SEEN]
    if parts.shape[0] > 0:
        met, found = _select(parts, code, own, known[depth - 1, _MET], known[depth - 1, _ABOVE])
        known[depth, _MET], known[depth, _ABOVE] = met, known[depth - 1, _ABOVE] | met
        flags |= found
    if about & UNSEEN:
        flags |= _HIDES
    facts[depth, _SEEN], facts[depth, TAG] = flags, at
    facts[depth, NAMED] = at if called != _NONE else facts[depth - 1, NAMED]


@inlined
def shown(stack: Any, depth: int, keeping: bool) -> bool:
    """Whether text in the innermost element counts; `keeping`: only what a selector keeps does."""
    seen = stack[2][depth, _SEEN]
    return not seen & (_HIDES | _DROPPED) and (not keeping or seen & _KEPT != 0)

"""Whether an element is what a selector asks for, while the pass goes over it; compiled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.reading.inlined import inlined
from afresh.reading.select import (
    ANY_CASE,
    ANY_OF,
    DROP,
    END,
    FIRST_CLASS,
    FOLLOWS,
    ID,
    KEEP,
    MAX_CLASSES,
    MEANING,
    NAME,
    NEEDS,
    OFFSET,
    OPERATOR,
    PLACED,
    REFUSES,
    START,
    STEP,
    TAG,
)
from afresh.reading.selector_text import DIRECTLY_INSIDE, INSIDE, LATER, NEXT, OPERATORS
from afresh.reading.selector_text import TAG as TAG_TEST
from afresh.reading.tokens import is_space, lower
from afresh.value.compiled import compiled

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

CLASSES = 16  # of one element that selectors are asked about
KEPT, DROPPED = 2, 4  # flags of an element
# What an element says of itself, for selectors: marks of its id and classes as written, tests that it meets, and tests
# whose attribute it has (of several with one name the first counts).
ID_WRITTEN, FIRST_WRITTEN = 2, 3
MET_TESTS, SEEN_TESTS = FIRST_WRITTEN + CLASSES, FIRST_WRITTEN + CLASSES + 1
OWN = SEEN_TESTS + 1

_NONE, _ONE = np.uint64(0), np.uint64(1)
_EQUALS, _WORD, _DASH, _PREFIX, _SUFFIX = (np.uint64(OPERATORS.index(each)) for each in ("=", "~=", "|=", "^=", "$="))
_OF_TAG = np.uint64(TAG_TEST)


@inlined
def _same(page: Bytes, at: Any, values: Bytes, start: Any, end: Any, any_case: bool) -> bool:
    """Whether these bytes stand at a place of the page, which has as many."""
    for nth in range(end - start):
        byte = lower(page[at + nth]) if any_case else page[at + nth]
        if byte != values[start + nth]:
            return False
    return True


@compiled
def _meets(page: Bytes, first: int, last: int, test: Words, values: Bytes) -> bool:
    """Whether the value of an attribute, from `first` to `last`, is what a test asks for."""
    how, any_case = test[OPERATOR], test[ANY_CASE] != _NONE
    start, end = np.int64(test[START]), np.int64(test[END])
    size, length = end - start, last - first
    if how == _NONE:
        return True
    if how == _EQUALS:
        return bool(length == size and _same(page, first, values, start, end, any_case))
    if size > length or (size == 0 and how != _DASH):
        return False
    if how == _DASH:
        return _same(page, first, values, start, end, any_case) and (length == size or page[first + size] == 45)
    if how == _PREFIX:
        return _same(page, first, values, start, end, any_case)
    if how == _SUFFIX:
        return _same(page, last - size, values, start, end, any_case)
    for at in range(first, last - size + 1):
        if how == _WORD and not (
            (at == first or is_space(page[at - 1])) and (at + size == last or is_space(page[at + size]))
        ):
            continue
        if _same(page, at, values, start, end, any_case):
            return True
    return False


@compiled
def ask(page: Bytes, called: np.uint64, first: int, last: int, tests: Words, values: Bytes, own: Words) -> None:
    """Note which tests an attribute meets."""
    for nth in range(tests.shape[0]):
        bit = _ONE << np.uint64(nth)
        if tests[nth, NAME] == called and tests[nth, OPERATOR] != _OF_TAG and not own[SEEN_TESTS] & bit:
            own[SEEN_TESTS] |= bit
            if _meets(page, first, last, tests[nth], values):
                own[MET_TESTS] |= bit


@inlined
def _is_placed(part: Words, place: int) -> bool:
    """Whether a place among siblings is one of a·n + b, for an n of at least 0."""
    step, beyond = np.int64(part[STEP]), place - np.int64(part[OFFSET])
    if step == 0:
        return bool(beyond == 0)
    return bool(beyond % step == 0 and beyond // step >= 0)


@inlined
def _matches(part: Words, code: np.uint64, own: Words, place: int) -> bool:
    """Whether an element is what one part of a selector asks for; see `afresh.reading.select` for its columns."""
    if (part[TAG] and part[TAG] != code) or (part[ID] and part[ID] != own[ID_WRITTEN]):
        return False
    met = own[MET_TESTS]
    if met & part[NEEDS] != part[NEEDS] or met & part[REFUSES] or (part[ANY_OF] and not met & part[ANY_OF]):
        return False
    if part[PLACED] and not _is_placed(part, place):
        return False
    for wanted in range(FIRST_CLASS, FIRST_CLASS + MAX_CLASSES):
        if part[wanted] == _NONE:
            break
        found = False
        for each in range(CLASSES):
            if own[FIRST_WRITTEN + each] == part[wanted]:
                found = True
                break
        if not found:
            return False
    return True


@compiled
def select(parts: Words, tests: Words, code: np.uint64, own: Words, place: int, around: Any) -> tuple[Any, int]:
    """Which parts of the selectors end at an element, and its flags.

    `around` are the parts that end at its parent, at any element around it, at the sibling before it, and at any before
    it.
    """
    for nth in range(tests.shape[0]):
        if tests[nth, OPERATOR] == _OF_TAG and tests[nth, NAME] == code:
            own[MET_TESTS] |= _ONE << np.uint64(nth)
    ends, flags = np.uint64(0), 0
    parent, above, sibling, earlier = around
    for nth in range(parts.shape[0]):
        before = _ONE << np.uint64(max(nth - 1, 0))
        follows = parts[nth, FOLLOWS]
        if (
            (follows == np.uint64(INSIDE) and not above & before)
            or (follows == np.uint64(DIRECTLY_INSIDE) and not parent & before)
            or (follows == np.uint64(NEXT) and not sibling & before)
            or (follows == np.uint64(LATER) and not earlier & before)
        ):
            continue
        if _matches(parts[nth], code, own, place):
            ends |= _ONE << np.uint64(nth)
            if parts[nth, MEANING] == np.uint64(KEEP):
                flags |= KEPT
            elif parts[nth, MEANING] == np.uint64(DROP):
                flags |= DROPPED
    return ends, flags

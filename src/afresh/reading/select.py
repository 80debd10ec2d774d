"""CSS selectors of what counts on a site, in the form that the pass over a page asks them in.

Understood is what an element and those before it decide: tags, `#id`, `.class`, `*`, `[attribute]` with all operators,
`:not()`, `:is()`, `:where()`, `:first-child`, `:nth-child()`, and ` `, `>`, `+`, `~` between elements. That needs no
tree, so there is no page that it is not done for: a tree is what hostile pages aim at. Whatever depends on what comes
later (`:has()`, `:last-child`) is refused when the settings are read.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from afresh.reading.names import name_code
from afresh.reading.selector_text import OPERATORS, Part, Test, parse

MAX_PARTS = 64  # of all selectors of a site together; one bit each
MAX_TESTS = 64  # of attributes and in brackets, of all selectors together; one bit each
MAX_CLASSES = 4  # in one part, that need no test
KEEP, DROP = 1, 2

# Columns of a part: what is asked of an element, as marks and as bits of tests, and what its end means.
TAG, ID, FIRST_CLASS, FOLLOWS, MEANING = 0, 1, 2, 6, 7
NEEDS, REFUSES, ANY_OF, STEP, OFFSET, PLACED = 8, 9, 10, 11, 12, 13
COLUMNS = 14
# Columns of a test: the code of its name, the operator, whether case does not count, and where its value stands.
NAME, OPERATOR, ANY_CASE, START, END = 0, 1, 2, 3, 4

_FNV, _FNV_START, _WORD = 1_099_511_628_211, 14_695_981_039_346_656_037, (1 << 64) - 1

Words = NDArray[np.uint64]
Parts = tuple[Words, Words, NDArray[np.uint8]]  # parts, tests, and the values of tests
NONE: Parts = np.zeros((0, COLUMNS), np.uint64), np.zeros((0, 5), np.uint64), np.zeros(0, np.uint8)


def compile_selectors(keep: Sequence[str], drop: Sequence[str]) -> Parts:
    """The parts of all selectors, and their tests; ValueError, with a sentence, for what is not understood.

    >>> [len(each) for each in compile_selectors(["main > .price", "a[href^='/news']"], [":not(main)"])]
    [4, 2, 5]
    """
    tests: dict[Test, int] = {}
    rows = []
    for selectors, meaning in ((keep, KEEP), (drop, DROP)):
        for written in selectors:
            for selector in parse(written):
                rows += [_row(part, tests) for part in selector]
                rows[-1][MEANING] = meaning
    if len(rows) > MAX_PARTS:
        raise ValueError(f"there are more than {MAX_PARTS} parts in the CSS selectors")
    if len(tests) > MAX_TESTS:
        raise ValueError(f"there are more than {MAX_TESTS} attributes in the CSS selectors")
    if not rows:
        return NONE
    asked, values = _tests(tests)
    return np.array(rows, np.uint64), asked, values


def _row(part: Part, tests: dict[Test, int]) -> list[int]:
    row = [0] * COLUMNS
    row[TAG] = name_code(part.tag) if part.tag else 0
    row[ID] = _mark(part.ids[0]) if part.ids else 0
    for nth, name in enumerate(part.classes[:MAX_CLASSES]):
        row[FIRST_CLASS + nth] = _mark(name)
    more = [Test("id", OPERATORS.index("="), name) for name in part.ids[1:]]
    more += [Test("class", OPERATORS.index("~="), name) for name in part.classes[MAX_CLASSES:]]
    row[FOLLOWS] = part.follows
    for column, asked in ((NEEDS, [*part.needs, *more]), (REFUSES, part.refuses), (ANY_OF, part.any_of)):
        for test in asked:
            row[column] |= (1 << tests.setdefault(test, len(tests))) & _WORD
    if part.nth is not None:
        row[PLACED] = 1
        row[STEP], row[OFFSET] = (number & _WORD for number in part.nth)
    return row


def _tests(tests: dict[Test, int]) -> tuple[Words, NDArray[np.uint8]]:
    asked, values = np.zeros((len(tests), 5), np.uint64), b""
    for test, nth in tests.items():
        value = test.value.encode()
        asked[nth] = name_code(test.name), test.operator, test.any_case, len(values), len(values) + len(value)
        values += value
    return asked, np.frombuffer(values, np.uint8).copy()


def _mark(name: str) -> int:
    """A word of an attribute as the pass marks it."""
    mark = _FNV_START
    for byte in name.encode():
        mark = ((mark ^ byte) * _FNV) & _WORD
    return mark

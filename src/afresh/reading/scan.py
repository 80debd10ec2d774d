"""One compiled pass over the bytes of an HTML page: its links, and the blocks of text that it shows.

A tree is not needed for either, and building one can be made to cost almost anything: by the standard's own rules a
page of 26 kB (unclosed formatting before many paragraphs) grows to four million elements, and nested blocks or many
attributes take time in the square of their number. This pass follows the standard's tokenizer, so it is linear in the
page; of the open elements it keeps a short stack, enough to say where a text stands.

A block's text has single blanks for runs of white space, and the commonest character references resolved. Three marks
belong to it: of the place where it stands (tags, ids and classes of the open elements, numbers in them left out), of
its words, and of its words with all those masked that have a digit.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.reading.elements import (
    DEEPEST,
    FACTS,
    MARKS,
    NAMED,
    PLACE,
    TAG,
    arrive,
    attributes,
    closed,
    forget,
    implied,
    kind,
    place_of,
    push,
    shown,
)
from afresh.reading.inlined import borrowing, inlined
from afresh.reading.matching import OWN
from afresh.reading.names import BREAK, RAW, REFERENCES, UNSEEN, VOID, name_code
from afresh.reading.select import KEEP, MEANING, Parts
from afresh.reading.tokens import after_declaration, after_raw, lower, name, next_tag
from afresh.reading.words import FNV_START, OUT, START, end_block, say

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]

# What the pass is at: where, what was found so far, and the tags around the text that is being gathered.
AT, COUNT, TOKENS, DEPTH, DEEPER, WHERE_TAG, WHERE_NAMED = 0, 1, 2, 3, 4, 5, 6
NUMBERS = 7
WHERE = 3  # the mark of its place, beside those of its words
State = tuple[Numbers, Numbers, Words, Words, Words, Numbers, Words]

WINDOW = 4096  # bytes before the end of what is common: from there on the state is saved,
NEAR = 256  # and once more as near as this, unless a tag is in the way
AHEAD = 64  # bytes behind a place that what was found up to there may depend on: the name of an end tag

_ONE, _LOW = np.uint64(1), np.uint64(63)
_PLAINTEXT = np.uint64(name_code("plaintext"))


@inlined
def _keeps(parts: Words) -> bool:
    """Whether there are selectors of what counts, so that nothing else does."""
    for nth in range(parts.shape[0]):  # noqa: SIM110 - compiled: a generator is not
        if parts[nth, MEANING] == np.uint64(KEEP):
            return True
    return False


@inlined
def _place(stack: Any, depth: int) -> Any:
    """Where a text in the innermost element stands: its mark, and the tags to show to people."""
    return stack[1][depth, PLACE], stack[2][depth, TAG], stack[2][depth, NAMED]


def new_state() -> State:
    """The state at the beginning of a page."""
    numbers, gathered, marks = _NUMBERS.copy(), np.zeros(4, np.int64), _MARKS.copy()
    known, facts = np.empty((DEEPEST, MARKS), np.uint64), np.empty((DEEPEST, FACTS), np.int64)
    known[0], facts[0] = 0, _ROOT
    return numbers, gathered, marks, np.empty(DEEPEST, np.uint64), known, facts, np.zeros(OWN, np.uint64)


_NUMBERS = np.array([0, 0, 0, 0, 0, -1, -1], np.int64)
_MARKS = np.array([FNV_START, FNV_START, FNV_START, 0], np.uint64)
_ROOT = np.array([0, -1, -1, 0], np.int64)
UNUSED = new_state()  # for callers that save no state: nothing is written to it


@inlined
def _save(state: State, saved: State, depth: int) -> None:
    """Copy a state, of the open elements those that there are."""
    for nth in range(NUMBERS):
        saved[0][nth] = state[0][nth]
    for nth in range(4):
        saved[1][nth], saved[2][nth] = state[1][nth], state[2][nth]
    for level in range(depth + 1):
        saved[3][level] = state[3][level]
        for nth in range(MARKS):
            saved[4][level, nth] = state[4][level, nth]
        for nth in range(FACTS):
            saved[5][level, nth] = state[5][level, nth]


def common_bytes(one: Bytes, other: Bytes) -> int:
    """How many bytes at their beginning two pages have in common."""
    words = min(one.size, other.size) // 8
    same = _common(one[: 8 * words].view(np.uint64), other[: 8 * words].view(np.uint64))  # eight at a time
    return 8 * same + _common(one[8 * same :], other[8 * same :])


@borrowing
def _common(one: Any, other: Any) -> int:
    at, most = 0, min(one.size, other.size)
    while at < most and one[at] == other[at]:
        at += 1
    return at


@borrowing
def scan(  # noqa: C901 - one loop, and every turn of it costs
    page: Bytes,
    tags: Words,
    wanted: Words,
    rows: Numbers,
    text: Bytes,
    spans: Numbers,
    marks: Words,
    selectors: Parts,
    most_tokens: int,
    state: State,
    saved: State,
    common: int,
) -> tuple[int, int, int, int, bool]:
    """Find the `wanted` attributes of some `tags`, both given as sorted codes, and the blocks of text.

    Each such tag has a row with its place among `tags` and −1, followed by a row for each of its attributes: the
    tag's place again, the attribute's place among `wanted`, start and end of its value. A tag that the page does
    not hold whole is left out. Each block has a span (start and end in `text`, where its tag begins in the page, and
    where the nearest tag around it that has an id or a class does) and marks (place, words, masked words).

    Returns how many rows, blocks and bytes of text were filled, how many tokens there were, and whether all was read:
    not if there is no more room for blocks, or `most_tokens` are not enough. Tags for which there is no more room are
    left out.

    It goes on from `state`, which is changed. Of the first `common` bytes it is known that another page has the same:
    shortly before their end, the state is `saved`, so that the other page can go on from there.
    """
    numbers, gathered, so_far, stack = state[0], state[1], state[2], (state[3], state[4], state[5])
    at, count, tokens, depth, deeper = numbers[AT], numbers[COUNT], numbers[TOKENS], numbers[DEPTH], numbers[DEEPER]
    where = (so_far[WHERE], numbers[WHERE_TAG], numbers[WHERE_NAMED])
    row, own, pause = 0, state[6], max(common - WINDOW, 0)
    keeping, likely, asked = _keeps(selectors[0]), np.uint64(0), selectors[0].shape[0] > 0
    for code in tags:
        likely |= _ONE << (code & _LOW)
    while True:
        if at > pause and at + AHEAD <= common:
            numbers[AT], numbers[COUNT], numbers[TOKENS], numbers[DEPTH], numbers[DEEPER] = (
                at,
                count,
                tokens,
                depth,
                deeper,
            )
            so_far[WHERE], numbers[WHERE_TAG], numbers[WHERE_NAMED] = where
            _save(state, saved, depth)
            pause = common - NEAR if pause < common - NEAR else common
        first, at = at, next_tag(page, at)
        if at > first and shown(stack, depth, keeping):
            if gathered[OUT] == gathered[START]:
                where = _place(stack, depth)
            say(page, first, at, text, gathered, so_far, True)
        tokens += 1
        if at >= page.size or tokens > most_tokens:
            break
        start = at
        at += 1
        closing = page[at] == 47
        if not 97 <= lower(page[at + 1] if closing else page[at]) <= 122:
            at = after_declaration(page, at)
            continue
        code, at = name(page, at + 1 if closing else at, False)
        about = kind(code)
        if about & BREAK:
            count = end_block(text, gathered, so_far, where, spans, marks, count)
            if count < 0:
                return row, spans.shape[0], gathered[OUT], tokens, False
        tag, begun, hidden, slash = -1, row, False, False
        if not closing and row < rows.shape[0] and likely >> (code & _LOW) & _ONE:
            tag = place_of(code, tags)
        if tag >= 0:
            rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3] = tag, -1, at, at
            row += 1
        forget(own, asked)
        if at < page.size and page[at] == 62:  # no attributes, as most tags have none
            at += 1
        else:
            at, row, hidden, slash = attributes(page, at, tag, wanted, rows, row, own, selectors)
        if row > rows.shape[0]:  # a tag that is not noted whole might be misread: neither it nor those behind it are
            row = begun
            rows = rows[:begun]
        if at < 0:
            row = begun
            break
        if closing:
            depth, deeper = (depth, deeper - 1) if deeper else (closed(stack[0], depth, code), 0)
            continue
        if about & VOID or (slash and not about & BREAK):
            if asked and deeper == 0:
                arrive(stack, implied(stack[0], depth, about), code, own, selectors)
            continue
        depth = implied(stack[0], depth, about)
        if depth + 1 >= DEEPEST:
            deeper += 1
        else:
            depth += 1
            push(stack, depth, code, about | UNSEEN if hidden else about, own, selectors, start)
        if code == _PLAINTEXT:
            break
        if about & RAW:
            end = after_raw(page, at, code)
            if deeper == 0 and shown(stack, depth, keeping):
                if gathered[OUT] == gathered[START]:
                    where = _place(stack, depth)
                say(page, at, end, text, gathered, so_far, about & REFERENCES != 0)
            at = end
    count = end_block(text, gathered, so_far, where, spans, marks, count)
    if count < 0:
        return row, spans.shape[0], gathered[OUT], tokens, False
    return row, count, gathered[OUT], tokens, tokens <= most_tokens

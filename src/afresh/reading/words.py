"""The text of a block as it is gathered: blanks made one, character references resolved, words marked; compiled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.reading.inlined import inlined
from afresh.reading.names import GOLDEN
from afresh.reading.recode import REPLACEMENT, put
from afresh.reading.time_words import SLOTS_BITS, time_words
from afresh.reading.tokens import is_space, lower, mixed

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]

FNV, FNV_START = np.uint64(1_099_511_628_211), np.uint64(14_695_981_039_346_656_037)
MASK = np.uint64(0x5851F42D4C957F2D)  # stands for a word with a digit, and for one that tells the time

# What the text that is being gathered is at: places in `at`, and marks in `so_far`.
OUT, START, IN_WORD, DIGIT = 0, 1, 2, 3
WORD, EXACT, MASKED = 0, 1, 2


@inlined
def _digit_value(byte: int, hexadecimal: bool) -> int:
    if 48 <= byte <= 57:
        return int(byte) - 48
    letter = lower(byte)
    if hexadecimal and 97 <= letter <= 102:
        return int(letter) - 87
    return -1


@inlined
def _is_named(page: Bytes, at: int, end: int, named: Bytes) -> bool:
    if at + named.size > end:
        return False
    for nth in range(named.size):  # noqa: SIM110 - compiled: a generator is not
        if page[at + nth] != named[nth]:
            return False
    return True


_AMP, _LT, _GT, _QUOT, _APOS, _NBSP = (
    np.frombuffer(name, np.uint8) for name in (b"amp", b"lt", b"gt", b"quot", b"apos", b"nbsp")
)


@inlined
def _reference(page: Bytes, at: int, end: int) -> tuple[int, int]:
    """The character that a reference stands for, and what comes behind it; −1 if it is none that is known here."""
    if at + 1 < end and page[at] == 35:
        at += 1
        hexadecimal = page[at] == 120 or page[at] == 88
        at += hexadecimal
        point, start = 0, at
        while at < end and at - start < 8 and _digit_value(page[at], hexadecimal) >= 0:
            point = point * (16 if hexadecimal else 10) + _digit_value(page[at], hexadecimal)
            at += 1
        if at == start:
            return -1, at
        if point == 0 or point > 0x10FFFF or 0xD800 <= point < 0xE000:
            point = REPLACEMENT
    else:
        point, length = -1, 0
        if _is_named(page, at, end, _AMP):
            point, length = 38, 3
        elif _is_named(page, at, end, _LT):
            point, length = 60, 2
        elif _is_named(page, at, end, _GT):
            point, length = 62, 2
        elif _is_named(page, at, end, _NBSP):
            point, length = 160, 4
        elif _is_named(page, at, end, _QUOT):
            point, length = 34, 4
        elif _is_named(page, at, end, _APOS):
            point, length = 39, 4
        if point < 0:
            return -1, at
        at += length
    return point, at + 1 if at < end and page[at] == 59 else at


_TIMES, _LIKELY = time_words(int(FNV_START), int(GOLDEN))
_TO_SLOT, _TO_ROW, _LOW, _ONE = np.uint64(64 - SLOTS_BITS), np.uint64(6), np.uint64(63), np.uint64(1)


@inlined
def _tells_time(word: np.uint64) -> bool:
    """Whether a word is the name of a day or a month, or a unit of time."""
    slot = (word * GOLDEN) >> _TO_SLOT
    if not _LIKELY[np.int64(slot >> _TO_ROW)] >> (slot & _LOW) & _ONE:
        return False
    place = np.searchsorted(_TIMES, word)
    return bool(place < _TIMES.size and _TIMES[place] == word)


@inlined
def end_word(at: Numbers, so_far: Words) -> None:
    """Add the word to the marks of its block: to one as it is, to the other masked if it has a digit or tells time."""
    word = so_far[WORD]
    so_far[EXACT] = (so_far[EXACT] ^ word) * FNV
    so_far[MASKED] = (so_far[MASKED] ^ (MASK if at[DIGIT] or _tells_time(word) else word)) * FNV
    so_far[WORD] = FNV_START
    at[IN_WORD] = at[DIGIT] = 0


@inlined
def say(page: Bytes, first: int, end: int, text: Bytes, at: Numbers, so_far: Words, references: bool) -> None:
    """Add a stretch of the page to the block that is being gathered."""
    out, word, in_word, digit, nth = at[OUT], so_far[WORD], at[IN_WORD], at[DIGIT], first
    while nth < end:
        byte = page[nth]
        nth += 1
        if byte > 38 and byte < 128:  # what most bytes are
            word = mixed(word, byte)
            digit |= 48 <= byte <= 57
            text[out] = byte
            out += 1
            in_word = 1
            continue
        space = is_space(byte)
        if byte == 0xC2 and nth < end and page[nth] == 0xA0:  # a blank that does not break
            nth += 1
            space = True
        elif byte == 38 and references:
            point, behind = _reference(page, nth, end)
            if point >= 0:
                nth = behind
                if point == 160 or (point <= 32 and is_space(point)):
                    space = True
                else:
                    begin = out
                    out = put(point, text, out)
                    for place in range(begin, out):
                        word = mixed(word, text[place])
                    digit |= 48 <= point <= 57
                    in_word = 1
                    continue
        if not space:
            word = mixed(word, byte)
            text[out] = byte
            out += 1
            in_word = 1
        elif in_word:
            so_far[WORD], at[DIGIT] = word, digit
            end_word(at, so_far)
            word, in_word, digit = so_far[WORD], 0, 0
            text[out] = 32
            out += 1
    at[OUT], so_far[WORD], at[IN_WORD], at[DIGIT] = out, word, in_word, digit


@inlined
def end_block(text: Bytes, at: Numbers, so_far: Words, where: Any, spans: Numbers, marks: Words, count: int) -> int:
    """Close the block, if it has any text; how many there are now, −1 if there is no more room."""
    if at[IN_WORD]:
        end_word(at, so_far)
    end = at[OUT]
    if end > at[START] and text[end - 1] == 32:
        end -= 1
    if end > at[START]:
        if count >= spans.shape[0]:
            return -1
        spans[count, 0], spans[count, 1], spans[count, 2], spans[count, 3] = at[START], end, where[1], where[2]
        marks[count, 0], marks[count, 1], marks[count, 2] = where[0], so_far[EXACT], so_far[MASKED]
        count += 1
    at[OUT] = at[START] = end
    so_far[EXACT] = so_far[MASKED] = so_far[WORD] = FNV_START
    return count

"""The words of many stretches of text as 64-bit marks, in one compiled pass: what a kind of page is told by.

A word is a run of letters and digits in lower case; `addToCart` is three. Each run of digits is one 0, so that pages
with other numbers have the same words. Bytes outside ASCII count as letters.
"""

import numpy as np
from numpy.typing import NDArray

from afresh.reading.inlined import borrowing, inlined
from afresh.reading.tokens import lower, mixed

# What is counted beside the words, over all stretches.
DIGITS, CAPITALS, QUESTIONS, PRICES, YEARS, WORDS = range(6)
COUNTED = 6

_START = np.uint64(0xCBF29CE484222325)
_SPREAD = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)
MAX_WORD_BYTES = 24  # of a word that are read; what follows belongs to it and changes nothing


@inlined
def _letter(byte: int) -> int:
    """0 for what parts words, 1 for a small letter, 2 for a capital, 3 for a digit."""
    if 97 <= byte <= 122:
        return 1
    if 65 <= byte <= 90:
        return 2
    if 48 <= byte <= 57:
        return 3
    return 1 if byte >= 128 else 0


@inlined
def _currency(text: NDArray[np.uint8], at: int) -> int:
    """How many bytes of a currency's sign stand here: dollar, pound, yen, and the block that the euro is in."""
    byte = text[at]
    if byte == 36:
        return 1
    if byte == 0xC2 and at + 1 < text.size and (text[at + 1] == 0xA3 or text[at + 1] == 0xA5):
        return 2
    if byte == 0xE2 and at + 2 < text.size and text[at + 1] == 0x82 and text[at + 2] >= 0xA0:
        return 3
    return 0


@borrowing
def mark_words(  # noqa: C901 - one loop over the bytes, and every turn of it costs
    text: NDArray[np.uint8],
    spans: NDArray[np.int64],
    marks: NDArray[np.uint64],
    groups: NDArray[np.int64],
    counted: NDArray[np.int64],
) -> int:
    """Mark the words of some `spans` of a text: start, end, salt, group. How many there are, at most what has room.

    The same word has other marks under another salt. `counted` is added to.
    """
    count = 0
    for row in range(spans.shape[0]):
        at, end, salt = spans[row, 0], min(spans[row, 1], text.size), np.uint64(spans[row, 2])
        word, length, before, number, priced = _START ^ salt, 0, 0, 0, -9
        while at <= end:
            sort = _letter(text[at]) if at < end else 0
            sign = _currency(text, at) if at < end else 0
            if sign:
                sort = 0
            if length and (sort == 0 or (sort == 2 and before == 1)):
                if count >= marks.size:
                    return count
                mixed_up = (word ^ (word >> _HALF)) * _SPREAD
                marks[count], groups[count] = mixed_up ^ (mixed_up >> _HALF), spans[row, 3]
                count += 1
                counted[WORDS] += 1
                if before == 3 and length == 1 and 1900 <= number < 2100:
                    counted[YEARS] += 1
                word, length, number = _START ^ salt, 0, 0
            if at >= end:
                break
            if sort == 3:
                counted[DIGITS] += 1
                if at - priced <= 2:
                    counted[PRICES] += 1
                    priced = -9
                number = min(number * 10 + (text[at] - 48), 9999)
                if before != 3 or length == 0:
                    word = mixed(word, 48)
                    length += 1
            elif sort:
                counted[CAPITALS] += sort == 2
                if length < MAX_WORD_BYTES:
                    word = mixed(word, lower(text[at]))
                length += 1
            elif text[at] == 63:
                counted[QUESTIONS] += 1
            before = sort
            if sign:
                if at and _letter(text[at - 1]) == 3:
                    counted[PRICES] += 1
                at += sign
                priced = at - 1
            else:
                at += 1
    return count

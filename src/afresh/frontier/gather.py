"""The wanted tags of a page, gathered for those who make links of them; compiled."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


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
def gather(
    page: Bytes, rows: NDArray[np.int64], plain: tuple[int, int], out: NDArray[np.int64], others: NDArray[np.int64]
) -> tuple[int, int]:
    """Gather what `reading.tokens.scan` found, tag by tag, into `out` and `others`; how many rows of each were filled.

    A tag and an attribute are `plain`: where such a tag has that attribute and no other, its value without the fragment
    becomes a row (0, start, end), once for all its repetitions on the page and not at all if nothing is left. Every
    other tag that has an attribute becomes a row (1, first, last) with the places of its rows among the `others`.
    """
    size = 64
    while size < 2 * rows.shape[0]:
        size *= 2
    table = np.full(size, -1, np.int64)  # the first of the rows of `out` that hold some value
    count, first, kept = 0, 0, 0
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
        elif last > first + 1:
            out[count, 0], out[count, 1], out[count, 2] = 1, kept, kept + last - first
            count += 1
            for row in range(first, last):
                for column in range(4):
                    others[kept, column] = rows[row, column]
                kept += 1
        first = last
    return count, kept

"""Two lists of blocks beside each other, compiled: which blocks are on one side alone, or in another order.

Everything is linear in blocks and bytes but for the order of blocks that have moved, which costs the logarithm of their
number besides. Marks are sorted by their digits rather than put into a hash table, so that no page can choose marks
that collide.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.value.compiled import compiled

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FNV, _FNV_START = np.uint64(1_099_511_628_211), np.uint64(14_695_981_039_346_656_037)


@compiled
def order(keys: Words) -> Numbers:
    """The places of keys in the order of the keys, equal ones in their own order; sorted by 16 bits at a time."""
    size = keys.size
    one = np.arange(size)
    if size < 512:
        return _inserted(keys, one) if size < 32 else np.argsort(keys, kind="mergesort")
    other, counts = np.empty(size, np.int64), np.empty(65536, np.int64)
    for digit in range(4):
        shift = np.uint64(16 * digit)
        counts[:] = 0
        for nth in range(size):
            counts[np.int64((keys[nth] >> shift) & np.uint64(0xFFFF))] += 1
        total = 0
        for value in range(65536):
            counts[value], total = total, total + counts[value]
        for nth in range(size):
            key = np.int64((keys[one[nth]] >> shift) & np.uint64(0xFFFF))
            other[counts[key]] = one[nth]
            counts[key] += 1
        one, other = other, one
    return one


@compiled
def _inserted(keys: Words, places: Numbers) -> Numbers:
    for nth in range(1, places.size):
        place, at = places[nth], nth
        while at and keys[places[at - 1]] > keys[place]:
            places[at] = places[at - 1]
            at -= 1
        places[at] = place
    return places


@compiled
def _pairs(old: Words, new: Words) -> Numbers:
    """For each of the new the place of the old that it is the same as, the n-th of its kind with the n-th; else −1."""
    pairs = np.full(new.size, -1, np.int64)
    olds, news = order(old), order(new)
    one = other = 0
    while one < olds.size and other < news.size:
        left, right = old[olds[one]], new[news[other]]
        if left == right:
            pairs[news[other]] = olds[one]
        one += left <= right
        other += right <= left
    return pairs


@compiled
def _in_order(pairs: Numbers) -> Flags:
    """Which of the paired ones are in their old order: a longest rising sequence of them."""
    stays = np.zeros(pairs.size, np.bool_)
    ends, before = np.empty(pairs.size, np.int64), np.empty(pairs.size, np.int64)
    longest = 0
    for nth in range(pairs.size):
        if pairs[nth] < 0:
            continue
        low, high = 0, longest
        while low < high:
            middle = (low + high) // 2
            if pairs[ends[middle]] < pairs[nth]:
                low = middle + 1
            else:
                high = middle
        before[nth] = ends[low - 1] if low else -1
        ends[low] = nth
        longest = max(longest, low + 1)
    at = ends[longest - 1] if longest else -1
    while at >= 0:
        stays[at] = True
        at = before[at]
    return stays


@compiled
def align(old: Words, new: Words) -> tuple[Numbers, Numbers]:
    """The numbers of the old and of the new blocks that differ or have moved; given are all their marks."""
    first, last = 0, 0
    most = min(old.shape[0], new.shape[0])
    while first < most and old[first, 1] == new[first, 1]:
        first += 1
    while last < most - first and old[old.shape[0] - 1 - last, 1] == new[new.shape[0] - 1 - last, 1]:
        last += 1
    olds, news = old[first : old.shape[0] - last, 1].copy(), new[first : new.shape[0] - last, 1].copy()
    pairs = _pairs(olds, news)
    stays = _in_order(pairs)
    gone, come = np.ones(olds.size, np.bool_), np.empty(news.size, np.int64)
    count = 0
    for nth in range(pairs.size):
        if stays[nth]:
            gone[pairs[nth]] = False
        else:
            come[count] = first + nth
            count += 1
    return first + np.flatnonzero(gone), come[:count]


@compiled
def _template(place: np.uint64, masked: np.uint64) -> Any:
    """The key of what stands at a place with its numbers left out."""
    return (place * _GOLDEN) ^ masked


@compiled
def describe(spans: Numbers, marks: Words, blocks: Numbers) -> Words:
    """Of some blocks: number, place, place with the masked text, mark of the words, and bytes."""
    rows = np.empty((blocks.size, 5), np.uint64)
    for nth in range(blocks.size):
        block = blocks[nth]
        rows[nth, 0], rows[nth, 1], rows[nth, 3] = block, marks[block, 0], marks[block, 1]
        rows[nth, 2] = _template(marks[block, 0], marks[block, 2])
        rows[nth, 4] = spans[block, 1] - spans[block, 0]
    return rows


@compiled
def weigh(spans: Numbers, marks: Words, keys: Words, weights: Numbers) -> None:
    """Add to `weights` how many bytes of text have each of some sorted keys: places, or places with a masked text."""
    for nth in range(spans.shape[0]):
        size = spans[nth, 1] - spans[nth, 0]
        for key in (marks[nth, 0], _template(marks[nth, 0], marks[nth, 2])):
            at = np.searchsorted(keys, key)
            if at < keys.size and keys[at] == key:
                weights[at] += size


@compiled
def _words(text: Bytes, spans: Numbers, blocks: Numbers) -> Words:
    """A mark of each word of some blocks, with its length (up to 255 bytes) in the lowest byte."""
    most = 0
    for block in blocks:
        most += (spans[block, 1] - spans[block, 0]) // 2 + 1
    found, count = np.empty(most, np.uint64), 0
    for block in blocks:
        mark, length = _FNV_START, 0
        for at in range(spans[block, 0], spans[block, 1] + 1):
            if at < spans[block, 1] and text[at] != 32:
                mark = (mark ^ np.uint64(text[at])) * _FNV
                length += 1
            elif length:
                found[count] = (mark << np.uint64(8)) | np.uint64(min(length, 255))
                count += 1
                mark, length = _FNV_START, 0
    return found[:count]


@compiled
def differing(
    text: Bytes, spans: Numbers, blocks: Numbers, new_text: Bytes, new_spans: Numbers, new_blocks: Numbers
) -> int:
    """How many bytes of words are in some old or in some new blocks, and not in the others."""
    old, new = _words(text, spans, blocks), _words(new_text, new_spans, new_blocks)
    olds, news = order(old), order(new)
    one = other = 0
    total: Any = 0
    while one < olds.size or other < news.size:
        if other >= news.size or (one < olds.size and old[olds[one]] < new[news[other]]):
            total += np.int64(old[olds[one]] & np.uint64(255))
            one += 1
        elif one >= olds.size or new[news[other]] < old[olds[one]]:
            total += np.int64(new[news[other]] & np.uint64(255))
            other += 1
        else:
            one, other = one + 1, other + 1
    return int(total)

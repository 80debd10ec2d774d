"""A sorted set of 64-bit keys in little more than five bytes each: the compiled half of `seen`.

Keys are kept in order, so the first bits of a key are known from where it stands and need not be stored:

- coarse: the first 16 bits choose one of 65,536 segments, the other 48 are stored (`high` 32 bits, `low` 16);
- fine: 24 bits choose a bucket, 64 of them to a segment, and 40 bits are stored (`high` 32, `low` 8). One byte for each
  bucket counts its keys; a bucket starts where its segment starts plus the counts before it in the segment.

`starts` says where each segment starts. Adding keys shifts the tail of the arrays in place, from the back, so that
nothing is ever held twice.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

COARSE = 1 << 16  # segments
FINE = 1 << 18
BUCKETS = 1 << 24
FULLEST = 255  # keys that a bucket's byte can count
MOST = (1 << 32) - 1  # keys that `starts` can count

DIGIT = 11  # bits of a key by which it is put in order, twice
LONGEST_RUN = 32  # keys alike in both digits that are put in order by insertion

Words = NDArray[np.uint64]
Orders = NDArray[np.uint32]
Highs = NDArray[np.uint32]
Lows = NDArray[Any]  # uint16 when coarse, uint8 when fine
Starts = NDArray[np.uint32]
Place = Any  # a 64-bit integer with a sign; int() of an unsigned one would keep it unsigned here
Function = TypeVar("Function", bound=Callable[..., Any])

_PAIRS = np.uint64(0x00FF00FF00FF00FF)
_SUM = np.uint64(0x0001000100010001)
_ODD = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def _compiled(function: Function) -> Function:
    return cast(Function, njit(cache=True, nogil=True)(function))


@_compiled
def mixed(key: np.uint64, seed: np.uint64) -> np.uint64:
    """A bijection of 64 bits that spreads any keys evenly over the segments."""
    word = key ^ seed
    word = (word ^ (word >> np.uint64(30))) * _ODD[0]
    word = (word ^ (word >> np.uint64(27))) * _ODD[1]
    return np.uint64(word ^ (word >> np.uint64(31)))


# Looking up ------------------------------------------------------------------------------------------------------


@_compiled
def _bytes(word: np.uint64) -> np.uint64:
    """The eight bytes of a word added up by twos."""
    return np.uint64((word & _PAIRS) + ((word >> np.uint64(8)) & _PAIRS))


@_compiled
def _held(counts: Words, key: np.uint64) -> Place:
    """How many keys the bucket of a key holds."""
    bucket = (key >> np.uint64(40)) & np.uint64(7)
    return np.int64((counts[key >> np.uint64(43)] >> (np.uint64(8) * bucket)) & np.uint64(255))


@_compiled
def begin(key: np.uint64, starts: Starts, counts: Words) -> Place:
    """Where to look for a key: the start of its bucket, or in a coarse set where it would stand if all were even."""
    if counts.size:
        first = key >> np.uint64(46) << np.uint64(3)  # the segment's eight words of counts, one line of the cache
        own = (key >> np.uint64(43)) & np.uint64(7)
        total = np.uint64(0)
        for nth in range(own):
            total += _bytes(counts[first + np.uint64(nth)])
        before = (np.uint64(1) << (np.uint64(8) * ((key >> np.uint64(40)) & np.uint64(7)))) - np.uint64(1)
        total += _bytes(counts[first + own] & before)
        return np.int64(starts[key >> np.uint64(46)]) + np.int64((total * _SUM) >> np.uint64(48))
    start, end = starts[key >> np.uint64(48)], starts[(key >> np.uint64(48)) + np.uint64(1)]
    return np.int64(start) + np.int64(
        (np.uint64(end - start) * ((key >> np.uint64(16)) & np.uint64(0xFFFFFFFF))) >> np.uint64(32)
    )


@_compiled
def _finish_fine(key: np.uint64, place: Place, high: Highs, low: Lows, counts: Words) -> tuple[Place, bool]:
    upper, lower = np.uint32((key >> np.uint64(8)) & np.uint64(0xFFFFFFFF)), np.uint8(key & np.uint64(255))
    for _ in range(_held(counts, key)):
        here = high[place]
        if here >= upper and (here > upper or low[place] >= lower):
            return place, here == upper and low[place] == lower
        place += 1
    return place, False


@_compiled
def _finish_coarse(key: np.uint64, place: Place, high: Highs, low: Lows, starts: Starts) -> tuple[Place, bool]:
    upper, lower = np.uint32((key >> np.uint64(16)) & np.uint64(0xFFFFFFFF)), np.uint16(key & np.uint64(0xFFFF))
    first: Place
    first, end = np.int64(starts[key >> np.uint64(48)]), np.int64(starts[(key >> np.uint64(48)) + np.uint64(1)])
    # From the guess on, the step doubles until the key is between `first` and `last`; then the gap is halved.
    last, step = end, 4
    while first < last:
        here = high[place]
        if here < upper or (here == upper and low[place] < lower):
            first = place + 1
            place = place + step
        else:
            last = place
            place = place - step
        step *= 2
        if place < first or place >= last:
            place = (first + last) >> 1
    return first, bool(first < end and high[first] == upper and low[first] == lower)


@_compiled
def finish(key: np.uint64, place: Place, high: Highs, low: Lows, starts: Starts, counts: Words) -> tuple[Place, bool]:
    """Where a key stands, or would stand, and whether it is there. A set without counts is coarse."""
    if counts.size:
        return _finish_fine(key, place, high, low, counts)
    return _finish_coarse(key, place, high, low, starts)


@_compiled
def _begin_many(keys: Words, places: Words, high: Highs, low: Lows, starts: Starts, counts: Words) -> np.uint64:
    """Begin to look for many keys, reading what `finish` will read, so that the waits for memory overlap."""
    read, last = np.uint64(0), np.int64(high.size - 1)
    if last < 0:
        return read
    for nth in range(keys.size):
        if counts.size:
            read += counts[keys[nth] >> np.uint64(43)] + np.uint64(starts[keys[nth] >> np.uint64(46)])
        else:
            read += np.uint64(starts[keys[nth] >> np.uint64(48)])
    for nth in range(keys.size):
        places[nth] = np.uint64(begin(keys[nth], starts, counts))
    before, after = (0, 7) if counts.size else (8, 8)
    for nth in range(keys.size):
        place: Place = np.int64(places[nth])
        read += np.uint64(high[max(place - before, 0)]) + np.uint64(high[min(place + after, last)])
        read += np.uint64(low[min(place, last)])
    return read


@_compiled
def _find_many(keys: Words, places: Words, high: Highs, low: Lows, starts: Starts, counts: Words) -> np.uint64:
    """Put 1 for each key that is here, 0 for the others, into `places`; gives what was read on the way."""
    read = _begin_many(keys, places, high, low, starts, counts)
    for nth in range(keys.size):
        found = high.size > 0 and finish(keys[nth], np.int64(places[nth]), high, low, starts, counts)[1]
        places[nth] = np.uint64(found)
    return read


@_compiled
def add(
    keys: Words, new: NDArray[np.bool_], at: int, seed: np.uint64, buffer: tuple[Any, ...], room: int, sets: Any
) -> tuple[int, int]:
    """Look keys up from `at` on and put new ones into the buffer, while it has room for them.

    The buffer is a hash table, a flag for the key 0, which cannot be told from an empty place of the table, and four
    rows of scratch. The smaller of the two sets is asked only for what the larger one does not have. Says where it
    stopped and how many it put into the table.
    """
    table, zero, group, known, missed, places = buffer
    (high, low, starts, counts), (more_high, more_low, more_starts, more_counts) = sets
    mask, found = np.uint64(table.size - 1), 0
    while at < keys.size and found < room:
        size = min(group.size - 1, keys.size - at)
        for nth in range(size):
            group[nth] = mixed(keys[at + nth], seed)
            known[nth] = table[group[nth] & mask]
        read = _find_many(group[:size], known, more_high, more_low, more_starts, more_counts)
        count = 0
        for nth in range(size):
            if known[nth] == 0:
                missed[count] = group[nth]
                count += 1
        # What was read is written somewhere, or the compiler would see through it.
        group[size] = read + _find_many(missed[:count], places, high, low, starts, counts)
        count = 0
        for nth in range(size):
            key = group[nth]
            if known[nth] == 0:
                known[nth] = places[count]
                count += 1
            place = key & mask
            while table[place] != 0 and table[place] != key:
                place = (place + np.uint64(1)) & mask
            if key == 0:
                new[at] = not zero[0]
                zero[0] = True
            elif known[nth] == 0 and table[place] == 0:
                table[place] = key
                new[at] = True
                found += 1
            at += 1
            if found == room:
                break
    return at, found


@_compiled
def put(keys: Words, table: Words) -> None:
    """Put keys into the hash table that are not there and not 0."""
    mask = np.uint64(table.size - 1)
    for key in keys:
        place = key & mask
        while table[place] != 0:
            place = (place + np.uint64(1)) & mask
        table[place] = key


# Many at once ----------------------------------------------------------------------------------------------------
# One key at a time, each lookup waits for memory far away from the last one. In order, neighbours share what was read,
# and those that turn out to be new are sorted already and can be merged as they are.


@_compiled
def ordered(keys: Words, seed: np.uint64, words: Words, order: Orders, spare: Words, spare_order: Orders) -> None:
    """Put the mixed keys in order into `words`, and where each came from into `order`; equals keep their order."""
    low, high = np.zeros(1 << DIGIT, np.int64), np.zeros(1 << DIGIT, np.int64)
    mask = np.uint64((1 << DIGIT) - 1)
    for nth in range(keys.size):
        word = mixed(keys[nth], seed)
        low[(word >> np.uint64(64 - 2 * DIGIT)) & mask] += 1
        high[word >> np.uint64(64 - DIGIT)] += 1
    before_low, before_high = 0, 0
    for digit in range(1 << DIGIT):
        before_low, low[digit] = before_low + low[digit], before_low
        before_high, high[digit] = before_high + high[digit], before_high
    for nth in range(keys.size):
        word = mixed(keys[nth], seed)
        lower = (word >> np.uint64(64 - 2 * DIGIT)) & mask
        spare[low[lower]], spare_order[low[lower]] = word, nth
        low[lower] += 1
    for nth in range(keys.size):
        upper = spare[nth] >> np.uint64(64 - DIGIT)
        words[high[upper]], order[high[upper]] = spare[nth], spare_order[nth]
        high[upper] += 1
    _order_runs(words, order)


@_compiled
def _order_runs(words: Words, order: Orders) -> None:
    """Put in order what is alike in its first bits: a few each, unless somebody has chosen them."""
    first = 0
    while first < words.size:
        end = first + 1
        while end < words.size and (words[end] ^ words[first]) >> np.uint64(64 - 2 * DIGIT) == 0:
            end += 1
        if end - first > LONGEST_RUN:
            places = np.argsort(words[first:end], kind="mergesort")
            words[first:end] = words[first:end][places]
            order[first:end] = order[first:end][places]
        else:
            for nth in range(first + 1, end):
                word, source, place = words[nth], order[nth], nth
                while place > first and words[place - 1] > word:
                    words[place], order[place] = words[place - 1], order[place - 1]
                    place -= 1
                words[place], order[place] = word, source
        first = end


@_compiled
def _locate_many(
    keys: Words, found: Words, where: Orders, high: Highs, low: Lows, starts: Starts, counts: Words
) -> np.uint64:
    """`_find_many` that also says where each key stands, or would stand."""
    read = _begin_many(keys, found, high, low, starts, counts)
    for nth in range(keys.size):
        place, there = np.int64(0), False
        if high.size > 0:
            place, there = finish(keys[nth], np.int64(found[nth]), high, low, starts, counts)
        where[nth], found[nth] = place, np.uint64(there)
    return read


@_compiled
def look_up(
    words: Words, order: Orders, where: Orders, new: NDArray[np.bool_], buffer: tuple[Any, ...], sets: Any
) -> int:
    """Gather keys in order that are in neither set nor in the table at the front of `words`; how many.

    Each is marked in `new`, where it came from, the first of equals, and its place in the larger set is put into
    `where`, which has room for all. The buffer is that of `add`.
    """
    table, zero, group, known, missed, places = buffer
    (high, low, starts, counts), (more_high, more_low, more_starts, more_counts) = sets
    mask, fresh, at = np.uint64(table.size - 1), 0, 0
    last = np.uint64(0)  # a key of its own, which is looked after here
    while at < words.size and words[at] == 0:
        if not zero[0]:
            zero[0], new[order[at]] = True, True
        at += 1
    while at < words.size:
        size = min(group.size - 1, words.size - at)
        group[:size] = words[at : at + size]
        nearby = where[at : at + size]
        read = _locate_many(group[:size], known, nearby, more_high, more_low, more_starts, more_counts)
        count = 0
        for nth in range(size):
            if known[nth] == 0:
                missed[count] = group[nth]
                count += 1
        # What was read is written somewhere, or the compiler would see through it.
        group[size] = read + _find_many(missed[:count], places, high, low, starts, counts)
        count = 0
        for nth in range(size):
            key = group[nth]
            if known[nth] == 0:
                known[nth] = places[count]
                count += 1
            place = key & mask
            while table[place] != 0 and table[place] != key:
                place = (place + np.uint64(1)) & mask
            if known[nth] == 0 and table[place] == 0 and key != last:
                new[order[at + nth]] = True
                words[fresh], where[fresh] = key, nearby[nth]
                fresh += 1
            last = key
        at += size
    return fresh


# Growing ---------------------------------------------------------------------------------------------------------


@_compiled
def _shift(array: NDArray[Any], first: int, end: int, by: int) -> None:
    """Move a stretch up, from its end, in pieces that do not overlap their new places (and so are copied wide)."""
    while end > first:
        size = min(by, end - first)
        old, new = array[end - size : end], array[end - size + by : end + by]
        for nth in range(size):
            new[nth] = old[nth]
        end -= size


@_compiled
def merge(into: Any, size: int, source: Any, where: Orders) -> bool:
    """Add all keys of a coarse set to a set of `size` keys whose arrays have been lengthened by as many as it has.

    No key may be in both. `where` says in which places they belong, or is empty. False, and nothing done, if a bucket
    would hold more than its byte can count.
    """
    high, low, starts, counts = into
    more_high, more_low, more_starts, _ = source
    if counts.size and not _fits(counts, more_high, more_starts):
        return False
    end, waiting = size, more_high.size
    for segment in range(COARSE - 1, -1, -1):
        prefix = np.uint64(segment) << np.uint64(48)
        for nth in range(np.int64(more_starts[segment + 1]) - 1, np.int64(more_starts[segment]) - 1, -1):
            key = prefix | (np.uint64(more_high[nth]) << np.uint64(16)) | np.uint64(more_low[nth])
            place: Place = np.int64(where[nth]) if where.size else begin(key, starts, counts)
            if size and not where.size:
                place, _ = finish(key, place, high, low, starts, counts)
            _shift(high, place, end, waiting)
            _shift(low, place, end, waiting)
            end, waiting = place, waiting - 1
            if counts.size:
                high[place + waiting] = np.uint32((key >> np.uint64(8)) & np.uint64(0xFFFFFFFF))
                low[place + waiting] = np.uint8(key & np.uint64(255))
            else:
                high[place + waiting] = more_high[nth]
                low[place + waiting] = more_low[nth]
    if counts.size:
        _count(counts, more_high, more_starts)
        _sum_up(starts, counts)
    else:
        for segment in range(COARSE + 1):
            starts[segment] += more_starts[segment]
    return True


@_compiled
def _fits(counts: Words, more_high: Highs, more_starts: Starts) -> bool:
    for segment in range(COARSE):
        run, last = 0, np.uint64(BUCKETS)
        for nth in range(more_starts[segment], more_starts[segment + 1]):
            bucket = np.uint64(more_high[nth]) >> np.uint64(24)
            run = run + 1 if bucket == last else 1
            last = bucket
            held = (
                _held(counts, (np.uint64(segment) << np.uint64(48)) | (bucket << np.uint64(40))) if counts.size else 0
            )
            if held + run > FULLEST:
                return False
    return True


@_compiled
def _count(counts: Words, more_high: Highs, more_starts: Starts) -> None:
    for segment in range(COARSE):
        for nth in range(more_starts[segment], more_starts[segment + 1]):
            bucket = np.uint64(segment * 256) + (np.uint64(more_high[nth]) >> np.uint64(24))
            counts[bucket >> np.uint64(3)] += np.uint64(1) << (np.uint64(8) * (bucket & np.uint64(7)))


@_compiled
def _sum_up(starts: Starts, counts: Words) -> None:
    total = np.uint64(0)
    for segment in range(FINE):
        starts[segment] = np.uint32(total)
        line = np.uint64(0)
        for nth in range(segment * 8, segment * 8 + 8):
            line += _bytes(counts[nth])
        total += (line * _SUM) >> np.uint64(48)
    starts[FINE] = np.uint32(total)


@_compiled
def refine(coarse: Any, low: Lows, starts: Starts, counts: Words) -> bool:
    """Turn a coarse set into a fine one, `high` in place; False, and nothing done, if a bucket is too full for that."""
    high, coarse_low, coarse_starts, _ = coarse
    if not _fits(np.empty(0, np.uint64), high, coarse_starts):
        return False
    _count(counts, high, coarse_starts)
    _sum_up(starts, counts)
    for nth in range(high.size):
        high[nth] = (high[nth] << np.uint32(8)) | np.uint32(coarse_low[nth] >> np.uint16(8))
        low[nth] = np.uint8(coarse_low[nth] & np.uint16(255))
    return True


@_compiled
def coarsen(fine: Any, low: Lows, starts: Starts) -> None:
    """Undo `refine`."""
    high, fine_low, _, counts = fine
    nth = 0
    for bucket in range(BUCKETS):
        if bucket & 255 == 0:
            starts[bucket >> 8] = np.uint32(nth)
        for _ in range(_held(counts, np.uint64(bucket) << np.uint64(40))):
            low[nth] = np.uint16((high[nth] & np.uint32(255)) << np.uint32(8)) | np.uint16(fine_low[nth])
            high[nth] = (np.uint32(bucket & 255) << np.uint32(24)) | (high[nth] >> np.uint32(8))
            nth += 1
    starts[COARSE] = np.uint32(nth)

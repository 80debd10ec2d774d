"""Which fingerprints a sorted run may hold: a Bloom filter that says no without a look at the disk.

Each fingerprint sets four bits of one word of 64. Sorted fingerprints go to words in order, so a filter is built while
a run is written, a chunk at a time.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

BITS = 12  # for each fingerprint, if there is room: one in fifty that are not there passes
LEAST_BITS = 3  # with fewer nearly everything passes, and the filter is left out

Words = NDArray[np.uint64]
Keys = NDArray[np.uint64]

_HALF, _SIX, _ONE = np.uint64(32), np.uint64(63), np.uint64(1)
_SHIFTS = tuple(np.uint64(shift) for shift in (0, 6, 12, 18))


def words_for(size: int, room: int) -> int:
    """How many words the filter of so many fingerprints has in so many bytes; 0: it would say nothing.

    >>> words_for(1_000, 10_000), words_for(1_000, 400), words_for(1_000, 100)
    (188, 50, 0)
    """
    words = min(-(-BITS * size // 64), room // 8)
    return words if 64 * words >= LEAST_BITS * size else 0


class Filter:
    """May pass what is not there; never refuses what is.

    >>> made = Filter(4)
    >>> made.add(np.array([5, 1 << 40, 1 << 63], np.uint64))
    >>> made.passes(np.array([1 << 63, 5, (1 << 63) + 77], np.uint64)).tolist()
    [True, True, False]
    """

    def __init__(self, words: int) -> None:
        self._words: Words = np.zeros(words, np.uint64)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._words.nbytes

    def add(self, keys: Keys) -> None:
        """Take in some more sorted fingerprints."""
        if not keys.size:
            return
        at = self._places(keys)
        first = np.flatnonzero(np.concatenate(([True], at[1:] != at[:-1])))
        self._words[at[first]] |= np.bitwise_or.reduceat(_bits(keys), first)

    def passes(self, keys: Keys) -> NDArray[np.bool_]:
        """Which of these may be there."""
        wanted = _bits(keys)
        passed: NDArray[np.bool_] = (self._words[self._places(keys)] & wanted) == wanted
        return passed

    def _places(self, keys: Keys) -> NDArray[np.int64]:
        return ((keys >> _HALF) * np.uint64(self._words.size) >> _HALF).astype(np.int64)


def _bits(keys: Keys) -> Words:
    bits = np.zeros(keys.size, np.uint64)
    for shift in _SHIFTS:
        bits |= _ONE << ((keys >> shift) & _SIX)
    return bits


def watched(chunks: Iterator[Keys], made: Filter | None) -> Iterator[Keys]:
    """The same chunks, which a filter takes in as they come by."""
    for keys in chunks:
        if made is not None:
            made.add(keys)
        yield keys

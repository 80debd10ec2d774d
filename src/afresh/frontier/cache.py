"""A small memory of URLs that came by lately, in front of the duplicate eliminator and of the host splitter.

Most links of a page were met a moment ago (a site's menu is on every page of it), so a small cache answers most
questions. A hit is a duplicate for certain; a miss says nothing. What is forgotten is the rule's to say: `RULES` has
them all, so that they can be compared (`afresh lab urlcache`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.frontier.seen import Fingerprints, Seen

MOST = 1 << 26  # fingerprints in a cache


class UrlCache:
    """Remembers up to `size` fingerprints, and forgets by one rule.

    >>> cache = Clock(2)
    >>> cache.met_many([1, 2, 1, 3, 1, 2]).tolist(), cache.hits, cache.misses
    ([False, False, True, False, True, False], 2, 4)
    """

    def __init__(self, size: int) -> None:
        if not 1 <= size <= MOST:
            raise ValueError(f"size is {size}: a cache holds between one key and {MOST:,}")
        self.size = size
        self.hits = self.misses = 0

    def met_many(self, fingerprints: ArrayLike) -> NDArray[np.bool_]:
        """Which of these are remembered; as far as the rule goes, all are from now on. One after another."""
        keys = np.ascontiguousarray(fingerprints, np.uint64).ravel()
        hits = np.zeros(keys.size, np.bool_)
        self._meet(keys, hits)
        found = int(hits.sum())
        self.hits += found
        self.misses += keys.size - found
        return hits

    def _meet(self, keys: Fingerprints, hits: NDArray[np.bool_]) -> None:
        raise NotImplementedError


class _Slots(UrlCache):
    """What all rules with slots have: see `evictions`."""

    rings = 0

    def __init__(self, size: int, *, spare: int = 0) -> None:
        super().__init__(size)
        from afresh.frontier import evictions  # compiled code takes a second to load: not before somebody needs it

        self._evictions = evictions
        slots = size + spare
        self._keys = np.zeros(slots, np.uint64)
        self._index = np.full(1 << max(3, (2 * slots - 1).bit_length()), -1, np.int32)
        self._control = np.zeros(8, np.int64)
        # A ring with nobody in it leads to itself, both ways.
        self._links = np.tile(np.arange(slots + self.rings, dtype=np.int32), (2, 1))


class Lru(_Slots):
    """Forgets the least recently used one."""

    rings = 1

    def _meet(self, keys: Fingerprints, hits: NDArray[np.bool_]) -> None:
        self._evictions.lru(keys, hits, self._keys, self._index, self._links, self._control)


class Clock(_Slots):
    """Gives one that was asked for again another round. A hit moves nothing."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._marks = np.zeros(size, np.uint8)

    def _meet(self, keys: Fingerprints, hits: NDArray[np.bool_]) -> None:
        self._evictions.clock(keys, hits, self._keys, self._index, self._marks, self._control)


class Random(_Slots):
    """Forgets any one; the same ones for the same requests."""

    def _meet(self, keys: Fingerprints, hits: NDArray[np.bool_]) -> None:
        self._evictions.random(keys, hits, self._keys, self._index, self._control)


class Sieve(_Slots):
    """Keeps the order of arrival; a hand from old to new takes the first that was not asked for since it came by."""

    rings = 1

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._marks = np.zeros(size, np.uint8)
        self._control[self._evictions.HAND] = size  # nowhere: it begins with the oldest

    def _meet(self, keys: Fingerprints, hits: NDArray[np.bool_]) -> None:
        self._evictions.sieve(keys, hits, self._keys, self._index, self._links, self._marks, self._control)


class S3Fifo(_Slots):
    """A small queue for newcomers, a large one for those asked for again, and the names of those that just left."""

    rings = 4

    def __init__(self, size: int) -> None:
        super().__init__(size, spare=max(1, size - size // 10))
        kernels, slots = self._evictions, self._keys.size
        self._marks = np.zeros(slots, np.uint8)
        self._where = np.full(slots, kernels.FREE, np.uint8)
        self._control[kernels.COUNTS + kernels.FREE] = slots
        # All slots are free: a ring of them.
        ring = slots + kernels.FREE
        circle = np.concatenate((np.arange(slots, dtype=np.int32), np.array([ring], np.int32)))
        self._links[1, circle] = np.roll(circle, -1)
        self._links[0, circle] = np.roll(circle, 1)

    def _meet(self, keys: Fingerprints, hits: NDArray[np.bool_]) -> None:
        mine = (self._keys, self._index, self._links, self._marks, self._where, self._control)
        self._evictions.s3_fifo(keys, hits, *mine, self.size)


class Static(_Slots):
    """Holds what it was given, for good."""

    def __init__(self, size: int, kept: ArrayLike = ()) -> None:
        super().__init__(size)
        chosen = np.unique(np.ascontiguousarray(kept, np.uint64))
        if chosen.size > size:
            raise ValueError(f"{chosen.size} keys do not fit into a cache of {size}")
        for slot, key in enumerate(chosen):
            self._evictions.put(key, slot, self._keys, self._index)

    def _meet(self, keys: Fingerprints, hits: NDArray[np.bool_]) -> None:
        self._evictions.static(keys, hits, self._keys, self._index)


class Found(UrlCache):
    """Static, but found on the way: what was asked for most among the first requests is kept for good.

    Those first requests, `watch` of them, all miss.
    """

    def __init__(self, size: int, watch: int) -> None:
        super().__init__(size)
        self._watch = watch
        self._seen: list[Fingerprints] = []
        self._static: Static | None = None

    def _meet(self, keys: Fingerprints, hits: NDArray[np.bool_]) -> None:
        if self._static is None:
            first = keys[: self._watch]
            self._seen.append(first.copy())
            self._watch -= first.size
            keys, hits = keys[first.size :], hits[first.size :]
            if self._watch > 0:
                return
            self._static = Static(self.size, most_asked_for(np.concatenate(self._seen), self.size))
            self._seen.clear()
        hits[:] = self._static.met_many(keys)


class Infinite(UrlCache):
    """Forgets nothing, whatever its size."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._seen = Seen()

    def _meet(self, keys: Fingerprints, hits: NDArray[np.bool_]) -> None:
        hits[:] = ~self._seen.add_many(keys)


RULES: dict[str, Callable[[int], UrlCache]] = {
    "random": Random,
    "clock": Clock,
    "lru": Lru,
    "sieve": Sieve,
    "s3-fifo": S3Fifo,
    "infinite": Infinite,
}


def most_asked_for(requests: ArrayLike, size: int) -> Fingerprints:
    """The fingerprints that occur most often; of equal ones those that came first.

    >>> most_asked_for([5, 7, 5, 9, 7, 8], 3).tolist()
    [5, 7, 9]
    """
    found = np.unique(np.asarray(requests, np.uint64), return_index=True, return_counts=True)
    keys, first, counts = found
    return keys[np.lexsort((first, -counts))[:size]]


def fewest_misses(requests: ArrayLike, size: int) -> int:
    """How many requests miss in a cache that knows the future, and forgets what will be asked for latest (MIN).

    >>> fewest_misses([1, 2, 3, 1, 2], 2)
    4
    """
    from afresh.frontier import evictions

    if size < 1:
        raise ValueError(f"size is {size}: a cache holds at least one key")
    item = np.unique(np.asarray(requests, np.uint64), return_inverse=True)[1].astype(np.int64)
    next_use: Any = np.full(item.size, np.iinfo(np.int64).max)
    order = np.argsort(item, kind="stable")
    again = item[order[1:]] == item[order[:-1]]
    next_use[order[:-1][again]] = order[1:][again]
    return int(evictions.clairvoyant(next_use, item, int(item.max(initial=-1)) + 1, size))

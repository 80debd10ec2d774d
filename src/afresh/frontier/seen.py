"""Which URLs were seen before: exact on 64-bit fingerprints, in memory, a little over five bytes each.

New fingerprints go into a small hash table. When that is full they are merged into a sorted set (`packed`), and when
there are many, into a middle-sized set first, so that the large one is rewritten seldom. Nothing is ever held twice.

What can go wrong is two URLs with one fingerprint: the second would never be discovered. Among n URLs some
pair collides by chance with probability n²/2⁶⁵: 0.03 % at 10⁸. Nobody can bring it about on purpose without knowing the
secret of the crawl that `fingerprints` is keyed with. A page that somebody asks for by name is kept under its whole URL
in the store and does not pass through here, so a collision can hide a link but never mix up two pages.
"""

import sys
from collections.abc import Callable, Iterable
from hashlib import blake2b
from types import ModuleType
from typing import Any

import numpy as np
import xxhash
from numpy.typing import ArrayLike, NDArray

from afresh.errors import StoreError

Fingerprints = NDArray[np.uint64]

TABLE = (1 << 10, 1 << 18)  # places of the hash table, smallest and largest; three quarters are used
LARGE_TABLE = 1 << 16  # in front of a middle set the table need not be large
BULK = 1 << 15  # a batch from this size on is sorted first
LARGEST_BULK = 1 << 20  # sorted at a time: 24 bytes are needed for each meanwhile
GROUP = 256  # fingerprints whose waits for memory overlap
LARGE = 1 << 24  # from this many on the fine layout is the smaller one, and there is a middle set
NOWHERE = np.empty(0, np.uint32)
MIDDLE_SHARE = 100  # the middle set takes at most one in this many: each costs a byte more there


def fingerprints(urls: Iterable[str], secret: bytes = b"") -> Fingerprints:
    """The 64-bit fingerprints of canonical URLs: BLAKE2b keyed with the secret of the crawl.

    Without a secret it is xxh3, twelve times as fast, for lists from trusted sources: an attacker who can choose URLs
    can make two of them collide under xxh3.

    >>> len(set(fingerprints(["http://a.example/", "http://b.example/", "http://a.example/"]).tolist()))
    2
    """
    if not secret:
        return np.fromiter((xxhash.xxh3_64_intdigest(url.encode()) for url in urls), np.uint64)
    start = blake2b(key=secret[:64], digest_size=8)

    def digest(url: str) -> bytes:
        hashed = start.copy()  # the key is taken in once
        hashed.update(url.encode())
        return hashed.digest()

    # Writable like the others, or compiled code would be compiled once more for these.
    return np.frombuffer(bytearray().join(map(digest, urls)), np.uint64)


def fingerprinter(secret: bytes = b"") -> Callable[[str], np.uint64]:
    """What says the same of one URL, in a quarter of the time.

    >>> bool(fingerprinter(b"secret")("http://a.example/") == fingerprints(["http://a.example/"], b"secret")[0])
    True
    """
    if not secret:
        return lambda url: np.uint64(xxhash.xxh3_64_intdigest(url.encode()))
    start = blake2b(key=secret[:64], digest_size=8)

    def fingerprint(url: str) -> np.uint64:
        hashed = start.copy()
        hashed.update(url.encode())
        return np.uint64(int.from_bytes(hashed.digest(), sys.byteorder))

    return fingerprint


class Seen:
    """Every fingerprint that was ever added.

    Invariant: each is in exactly one of the hash table, the middle set and the large one (`seed` is mixed to 0 and has
    a flag of its own).

    >>> seen = Seen()
    >>> seen.add_many([7, 8, 7]).tolist(), seen.add_many([8, 9]).tolist(), len(seen)
    ([True, True, False], [False, True], 3)
    """

    def __init__(self, *, seed: int = 0, large: int = LARGE, bulk: int = BULK) -> None:
        from afresh.frontier import packed  # compiled code takes a second to load: not before somebody needs it

        self._packed = packed
        self._seed = np.uint64(seed)
        self._large, self._bulk = large, bulk
        self._table = np.zeros(TABLE[0], np.uint64)
        self._zero = np.zeros(1, np.bool_)
        self._scratch = np.zeros((4, GROUP + 1), np.uint64)
        self._waiting = 0  # in the table
        self._middle, self._main = _Set(packed), _Set(packed)

    def add_many(self, fingerprints: ArrayLike) -> NDArray[np.bool_]:
        """Which of these were never shown before; a repetition within the batch is not new."""
        keys = np.ascontiguousarray(fingerprints, np.uint64).ravel()
        new = np.zeros(keys.size, np.bool_)
        if keys.size < self._bulk:
            self._add(keys, new)
        else:
            for first in range(0, keys.size, LARGEST_BULK):
                self._add_bulk(keys[first : first + LARGEST_BULK], new[first : first + LARGEST_BULK])
        return new

    def look(self, fingerprints: ArrayLike) -> NDArray[np.bool_]:
        """Which of these would be new, were they added now; a repetition is not. Nothing changes."""
        keys = np.ascontiguousarray(fingerprints, np.uint64).ravel()
        new = np.zeros(keys.size, np.bool_)
        for first in range(0, keys.size, LARGEST_BULK):
            some = keys[first : first + LARGEST_BULK]
            self._look_up(some, new[first : first + LARGEST_BULK], self._zero.copy())
        return new

    def keep(self, fingerprints: NDArray[np.uint64]) -> None:
        """Add fingerprints that `look` has just called new."""
        self.add_many(fingerprints)

    def _add(self, keys: Fingerprints, new: NDArray[np.bool_]) -> None:
        """One after another."""
        at = 0
        while True:
            room = self._table.size * 3 // 4 - self._waiting
            sets = (self._middle.arrays, self._main.arrays)
            buffer = (self._table, self._zero, *self._scratch)
            at, found = self._packed.add(keys, new, at, self._seed, buffer, room, sets)
            self._waiting += found
            if at == keys.size:
                return
            self._empty_table()

    def _add_bulk(self, keys: Fingerprints, new: NDArray[np.bool_]) -> None:
        """All at once, in order: half the time for each, once there are many."""
        found, where = self._look_up(keys, new, self._zero)
        if found.size <= self._table.size * 3 // 4 - self._waiting:
            # Too few to rewrite a set for.
            self._packed.put(found, self._table)
            self._waiting += found.size
        else:
            self._absorb(found, where[: found.size])
            self._fit_table()

    def _look_up(
        self, keys: Fingerprints, new: NDArray[np.bool_], zero: NDArray[np.bool_]
    ) -> tuple[Fingerprints, NDArray[np.uint32]]:
        """The mixed keys that are new, in order, and where the large set would have them."""
        words, order = np.empty(keys.size, np.uint64), np.empty(keys.size, np.uint32)
        where = np.empty_like(order)
        self._packed.ordered(keys, self._seed, words, order, np.empty_like(words), where)
        sets = (self._middle.arrays, self._main.arrays)
        buffer = (self._table, zero, *self._scratch)
        return words[: self._packed.look_up(words, order, where, new, buffer, sets)], where

    def __len__(self) -> int:
        return self._waiting + self._middle.size + self._main.size + int(self._zero[0])

    @property
    def nbytes(self) -> int:
        """Bytes of memory, all told."""
        return self._table.nbytes + self._middle.nbytes + self._main.nbytes

    def _empty_table(self) -> None:
        self._waiting, keys = 0, np.sort(self._table[self._table != 0])
        self._table = np.zeros(0, np.uint64)
        self._absorb(keys)
        self._table = np.zeros(self._table_size(), np.uint64)

    def _fit_table(self) -> None:
        """Give the table the size that it should have, if what it holds has room there."""
        size = self._table_size()
        if size != self._table.size and self._waiting <= size * 3 // 4:
            waiting, self._table = self._table[self._table != 0], np.zeros(size, np.uint64)
            self._packed.put(waiting, self._table)

    def _table_size(self) -> int:
        """A full table rewrites the set behind it, so it grows with that."""
        size = min(max(TABLE[0], 1 << (len(self) // 16).bit_length()), TABLE[1])
        return min(size, LARGE_TABLE) if self._main.size >= self._large else size

    def _absorb(self, keys: Fingerprints, where: NDArray[np.uint32] = NOWHERE) -> None:
        """Take over sorted keys that are in neither set; `where` says, or does not, where the large one has them."""
        if len(self) + keys.size > self._packed.MOST:
            raise StoreError(
                "More than 4,294,967,295 URLs have been seen.", hint="Keep them on disk, or share the hosts out."
            )
        if self._main.size < self._large:
            self._main.absorb(_Set.of(keys, self._packed), where)
            if self._main.size >= self._large:
                self._main.refine()
        elif keys.size * MIDDLE_SHARE > self._main.size:
            self._main.absorb(_Set.of(keys, self._packed), where)
        else:
            self._middle.absorb(_Set.of(keys, self._packed))
            if self._middle.size * MIDDLE_SHARE > self._main.size:
                self._main.absorb(self._middle)
                self._middle = _Set(self._packed)


class _Set:
    """The arrays of one packed set, and how they grow."""

    def __init__(self, packed: ModuleType) -> None:
        self._packed = packed
        self.high = np.empty(0, np.uint32)
        self.low: NDArray[Any] = np.empty(0, np.uint16)
        self.starts = np.zeros(packed.COARSE + 1, np.uint32)
        self.counts = np.empty(0, np.uint64)  # eight buckets a word; none: the set is coarse

    @classmethod
    def of(cls, keys: Fingerprints, packed: ModuleType) -> "_Set":
        """A coarse set of sorted keys."""
        made = cls(packed)
        made.high = (keys >> np.uint64(16)).astype(np.uint32)
        made.low = keys.astype(np.uint16)
        held = np.bincount((keys >> np.uint64(48)).astype(np.int64), minlength=packed.COARSE)
        np.cumsum(held, out=made.starts[1:])
        return made

    @property
    def size(self) -> int:
        return self.high.size

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return self.high, self.low, self.starts, self.counts

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def absorb(self, other: "_Set", where: NDArray[np.uint32] = NOWHERE) -> None:
        """Take over all keys of a coarse set that has none of ours; `where` they belong, if that is known."""
        size = self.size
        for array in (self.high, self.low):
            # Lengthened where it lies: the system moves whole pages, and no second copy is made.
            array.resize(size + other.size, refcheck=False)
        if not self._packed.merge(self.arrays, size, other.arrays, where):
            self._coarsen()
            self._packed.merge(self.arrays, size, other.arrays, where)

    def refine(self) -> None:
        """Change to the fine layout, if no bucket is too full for it."""
        low, starts = np.empty(self.size, np.uint8), np.empty(self._packed.FINE + 1, np.uint32)
        counts = np.zeros(self._packed.BUCKETS // 8, np.uint64)
        if self._packed.refine(self.arrays, low, starts, counts):
            self.low, self.starts, self.counts = low, starts, counts

    def _coarsen(self) -> None:
        """Go back to six bytes a key: somebody has found 256 keys for one bucket."""
        low, starts = np.empty(self.size, np.uint16), np.empty(self._packed.COARSE + 1, np.uint32)
        self._packed.coarsen(self.arrays, low, starts)
        self.low, self.starts, self.counts = low, starts, np.empty(0, np.uint64)

"""A small memory of URLs that came by lately, in front of the duplicate eliminator and of the host splitter.

Most links of a page were met a moment ago (a site's menu is on every page of it), so a small cache answers most
questions. A hit is a duplicate for certain; a miss says nothing.
"""

from collections.abc import Iterable, Sequence


class Clock:
    """About the last keys up to a limit, by the clock rule: a key that was asked for again gets another round.

    Nearly as good as forgetting the least recently used one, and a hit moves nothing.

    >>> cache = Clock(2)
    >>> [cache.met(key) for key in (1, 2, 1, 3, 1, 2)]
    [False, False, True, False, True, False]
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"size is {size}: a cache holds at least one key")
        self.size = size
        self.hits = self.misses = 0
        self._places: dict[int, int] = {}
        self._keys: list[int] = []
        self._again = bytearray(size)  # whether a key was asked for since the hand went by
        self._hand = 0

    def __len__(self) -> int:
        return len(self._keys)

    def met(self, key: int) -> bool:
        """Whether a key (a fingerprint) is remembered; it is from now on."""
        place = self._places.get(key)
        if place is not None:
            self._again[place] = 1
            self.hits += 1
            return True
        self.misses += 1
        if len(self._keys) < self.size:
            self._places[key] = len(self._keys)
            self._keys.append(key)
            return False
        while self._again[self._hand]:
            self._again[self._hand] = 0
            self._hand = (self._hand + 1) % self.size
        del self._places[self._keys[self._hand]]
        self._keys[self._hand] = key
        self._places[key] = self._hand
        self._hand = (self._hand + 1) % self.size
        return False

    def unmet(self, keys: Iterable[int]) -> Sequence[int]:
        """Those of the keys that are not remembered, in their order, each once; all are from now on."""
        return [key for key in keys if not self.met(key)]

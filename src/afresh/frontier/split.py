"""Which process owns a host, and batches of URLs for the other owners.

Every process computes the same owner from the host's name alone. When the number of owners changes from n to n + 1,
about one host in n + 1 moves, all of them to the new owner (the jump hash of Lamping and Veach, 2014).
"""

from collections.abc import Iterator

import xxhash

from afresh.frontier.url import host_of


def owner(host: str, owners: int) -> int:
    """The number of the process that owns a host, 0 … owners - 1.

    >>> owner("example.org", 8) == owner("example.org", 8) < 8, owner("example.org", 1)
    (True, 0)
    """
    return owner_of_mark(mark_of_host(host), owners)


def mark_of_host(host: str) -> int:
    """The 64 bits that stand for a host where its owner is found."""
    return xxhash.xxh3_64_intdigest(host.encode())


def owner_of_mark(key: int, owners: int) -> int:
    """The owner of the host that these 64 bits stand for."""
    if owners < 1:
        raise ValueError(f"owners is {owners}: there must be at least one")
    found, jump = -1, 0
    while jump < owners:
        found = jump
        key = (key * 2862933555777941757 + 1) & 0xFFFFFFFFFFFFFFFF
        jump = int((found + 1) * (1 << 31) / ((key >> 33) + 1))
    return found


class Splitter:
    """Keeps our own URLs and gathers those of other owners into batches.

    Invariant: a URL given to `take` comes out exactly once, from `take` or from `full` or `rest`.
    """

    def __init__(self, own: int, owners: int, *, batch: int = 1_000) -> None:
        if not 0 <= own < owners:
            raise ValueError(f"own is {own}: it must be one of the {owners} owners, from 0 on")
        if batch < 1:
            raise ValueError(f"batch is {batch}: a batch holds at least one URL")
        self.own, self.owners, self.batch = own, owners, batch
        self._waiting: dict[int, list[str]] = {}

    def take(self, url: str) -> bool:
        """Whether a canonical URL is ours; if not it waits for its owner's next batch."""
        to = owner(host_of(url), self.owners)
        if to == self.own:
            return True
        self._waiting.setdefault(to, []).append(url)
        return False

    def full(self) -> Iterator[tuple[int, list[str]]]:
        """The batches that are full, each with its owner."""
        for to in [to for to, urls in self._waiting.items() if len(urls) >= self.batch]:
            yield to, self._waiting.pop(to)

    def rest(self) -> Iterator[tuple[int, list[str]]]:
        """All that is waiting, full or not."""
        while self._waiting:
            yield self._waiting.popitem()

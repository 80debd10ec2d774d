"""Which worker owns a slice: a stable hash, so that a change of their number moves the least."""

from functools import lru_cache

from afresh.frontier.split import mark_of_host, owner_of_mark
from afresh.store.slices import SLICES


def owner_of_slice(number: int, workers: int) -> int:
    """The worker that owns a slice, 0 … workers - 1."""
    return owner_of_mark(mark_of_host(f"slice {number}"), workers)


@lru_cache(maxsize=16)
def owners(workers: int) -> tuple[int, ...]:
    """The owner of every slice.

    >>> [owners(8).count(worker) > 400 for worker in range(8)]
    [True, True, True, True, True, True, True, True]
    """
    return tuple(owner_of_slice(number, workers) for number in range(SLICES))


def moved(before: int, after: int) -> float:
    """The share of slices that change hands when the number of workers changes; all of them to or from new ones.

    >>> 0.15 < moved(4, 5) < 0.25, moved(4, 5) == moved(5, 4)
    (True, True)
    """
    pairs = zip(owners(before), owners(after), strict=True)
    return sum(old != new for old, new in pairs) / SLICES

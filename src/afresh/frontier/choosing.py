"""Which hosts' addresses go in next, of those that were found and wait: by what a first crawl is expected to be worth.

That value is reckoned like the engine's, for the host as a whole: what first crawls on it were worth when they were
ordered, counting nothing for those that brought no copy. Of a host about which little is known, the average over all
says the rest. A deep address is worth less than one near the front page, and every page of a host that was let in takes
a little from those to come, so that a host that offers without end comes behind all others. Nor may the best host have
all places: a host is asked one thing at a time, and places that its pages hold meanwhile are lost to the others.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DEPTH_WORTH = (1.0, 0.7, 0.4, 0.2)  # by queue of a host: the deeper, the less
FULL = 1_000.0  # pages of a host, from which on one more is worth half as much
PRIOR = 5.0  # first crawls for which the average over all hosts counts
LEAST_EACH = 2  # pages of a host that were never tried, which it may have in any case
NARROW = 16  # quarters of the places, that all hosts share evenly where many wait: four times as many as there are

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def worth(sums: Floats, tries: Floats, average: float) -> Floats:
    """What a first crawl on each host is expected to gain, by the sums over those that were tried.

    >>> worth(np.array([0.0, 50.0]), np.array([0.0, 5.0]), 2.0).tolist()
    [2.0, 6.0]
    """
    return (sums + PRIOR * average) / (tries + PRIOR)


def expected(
    counts: NDArray[np.int32], worths: Floats, entered: Floats, depth_worth: Sequence[float] = DEPTH_WORTH
) -> Floats:
    """The value of the next address of each host; −1 where none waits.

    >>> waiting = np.array([[0, 2], [1, 0], [0, 0]], np.int32)
    >>> expected(waiting, np.array([2.0, 2.0, 2.0]), np.array([0.0, 1000.0, 0.0]), (1.0, 0.7)).tolist()
    [1.4, 1.0, -1.0]
    """
    waits = counts > 0
    values = worths * np.asarray(depth_worth)[np.argmax(waits, axis=1)] / (1.0 + entered / FULL)
    return np.where(waits.any(axis=1), values, -1.0)


def places_of_each(values: Floats, waiting: Integers, untried: Integers, share: int, price: float) -> Integers:
    """How many more pages each host may let in: `share` of those never tried, fewer where many hosts wait.

    >>> places_of_each(np.array([1.0, 5.0, 0.1]), np.array([9, 100, 7]), np.array([0, 30, 0]), 64, 0.5).tolist()
    [9, 34, 7]
    >>> places_of_each(np.ones(40), np.full(40, 50), np.zeros(40, np.int64), 25, 0.5).tolist() == 40 * [10]
    True
    """
    hosts = int(np.count_nonzero((waiting > 0) & (values >= price)))
    each = max(min(share, NARROW * share // max(hosts, 1)), LEAST_EACH)
    may: Integers = np.minimum(waiting, np.maximum(each - untried, 0))
    return may


def choose(
    values: Floats, waiting: Integers, untried: Integers, room: int, share: int, price: float
) -> list[tuple[int, int]]:
    """Which hosts let how many in, the most valuable first, as long as there is room and their value reaches the price.

    At most `share` of the pages that were never tried may be of one host; it always may have one or two.

    >>> choose(np.array([1.0, 5.0, -1.0]), np.array([9, 100, 0]), np.array([0, 30, 0]), 50, 64, 0.5)
    [(1, 34), (0, 9)]
    """
    may = places_of_each(values, waiting, untried, share, price)
    hosts = np.flatnonzero((values >= price) & (may > 0))
    if len(hosts) > room:
        hosts = hosts[np.argpartition(values[hosts], -room)[-room:]] if room else hosts[:0]
    chosen: list[tuple[int, int]] = []
    for host in hosts[np.argsort(-values[hosts], kind="stable")].tolist():
        if room <= 0:
            break
        count = min(int(may[host]), room)
        chosen.append((host, count))
        room -= count
    return chosen

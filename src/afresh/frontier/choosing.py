"""Which hosts' addresses go in next, of those that were found and wait: by what a first crawl is expected to be worth.

That value is reckoned like the engine's, for the host as a whole: what first crawls on it were worth when they were
ordered, counting nothing for those that brought no copy. Of a host about which little is known, the average over all
says the rest. A deep address is worth less than one near the front page, and every page of a host that was let in takes
a little from those to come, so that a host that offers without end comes behind all others. Nor may the best host have
all places: a host is asked one thing at a time, and places that its pages hold meanwhile are lost to the others.

Who owns a domain can make hosts without end. So what the hosts of one site (registrable domain) have in counts for each
of them, too, and where several sites wait they have no more places together than one host.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DEPTH_WORTH = (1.0, 0.7, 0.4, 0.2)  # by queue of a host: the deeper, the less
FULL = 1_000.0  # pages of a host, from which on one more is worth half as much
PRIOR = 5.0  # first crawls for which the average over all hosts counts
LEAST_EACH = 2  # pages of a host that were never tried, which it may have in any case
SITE_PART = 4.0  # pages of a site's other hosts that count as much as one of the host's own
SITE_SHARE = 0.5  # of the pages that may be held, for one site at most where others wait
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
    counts: NDArray[np.int32],
    worths: Floats,
    entered: Floats,
    sites: Integers,
    depth_worth: Sequence[float] = DEPTH_WORTH,
) -> Floats:
    """The value of the next address of each host, whose site has this number; −1 where none waits.

    >>> waiting, alone = np.array([[0, 2], [1, 0], [0, 0]], np.int32), np.arange(3)
    >>> expected(waiting, np.array([2.0, 2.0, 2.0]), np.array([0.0, 1000.0, 0.0]), alone, (1.0, 0.7)).tolist()
    [1.4, 1.0, -1.0]
    >>> expected(waiting, np.array([2.0, 2.0, 2.0]), np.array([0.0, 0.0, 4000.0]), 0 * alone, (1.0, 0.7)).tolist()
    [0.7, 1.0, -1.0]
    """
    waits = counts > 0
    crowd = crowded(entered, np.bincount(sites, entered).astype(np.float64)[sites])
    values = worths * np.asarray(depth_worth)[np.argmax(waits, axis=1)] / crowd
    return np.where(waits.any(axis=1), values, -1.0)


def crowded(entered: Floats, of_site: Floats) -> Floats:
    """By how much less a page of a host is worth, as others of the host and of its site came in."""
    return 1.0 + (entered + (of_site - entered) / SITE_PART) / FULL


def full_sites(entered: Floats, waiting: Integers, sites: Integers, held: int) -> NDArray[np.bool_]:
    """The hosts whose site has in as many pages as it may have of those that may be held, while other sites wait.

    >>> full_sites(np.array([3.0, 2.0, 1.0]), np.array([9, 0, 9]), np.array([0, 0, 1]), 10).tolist()
    [True, True, False]
    >>> full_sites(np.array([3.0, 2.0, 1.0]), np.array([9, 0, 0]), np.array([0, 0, 1]), 10).any()
    np.False_
    """
    full: NDArray[np.bool_] = (np.bincount(sites, entered) >= SITE_SHARE * held)[sites]
    return full if (waiting[~full] > 0).any() else np.zeros(len(sites), np.bool_)


def places_of_each(
    values: Floats, waiting: Integers, untried: Integers, sites: Integers, share: int, price: float
) -> Integers:
    """How many more pages each host may let in: `share` of those never tried, fewer where many hosts wait.

    Where hosts of several sites wait, those of one site may let in as many together as one host.

    >>> alone, untried = np.arange(3), np.array([0, 30, 0])
    >>> places_of_each(np.array([1.0, 5.0, 0.1]), np.array([9, 100, 7]), untried, alone, 64, 0.5).tolist()
    [9, 34, 7]
    >>> many, two = np.array([90, 100, 70]), np.array([1, 0, 0])
    >>> places_of_each(np.array([1.0, 5.0, 4.0]), many, untried, two, 64, 0.5).tolist()
    [64, 34, 0]
    >>> none = np.zeros(40, np.int64)
    >>> places_of_each(np.ones(40), np.full(40, 50), none, np.arange(40), 25, 0.5).tolist() == 40 * [10]
    True
    """
    hosts = np.bincount(sites, (waiting > 0) & (values >= price)).astype(np.int64)  # of each site
    several = int(np.count_nonzero(hosts))
    may: Integers = np.minimum(waiting, np.maximum(_evenly(share, several * hosts)[sites] - untried, 0))
    if several > 1:
        room = np.maximum(_evenly(share, several + 0 * hosts) - _of_sites(untried, sites), 0)
        # Of the sites that would have too many, the hosts beside each other, the best one first.
        some = np.flatnonzero((_of_sites(may, sites) > room)[sites] & (may > 0))
        some = some[np.lexsort((-values[some], sites[some]))]
        may[some] = _up_to(may[some], sites[some], room)
    return may


def _of_sites(counts: Integers, sites: Integers) -> Integers:
    """The sums over the hosts of each site."""
    return np.bincount(sites, counts).astype(np.int64)


def _evenly(share: int, several: Integers) -> Integers:
    """What each of so many may have."""
    each: Integers = np.maximum(np.minimum(share, NARROW * share // np.maximum(several, 1)), LEAST_EACH)
    return each


def _up_to(may: Integers, sites: Integers, room: Integers) -> Integers:
    """As much of what each host may have as there is room for with those of its site before it."""
    before = np.cumsum(may) - may
    first = np.concatenate((np.ones(min(len(sites), 1), np.bool_), sites[1:] != sites[:-1]))
    before -= np.maximum.accumulate(np.where(first, before, 0))
    return np.clip(room[sites] - before, 0, may)


def choose(
    values: Floats, waiting: Integers, untried: Integers, sites: Integers, room: int, share: int, price: float
) -> list[tuple[int, int]]:
    """Which hosts let how many in, the most valuable first, as long as there is room and their value reaches the price.

    At most `share` of the pages that were never tried may be of one host; it always may have one or two.

    >>> choose(np.array([1.0, 5.0, -1.0]), np.array([9, 100, 0]), np.array([0, 30, 0]), np.arange(3), 50, 64, 0.5)
    [(1, 34), (0, 9)]
    """
    may = places_of_each(values, waiting, untried, sites, share, price)
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

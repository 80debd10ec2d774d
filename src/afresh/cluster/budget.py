"""Budget moved by price between workers, never more in force than there is.

Prices are compared, and budgets follow them (`schedule.share_budget`) until they agree. What a worker gives up can be
spent by another only when the worker has said that it goes by its new, smaller budget, or when its lease is over. So at
every moment what all of them may spend together is at most the total, whatever is late or lost on the way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from afresh.schedule import share_budget

Floats = NDArray[np.float64]
GAIN = 0.1  # a second; see `share_budget`
TOLERANCE = 1e-9  # of the total, for what adds up to it in floating point
LOWEST_PRICE = 1e-6  # of the highest
LEAST_SHARE = 1e-2  # of an equal share: what a worker with nothing to do keeps, to show its price
HEADROOM = 1.25  # times what its hosts allow a worker may be granted, as that is an average


@dataclass(frozen=True, slots=True)
class Share:
    """What is known of one worker."""

    granted: float = 0.0  # what it may spend, as it was last told
    spending: float = 0.0  # the most that it may go by: what it last said, or what it was told then
    price: float | None = None  # None: not known
    price_age: float = 0.0  # seconds since it was
    alive: bool = True  # its lease runs
    pages: float | None = None  # that it holds; None: not known
    capacity: float | None = None  # what politeness towards its hosts lets it spend; None: not known


def in_force(shares: Sequence[Share]) -> float:
    """The most that all workers may be spending at this moment."""
    return sum(max(share.granted, share.spending) for share in shares if share.alive)


def allot(total: float, shares: Sequence[Share], *, gain: float = GAIN) -> list[float]:
    """What each worker may spend from now on: nothing for those whose lease is over.

    The sum of this, and of what others have not yet said that they gave up, is at most `total`; once all have said so
    it is `total` itself.

    >>> [round(each, 2) for each in allot(8.0, [Share(4.0, 4.0, 4.0), Share(4.0, 4.0, 1.0)])]  # one is told
    [4.0, 3.72]
    >>> [round(each, 2) for each in allot(8.0, [Share(4.0, 4.0, 4.0), Share(3.72, 3.72, 1.0)])]  # and has heard it
    [4.28, 3.58]
    """
    alive = np.array([share.alive for share in shares], np.bool_)
    if not alive.any() or not total > 0:
        return [0.0] * len(shares)
    wanted = _wanted(total, [share for share in shares if share.alive], gain)
    granted = np.array([share.granted for share in shares if share.alive], np.float64)
    spending = np.array([share.spending for share in shares if share.alive], np.float64)
    kept = np.minimum(granted, wanted)
    free = max(total - float(np.maximum(kept, spending).sum()), 0.0)
    # Whoever is to get more has its lower budget in force already, or says so later: both count once.
    more = np.maximum(wanted - np.maximum(kept, spending), 0.0)
    asked = float(more.sum())
    share_of = 0.0 if asked <= 0.0 else min(free / asked, 1.0)
    raised = np.where(more > 0.0, np.maximum(kept, np.minimum(spending, wanted)) + share_of * more, kept)
    found = np.zeros(len(shares))
    found[alive] = raised
    return [float(each) for each in found]


def _wanted(total: float, shares: Sequence[Share], gain: float) -> Floats:
    """Where budgets are to go, with the sum `total`."""
    equal = total / len(shares)
    given = [max(share.granted, LEAST_SHARE * equal) if share.granted > 0 else equal for share in shares]
    now = np.array(given, np.float64)
    now *= total / now.sum()
    known = np.array([share.price is not None for share in shares], np.bool_)
    highest = max((share.price or 0.0 for share in shares), default=0.0)
    if known.sum() >= 2 and highest > 0:
        # One whose price is 0 has more than it can use.
        prices = np.log([max(share.price or 0.0, LOWEST_PRICE * highest) for share in shares])[known]
        agreed = float(np.dot(prices, now[known]) / now[known].sum())
        # An answer that comes late moves the less, or budgets would swing: what was given since is not yet in it.
        trust = 1.0 / (1.0 + np.array([max(share.price_age, 0.0) for share in shares])[known])
        now[known] = share_budget(now[known], np.exp(trust * (prices - agreed)), gain=gain)
    # By what their hosts allow, where that is known: first crawls of a slow host's many pages are spent by nobody.
    allowed = all(share.capacity is not None for share in shares)
    counts = np.array([(share.capacity if allowed else share.pages) or 0.0 for share in shares])
    waits = ~known & np.array([share.pages is not None for share in shares])
    if waits.any() and counts.sum() > 0:
        # First crawls have no price yet: until they have, workers get by what there is to crawl.
        now[waits] += gain * (total * counts[waits] / counts.sum() - now[waits])
        now *= total / now.sum()
    least = LEAST_SHARE * equal
    room = np.array([np.inf if share.capacity is None else HEADROOM * share.capacity for share in shares])
    lifted = np.maximum(_within(total, now, np.maximum(room, least)), least)
    above = lifted - least
    spare = total - least * len(shares)
    return np.asarray(least + above * (spare / above.sum()) if above.sum() > 0 else np.full(len(shares), equal))


def _within(total: float, wanted: Floats, room: Floats) -> Floats:
    """Budgets in proportion to those that are wanted, none larger than its room; if all are full, by their rooms.

    >>> _within(20.0, np.array([1.0, 18.0, 1.0]), np.array([5.0, 12.0, np.inf])).tolist()
    [4.0, 12.0, 4.0]
    >>> _within(20.0, np.array([1.0, 18.0, 1.0]), np.array([2.0, 6.0, 2.0])).tolist()
    [4.0, 12.0, 4.0]
    """
    if room.sum() <= total:
        return np.asarray(total * room / room.sum(), np.float64)
    found = np.asarray(wanted * (total / wanted.sum()), np.float64)
    full = np.zeros(len(wanted), np.bool_)
    while (over := ~full & (found > room)).any():
        full |= over
        found[full] = room[full]
        found[~full] = wanted[~full] * ((total - found[full].sum()) / wanted[~full].sum())
    return found

"""How often a page is asked for: two counts that fade, one slowly and one fast.

The slow one is the page's ordinary rate. A burst of interest (news) lifts the fast one above it at once; it stays as
long as the interest does, and falls back within a day afterwards, so that the page is worth what it is worth now.

The arithmetic runs in the interpreter and, called from compiled code, compiled.
"""

import math
from typing import NamedTuple

from numba.extending import register_jitable


class Memory(NamedTuple):
    """How long requests are remembered, in seconds: people's rhythms, which the collection does not know."""

    slow: float = 30 * 86400.0  # of the ordinary rate
    fast: float = 0.5 * 86400.0  # of a burst


MEMORY = Memory()
_SURE = 2.0  # standard deviations by which a burst must stand out
_LEAST_SHARE = 0.1


@register_jitable
def faded(count: float, elapsed: float, memory: float) -> float:
    """A count after some time without requests."""
    return count * math.exp(-max(elapsed, 0.0) / memory)


@register_jitable
def exposure(watched: float, memory: float) -> float:
    """Seconds that a fading count stands for: all of the time at first, the memory in the long run.

    >>> round(exposure(10.0, 1e9), 6), round(exposure(1e9, 100.0), 3)
    (10.0, 100.0)
    """
    return -memory * math.expm1(-max(watched, 0.0) / memory)


@register_jitable
def ordinary_share(slow: float, fast: float, watched: float, memory: Memory = MEMORY) -> float:
    """How much of a request belongs to the page's ordinary rate: all of it, but in a burst only about twice that rate.

    Otherwise a week of fame would be remembered for a month. A rise that lasts is still learned, and meanwhile the fast
    count speaks for it. Of a page that is watched only for a while nobody knows yet what is ordinary.

    >>> ordinary_share(100.0, 3.0, 1e9), round(ordinary_share(100.0, 100.0, 1e9), 3)
    (1.0, 0.1)
    """
    ordinary = slow / max(exposure(watched, memory.slow), 1e-9)
    burst = (fast - _SURE * math.sqrt(fast)) / max(exposure(watched, memory.fast), 1e-9)
    if burst <= 2.0 * ordinary:
        return 1.0
    return max(2.0 * ordinary / burst, math.exp(-max(watched, 0.0) / memory.slow), _LEAST_SHARE)


@register_jitable
def request_rate(
    slow: float, fast: float, watched: float, average: float, memory: Memory = MEMORY, popularity: float = 1.0
) -> float:
    """Requests per second, drawn by one request's worth towards the average page, or to `popularity` times that.

    An average of 0 means that there were no requests: then 1 is used instead.

    >>> request_rate(0.0, 0.0, 100.0, 0.0), request_rate(0.0, 0.0, 100.0, 0.0, popularity=3.0)
    (1.0, 3.0)
    >>> round(request_rate(300.0, 300.0, 100.0, 1.0), 2)
    2.98
    """
    if average <= 0.0:
        return popularity
    average *= max(popularity, 1e-9)
    ordinary = (slow + 1.0) / (exposure(watched, memory.slow) + 1.0 / average)
    sure = fast - _SURE * math.sqrt(fast)
    return max(ordinary, sure / (exposure(watched, memory.fast) + 1.0 / average))

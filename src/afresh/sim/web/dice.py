"""Random numbers that need no memory: each is a function of (seed, stream, item, count).

A generator has to be asked in order; these can be asked in any order, by any process, and give the same number. Each
exists as a plain function of integers and as a numpy form over arrays, and the two agree bit for bit.
"""

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15  # the golden ratio as a 64-bit fraction: neighbouring counts land far apart
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # the multipliers of the splitmix64 finaliser
_TWO_53 = float(1 << 53)


class Stream(IntEnum):
    """What a number is drawn for, so that no two uses share their luck."""

    LAYOUT = 1
    CHANGE = 2
    START = 3
    BURST = 4
    TEXT = 5
    LINK = 6
    NOISE = 7
    FAULT = 8
    LATENCY = 9
    SITEMAP = 10
    PING = 12
    FALSE = 13
    DELAY = 14
    STORM = 15
    VALIDATOR = 16
    GONE = 17
    KEY = 18
    QUALITY = 19
    HOST_PACE = 20


def _mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * _FIRST) & _MASK
    x = ((x ^ (x >> 27)) * _SECOND) & _MASK
    return x ^ (x >> 31)


def key(seed: int, stream: int) -> int:
    """The key of one stream of one seed; give it to `bits` and `uniform`."""
    return _mix((_mix(seed & _MASK) + stream * _STEP) & _MASK)


def bits(stream_key: int, item: int, count: int = 0) -> int:
    """64 random bits for the `count`-th draw of an item.

    >>> bits(key(1, Stream.TEXT), 2, 3) == bits(key(1, Stream.TEXT), 2, 3) != bits(key(1, Stream.TEXT), 2, 4)
    True
    """
    inner = _mix((stream_key + (item + 1) * _STEP) & _MASK)
    return _mix((inner + (count + 1) * _STEP) & _MASK)


def uniform(stream_key: int, item: int, count: int = 0) -> float:
    """A number in [0, 1)."""
    return (bits(stream_key, item, count) >> 11) / _TWO_53


def _mix_many(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_SECOND)
    return x ^ (x >> np.uint64(31))


def uniform_many(stream_key: int, items: Any, counts: Any = 0) -> NDArray[np.float64]:
    """`uniform` over arrays of items and counts (broadcast against each other)."""
    items, counts = np.broadcast_arrays(np.atleast_1d(items), np.atleast_1d(counts))
    inner = _mix_many(np.uint64(stream_key) + (items.astype(np.uint64) + np.uint64(1)) * np.uint64(_STEP))
    mixed = _mix_many(inner + (counts.astype(np.uint64) + np.uint64(1)) * np.uint64(_STEP))
    return (mixed >> np.uint64(11)).astype(np.float64) / _TWO_53


def exponential_row(stream_key: int, item: int, start: int, length: int) -> NDArray[np.float64]:
    """Exponential numbers of mean 1: draws `start` … `start + length - 1` of one item."""
    inner = _mix((stream_key + (item + 1) * _STEP) & _MASK)
    counts = np.arange(start + 1, start + length + 1, dtype=np.uint64)
    mixed = _mix_many(np.uint64(inner) + counts * np.uint64(_STEP)) >> np.uint64(11)
    return -np.log1p(mixed.astype(np.float64) / -_TWO_53)


def exponential_many(stream_key: int, items: Any, counts: Any = 0) -> NDArray[np.float64]:
    """Exponential numbers of mean 1, over arrays."""
    return -np.log1p(-uniform_many(stream_key, items, counts))


def normal_many(stream_key: int, items: Any, counts: Any = 0) -> NDArray[np.float64]:
    """Standard normal numbers over arrays (Box and Muller; uses counts 2c and 2c+1)."""
    counts = np.asarray(counts)
    radius = np.sqrt(2.0 * exponential_many(stream_key, items, 2 * counts))
    return np.asarray(radius * np.cos(2.0 * np.pi * uniform_many(stream_key, items, 2 * counts + 1)))

"""How the pages of a host differ: how often they change, in changes a lifetime.

A page with the lifetime L is taken to change at k·ln 2/L: where k = 1, half of such copies are fresh at the end of it.
The pages of a host have many k: their logarithms lie round a middle, more or less widely. Both are learned from the
first look at each page, exactly, on a grid. What is said of a new page is the mixture over all of that: it may be any
page of its host. The most likely k alone would promise too much for the quick ones.
"""

from math import exp, expm1, log

import numpy as np
from numpy.typing import NDArray

_LOGS = np.arange(-20, 13) * log(2.0)
_GRID = np.exp(_LOGS)  # k
_WIDTHS = np.array([0.4, 0.9, 1.8, 3.6])  # of log k, round the middle: standard deviations
FIRST_WIDTH = log(4.0)  # of the middle: half of all hosts are within that factor of what they say, some far outside
_CENTRE = -0.06  # then half of all copies are fresh at the end of a lifetime
REMEMBERED = 100.0  # looks
LEAST_LIKELY = 1e-12
SHAPES = (0.35, 8.0)  # a flatter curve would hand out for ever what nobody has looked at yet


def _shares() -> NDArray[np.float64]:
    """Shares of k, for each width and middle."""
    away = (_LOGS[None, None, :] - _LOGS[None, :, None]) / _WIDTHS[:, None, None]
    found = np.exp(-(away**2) / 2)
    found /= found.sum(axis=2, keepdims=True)
    return np.asarray(found.reshape(-1, len(_LOGS)))


_SHARES = _shares()
_FIRST = np.tile(-np.log1p(((_LOGS - _CENTRE) / FIRST_WIDTH) ** 2), len(_WIDTHS))  # log weights, before any look
_TIMES = -_LOGS[::-1]  # logarithms of lifetimes
_SILENT = np.exp(-log(2.0) * np.exp(_TIMES)[:, None] * _GRID[None, :])


class Population:
    """What is known of the pages of a host.

    >>> half_of_them_quick = Population()
    >>> for nth in range(60):
    ...     half_of_them_quick.saw(1.0, changed=nth % 2 == 0)
    >>> 0.4 < half_of_them_quick.freshness(1.0) < 0.6 < half_of_them_quick.freshness(0.2) < 0.9
    True
    """

    __slots__ = ("_logs", "_spread")

    def __init__(self) -> None:
        self._logs = _FIRST
        self._spread: tuple[float, float] | None = None

    def saw(self, lifetimes: float, *, changed: bool) -> None:
        """A page of which nothing else was known was looked at after so many lifetimes."""
        silent = np.exp(-log(2.0) * lifetimes * _GRID)
        self._learn(1.0 - silent if changed else silent)

    def knows(self, changes: float, shape: float) -> None:
        """A page is known to change so often in a lifetime; `shape` is that of the rate's Gamma distribution."""
        if changes <= 0:
            return
        sure, away = min(shape, 50.0), _LOGS - log(changes / log(2.0))
        like = sure * (away - np.expm1(np.minimum(away, 50.0)))
        self._learn(np.exp(like - like.max()))

    def _learn(self, likely: NDArray[np.float64]) -> None:
        logs = _FIRST + (1.0 - 1.0 / REMEMBERED) * (self._logs - _FIRST)
        logs += np.log(_SHARES @ likely + LEAST_LIKELY)
        self._logs, self._spread = logs - logs.max(), None

    @property
    def typical(self) -> float:
        """The k with which half of its pages are fresh at the end of a lifetime of 1/k."""
        return 1.0 / self.spread[1]

    @property
    def spread(self) -> tuple[float, float]:
        """(shape, half) of the curve (1 + x/time)^-shape that falls as a new page's freshness does: through 1, three
        quarters, and a half, which it reaches after `half` lifetimes.
        """
        if self._spread is None:
            self._spread = self._fitted()
        return self._spread

    def freshness(self, lifetimes: float) -> float:
        """How probably a new page is as it was, so many lifetimes later."""
        return float(np.exp(-log(2.0) * lifetimes * _GRID) @ self._mixture())

    def _mixture(self) -> NDArray[np.float64]:
        weights = np.exp(self._logs - self._logs.max())
        return np.asarray(weights @ _SHARES / weights.sum())

    def _fitted(self) -> tuple[float, float]:
        fresh = _SILENT @ self._mixture()
        half, quarter = (float(np.interp(-level, -fresh, _TIMES)) for level in (0.5, 0.75))
        wanted = exp(quarter - half)
        low, high = SHAPES
        for _ in range(20):
            shape = (low * high) ** 0.5
            ratio = expm1(log(4.0 / 3.0) / shape) / expm1(log(2.0) / shape)
            low, high = (shape, high) if ratio < wanted else (low, shape)
        return (low * high) ** 0.5, exp(half)

"""The exact steps once more, by plain bisection: slow, obviously right, and what the fast ones are compared with."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
HALVINGS = 400


def mirror_step(rates: Floats, gradient: Floats, *, eta: float, low: float, high: float, total: float) -> Floats:
    """x = 1/clip(1/r + ηg + ν, 1/high, 1/low)."""
    place = 1.0 / rates + eta * gradient
    mean = rates.size / total
    ends = mean - place.max(), mean - place.min()
    return _halve(lambda nu: 1.0 / np.clip(place + nu, 1.0 / high, 1.0 / low), ends, total)


def project(point: Floats, *, low: float, high: float, total: float) -> Floats:
    """x = clip(y − ν, low, high)."""
    mean = total / point.size
    return _halve(lambda nu: np.clip(point - nu, low, high), (point.min() - mean, point.max() - mean), total)


def _halve(rates_at: Callable[[float], Floats], ends: tuple[float, float], total: float) -> Floats:
    below, above = ends
    for _ in range(HALVINGS):
        middle = 0.5 * (below + above)
        if rates_at(middle).sum() > total:
            below = middle
        else:
            above = middle
    return rates_at(0.5 * (below + above))

"""Find the least value of a smooth function of many numbers: L-BFGS, in numpy."""

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MEMORY = 10  # steps that the curvature is taken from
MAX_HALVINGS = 25  # of a step that does not go down enough
ENOUGH = 1e-4  # of what the slope promises
FLAT = 1e-7  # no slope is steeper: the bottom


def least(function: Callable[[Floats], tuple[float, Floats]], start: Floats, steps: int) -> Floats:
    """Where a function is least, from `start` on; it gives its value and its slope.

    >>> least(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), np.zeros(2), 20).round(6).tolist()
    [3.0, 3.0]
    """
    at = start.astype(np.float64)
    value, slope = function(at)
    past: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)
    for _ in range(steps):
        if float(np.abs(slope).max()) < FLAT:
            break
        way = -_times_inverse(slope, past)
        down = float(way @ slope)
        if down >= 0.0:  # the curvature that was seen is not here any more
            past.clear()
            way, down = -slope, -float(slope @ slope)
        size = 1.0 if past else min(1.0, 1.0 / float(np.abs(slope).sum()))
        for _ in range(MAX_HALVINGS):
            new_value, new_slope = function(at + size * way)
            if new_value <= value + ENOUGH * size * down:
                break
            size /= 2.0
        else:
            break
        moved, bent = size * way, new_slope - slope
        product = float(moved @ bent)
        if product > 1e-12:
            past.append((moved, bent, 1.0 / product))
        at, value, slope = at + moved, new_value, new_slope
    return at


def _times_inverse(slope: Floats, past: deque[tuple[Floats, Floats, float]]) -> Floats:
    """The slope times an estimate of the inverse curvature: the two loops of the textbook."""
    way, shares = slope.copy(), []
    for moved, bent, inverse in reversed(past):
        share = inverse * float(moved @ way)
        way -= share * bent
        shares.append(share)
    if past:
        moved, bent, inverse = past[-1]
        way *= 1.0 / (inverse * float(bent @ bent))
    for (moved, bent, inverse), share in zip(past, reversed(shares), strict=True):
        way += moved * (share - inverse * float(bent @ way))
    return way

"""Many schedulers, one budget: it flows between them until their prices agree."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def share_budget(
    budgets: Sequence[float] | NDArray[np.float64], prices: Sequence[float] | NDArray[np.float64], *, gain: float = 0.25
) -> NDArray[np.float64]:
    """New budgets with the same sum: shards with a higher price get more, so that the prices approach each other.

    A shard that got the budget r at the price Λ would take about r·(Λ/Λ′)^½ at the price Λ′, because crawl values grow
    with the square of the age. `gain` is the exponent that is used: less than ½, because the prices answer late. Call
    it every so often (a shard answers within about pages/budget seconds).

    >>> share_budget([1.0, 1.0], [4.0, 1.0]).round(3).tolist()
    [1.172, 0.828]
    """
    given = np.asarray(budgets, dtype=np.float64)
    worth = np.asarray(prices, dtype=np.float64)
    if given.ndim != 1 or given.shape != worth.shape or not given.size:
        raise ValueError("budgets and prices must be of the same length, at least 1")
    if not ((given >= 0).all() and (worth >= 0).all() and math.isfinite(float(given.sum() + worth.sum()))):
        raise ValueError("budgets and prices must be finite and at least 0")
    total = float(given.sum())
    if total == 0 or not (worth > 0).any():
        return given.copy()
    # A shard whose price is 0 has more than it can use; one without budget gets a little to show its price.
    asked = np.maximum(given, 1e-6 * total / given.size) * np.maximum(worth / worth.max(), 1e-6) ** gain
    return np.asarray(asked * (total / asked.sum()))

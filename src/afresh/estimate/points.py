"""What a page may be: how likely each of some pairs (α, b) is, by its crawls and by what others turned out to be.

A mode and a spread for each of α and b, as `posterior` gives them, are enough to schedule a page by, but not to say
where there is something to learn: whether a page is worth crawling at all may hang on the one corner of (α, b) that is
not excluded yet. The sums hold the likelihood at any point, so here it is taken at 180 of them. The prior of the points
has any shape: it is what pages that are as loud turned out to be. Where the page's own group believes otherwise than
they do, its Gamma priors tilt it.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.posterior import FEW, MANY, SIGNALS, TIME, Sums, changed_crawls
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]

SILENT_RATES = np.geomspace(0.03, 30.0, 20)  # of α, times the typical rate
WEIGHTS = np.array([0.02, 0.12, 0.3, 0.55, 0.85, 1.2, 1.7, 2.3, 3.2])  # of b
POINTS = len(SILENT_RATES) * len(WEIGHTS)  # point k is silent rate k // 9 with weight k % 9
_LOG_RATES, _LOG_WEIGHTS = np.log(SILENT_RATES), np.log(WEIGHTS)
_LEAST = 1e-12
_MOST_LIKELY = math.log(100.0)  # times, that anything is in a group than among all pages


class Gammas(NamedTuple):
    """Gamma priors of α and of b."""

    shape: float
    rate: float
    signal_shape: float
    signal_rate: float


def guessed(shape: float, mean_weight: float) -> Floats:
    """Logarithms of the chances before anything is seen: Gamma, of this shape, α round the typical rate."""
    by_rate = shape * (_LOG_RATES - SILENT_RATES)
    by_weight = shape * (_LOG_WEIGHTS - WEIGHTS / mean_weight)
    total: Floats = (by_rate[:, None] + by_weight[None, :]).ravel()
    return total - math.log(np.exp(total).sum())


@compiled
def _more_likely(value: float, shape: float, rate: float, of_all: float, rate_of_all: float) -> float:
    """By how much a value is more likely in a group than among all pages, in logarithms, up to a bound.

    All pages contain the group, so nothing can be more likely in it by more than the inverse of its share of them. Far
    out, where neither saw anything, two Gamma densities differ by any factor.
    """
    if shape == of_all and rate == rate_of_all:
        return 0.0
    more = shape * math.log(rate) - math.lgamma(shape) - of_all * math.log(rate_of_all) + math.lgamma(of_all)
    return min(more + (shape - of_all) * math.log(value) - (rate - rate_of_all) * value, _MOST_LIKELY)


@compiled
def weigh_points(sums: Sums, typical_rate: float, prior: Floats, own: Gammas, of_all: Gammas, chance: Floats) -> None:
    """Fill in the probability of each point.

    `prior` holds logarithms for all pages as loud; the page's own group believes `own` where they believe `of_all`.
    """
    c0, t0, n0 = changed_crawls(sums, FEW)
    c1, t1, n1 = changed_crawls(sums, MANY)
    fresh0, fresh1, by_weight = np.empty(WEIGHTS.size), np.empty(WEIGHTS.size), np.empty(WEIGHTS.size)
    for j in range(WEIGHTS.size):
        b = WEIGHTS[j]
        fresh0[j], fresh1[j] = math.exp(-b * n0), math.exp(-b * n1)
        tilt = _more_likely(b, own.signal_shape, own.signal_rate, of_all.signal_shape, of_all.signal_rate)
        by_weight[j] = tilt - sums[SIGNALS] * b
    top, k = -math.inf, 0
    for i in range(SILENT_RATES.size):
        alpha = SILENT_RATES[i] * typical_rate
        by_rate = _more_likely(alpha, own.shape, own.rate, of_all.shape, of_all.rate) - sums[TIME] * alpha
        still0, still1 = math.exp(-alpha * t0), math.exp(-alpha * t1)
        for j in range(WEIGHTS.size):
            likely = prior[k] + by_rate + by_weight[j]
            if c0 > 0.0:
                likely += c0 * math.log(max(1.0 - still0 * fresh0[j], _LEAST))
            if c1 > 0.0:
                likely += c1 * math.log(max(1.0 - still1 * fresh1[j], _LEAST))
            chance[k] = likely
            top = max(top, likely)
            k += 1
    total = 0.0
    for k in range(POINTS):
        chance[k] = math.exp(chance[k] - top)
        total += chance[k]
    for k in range(POINTS):
        chance[k] /= total

"""The named policies: what each makes of a page's signals, and the crawl value that follows.

All of them crawl the page with the highest value; they differ in what they take the signals for.
"""

import math
from typing import Any

import numpy as np

from afresh.schedule.wheel.inlined import inlined
from afresh.value.compiled import compiled
from afresh.value.kernels import page_interval, page_value_in_terms
from afresh.value.resting import resting_curve, resting_threshold_curve, resting_value
from afresh.value.sums import page_change_rate

GREEDY, CIS, NCIS, CIS_PLUS, THRESHOLD = range(5)
POLICIES = {
    "greedy": GREEDY,  # ignores signals
    "greedy-cis": CIS,  # believes every signal
    "greedy-ncis": NCIS,  # weighs every signal by its quality
    "greedy-cis+": CIS_PLUS,  # believes signals of pages that deserve it, ignores others
    "greedy-ncis-d": NCIS,  # drops signals that come shortly after a crawl
    "threshold": THRESHOLD,  # the continuous optimum: crawls at the very moment, at no constant rate
}
_APPROXIMATE = "greedy-ncis-approx-"
_GOOD_PRECISION = 0.7
_GOOD_RECALL = 0.6


def policy_numbers(name: str) -> tuple[int, int]:
    """(policy, terms) of a policy's name; terms 0: all.

    >>> policy_numbers("greedy-ncis"), policy_numbers("greedy-ncis-approx-2")
    ((2, 0), (2, 2))
    """
    terms = name.removeprefix(_APPROXIMATE)
    if name != terms and terms.isdecimal() and int(terms) >= 1:
        return NCIS, int(terms)
    if name not in POLICIES:
        raise ValueError(f"policy must be one of {', '.join(POLICIES)} or {_APPROXIMATE}J, not {name!r}")
    return POLICIES[name], 0


@inlined
def seen(page: Any, policy: int) -> tuple[float, float, float, float]:
    """(silent_rate, signal_rate, weight, shape) of a page as the policy sees it."""
    silent_rate, signal_rate, weight, shape = (
        np.float64(page.silent_rate),
        np.float64(page.signal_rate),
        np.float64(page.weight),
        np.float64(page.shape),
    )
    if policy in (NCIS, THRESHOLD):
        return silent_rate, signal_rate, weight, shape
    change_rate = page_change_rate(silent_rate, signal_rate, weight)
    heard = -signal_rate * math.expm1(-weight)
    believe = policy == CIS
    if policy == CIS_PLUS:
        believe = bool(heard > _GOOD_PRECISION * signal_rate and heard > _GOOD_RECALL * change_rate)
    if not believe or heard <= 0.0:
        return change_rate, 0.0, 0.0, shape
    return silent_rate, heard, math.inf, shape


@compiled
def value_at(x: float, silent_rate: float, signal_rate: float, weight: float, shape: float, terms: int) -> float:
    """Crawl value per unit of request rate at staleness x."""
    if terms == 0:
        return resting_value(x, silent_rate, signal_rate, weight, shape)
    return page_value_in_terms(x, silent_rate, signal_rate, weight, terms)


@compiled
def threshold_at(
    price: float, page: Any, policy: int, terms: int, start: float, tolerance: float
) -> tuple[float, float]:
    """(x, crawls per second): the staleness at which the page's value reaches the price, and how often that is.

    The rate is the one that will be seen, not the one that the policy believes in: GREEDY-CIS also crawls at signals
    that it does not expect.
    """
    silent_rate, signal_rate, weight, shape = seen(page, policy)
    if terms > 0 and weight > 0.0 and signal_rate > 0.0:
        x = _threshold_in_terms(price, silent_rate, signal_rate, weight, terms)
        interval = page_interval(x, silent_rate, signal_rate, weight) if x < math.inf else math.inf
    else:
        x, interval, _ = resting_threshold_curve(price, silent_rate, signal_rate, weight, shape, start, tolerance)
        if weight == math.inf and page.weight < math.inf and x < math.inf:
            interval = resting_curve(x, silent_rate, np.float64(page.signal_rate), weight, shape)[1]
    if x == math.inf:
        # A page that time alone does not bring up may be worth a crawl after enough signals, but not at this price.
        return x, 0.0
    if interval <= 0.0:
        return x, signal_rate if silent_rate == 0.0 else math.inf
    return x, 1.0 / interval


@compiled
def _threshold_in_terms(price: float, silent_rate: float, signal_rate: float, weight: float, terms: int) -> float:
    """As `page_threshold`, for the sums cut off after this many terms; halves the bracket, for comparison's sake."""
    high = 1.0
    while page_value_in_terms(high, silent_rate, signal_rate, weight, terms) < price:
        high *= 2.0
        if high > 1000.0:
            return math.inf
    low = 0.0
    while high - low > 1e-6 * high:
        middle = 0.5 * (low + high)
        if page_value_in_terms(middle, silent_rate, signal_rate, weight, terms) < price:
            low = middle
        else:
            high = middle
    return high

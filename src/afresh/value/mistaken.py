"""What becomes of a page that is crawled by rates that are not its own: the price of not knowing them.

A page that is believed to have silent rate α and weight b is crawled when α·elapsed + b·signals reaches x. If its true
rates are others, the copy is fresh for another time than was thought, and what it gains at a price is less than it
could gain. Values are per unit of request rate, as in `kernels`.
"""

import math
from typing import NamedTuple

from afresh.value.compiled import compiled
from afresh.value.kernels import page_threshold

_MANY = 20.0  # signals between two crawls, from which on they are taken for a steady drift
_MOST_TERMS = 200
_NEGLIGIBLE = 1e-7
NEVER = 1e6  # a staleness that no page is let come to


class Rates(NamedTuple):
    """A page as its schedule takes it to be, in the order of `kernels`."""

    silent_rate: float
    signal_rate: float
    weight: float


@compiled
def fresh_time_when_mistaken(x: float, believed: Rates, true_silent_rate: float, true_weight: float) -> float:
    """Expected fresh time between crawls at believed staleness x, if the true silent rate and weight are these.

    Without a true rate and weight (0 and 0) nothing ever changes, and it is the time between crawls. Term n of the sum
    is the time with n signals heard: Erlang, cut off when the threshold is reached.
    """
    silent_rate, signal_rate, weight = believed
    drift = silent_rate + signal_rate * weight
    if not x * signal_rate <= _MANY * drift or weight <= 0.0 or signal_rate <= 0.0:
        rate = true_silent_rate - signal_rate * math.expm1(-true_weight)
        time = x / drift
        return -math.expm1(-rate * time) / rate if rate * time > 1e-9 else time
    rate = true_silent_rate + signal_rate
    share = math.exp(-true_weight) * signal_rate / rate
    term, total = 1.0 / rate, 0.0
    for n in range(_MOST_TERMS):
        left = x - weight * n
        if left <= 0.0:
            break
        y = rate * left / silent_rate if silent_rate > 0.0 else math.inf
        reached = 1.0
        if y < 50.0 + 4.0 * n:
            probability = math.exp(-y)
            reached -= probability
            for k in range(1, n + 1):
                probability *= y / k
                reached -= probability
        total += term * max(reached, 0.0)
        term *= share
        if term <= _NEGLIGIBLE * total:
            break
    return total


@compiled
def best_gain(price: float, rates: Rates, start: float) -> float:
    """What a page gains in a unit of time if it is crawled by its true rates: fresh time less `price` a crawl.

    It is e^{−x} at the best threshold x; `start` is a guess of that, 0: none.
    """
    return math.exp(-page_threshold(price, rates.silent_rate, rates.signal_rate, rates.weight, start))


@compiled
def gain_when_mistaken(price: float, x: float, interval: float, believed: Rates, true: Rates) -> float:
    """What it gains if it is crawled at believed staleness x, once in `interval`; from `NEVER` on not at all.

    Signals are counted, so their rate is the same in both.
    """
    if x >= NEVER:
        return 0.0
    return (fresh_time_when_mistaken(x, believed, true.silent_rate, true.weight) - price) / interval

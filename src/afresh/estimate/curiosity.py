"""What there is to learn about a page, and when to crawl it for that.

A page whose rates are known only roughly is crawled too often or too seldom, and loses something every second until it
is known better. Some crawls tell more than others: long after a change is certain, finding one says nothing. So what
could be gained by knowing, over some time ahead, times the share of the doubt that a crawl removes, is added to what
the crawl is worth for freshness.

The schedule itself knows only one number to change a crawl's worth by: the request rate. `interest` is the factor on it
with which the page comes up at the right moment.
"""

import math
from typing import NamedTuple

from afresh.estimate.posterior import geometric
from afresh.value.compiled import compiled
from afresh.value.kernels import page_threshold, page_value
from afresh.value.mistaken import NEVER, Rates, fresh_time_when_mistaken, gain_lost

FIRST_PLAN = 20.0  # typical intervals that the first plan is made for
NEXT_PLAN = 5.0  # each later plan ends so many times later
LEARNING = 0.7  # the part of a plan in which there is still time to use what is learned
WIDEST = 2.0  # standard deviations of a logarithm: nobody knows less than that
MOST_WEIGHT = 6.0  # of a signal, among what is thought possible
WORTH_A_LOOK = 0.02  # of the price: what is less is not worth the reckoning
MOST_INTEREST = 1e3
_MOMENTS = (
    0.15,
    0.3,
    0.6,
    1.0,
    1.5,
    2.2,
    3.2,
    5.0,
    9.0,
)  # expected changes after a crawl, at which the next one is weighed
_NEAR = 0.2  # the slope at a moment is taken over so much of it before and after


class Doubt(NamedTuple):
    """What is known of a page's α and b, besides what it is scheduled by."""

    mean_rate: float  # of α
    shape: float  # of the Gamma distribution of α
    signal_shape: float  # and of that of b
    together: float  # the correlation of their logarithms


@compiled
def spread(shape: float) -> float:
    """Standard deviation of the logarithm of a Gamma variable, the root of ψ'(shape); for shape > 0."""
    total = 0.0
    while shape < 4.0:
        total += 1.0 / (shape * shape)
        shape += 1.0
    return math.sqrt(total + 1.0 / shape + 0.5 / (shape * shape) + 1.0 / (6.0 * shape**3))


@compiled
def horizon(curiosity: float, age: float) -> float:
    """How far ahead what is learned counts, `age` after the page was first seen; all in typical intervals.

    Plans are made for 20 typical intervals, then 100, 500, and so on. At the start of a plan there is most to gain from
    learning; towards its end what was learned is put to use.
    """
    end = FIRST_PLAN
    while end <= age < math.inf:
        end *= NEXT_PLAN
    return curiosity * max(0.0, 1.0 - age / (LEARNING * end))


@compiled
def value_of_knowing(price: float, believed: Rates, doubt: Doubt) -> float:
    """What knowing α and b exactly would gain in a unit of time, per unit of request rate.

    The page is scheduled by what is believed. What it may be instead is spread over four points, one standard deviation
    up or down in the logarithms of α and b.
    """
    silent_rate, signal_rate, weight = believed
    x = page_threshold(price, silent_rate, signal_rate, weight, 0.0)
    interval = fresh_time_when_mistaken(x, believed, 0.0, 0.0) if x < NEVER else math.inf
    middle, middle_weight = doubt.mean_rate * geometric(doubt.shape), weight * geometric(doubt.signal_shape)
    up, up_weight = min(spread(doubt.shape), WIDEST), min(spread(doubt.signal_shape), WIDEST)
    apart = math.sqrt(max(0.0, 1.0 - doubt.together * doubt.together))
    total = 0.0
    for first in (-1.0, 1.0):
        maybe = middle * math.exp(up * first)
        if signal_rate <= 0.0:
            total += 2.0 * gain_lost(price, x, interval, believed, maybe, weight)
            continue
        for second in (-1.0, 1.0):
            maybe_weight = middle_weight * math.exp(up_weight * (doubt.together * first + apart * second))
            maybe_weight = min(maybe_weight, MOST_WEIGHT)
            total += gain_lost(price, x, interval, believed, maybe, maybe_weight)
    return total / 4.0


@compiled
def told(elapsed: float, mean_rate: float, shape: float) -> float:
    """The share of the doubt about α that a crawl `elapsed` after the last one removes, if no signal was heard.

    It is the part of the outcome's variance that comes from not knowing α: nothing right after a crawl, most when a
    change is about as likely as not, and nothing again when one is certain.
    """
    fresh = math.exp(-shape * math.log1p(mean_rate * elapsed / shape))
    squared = math.exp(-shape * math.log1p(2.0 * mean_rate * elapsed / shape))
    return max(0.0, squared - fresh * fresh) / max(fresh * (1.0 - fresh), 1e-12)


@compiled
def interest(price: float, ahead: float, believed: Rates, doubt: Doubt) -> float:
    """The factor on a page's request rate with which it comes up when freshness and learning are worth a crawl.

    `price` is that of a crawl per unit of request rate, and `ahead` the time over which what is learned counts. A crawl
    that teaches r(t) after t makes t the best interval where V + r − t·r' reaches the price, as V alone does without.
    """
    worth = ahead * value_of_knowing(price, believed, doubt)
    if not worth >= WORTH_A_LOOK * price:
        return 1.0
    silent_rate, signal_rate, weight = believed
    mean_rate, shape = doubt.mean_rate, doubt.shape
    change_rate = mean_rate - signal_rate * math.expm1(-weight)
    before, value_before = 0.0, 0.0
    for moment in _MOMENTS:
        elapsed = moment / change_rate
        near = _NEAR * elapsed
        rise = told(elapsed + near, mean_rate, shape) - told(elapsed - near, mean_rate, shape)
        teaches = worth * max(0.0, told(elapsed, mean_rate, shape) - rise / (2.0 * _NEAR))
        value = page_value(silent_rate * elapsed, silent_rate, signal_rate, weight) + teaches
        if value >= price:
            due = before + (price - value_before) / (value - value_before) * (elapsed - before)
            fresh_worth = page_value(silent_rate * due, silent_rate, signal_rate, weight)
            return max(1.0, min(price / max(fresh_worth, 1e-300), MOST_INTEREST))
        before, value_before = elapsed, value
    return 1.0

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

import numpy as np

from afresh.estimate.points import POINTS, SILENT_RATES, WEIGHTS, Floats
from afresh.value.compiled import compiled
from afresh.value.kernels import page_threshold, page_value
from afresh.value.mistaken import NEVER, Rates, best_gain, fresh_time_when_mistaken, gain_when_mistaken

NEXT_PLAN = 5.0  # each later plan ends so many times later
LEARNING = 0.8  # the part of a plan in which there is still time to use what is learned
WORTH_A_LOOK = 0.02  # of the price: what is less is not worth the reckoning
MOST_INTEREST = 1e3
RESTART = 2.0  # prices that learning must be worth, for a crawl that only lets the clock start again: it takes two
_UNLIKELY = 1e-3  # points of less probability do not count
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
_NO_DOUBT = 1e-15  # of the product of two variances: below it there is nothing to remove
_NEAR = 0.2  # the slope at a moment is taken over so much of it before and after


class Prices(NamedTuple):
    """What a crawl costs, per unit of the page's request rate."""

    today: float
    plain: float  # if nobody explored


class Copy(NamedTuple):
    """A page's copy: its age, and the signals it has heard."""

    elapsed: float
    signals: float


class Outlook(NamedTuple):
    """What a crawl may find, and what that would say of the page.

    For each silent rate of `points`, sums over b of the probability times e^{−b·signals}, and times what the page would
    gain if it were crawled by that point; then the mean and the variance of that gain.
    """

    typical_rate: float
    fresh: Floats
    fresh_gain: Floats
    gain: float
    variance: float


@compiled
def horizon(curiosity: float, age: float, first_plan: float) -> float:
    """How far ahead what is learned counts, `age` after the page was first seen; all in typical intervals.

    Each plan ends five times as late as the one before. What is learned counts for `curiosity` times the length of the
    plan, and less and less as it goes on; towards its end what was learned is put to use.
    """
    if not (age < math.inf and 0.0 < first_plan < math.inf):
        return 0.0
    end = first_plan
    while end <= age:
        end *= NEXT_PLAN
    return curiosity * end * max(0.0, 1.0 - age / (LEARNING * end))


@compiled
def value_of_knowing(price: float, believed: Rates, chance: Floats, typical_rate: float, gains: Floats) -> float:
    """What knowing α and b exactly would gain in a unit of time, per unit of request rate.

    The page is scheduled by what is believed, and may be any of the points that are possible at all. What it would gain
    if it were scheduled by each of them is left in `gains`.
    """
    silent_rate, signal_rate, weight = believed
    x = page_threshold(price, silent_rate, signal_rate, weight, 0.0)
    interval = fresh_time_when_mistaken(x, believed, 0.0, 0.0) if x < NEVER else math.inf
    total = 0.0
    for k in range(POINTS):
        gains[k] = 0.0
        if chance[k] > 0.0:
            maybe = Rates(SILENT_RATES[k // WEIGHTS.size] * typical_rate, signal_rate, WEIGHTS[k % WEIGHTS.size])
            gains[k] = best_gain(price, maybe, x if x < NEVER else 0.0)
            total += chance[k] * max(0.0, gains[k] - gain_when_mistaken(price, x, interval, believed, maybe))
    return total


@compiled
def outlook(chance: Floats, gains: Floats, typical_rate: float, signals: float) -> Outlook:
    """What a crawl may find, if so many signals were heard by then."""
    mean, square = 0.0, 0.0
    for k in range(POINTS):
        mean += chance[k] * gains[k]
        square += chance[k] * gains[k] * gains[k]
    fresh, fresh_gain = np.zeros(SILENT_RATES.size), np.zeros(SILENT_RATES.size)
    for j in range(WEIGHTS.size):
        still = math.exp(-WEIGHTS[j] * signals)
        for i in range(SILENT_RATES.size):
            k = i * WEIGHTS.size + j
            fresh[i] += chance[k] * still
            fresh_gain[i] += chance[k] * still * gains[k]
    return Outlook(typical_rate, fresh, fresh_gain, mean, square - mean * mean)


@compiled
def told(elapsed: float, ahead: Outlook) -> float:
    """The share of the doubt that a crawl `elapsed` after the last one removes.

    The doubt is that of how much there is to gain from the page: whatever else is unknown of it may stay so. Of its
    variance the outcome explains as much as the square of their correlation: nothing right after a crawl, most when a
    change is about as likely as not, and nothing again when one is certain.
    """
    fresh, fresh_gain = 0.0, 0.0
    for i in range(SILENT_RATES.size):
        still = math.exp(-SILENT_RATES[i] * ahead.typical_rate * elapsed)
        fresh += ahead.fresh[i] * still
        fresh_gain += ahead.fresh_gain[i] * still
    both = fresh_gain - ahead.gain * fresh
    return min(1.0, both * both / max(fresh * (1.0 - fresh) * ahead.variance, _NO_DOUBT))


@compiled
def _worth(copy: Copy, believed: Rates, ahead: Outlook, knowing: float) -> float:
    """V + r − t·r' of a crawl: it makes t the best interval where it reaches the price, as V alone does without r."""
    elapsed, signals = copy
    near = _NEAR * elapsed
    teaches = told(elapsed, ahead)
    if near > 0.0:
        teaches -= (told(elapsed + near, ahead) - told(elapsed - near, ahead)) / (2.0 * _NEAR)
    x = believed.silent_rate * elapsed + believed.weight * signals
    return page_value(x, believed.silent_rate, believed.signal_rate, believed.weight) + knowing * max(0.0, teaches)


@compiled
def _due(price: float, copy: Copy, believed: Rates, ahead: Outlook, knowing: float, change_rate: float) -> float:
    """At what age a crawl will be worth its price for what it keeps fresh and teaches; infinity: never."""
    before, worth_before = copy.elapsed, _worth(copy, believed, ahead, knowing)
    if worth_before >= price:
        return before
    for moment in _MOMENTS:
        then = moment / change_rate
        if then > copy.elapsed:
            worth = _worth(Copy(then, copy.signals), believed, ahead, knowing)
            if worth >= price:
                return before + (price - worth_before) / (worth - worth_before) * (then - before)
            before, worth_before = then, worth
    return math.inf


@compiled
def _leave_out_unlikely(chance: Floats) -> None:
    """Points of hardly any probability cost as much reckoning as the others."""
    total = 0.0
    for k in range(POINTS):
        if chance[k] <= _UNLIKELY:
            chance[k] = 0.0
        total += chance[k]
    for k in range(POINTS):
        chance[k] /= total


@compiled
def interest(
    prices: Prices, time_ahead: float, believed: Rates, chance: Floats, typical_rate: float, copy: Copy
) -> float:
    """The factor on a page's request rate with which it comes up when freshness and learning are worth a crawl.

    A crawl must be worth today's price; what is learned will be used at the plain one, for `time_ahead`. Where it is
    too late to learn anything from the next crawl, one that only starts the clock again must be worth several prices.
    Points of hardly any probability are taken out of `chance`.
    """
    _leave_out_unlikely(chance)
    price, gains = prices.today, np.empty(POINTS)
    knowing = time_ahead * value_of_knowing(prices.plain, believed, chance, typical_rate, gains)
    if not knowing >= WORTH_A_LOOK * price:
        return 1.0
    change_rate = 0.0
    for k in range(POINTS):
        of_signals = -believed.signal_rate * math.expm1(-WEIGHTS[k % WEIGHTS.size])
        change_rate += chance[k] * (SILENT_RATES[k // WEIGHTS.size] * typical_rate + of_signals)
    due = _due(price, copy, believed, outlook(chance, gains, typical_rate, copy.signals), knowing, change_rate)
    if due == math.inf:
        anew = outlook(chance, gains, typical_rate, 0.0)
        if _due(RESTART * price, Copy(0.0, 0.0), believed, anew, knowing, change_rate) == math.inf:
            return 1.0
        due = copy.elapsed
    x = believed.silent_rate * due + believed.weight * copy.signals
    fresh_worth = page_value(x, believed.silent_rate, believed.signal_rate, believed.weight)
    return max(1.0, min(price / max(fresh_worth, 1e-300), MOST_INTEREST))

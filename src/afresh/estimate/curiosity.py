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
from afresh.value.mistaken import NEVER, Rates, fresh_time_when_mistaken, gain_lost

FIRST_PLAN = 20.0  # typical intervals that the first plan is made for
NEXT_PLAN = 5.0  # each later plan ends so many times later
LEARNING = 0.8  # the part of a plan in which there is still time to use what is learned
WORTH_A_LOOK = 0.02  # of the price: what is less is not worth the reckoning
MOST_INTEREST = 1e3
RESTART = 3.0  # prices that learning must be worth, for a crawl that only lets the clock start again
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
_NEAR = 0.2  # the slope at a moment is taken over so much of it before and after


class Outlook(NamedTuple):
    """What a crawl may find, for each silent rate of `points`: the chances that it is that rate and the copy is fresh.

    `once` and `twice` are sums over b of the probability times e^{−b·signals}, and times its square.
    """

    typical_rate: float
    once: Floats
    twice: Floats


@compiled
def horizon(curiosity: float, age: float) -> float:
    """How far ahead what is learned counts, `age` after the page was first seen; all in typical intervals.

    Plans are made for 20 typical intervals, then 100, 500, and so on. What is learned counts for `curiosity` times the
    length of the plan, and less and less as it goes on; towards its end what was learned is put to use.
    """
    end = FIRST_PLAN
    while end <= age < math.inf:
        end *= NEXT_PLAN
    return curiosity * end * max(0.0, 1.0 - age / (LEARNING * end)) if age < math.inf else 0.0


@compiled
def value_of_knowing(price: float, believed: Rates, chance: Floats, typical_rate: float) -> float:
    """What knowing α and b exactly would gain in a unit of time, per unit of request rate.

    The page is scheduled by what is believed, and may be any of the points.
    """
    silent_rate, signal_rate, weight = believed
    x = page_threshold(price, silent_rate, signal_rate, weight, 0.0)
    interval = fresh_time_when_mistaken(x, believed, 0.0, 0.0) if x < NEVER else math.inf
    total = 0.0
    for k in range(POINTS):
        if chance[k] > _UNLIKELY:
            maybe, maybe_weight = SILENT_RATES[k // WEIGHTS.size] * typical_rate, WEIGHTS[k % WEIGHTS.size]
            total += chance[k] * gain_lost(price, x, interval, believed, maybe, maybe_weight)
    return total


@compiled
def outlook(chance: Floats, typical_rate: float, signals: float) -> Outlook:
    """What a crawl may find, if so many signals were heard by then."""
    once, twice = np.zeros(SILENT_RATES.size), np.zeros(SILENT_RATES.size)
    for j in range(WEIGHTS.size):
        fresh = math.exp(-WEIGHTS[j] * signals)
        for i in range(SILENT_RATES.size):
            part = chance[i * WEIGHTS.size + j] * fresh
            once[i] += part
            twice[i] += part * fresh
    return Outlook(typical_rate, once, twice)


@compiled
def told(elapsed: float, ahead: Outlook) -> float:
    """The share of the doubt that a crawl `elapsed` after the last one removes.

    It is the part of the outcome's variance that comes from not knowing the page: nothing right after a crawl, most
    when a change is about as likely as not, and nothing again when one is certain.
    """
    fresh, squared = 0.0, 0.0
    for i in range(SILENT_RATES.size):
        still = math.exp(-SILENT_RATES[i] * ahead.typical_rate * elapsed)
        fresh += ahead.once[i] * still
        squared += ahead.twice[i] * still * still
    return max(0.0, squared - fresh * fresh) / max(fresh * (1.0 - fresh), 1e-9)


@compiled
def _worth(elapsed: float, signals: float, believed: Rates, ahead: Outlook, knowing: float) -> float:
    """V + r − t·r' of a crawl: it makes t the best interval where it reaches the price, as V alone does without r."""
    near = _NEAR * elapsed
    teaches = told(elapsed, ahead)
    if near > 0.0:
        teaches -= (told(elapsed + near, ahead) - told(elapsed - near, ahead)) / (2.0 * _NEAR)
    x = believed.silent_rate * elapsed + believed.weight * signals
    return page_value(x, believed.silent_rate, believed.signal_rate, believed.weight) + knowing * max(0.0, teaches)


@compiled
def _due(
    price: float, elapsed: float, signals: float, believed: Rates, ahead: Outlook, knowing: float, change_rate: float
) -> float:
    """When, from `elapsed` on, a crawl will be worth its price for what it keeps fresh and teaches; infinity: never."""
    before, worth_before = elapsed, _worth(elapsed, signals, believed, ahead, knowing)
    if worth_before >= price:
        return elapsed
    for moment in _MOMENTS:
        then = moment / change_rate
        if then > elapsed:
            worth = _worth(then, signals, believed, ahead, knowing)
            if worth >= price:
                return before + (price - worth_before) / (worth - worth_before) * (then - before)
            before, worth_before = then, worth
    return math.inf


@compiled
def interest(
    price: float,
    plain_price: float,
    time_ahead: float,
    believed: Rates,
    chance: Floats,
    typical_rate: float,
    elapsed: float,
    signals: float,
) -> float:
    """The factor on a page's request rate with which it comes up when freshness and learning are worth a crawl.

    `price` is that of a crawl per unit of request rate, `plain_price` what it would be if nobody explored: that is the
    one at which what is learned will be used, for `time_ahead`. The copy is `elapsed` old and has heard `signals`.
    Where it is too late to learn anything from the next crawl, one that only starts the clock again must be worth
    several prices.
    """
    knowing = time_ahead * value_of_knowing(plain_price, believed, chance, typical_rate)
    if not knowing >= WORTH_A_LOOK * price:
        return 1.0
    change_rate = 0.0
    for k in range(POINTS):
        of_signals = -believed.signal_rate * math.expm1(-WEIGHTS[k % WEIGHTS.size])
        change_rate += chance[k] * (SILENT_RATES[k // WEIGHTS.size] * typical_rate + of_signals)
    ahead = outlook(chance, typical_rate, signals)
    due = _due(price, elapsed, signals, believed, ahead, knowing, change_rate)
    if due == math.inf:
        anew = outlook(chance, typical_rate, 0.0)
        if _due(RESTART * price, 0.0, 0.0, believed, anew, knowing, change_rate) == math.inf:
            return 1.0
        due = elapsed
    x = believed.silent_rate * due + believed.weight * signals
    fresh_worth = page_value(x, believed.silent_rate, believed.signal_rate, believed.weight)
    return max(1.0, min(price / max(fresh_worth, 1e-300), MOST_INTEREST))

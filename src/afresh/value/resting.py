"""What a crawl is worth when a page may also have come to rest: nothing changes at one rate for ever.

`predictive` averages over the rates that a page may have, but takes each of them to last. A page that changes all the
time is then not worth a crawl at any age, because its next copy would be stale at once. Real pages come to rest: a feed
ends, a policy is final, a list is abandoned. The longer a copy has been stale, the likelier it is that the page has
come to rest since, and that the next copy will last. So a crawl also gains `REST` of the time that the copy was stale:

    V + REST·(ψ − w),    w = V + e^(−x)·ψ the fresh part of the time ψ since the last crawl

Where signals are heard, silence speaks for a copy, and a signal says when it is stale. There rest counts only from the
moment on at which signals and time have made the copy surely stale (`STALEST_HEARD`).

Derivation. If a page comes to rest with hazard h, and a rest lasts W on average, then a copy that was stale for S gains
about h·S·W by being renewed. `REST` stands for h·W. It was chosen on five real histories at three budgets, without
signals; from 0.03 to 0.2 the scores are alike. Worlds without signals in which rates do last lose little or nothing.

This holds where the silent rate is uncertain. A rate that is known exactly (shape infinity) is taken to last.
"""

import math

from afresh.value.compiled import compiled
from afresh.value.kernels import page_threshold_curve, page_value
from afresh.value.predictive import (
    NEARLY_EXACT,
    STALEST_HEARD,
    climbs_stairs,
    gained_between,
    is_silent,
    predictive_curve,
    silent_time,
    stairs,
)

REST = 0.1  # of the time that a copy has been stale: what its renewal gains because the page may have come to rest
_SMALL_STEP = 0.2  # from one threshold to a better one, as a share of it: V moves by what a few nodes tell


@compiled
def with_rest(x: float, value: float, interval: float) -> float:
    """V and what the chance of rest adds to it without signals, from V and ψ at threshold x."""
    return value + REST * (-math.expm1(-x) * interval - value)


@compiled
def resting_curve(
    x: float, silent_rate: float, signal_rate: float, weight: float, shape: float
) -> tuple[float, float, float]:
    """(V, ψ, dψ/dx) at any threshold of a page whose rate is uncertain, V without rest.

    Where signals are heard, V is at its limit beyond some staleness, and only time counts from there on.
    """
    value, interval, bend = predictive_curve(x, silent_rate, signal_rate, weight, shape)
    if x > STALEST_HEARD and not is_silent(silent_rate, signal_rate, weight):
        longer = silent_time(x - STALEST_HEARD, silent_rate, shape)
        interval += longer
        bend = 1.0 / silent_rate + longer / shape
    return value, interval, bend


@compiled
def resting_value(x: float, silent_rate: float, signal_rate: float, weight: float, shape: float) -> float:
    """What a crawl at staleness x gains, per unit of request rate."""
    if not shape < NEARLY_EXACT or silent_rate <= 0.0:
        return page_value(x, silent_rate, signal_rate, weight)
    value, interval, _ = predictive_curve(x, silent_rate, signal_rate, weight, shape)
    if is_silent(silent_rate, signal_rate, weight):
        return with_rest(x, value, interval)
    return value + REST * silent_time(x - STALEST_HEARD, silent_rate, shape)


@compiled
def _beyond(
    price: float, silent_rate: float, signal_rate: float, weight: float, shape: float
) -> tuple[float, float, float]:
    """(x, ψ, dψ/dx) where only the chance of rest brings a page with signals up to the price: V is at its limit."""
    value, interval, _ = predictive_curve(STALEST_HEARD, silent_rate, signal_rate, weight, shape)
    longer = max(price - value, 0.0) / REST
    x = STALEST_HEARD + shape * math.log1p(silent_rate * longer / shape)
    return x, interval + longer, 1.0 / silent_rate + longer / shape


@compiled
def resting_threshold_curve(
    price: float, silent_rate: float, signal_rate: float, weight: float, shape: float, start: float, tolerance: float
) -> tuple[float, float, float]:
    """(x, ψ, dψ/dx) at the threshold x where the value reaches the price, found to about the square of `tolerance`.

    `start` is a guess, such as the page's last threshold; 0 or infinity: none.
    """
    if not shape < NEARLY_EXACT or silent_rate <= 0.0:
        return page_threshold_curve(price, silent_rate, signal_rate, weight, start, tolerance)
    if price <= 0.0:
        return 0.0, 0.0, 0.0
    silent = is_silent(silent_rate, signal_rate, weight)
    most = STALEST_HEARD if not silent else math.inf
    x = start if 0.0 < start < math.inf else min(math.sqrt(2.0 * price * silent_rate), max(1.0, shape))
    x = min(x, most)
    low, high = 0.0, math.inf
    raw, interval, bend = predictive_curve(x, silent_rate, signal_rate, weight, shape)
    for _ in range(100):
        value = with_rest(x, raw, interval) if silent else raw
        if value < price:
            low = x
            if x >= most:
                return _beyond(price, silent_rate, signal_rate, weight, shape)
        else:
            high = x
        # In logarithms the value runs from a parabola to a line: Newton's steps there, within the bracket.
        slope = math.exp(-x) * interval - (REST * math.expm1(-x) * bend if silent else 0.0)
        step = math.log(price / value) * value / (slope * x)
        better = x * math.exp(min(max(step, -3.0), 3.0))
        if abs(value - price) <= tolerance * price and abs(better - x) <= 0.1 * x:
            return better, max(interval + bend * (better - x), 1e-300), bend
        if high < math.inf and high - low <= 1e-9 * high:
            return x, interval, bend
        if not low < better < high:
            better = 2.0 * low if high == math.inf else 0.5 * (low + high)
        before, x = x, min(better, most)
        if not silent and climbs_stairs(x, weight) and abs(x - before) <= _SMALL_STEP * before:
            raw += gained_between(before, x, silent_rate, signal_rate, weight, shape)
            interval, bend = stairs(x, silent_rate, signal_rate, weight, shape)
        else:
            raw, interval, bend = predictive_curve(x, silent_rate, signal_rate, weight, shape)
    return x, interval, bend

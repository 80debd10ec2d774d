"""One page's crawl value, interval and threshold as compiled functions of plain floats.

A page is three numbers, made by `page_rates` from what is believed of it:

    silent_rate  α = (1 − λ)Δ    changes that send no signal
    signal_rate  γ = λΔ + ν      signals, true and false
    weight       b = log(γ/ν)    what one signal adds to the staleness; 0: says nothing, infinity: is always right

The state of a page is one number, its staleness x = α·elapsed + b·signals: the copy is fresh with probability e^{−x}.
A threshold is a staleness too: "crawl when x is reached". The effective age of the papers is ι = x/α; staleness is used
instead because it stays exact where α = 0 (every change is signalled, time alone never makes the copy stale, and the
threshold x means ⌈x/b⌉ signals) and where b is infinite (any signal makes x infinite). V is continuous in x throughout.

Values are per unit of request rate; multiply by the page's request rate, or divide the price by it. The functions do
not check their arguments: rates ≥ 0, x ≥ 0, no NaN.
"""

import math

from afresh.value.compiled import compiled
from afresh.value.poisson import two_or_more
from afresh.value.sums import closed_form, page_change_rate, ripple_is_gone, sum_of_terms

_INAUDIBLE = 1e-17  # signals that are so much rarer than silent changes are lost beside them
_SATURATED = 45.0  # from here on (1 + x)·e^{−x} is lost beside 1


@compiled
def page_rates(change_rate: float, recall: float, false_rate: float) -> tuple[float, float, float]:
    """(silent_rate α, signal_rate γ, weight b) of a page: the arguments of all other functions here."""
    heard = recall * change_rate
    signal_rate = heard + false_rate
    weight = 0.0
    if heard > 0.0:
        weight = math.log1p(heard / false_rate)  # log(γ/ν), without losing a small recall
    return (1.0 - recall) * change_rate, signal_rate, weight


@compiled
def page_staleness(elapsed: float, signals: float, silent_rate: float, weight: float) -> float:
    """x = α·elapsed + b·signals; the copy is fresh with probability e^{−x}."""
    x = 0.0
    if silent_rate > 0.0:
        x = silent_rate * elapsed
    if signals > 0.0 and weight > 0.0:
        x += weight * signals
    return x


@compiled
def page_curve(x: float, silent_rate: float, signal_rate: float, weight: float) -> tuple[float, float, float]:
    """(V, ψ, dψ/dx) at threshold x; dV/dx = e^{−x}·ψ."""
    if x <= 0.0:
        return 0.0, 0.0, 0.0
    if weight == 0.0 or signal_rate <= _INAUDIBLE * silent_rate:
        if silent_rate == 0.0:
            return 0.0, math.inf, 0.0
        return two_or_more(x) / silent_rate, x / silent_rate, 1.0 / silent_rate
    if x == math.inf:
        return 1.0 / page_change_rate(silent_rate, signal_rate, weight), math.inf, 0.0
    if ripple_is_gone(x, silent_rate, signal_rate, weight, 1e7, False):
        return closed_form(x, silent_rate, signal_rate, weight)
    return sum_of_terms(x, silent_rate, signal_rate, weight, math.inf, False)


@compiled
def page_value_and_interval(x: float, silent_rate: float, signal_rate: float, weight: float) -> tuple[float, float]:
    """(V, ψ) at threshold x: crawl value per unit of request rate, and expected time between crawls."""
    value, interval, _ = page_curve(x, silent_rate, signal_rate, weight)
    return value, interval


@compiled
def page_value(x: float, silent_rate: float, signal_rate: float, weight: float) -> float:
    """V: what a crawl at staleness x gains, per unit of request rate (μ̃ = 1)."""
    if x <= 0.0:
        return 0.0
    if weight == 0.0 or signal_rate <= _INAUDIBLE * silent_rate:
        return two_or_more(x) / silent_rate if silent_rate > 0.0 else 0.0
    if x > _SATURATED:
        return 1.0 / page_change_rate(silent_rate, signal_rate, weight)
    if ripple_is_gone(x, silent_rate, signal_rate, weight, 1e5, True):
        value, _, _ = closed_form(x, silent_rate, signal_rate, weight)
    else:
        value, _, _ = sum_of_terms(x, silent_rate, signal_rate, weight, math.inf, True)
    return value


@compiled
def page_value_in_terms(x: float, silent_rate: float, signal_rate: float, weight: float, terms: int) -> float:
    """V with only the first `terms` terms of both sums (G-NCIS-APPROX-J)."""
    if x <= 0.0 or weight == 0.0 or signal_rate == 0.0 or x == math.inf:
        return page_value(x, silent_rate, signal_rate, weight)
    value, _, _ = sum_of_terms(x, silent_rate, signal_rate, weight, float(terms), True)
    return value


@compiled
def page_interval(x: float, silent_rate: float, signal_rate: float, weight: float) -> float:
    """ψ: expected time between crawls of a page that is crawled at staleness x."""
    _, interval = page_value_and_interval(x, silent_rate, signal_rate, weight)
    return interval


@compiled
def no_signal_threshold(gain: float) -> float:
    """x with R₁(x) = gain: the threshold of a page without signals whose price is this share of 1/Δ."""
    if gain <= 0.0:
        return 0.0
    if gain >= 1.0:
        return math.inf
    # x − log(1 + x) = goal; with goal = s²/2 this is x = s + s²/3 + s³/36 − …
    goal = -math.log1p(-gain)
    s = math.sqrt(2.0 * goal)
    if s < 2.0:
        tail = 1.0 / 4320.0 + s * (1.0 / 17010.0 - s * (139.0 / 5443200.0 - s * (1.0 / 204120.0)))
        x = s * (1.0 + s * (1.0 / 3.0 + s * (1.0 / 36.0 - s * (1.0 / 270.0 - s * tail))))
        if s < 0.05:
            return x
    else:
        x = goal + math.log1p(goal + math.log1p(goal + math.log1p(goal)))
    # One step of Halley's rule triples the digits.
    miss = x - math.log1p(x) - goal
    x -= miss * (1.0 + x) / (x - 0.5 * miss / x)
    if goal > 2.0:
        x -= (x - math.log1p(x) - goal) * (1.0 + x) / x
    return x


@compiled
def _better_threshold(x: float, price: float, most: float, value: float, slope: float) -> float:
    """A Newton step where V is nearly straight: in logarithms below half of `most`, in log(most − V) above."""
    if 2.0 * price < most or not value < most:
        return x * math.exp((math.log(price) - math.log(value)) * value / (slope * x))
    left = most - value
    return x + math.log(left / (most - price)) * left / slope


@compiled
def page_threshold_curve(
    price: float, silent_rate: float, signal_rate: float, weight: float, start: float, tolerance: float
) -> tuple[float, float, float]:
    """(x, ψ, dψ/dx) at the threshold x where V reaches the price, found to about the square of `tolerance`."""
    change_rate = page_change_rate(silent_rate, signal_rate, weight)
    if price * change_rate >= 1.0 or change_rate == 0.0:
        return math.inf, math.inf, 0.0
    if price <= 0.0:
        return 0.0, 0.0, 0.0
    if weight == 0.0 or signal_rate == 0.0:
        x = no_signal_threshold(price * change_rate)
        return x, x / silent_rate, 1.0 / silent_rate
    x = start
    if not 0.0 < x < math.inf:
        x = no_signal_threshold(price * change_rate)
    most = 1.0 / change_rate
    low, high = 0.0, math.inf
    interval, bend = 0.0, 0.0
    for _ in range(200):
        value, interval, bend = page_curve(x, silent_rate, signal_rate, weight)
        if value < price:
            low = x
        else:
            high = x
        better = _better_threshold(x, price, most, value, math.exp(-x) * interval)
        miss = abs(value - price)
        # ψ is carried over to the better x along its slope, but not on the stairs of a page that counts signals, nor
        # far: where V is nearly flat, a value that is almost right may be found far beyond the threshold.
        rise = bend * (better - x)
        even = 0.3 * interval <= bend * x <= 3.0 * interval
        near = even and abs(better - x) <= min(10.0 * tolerance, 0.02) * x
        if miss <= (tolerance if near else 1e-13) * price:
            return (better, interval + rise, bend) if low <= better <= high else (x, interval, bend)
        if high < math.inf and high - low <= 1e-15 * high:
            return x, interval, bend
        if not low < better < high:
            better = 2.0 * low if high == math.inf else 0.5 * (low + high)
        x = better
    return x, interval, bend


@compiled
def page_threshold(price: float, silent_rate: float, signal_rate: float, weight: float, start: float) -> float:
    """The staleness x at which V reaches the price (per unit of request rate); infinity: never.

    `start` is a guess, such as the page's last threshold; 0 or infinity: none.
    """
    x, _, _ = page_threshold_curve(price, silent_rate, signal_rate, weight, start, 1e-8)
    return x

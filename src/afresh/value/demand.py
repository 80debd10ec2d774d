"""How much crawling the pages ask for at a given price, and the price at which they ask for exactly the budget.

All pages at once, compiled. A page's rate falls as the price rises; where every change is signalled (silent_rate 0) or
no signal is false it falls in steps, so a price is found as a pair (low, high) round the budget, equal if met exactly.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.value.compiled import compiled
from afresh.value.kernels import no_signal_threshold, page_curve, page_threshold_curve
from afresh.value.sums import page_change_rate

_EXACT = 1e-11  # relative miss of the budget that counts as none
_STEEPEST = 100.0

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Pages(NamedTuple):
    """What is known of all pages: one array for each quantity, of length 1 where it is the same for all."""

    silent_rate: Floats
    signal_rate: Floats
    weight: Floats
    request_rate: Floats
    cost: Floats
    floor: Floats
    host: Integers


class Caps(NamedTuple):
    """Per host: its budget and the logarithm of the price at which its pages ask for just that (−inf: never)."""

    budget: Floats
    log_price: Floats


@compiled
def at(values: NDArray[Any], i: int) -> Any:
    """The i-th value, or the only one."""
    return values[i] if values.size > 1 else values[0]


@compiled
def page_at(pages: Pages, i: int) -> tuple[float, float, float]:
    """(silent_rate, signal_rate, weight) of the i-th page."""
    return at(pages.silent_rate, i), at(pages.signal_rate, i), at(pages.weight, i)


@compiled
def rate_at_price(
    price: float, silent_rate: float, signal_rate: float, weight: float, start: float, tolerance: float
) -> tuple[float, float, float]:
    """(x, crawl rate, its slope in log price) of a page at a price per unit of request rate."""
    if weight == 0.0 and 0.0 < price * silent_rate < 1.0:
        gain = price * silent_rate
        x = no_signal_threshold(gain)
        rate = silent_rate / x
        # e^{−x} = (1 − gain)/(1 + x) at the threshold: no need for another exponential.
        return x, rate, -rate * gain * (1.0 + x) / (x * x * (1.0 - gain))
    x, interval, bend = page_threshold_curve(price, silent_rate, signal_rate, weight, start, tolerance)
    if x == math.inf:
        return x, 0.0, 0.0
    if x == 0.0:
        return x, math.inf if silent_rate > 0.0 else signal_rate, 0.0
    rate = 1.0 / interval
    # Where a page counts signals the slope is a row of spikes that say nothing about the next price: cut them.
    return x, rate, -rate * min(bend * rate * rate * price * math.exp(x), _STEEPEST)


@compiled
def demand(
    pages: Pages, order: Integers, log_price: float, caps: Caps, x: Floats, tolerance: float
) -> tuple[float, float]:
    """(cost per second, its slope in log price) of the pages in `order` (empty: all); thresholds are left in x.

    Pages of hosts that are held by their cap ask for nothing here: their host's budget is counted as a whole.
    """
    total, slope = 0.0, 0.0
    price = math.exp(log_price)
    for h in range(caps.budget.size):
        if caps.log_price[h] > log_price:
            total += caps.budget[h]
    for j in range(order.size if order.size > 0 else x.size):
        i = order[j] if order.size > 0 else j
        if caps.budget.size > 0 and caps.log_price[at(pages.host, i)] > log_price:
            continue
        rate, bend = 0.0, 0.0
        cost, request_rate, floor = at(pages.cost, i), at(pages.request_rate, i), at(pages.floor, i)
        if request_rate > 0.0:
            silent_rate, signal_rate, weight = page_at(pages, i)
            x[i], rate, bend = rate_at_price(
                price * cost / request_rate, silent_rate, signal_rate, weight, x[i], tolerance
            )
        if rate > floor:
            total += cost * rate
            slope += cost * bend
        else:
            total += cost * floor
    return total, slope


@compiled
def top_log_price(pages: Pages, order: Integers, count: int) -> float:
    """Logarithm of the lowest price at which no page is worth a crawl; −inf if none ever is."""
    best = 0.0
    for j in range(order.size if order.size > 0 else count):
        i = order[j] if order.size > 0 else j
        silent_rate, signal_rate, weight = page_at(pages, i)
        change_rate = page_change_rate(silent_rate, signal_rate, weight)
        if change_rate > 0.0:
            best = max(best, at(pages.request_rate, i) / (change_rate * at(pages.cost, i)))
    # A hair more, lest rounding make the best page worth it after all.
    return math.log(best) + 1e-12 if best > 0.0 else -math.inf


@compiled
def _next_guess(t: float, y: float, slope: float, t_old: float, y_old: float, slope_old: float) -> float:
    """Where y(t) = 0, from y and its slope at one point, or at two: t as a cubic in y."""
    step = y_old - y
    if not (abs(y_old) < 0.5 and abs(step) > 0.0):
        return t - y / slope if slope < 0.0 else math.nan
    mean = (t_old - t) / step
    at_new, at_old = 1.0 / slope, 1.0 / slope_old
    # The demand's steps are in the mean slope only. Where they matter, or the slope has hardly changed, trust that.
    if not abs(at_new + at_old - 2.0 * mean) < 0.02 * abs(mean):
        return t - y * mean
    w = -y / step
    return t + step * w * (at_new + w * (3.0 * mean - 2.0 * at_new - at_old + w * (at_new + at_old - 2.0 * mean)))


@compiled
def _checked_bracket(
    pages: Pages, order: Integers, budget: float, caps: Caps, x: Floats, bracket: tuple[float, float]
) -> tuple[float, float]:
    """The bracket, opened again on the side where the demand, computed with care, does not lie as it was taken to."""
    low, high = bracket
    if low > -math.inf and demand(pages, order, low, caps, x, 1e-6)[0] < budget:
        return -math.inf, low
    top = top_log_price(pages, order, x.size)
    if high < top and demand(pages, order, high, caps, x, 1e-6)[0] > budget:
        return high, top
    return low, high


@compiled
def solve_price(
    pages: Pages, order: Integers, budget: float, caps: Caps, x: Floats, start: float
) -> tuple[float, float]:
    """(low, high) logarithms of prices between which the demand falls to the budget; (−inf, −inf): it never reaches it.

    Newton's rule on the logarithm of the demand, kept inside a bracket; `start` is a first guess (NaN: none).
    """
    low, high = -math.inf, top_log_price(pages, order, x.size)
    most, _ = demand(pages, order, -math.inf, caps, x, 1e-6)
    if most <= budget or high == -math.inf:
        return -math.inf, -math.inf
    if budget <= 0.0:
        return high, high
    t = start if start < high else high - 2.0
    t_old, y_old, slope_old, tolerance, reach, rough = math.nan, math.nan, math.nan, 1e-2, 2.0, False
    for turn in range(300):
        asked, slope = demand(pages, order, t, caps, x, tolerance)
        y = math.log(asked / budget) if asked > 0.0 else -math.inf
        if abs(y) <= _EXACT and tolerance <= 1e-6:
            return t, t
        # A rough demand may not narrow the bracket near the budget; where it does, that is checked in the end.
        if abs(y) > tolerance * tolerance or tolerance <= 1e-6:
            low, high = (t, high) if y > 0.0 else (low, t)
            rough = rough or tolerance > 1e-6
        if high - low <= 1e-9:
            if not rough:
                return low, high
            low, high = _checked_bracket(pages, order, budget, caps, x, (low, high))
            rough = False
            if high - low <= 1e-9:
                return low, high
        slope = slope / asked if asked > 0.0 else math.nan
        new = _next_guess(t, y, slope, t_old, y_old, slope_old)
        t_old, y_old, slope_old = t, y, slope
        tolerance = max(1e-6, min(1e-2, 0.1 * abs(y)))
        if turn > 5:
            tolerance = 1e-6
            new = t + 2.0 * (new - t)  # steps of the demand slow Newton down: overshoot, so that the bracket closes
        if low == -math.inf and not t - reach < new < high:  # a flat stretch of the demand would send it too far
            new = t - reach
            reach *= 2.0
        elif not low < new < high:
            new = 0.5 * (low + high)
        t = new
    return low, high


@compiled
def solve_hosts(pages: Pages, order: Integers, starts: Integers, budgets: Floats, x: Floats) -> tuple[Floats, Floats]:
    """(low, high) logarithms of each host's own price: the one at which its pages ask for its budget."""
    lows = np.full(budgets.size, -math.inf)
    highs = np.full(budgets.size, -math.inf)
    nobody = Caps(np.empty(0), np.empty(0))
    for h in range(budgets.size):
        if budgets[h] < math.inf and starts[h + 1] > starts[h]:
            lows[h], highs[h] = solve_price(pages, order[starts[h] : starts[h + 1]], budgets[h], nobody, x, math.nan)
    return lows, highs


@compiled
def threshold_of_rate(rate: float, silent_rate: float, signal_rate: float, weight: float) -> float:
    """The staleness x at which a page is crawled at this rate: ψ(x) = 1/rate, or where ψ jumps past it."""
    if rate <= 0.0 or page_change_rate(silent_rate, signal_rate, weight) == 0.0:
        return math.inf
    if weight == 0.0 or signal_rate == 0.0:
        return silent_rate / rate
    signals = float(np.floor(signal_rate / rate * (1.0 + 4e-16)))
    if silent_rate == 0.0 and weight < math.inf:
        return weight * signals
    if weight == math.inf and signals >= 1.0:
        return math.inf
    if silent_rate == 0.0:
        return 0.0
    low, high = 0.0, math.inf
    x = min(silent_rate + signal_rate * weight, silent_rate + signal_rate * 40.0) / rate
    for _ in range(200):
        _, interval, bend = page_curve(x, silent_rate, signal_rate, weight)
        if interval * rate < 1.0:
            low = x
        else:
            high = x
        new = x * math.exp(-math.log(interval * rate) * interval / (bend * x)) if bend > 0.0 else math.nan
        if not low < new < high:
            new = 2.0 * x if high == math.inf else 0.5 * (low + high)
        if abs(new - x) <= 1e-14 * x:
            break
        x = new
    return x


@compiled
def fill(pages: Pages, log_price: float, host_log_price: Floats, x: Floats, rates: Floats, fresh: Floats) -> None:
    """Each page's threshold, rate and expected freshness at the price `log_price`, or its host's if that is higher."""
    for i in range(x.size):
        own = log_price
        if host_log_price.size > 0:
            own = max(own, float(host_log_price[at(pages.host, i)]))
        silent_rate, signal_rate, weight = page_at(pages, i)
        request_rate, floor = at(pages.request_rate, i), at(pages.floor, i)
        rates[i], fresh[i] = 0.0, 0.0
        if page_change_rate(silent_rate, signal_rate, weight) == 0.0:
            x[i], rates[i], fresh[i] = math.inf, floor, 1.0
            continue
        price = 0.0
        if request_rate > 0.0:
            price = math.exp(own) * at(pages.cost, i) / request_rate
            x[i], rates[i], _ = rate_at_price(price, silent_rate, signal_rate, weight, x[i], 1e-8)
        else:
            x[i] = math.inf
        if rates[i] < floor:
            rates[i] = floor
            x[i] = threshold_of_rate(floor, silent_rate, signal_rate, weight)
            price, _, _ = page_curve(x[i], silent_rate, signal_rate, weight)
        # w/ψ = V·rate + e^{−x}, also between two steps of a page that counts signals.
        fresh[i] = min(1.0, price * rates[i] + math.exp(-x[i])) if rates[i] > 0.0 else 0.0

"""What a page is worth, and its threshold: the staleness at which that reaches the price.

A threshold costs a search, and a value the sums of the crawl value. Neither is needed at most ticks. A threshold is
kept while the price is within half a percent of the one that it was found for, its anchor. And close to its threshold
x₀ a page's value is known from what is kept of it: V(x₀) is the anchor, dV/dx = e^{−x}ψ(x), ψ(x₀) is the inverse of its
rate, and ψ rises by about 1/(α + γb) per staleness, with the α that is expected at that age. That is exact without
signals. What the chance of rest adds follows from ψ, too. Where a signal has carried a page far beyond its threshold,
the closed form of many signals ranks it well enough.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.schedule.wheel.inlined import inlined
from afresh.schedule.wheel.memory import control_at, extra_of, host_at, page_at
from afresh.schedule.wheel.policies import CIS, CIS_PLUS, seen, threshold_at, value_at
from afresh.schedule.wheel.table import EPOCH_SHIFT, SPECIAL
from afresh.value.compiled import compiled
from afresh.value.predictive import NO_COPY, STALEST_HEARD, is_silent, predictive_staleness, silent_time
from afresh.value.resting import REST, with_rest
from afresh.value.sums import closed_form

Slots = NDArray[np.int64]
Floats = NDArray[np.float64]

_SAME_PRICE = 0.01  # thresholds are kept while the price moves by less than this share
_NEAR = 0.1  # share of the threshold within which a value is taken from the curve round it
_WISHED = 1e250  # more than any crawl gains
_STALEST = 40.0  # beyond, the value is at its limit, which is no sum


@inlined
def price_of(core: int, page: Any) -> float:
    """What a crawl of the page must gain per cost: the price, or its host's own."""
    price = float(control_at(core).price)
    if page.host >= 0:
        price = max(price, float(host_at(core, page.host).price))
    return price


@compiled
def value_of(core: int, slot: int, now: float) -> float:
    """V·μ/cost of a page at this moment."""
    control = control_at(core)
    page = page_at(core, slot)
    silent_rate, signal_rate, weight, shape = seen(page, control.policy)
    x = predictive_staleness(min(now - page.current, NO_COPY), float(page.signals), silent_rate, weight, shape)
    value = value_at(x, silent_rate, signal_rate, weight, shape, control.terms)
    return np.float64(page.request_rate) * value / np.float64(page.cost)


@compiled
def values_of(core: int, slots: Slots, now: float, current: Floats, signals: Floats, found: Floats) -> None:
    """`value_of` of some pages if their copies and signals were these."""
    control = control_at(core)
    for i in range(slots.size):
        page = page_at(core, slots[i])
        silent_rate, signal_rate, weight, shape = seen(page, control.policy)
        elapsed = min(max(now - current[i], 0.0), NO_COPY)
        x = predictive_staleness(elapsed, signals[i], silent_rate, weight, shape)
        value = value_at(x, silent_rate, signal_rate, weight, shape, control.terms)
        found[i] = np.float64(page.request_rate) * value / np.float64(page.cost)


@compiled
def _settled(x: float, silent_rate: float, signal_rate: float, weight: float) -> float:
    """V as if signals had been many; within six percent as soon as one has come. As `closed_form`, to fewer digits."""
    drift = silent_rate + signal_rate * weight
    if weight < 0.02:
        return closed_form(x, silent_rate, signal_rate, weight)[0]
    kept, left = np.exp(-weight), np.exp(-x)
    second = kept - 1.0 + weight
    third = 0.5 * weight * weight - second
    half = 0.5 * signal_rate * weight * weight
    change_rate = silent_rate + signal_rate * (1.0 - kept)
    settling = signal_rate * (half * second - third * drift) / change_rate
    return float(1.0 - left * (1.0 + x) + (half * (1.0 - left) + settling) / drift) / drift


@inlined
def _of_one_signal(x: float, silent_rate: float, signal_rate: float) -> float:
    """V where the first signal carries any copy beyond x: ψ = (1 − e^{−γx/α})/γ."""
    both = 1.0 + signal_rate / silent_rate
    return float((1.0 - np.exp(-x)) - (1.0 - np.exp(-both * x)) / both) / signal_rate


@inlined
def about(core: int, slot: int, now: float) -> float:
    """`value_of`, close to the threshold without its sums."""
    page = page_at(core, slot)
    if page.marks & SPECIAL or page.anchor == 0.0:
        return value_of(core, slot, now)
    silent_rate, signal_rate, weight, shape = seen(page, control_at(core).policy)
    x = predictive_staleness(now - page.current, float(page.signals), silent_rate, weight, shape)
    threshold = np.float64(page.threshold)
    past = x - threshold
    uncertain = shape < math.inf
    if uncertain and x > STALEST_HEARD and not is_silent(silent_rate, signal_rate, weight):
        if threshold <= STALEST_HEARD:
            return value_of(core, slot, now)
        longer = silent_time(x - STALEST_HEARD, silent_rate, shape)  # from there on only time counts
        longer -= silent_time(threshold - STALEST_HEARD, silent_rate, shape)
        return np.float64(page.request_rate) / np.float64(page.cost) * (np.float64(page.anchor) + REST * longer)
    if past < -_NEAR * threshold or not x < _STALEST:
        return value_of(core, slot, now)
    if past > _NEAR * threshold and weight > 0.0:
        if uncertain:
            silent_rate *= x / max(shape * math.expm1(x / shape), 1e-300)  # which takes as long to get there
        if x >= weight:
            value = _settled(x, silent_rate, signal_rate, weight)
        elif signal_rate * x > 1e-3 * silent_rate and x > 1e-3:
            value = _of_one_signal(x, silent_rate, signal_rate)
        else:
            return value_of(core, slot, now)
        return np.float64(page.request_rate) / np.float64(page.cost) * value
    if abs(past) < 0.02:
        square = 0.5 * past * past
        first, second = past - square, square  # 1 − e^{−h} and 1 − e^{−h}(1 + h)
    else:
        decay = np.exp(-past)
        first, second = 1.0 - decay, 1.0 - decay * (1.0 + past)
    cost = np.float64(page.cost)
    interval, bend = cost / np.float64(page.rate), 1.0 / (silent_rate * math.exp(-x / shape) + signal_rate * weight)
    gain = float(math.exp(-threshold) * (interval * first + second * bend))
    if uncertain and is_silent(silent_rate, signal_rate, weight):
        gain = with_rest(x, gain, interval + past * bend) - with_rest(threshold, 0.0, interval)
    return np.float64(page.request_rate) / cost * (np.float64(page.anchor) + gain)


@inlined
def alike(page: Any, other: Any) -> bool:
    """Whether two pages agree in all that their values depend on."""
    return bool(
        page.current == other.current
        and page.signals == other.signals
        and page.silent_rate == other.silent_rate
        and page.shape == other.shape
        and page.request_rate == other.request_rate
        and page.signal_rate == other.signal_rate
        and page.weight == other.weight
        and page.cost == other.cost
    )


@inlined
def forget_anchor(page: Any) -> None:
    """Let the next threshold be found anew."""
    if not page.marks & SPECIAL:
        page.anchor = 0.0


@inlined
def longest_of(core: int, page: Any) -> float:
    """The page is to be crawled at least once in this many seconds."""
    longest = float(control_at(core).longest)
    if page.marks & SPECIAL:
        longest = min(longest, float(extra_of(core, page).longest))
    return longest


@inlined
def may_go_at(core: int, page: Any) -> float:
    """The page itself must not be crawled before this moment."""
    if not page.marks & SPECIAL:
        return -math.inf
    extra = extra_of(core, page)
    return max(float(extra.not_before), float(extra.crawled + extra.shortest))


@inlined
def crawled_of(core: int, page: Any) -> float:
    """When the copy of a page was last confirmed; of one without limits, as far as its age says."""
    return float(extra_of(core, page).crawled) if page.marks & SPECIAL else float(page.current)


@inlined
def worth(core: int, slot: int, now: float) -> float:
    """What the page is ranked by: its value, or more if it has waited longer than it may.

    Longer than an operator allows it: then it goes before first crawls, too.
    """
    value = about(core, slot, now)
    page = page_at(core, slot)
    longest = longest_of(core, page)
    if longest < math.inf and page.current > -math.inf:
        over = (now - crawled_of(core, page)) / longest
        if over >= 1.0 - 1e-9:
            wished = longest < control_at(core).longest
            value = max(value, _WISHED if wished else max(float(control_at(core).price), 1e-300) * (0.1 + over))
    return value


@inlined
def set_rate(core: int, slot: int, rate: float) -> None:
    """Note what the page asks for per second, and keep the sums in step."""
    control = control_at(core)
    page = page_at(core, slot)
    old = np.float64(page.rate)
    page.rate = min(rate, 1e30)
    new = np.float64(page.rate)
    control.demand += new - old
    if (page.marks >> EPOCH_SHIFT) != control.epoch:
        page.marks = (page.marks & 15) | (control.epoch << EPOCH_SHIFT)
        control.stale_demand = max(0.0, control.stale_demand - old)
    if new == 0.0:
        forget_anchor(page)
    step = (1 if new > 0.0 else 0) - (1 if old > 0.0 else 0)
    control.active += step
    if page.host >= 0:
        host = host_at(core, page.host)
        host.demand += new - old
        host.active += step


@inlined
def set_threshold(core: int, slot: int) -> None:
    """Make sure that the page comes up where its value reaches the present price; a threshold that is right is kept."""
    page = page_at(core, slot)
    if control_at(core).exact:
        return
    if not page.marks & SPECIAL and page.anchor > 0.0:
        anchor = np.float64(page.anchor)
        price = price_of(core, page) * np.float64(page.cost) / np.float64(page.request_rate)
        if abs(price - anchor) <= _SAME_PRICE * anchor:
            if (page.marks >> EPOCH_SHIFT) != control_at(core).epoch:
                set_rate(core, slot, np.float64(page.rate))
            return
    find_threshold(core, slot)


@compiled
def find_threshold(core: int, slot: int) -> None:
    """Find the staleness at which the page's value reaches the present price, and what crawling there costs."""
    control = control_at(core)
    page = page_at(core, slot)
    x, rate, price = math.inf, 0.0, 0.0
    cost = np.float64(page.cost)
    if page.request_rate > 0.0:
        price = price_of(core, page) * cost / np.float64(page.request_rate)
        x, rate = threshold_at(price, page, control.policy, control.terms, np.float64(page.threshold), 3e-2)
    asked = max(rate, 1.0 / longest_of(core, page))
    if page.marks & SPECIAL:
        shortest = float(extra_of(core, page).shortest)
        if shortest > 0.0:
            asked = min(asked, 1.0 / shortest)
    page.threshold = x
    set_rate(core, slot, min(cost * asked, control.budget))
    _keep_anchor(core, slot, price, cost * rate)


@inlined
def _keep_anchor(core: int, slot: int, price: float, rate: float) -> None:
    """Remember what the threshold was found for, if it and the rate are those of the curve, bounded by nothing else."""
    control = control_at(core)
    page = page_at(core, slot)
    if page.marks & SPECIAL:
        return
    known = control.terms == 0 and control.policy != CIS and control.policy != CIS_PLUS
    bounded = rate > control.budget or control.longest < math.inf
    usual = 1e-30 < rate < 1e30 and 1e-30 < price < 1e30 and 0.0 < page.threshold < _STALEST
    page.anchor = price if known and usual and not bounded else 0.0

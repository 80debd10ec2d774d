"""The sums behind the crawl value, and the closed form that replaces them where they would be long.

X(t) = α·t + b·N(t), time and signals together, rises to a threshold x in the mean time ψ(x); V(x) = ∫₀ˣ e^{−u}ψ(u) du.
Term i of the sums belongs to the i-th signal. Once x is several steps high, ψ is a straight line but for a ripple that
dies exponentially (renewal theory), which gives a closed form; before that only few terms are alive.
"""

import math

import numpy as np

from afresh.value.compiled import compiled
from afresh.value.poisson import signal_term, sure_terms, two_or_more

_NEGLIGIBLE = 1e-17
_RIPPLE = 37.0  # e^{−37} is below double precision
_MOST_TERMS = 1e7


@compiled
def page_change_rate(silent_rate: float, signal_rate: float, weight: float) -> float:
    """Δ = α + γ(1 − e^{−b})."""
    return silent_rate - signal_rate * math.expm1(-weight)


@compiled
def ripple_is_gone(x: float, silent_rate: float, signal_rate: float, weight: float) -> bool:
    """Whether the ripple of ψ has died out at x, so that the closed form is exact."""
    if not x > 2.0 * weight:
        return False
    # The ripple's slowest part decays like e^{−θ·x/b}; this θ bounds the true one from below.
    rho = silent_rate / (signal_rate * weight)
    if 0.5 * math.log1p(20.0 * rho * rho) * x >= _RIPPLE * weight:
        return True
    return x * signal_rate > _MOST_TERMS * (silent_rate + signal_rate * weight)


@compiled
def closed_form(x: float, silent_rate: float, signal_rate: float, weight: float) -> tuple[float, float, float]:
    """(V, ψ, dψ/dx) where signals are many: X(t) drifts at α + γb and overshoots x by γb²/(2(α + γb)) on average."""
    drift = silent_rate + signal_rate * weight
    if weight < 0.02:
        third = weight**3 / 6.0 * (1.0 - weight / 4.0 * (1.0 - weight / 5.0 * (1.0 - weight / 6.0)))
        second = 0.5 * weight * weight - third  # e^{−b} − 1 + b
    else:
        second = math.expm1(-weight) + weight
        third = 0.5 * weight * weight - second
    half = 0.5 * signal_rate * weight * weight
    overshoot = half / drift
    change_rate = page_change_rate(silent_rate, signal_rate, weight)
    # What the first few steps, where the overshoot has not settled yet, add to the integral of e^{−u}ψ(u).
    settling = signal_rate * (half * second - third * drift) / (change_rate * drift)
    value = (two_or_more(x) - overshoot * math.expm1(-x) + settling) / drift
    return value, (x + overshoot) / drift, 1.0 / drift


@compiled
def sum_of_terms(
    x: float, silent_rate: float, signal_rate: float, weight: float, most: float
) -> tuple[float, float, float]:
    """(V, ψ, dψ/dx) by the sums over signals, at most `most` terms of each."""
    total_rate = silent_rate + signal_rate
    silent_share = silent_rate / total_rate
    ratio = silent_rate / signal_rate
    log_ratio = math.log1p(ratio)
    false_share = signal_rate * math.exp(-weight) / total_rate  # q = ν/(Δ+ν)
    value, count, density, first, sure = 0.0, 0.0, 0.0, 0.0, 0.0
    # Signals that surely come before the threshold need no Poisson tails.
    typical = x / (ratio + weight)
    if ratio == 0.0:
        sure = np.ceil(x / weight * (1.0 - 4e-16))  # n·b/b may be a little more than n
    elif weight < math.inf:
        sure = np.floor((x - ratio * (9.0 * math.sqrt(typical) + 45.0)) / (ratio + weight))
    sure = min(sure, most)
    if sure >= 4.0:
        value = sure_terms(sure, x, weight + log_ratio, log_ratio)
        count, first = sure, sure
    i = int(first)
    scale = math.exp(-first * (weight + log_ratio)) if i > 0 else 1.0  # q^i
    while i < most:
        z = x - i * weight if i > 0 else x
        if z <= 0.0:
            break
        gain, tail, here = signal_term(i, z, silent_share, ratio, log_ratio)
        value += scale * gain
        count += tail
        density += here
        scale *= false_share
        if tail <= _NEGLIGIBLE * count and scale * gain <= _NEGLIGIBLE * value * (1.0 - false_share):
            break
        i += 1
    slope = density * total_rate / (signal_rate * silent_rate) if silent_rate > 0.0 else 0.0
    return value / total_rate, count / signal_rate, slope

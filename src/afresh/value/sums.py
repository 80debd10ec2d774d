"""The sums behind the crawl value, and the closed form that replaces them where they would be long.

X(t) = α·t + b·N(t), time and signals together, rises to a threshold x in the mean time ψ(x); V(x) = ∫₀ˣ e^{−u}ψ(u) du.
Term i of the sums belongs to the i-th signal. Once x is several steps high, ψ is a straight line but for a ripple that
dies exponentially (renewal theory), which gives a closed form; before that only few terms are alive.
"""

import math

import numpy as np

from afresh.value.compiled import compiled
from afresh.value.poisson import signal_term, sure_terms, two_or_more

_NEGLIGIBLE = 4e-16
_RIPPLE = 35.0  # e^{−35} is beyond double precision, as the ripple is small to begin with


@compiled
def page_change_rate(silent_rate: float, signal_rate: float, weight: float) -> float:
    """Δ = α + γ(1 − e^{−b})."""
    return silent_rate - signal_rate * math.expm1(-weight)


@compiled
def ripple_is_gone(
    x: float, silent_rate: float, signal_rate: float, weight: float, most: float, value_only: bool
) -> bool:
    """Whether the ripple of ψ has died out at x, so that the closed form is exact; or whether there are `most` terms.

    With `most` terms the ripple is at most 1/(2·most) of ψ and 1/(10·most²) of V.
    """
    if not x > 2.0 * weight:
        return False
    # The ripple's slowest part decays like e^{−θ·x/b}, where −θ ± ωi solves 1 + ρP = e^{−P}; this bounds θ from below.
    rho = silent_rate / (signal_rate * weight)
    theta = 0.5 * math.log1p((17.0 + 21.0 / (1.0 + 8.0 * rho)) * rho * rho)
    if value_only:
        theta += weight  # V holds the ripple times e^{−x}
    if theta * x >= _RIPPLE * weight:
        return True
    return x * signal_rate > most * (silent_rate + signal_rate * weight)


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
def _sure_count(x: float, ratio: float, weight: float) -> float:
    """How many signals surely come before the threshold, so that their terms need no Poisson tails."""
    if ratio == 0.0:
        return float(np.ceil(x / weight * (1.0 - 4e-16)))  # n·b/b may be a little more than n
    if weight == math.inf:
        return 0.0
    step = ratio + weight  # staleness gained from one signal to the next, on average
    return float(np.floor((x - ratio * (9.0 * math.sqrt(x / step) + 37.0)) / step))


@compiled
def sum_of_terms(
    x: float, silent_rate: float, signal_rate: float, weight: float, most: float, value_only: bool
) -> tuple[float, float, float]:
    """(V, ψ, dψ/dx) by the sums over signals, at most `most` terms of each; with `value_only` only V is complete."""
    total_rate = silent_rate + signal_rate
    silent_share = silent_rate / total_rate
    ratio = silent_rate / signal_rate
    log_ratio = math.log1p(ratio)
    false_share = signal_rate * math.exp(-weight) / total_rate  # q = ν/(Δ+ν)
    value, count, density, scale = 0.0, 0.0, 0.0, 1.0
    i = 0
    sure = min(_sure_count(x, ratio, weight), most)
    if sure >= 4.0:
        value, count = sure_terms(sure, x, weight + log_ratio, log_ratio), sure
        i = int(sure)
        scale = math.exp(-sure * (weight + log_ratio))  # q^i
    enough = _NEGLIGIBLE * (1.0 - false_share)
    while i < most:
        z = x - i * weight if i > 0 else x
        if z <= 0.0:
            break
        gain, tail, here = signal_term(i, z, silent_share, log_ratio)
        value += scale * gain
        count += tail
        density += here
        scale *= false_share
        if scale * gain <= enough * value and (value_only or tail <= _NEGLIGIBLE * count):
            break
        i += 1
    slope = density * total_rate / (signal_rate * silent_rate) if silent_rate > 0.0 else 0.0
    return value / total_rate, count / signal_rate, slope

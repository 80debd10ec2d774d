"""Poisson tails without cancellation: the terms that the sums of the crawl value are made of.

Everything here is a compiled scalar function. No result is a difference of nearly equal numbers, so that values that
are tiny (a copy just crawled, a page that hardly ever changes silently) keep all their digits.
"""

import math

import numpy as np

from afresh.value.compiled import compiled

_LOG_FACTORIAL = np.array([math.lgamma(k + 1.0) for k in range(171)])
_INVERSE = np.array([0.0] + [1.0 / k for k in range(1, 171)])
_NEGLIGIBLE = 1e-16
_SQRT_TAU = math.sqrt(2.0 * math.pi)


@compiled
def two_or_more(y: float) -> float:
    """R₁(y) = 1 − e^{−y}(1 + y): the chance that a Poisson number with mean y is at least two."""
    if y > 50.0:
        return 1.0
    if y > 0.6:
        y = min(y, 700.0)  # beyond, e^{−y} is 0 but infinity times it would be NaN
        return 1.0 - math.exp(-y) * (1.0 + y)
    # 1 − e^{−y}(1 + y) would lose its digits here; all terms of e^{−y}·(y²/2! + y³/3! + …) are positive.
    total = 1.0 / 87178291200.0
    for factorial in (6227020800.0, 479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0):
        total = total * y + 1.0 / factorial
    total = ((total * y + 1.0 / 24.0) * y + 1.0 / 6.0) * y + 0.5
    return math.exp(-y) * total * y * y


@compiled
def poisson_probability(k: int, y: float) -> float:
    """Probability that a Poisson number with mean y is exactly k."""
    if y <= 0.0:
        return 1.0 if k == 0 else 0.0
    if k < 171:
        return math.exp(k * math.log(y) - y - _LOG_FACTORIAL[k])
    # Stirling, with the large parts of the exponent cancelled by hand.
    r = (y - k) / k
    return math.exp(-k * (r - math.log1p(r)) - 1.0 / (12.0 * k) + 1.0 / (360.0 * k**3)) / (_SQRT_TAU * math.sqrt(k))


@compiled
def _upward(i: int, y: float, silent_share: float, beyond: float) -> tuple[float, float, float]:
    """`signal_term` summed over k = i + 1, i + 2, …: short where y is small against i."""
    signal_share = 1.0 - silent_share
    k = i + 1
    p = poisson_probability(k, y)  # p_k(y)
    here = p * k / y
    power = 1.0  # s^{k−i−1}
    missing = 0.0  # 1 − s^{k−i−1}
    gain, tail = 0.0, p
    while True:
        k += 1
        p *= y * (_INVERSE[k] if k < 171 else 1.0 / k)
        power *= signal_share
        tail += p * power
        missing = missing * signal_share + silent_share
        gain += p * missing
        if p <= _NEGLIGIBLE * gain and k > y:
            break
    scale = math.exp(beyond)
    return gain, tail * scale, here * scale


@compiled
def _downward(i: int, y: float, silent_share: float, beyond: float) -> tuple[float, float, float]:
    """`signal_term` by its complement, summed over k = i, i − 1, …, 0: short where y is large against i."""
    signal_share = 1.0 - silent_share
    mean = signal_share * y
    below = math.expm1(-beyond)
    if i < 20 and mean < 600.0:
        # The same sums from k = 0 on: no logarithm, and no more steps.
        r = math.exp(-mean)
        rest, both = r, r * silent_share
        for k in range(1, i + 1):
            r *= mean * _INVERSE[k]
            rest += r
            both = both * signal_share + rest * silent_share
        return (1.0 + below) * both - below, max(0.0, 1.0 - rest), signal_share * r
    per_mean = 1.0 / mean
    r = poisson_probability(i, mean)  # p_k(s·y)
    here = signal_share * r
    missing = silent_share  # 1 − s^{i+1−k}
    rest, both = r, r * missing
    for k in range(i, 0, -1):
        r *= k * per_mean
        missing = missing * signal_share + silent_share
        rest += r
        both += r * missing
        if r <= _NEGLIGIBLE * rest:
            break
    return (1.0 + below) * both - below, max(0.0, 1.0 - rest), here


@compiled
def _first(z: float, y: float, silent_share: float) -> tuple[float, float, float]:
    """`signal_term` for i = 0, where it is two exponentials; for y ≥ 1/2, below which their difference loses digits."""
    rising = -math.expm1(z - y)
    signal_share = 1.0 - silent_share
    still = math.exp(-z)
    gain = -math.expm1(-z) - silent_share / signal_share * still * rising
    return gain, rising, signal_share * (1.0 - rising)


@compiled
def signal_term(i: int, z: float, silent_share: float, log_ratio: float) -> tuple[float, float, float]:
    """What the i-th signal contributes to V, ψ and ψ', for y = z / silent_share:

        ( Σ_{k≥i+2} p_k(y)·(1 − s^{k−i−1}),  R_i(s·y),  s·p_i(s·y) )

    Here p_k is the Poisson probability, s = 1 − silent_share and log_ratio = −log(s). The first times q^i/(Δ+ν) is the
    term of the crawl value, the second divided by γ that of the interval, the third divided by (s·α) that of the
    interval's slope in x.
    """
    if z <= 0.0:
        return 0.0, 0.0, 0.0
    if silent_share == 0.0:
        return -math.expm1(-z), 1.0, 0.0
    y = z / silent_share
    if i == 0 and y >= 0.5 and silent_share < 0.99:
        return _first(z, y, silent_share)
    # e^{−beyond} = p_k(y)/p_k(s·y)·s^{k−i−1}. Where beyond ≥ 0 the complement is a sum of positive parts.
    beyond = z - (i + 1) * log_ratio
    if beyond >= 0.0 and y - z >= i:
        return _downward(i, y, silent_share, beyond)
    return _upward(i, y, silent_share, beyond)


@compiled
def sure_terms(count: float, x: float, drop: float, log_ratio: float) -> float:
    """Σ_{i<count} (e^{−i·drop} − e^{−(x − log_ratio)}): the value of signals that are certain to come before x."""
    span = count * drop
    last = math.exp(-span)
    if span > 0.01:
        total = math.expm1(-span) / math.expm1(-drop) - count * last
    else:
        # The two parts agree in nearly all digits: expand Σ_j (e^{j·drop} − 1) in power sums instead.
        n, d = count, drop
        square = n * (n + 1.0)
        s3 = square * square / 4.0
        s2 = square * (2.0 * n + 1.0) / 6.0
        s4 = s2 * (3.0 * n * n + 3.0 * n - 1.0) / 5.0
        s5 = s3 * (2.0 * n * n + 2.0 * n - 1.0) / 3.0
        total = last * d * (square / 2.0 + d * (s2 / 2.0 + d * (s3 / 6.0 + d * (s4 / 24.0 + d * s5 / 120.0))))
    return total - count * last * math.expm1(-(x - log_ratio - span))

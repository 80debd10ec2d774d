"""Poisson tails without cancellation: the terms that the sums of the crawl value are made of.

Everything here is a compiled scalar function. No result is a difference of nearly equal numbers, so that values that
are tiny (a copy just crawled, a page that hardly ever changes silently) keep all their digits.
"""

import math

import numpy as np

from afresh.value.compiled import compiled

_LOG_FACTORIAL = np.array([math.lgamma(k + 1.0) for k in range(171)])
_NEGLIGIBLE = 1e-17
_SQRT_TAU = math.sqrt(2.0 * math.pi)


@compiled
def two_or_more(y: float) -> float:
    """R₁(y) = 1 − e^{−y}(1 + y): the chance that a Poisson number with mean y is at least two."""
    if y > 0.6:
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
def _upward(i: int, z: float, y: float, silent_share: float, log_ratio: float) -> tuple[float, float, float]:
    """`signal_term` summed over k = i + 1, i + 2, …: short where y is small against i."""
    signal_share = 1.0 - silent_share
    k = float(i + 1)
    p = poisson_probability(i + 1, y)
    here = p * k / y
    power = 1.0  # s^{k−i−1}
    missing = 0.0  # 1 − s^{k−i−1}
    gain, tail = 0.0, p
    while True:
        k += 1.0
        p *= y / k
        power *= signal_share
        missing = missing * signal_share + silent_share
        gain += p * missing
        tail += p * power
        if k > y and p <= _NEGLIGIBLE * gain:
            break
    scale = math.exp(z - (i + 1) * log_ratio)
    return gain, tail * scale, here * scale


@compiled
def _downward(i: int, z: float, y: float, ratio: float, log_ratio: float) -> tuple[float, float, float]:
    """`signal_term` by its complement, summed over k = i, i − 1, …, 0: short where y is large against i."""
    beyond = z - (i + 1) * log_ratio
    here = p = poisson_probability(i, y)
    excess = ratio  # s^{−(i+1−k)} − 1
    rest, missing = p * (1.0 + excess), p * excess
    k = float(i)
    while k > 0.0:
        step = k / y
        p *= step
        k -= 1.0
        excess += ratio * (1.0 + excess)
        missing += p * excess
        rest += p * (1.0 + excess)
        if step * (1.0 + ratio) < 1.0 and p * (1.0 + excess) <= _NEGLIGIBLE * rest:
            break
    gain = missing - math.expm1(-beyond)
    if beyond > 600.0:
        return gain, 1.0, 0.0
    scale = math.exp(beyond)
    return gain, max(0.0, 1.0 - rest * scale), here * scale


@compiled
def signal_term(i: int, z: float, silent_share: float, ratio: float, log_ratio: float) -> tuple[float, float, float]:
    """What the i-th signal contributes to V, ψ and ψ', for y = z / silent_share:

        ( Σ_{k≥i+2} p_k(y)·(1 − s^{k−i−1}),  R_i(s·y),  s·p_i(s·y) )

    Here p_k is the Poisson probability, s = 1 − silent_share, ratio = silent_share / s and log_ratio = log(1 + ratio).
    The first times q^i/(Δ+ν) is the term of the crawl value, the second divided by γ that of the interval, the third
    divided by (s·α) that of the interval's slope in x.
    """
    if z <= 0.0:
        return 0.0, 0.0, 0.0
    if silent_share == 0.0:
        return -math.expm1(-z), 1.0, 0.0
    y = z / silent_share
    # With beyond = z − (i+1)·log(1+a) ≥ 0 the complement is a sum of positive parts; below that the series itself is.
    if z >= (i + 1) * log_ratio:
        return _downward(i, z, y, ratio, log_ratio)
    return _upward(i, z, y, silent_share, log_ratio)


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

"""One page's silent rate and signal weight, from seven numbers: the compiled arithmetic of `online`.

The likelihood of a page's crawls is that of P(changed) = 1 − exp(−x), x = α·elapsed + b·signals. An unchanged crawl
adds −x: linear, so two sums hold all of them. A changed one adds log(1 − exp(−x)), which is replaced by the curve
κ·log x − λ·x that has the same slope and curvature at the x believed at that moment: exact for short intervals (κ = 1,
λ = ½), and for long ones, in which every page changes, it says nothing, as it should (κ = λ = 0). So all crawls
together are

    −T·α − N·b + κ₀·log α + κ₁·log(b + α·s₁) + κ₂·log(b + α·s₂)

with κ₀ from changed crawls without a signal, and two bins for those with signals, s = elapsed/signals: one where
signals explain the change and one where time does. Kept apart, they keep what is known of α together with b. The prior
is not in the sums; it is added when a belief is asked for, and may have grown wiser by then.

With Gamma priors the whole is concave: it has one maximum, and Newton's steps find it.
"""

import math

import numpy as np
from numpy.typing import NDArray

from afresh.value.compiled import compiled

Sums = NDArray[np.float32]

TIME, SIGNALS, ALONE, TOLD, TOLD_SLOPE, UNTOLD, UNTOLD_SLOPE = range(7)
SUMS = 7
LEAST_SHAPE, MOST_SHAPE = 0.05, 50.0
_CERTAIN = 30.0  # x from which on a change says nothing
_STEPS = 40


@compiled
def digamma(x: float) -> float:
    """ψ(x), to about ten digits; for x > 0."""
    shift = 0.0
    while x < 6.0:
        shift -= 1.0 / x
        x += 1.0
    f = 1.0 / (x * x)
    return shift + math.log(x) - 0.5 / x - f * (1 / 12 - f * (1 / 120 - f * (1 / 252 - f / 240)))


@compiled
def gamma_shape(gap: float) -> float:
    """The shape of the Gamma distribution whose log of the mean exceeds its mean log by `gap`."""
    gap = min(max(gap, 1e-4), 40.0)
    shape = (3.0 - gap + math.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
    for _ in range(4):
        h = 1e-4 * shape
        slope = 1.0 / shape - (digamma(shape + h) - digamma(shape - h)) / (2.0 * h)
        inverse = 1.0 / shape + (math.log(shape) - digamma(shape) - gap) / (shape * shape * slope)
        shape = 1.0 / max(inverse, 1e-3)
    return min(max(shape, LEAST_SHAPE), MOST_SHAPE)


@compiled
def mode(sums: Sums, a: float, r: float, p: float, q: float) -> tuple[float, float, float, float]:
    """(α, b, shape of α, shape of b) under the priors Gamma(a, r) of α and Gamma(p, q) of b.

    The mode is taken in the logarithms, where a Gamma density has it at its mean; the shapes are those of the Gamma
    distributions of the same spread, each with the other parameter unknown.
    """
    rate, weight = r + np.float64(sums[TIME]), q + np.float64(sums[SIGNALS])
    shape = a + np.float64(sums[ALONE])
    k1, k2 = np.float64(sums[TOLD]), np.float64(sums[UNTOLD])
    if k1 + k2 <= 0.0:
        return shape / rate, p / weight, shape, p
    s1 = sums[TOLD_SLOPE] / k1 if k1 > 0.0 else 1.0
    s2 = sums[UNTOLD_SLOPE] / k2 if k2 > 0.0 else 1.0
    alpha, b = (shape + k2) / rate, (p + k1) / weight
    for _ in range(_STEPS):
        x1, x2 = b + alpha * s1, b + alpha * s2
        slope_a = shape / alpha - rate + k1 * s1 / x1 + k2 * s2 / x2
        slope_b = p / b - weight + k1 / x1 + k2 / x2
        bend_a = shape / (alpha * alpha) + k1 * (s1 / x1) ** 2 + k2 * (s2 / x2) ** 2
        bend_b = p / (b * b) + k1 / (x1 * x1) + k2 / (x2 * x2)
        twist = k1 * s1 / (x1 * x1) + k2 * s2 / (x2 * x2)
        room = bend_a * bend_b - twist * twist
        step_a, step_b = (bend_b * slope_a - twist * slope_b) / room, (bend_a * slope_b - twist * slope_a) / room
        down = max(-step_a / alpha, -step_b / b)
        share = 1.0 if down < 0.9 else 0.9 / down  # both stay above 0
        alpha += share * step_a
        b += share * step_b
        if abs(step_a) < 1e-4 * alpha and abs(step_b) < 1e-4 * b:
            break
    w1, w2 = alpha * s1 / (b + alpha * s1), alpha * s2 / (b + alpha * s2)
    shared = k1 * w1 * (1.0 - w1) + k2 * w2 * (1.0 - w2)
    bend_a, bend_b = rate * alpha - shared, weight * b - shared
    room = bend_a * bend_b - shared * shared
    # Data never make less certain than the prior alone.
    shape_a = max(room / bend_b, a) if bend_b > 0.0 and room > 0.0 else a
    shape_b = max(room / bend_a, p) if bend_a > 0.0 and room > 0.0 else p
    return alpha, b, shape_a, shape_b


@compiled
def _merge(sums: Sums, place: int, kappa: float, ratio: float, slope: float) -> None:
    """Add κ·log(b + α·slope) to a bin, whose slope becomes the one that keeps the gradient at the present α/b.

    The plain mean of slopes would not, and the estimate would settle beside the truth.
    """
    before = np.float64(sums[place])
    time_share = kappa * ratio * slope / (1.0 + ratio * slope)
    if before > 0.0:
        old = ratio * sums[place + 1] / before
        time_share += before * old / (1.0 + old)
    total = before + kappa
    share = min(max(time_share / total, 1e-6), 1.0 - 1e-6)
    sums[place] = total
    sums[place + 1] = total * share / (1.0 - share) / ratio


@compiled
def add_crawl(sums: Sums, elapsed: float, signals: float, changed: bool, alpha: float, b: float) -> None:
    """Add one checked interval to the sums; α and b are what is believed just before."""
    if not changed:
        sums[TIME] += elapsed
        sums[SIGNALS] += signals
        return
    x = max(alpha * elapsed + b * signals, 1e-9)
    if x > _CERTAIN:
        return
    e = math.expm1(x)
    kappa = x * x * (1.0 + e) / (e * e)
    lam = kappa / x - 1.0 / e
    sums[TIME] += lam * elapsed
    sums[SIGNALS] += lam * signals
    if signals <= 0.0:
        sums[ALONE] += kappa
    elif alpha * elapsed > b * signals:
        _merge(sums, UNTOLD, kappa, alpha / b, elapsed / signals)
    else:
        _merge(sums, TOLD, kappa, alpha / b, elapsed / signals)

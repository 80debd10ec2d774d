"""One page's silent rate and signal weight, from eight numbers: the compiled arithmetic of `online`.

The likelihood of a page's crawls is that of P(changed) = 1 − exp(−x), x = α·elapsed + b·signals. An unchanged crawl
adds −x: linear, so two sums hold all of them. A changed one adds log(1 − exp(−x)). Those that came with fewer signals
than is usual for the page are kept as so many crawls of one elapsed time and one number of signals, and so are those
that came with more:

    −T·α − N·b + c₀·log(1 − exp(−(α·t₀ + b·n₀))) + c₁·log(1 − exp(−(α·t₁ + b·n₁)))

Two kinds are needed to tell α from b: what time explains shows where signals are few, what signals explain where they
are many. (Crawls without any signal would do as the first kind only for a page that hardly ever sends one.)

When a crawl joins, t and n become those that keep the gradient at what is believed at that moment. Plain means would
not, and the estimate would settle beside the truth. The curve is that of a real crawl, so it still serves when belief
has moved far: long intervals in which every page changes say nothing, whatever was believed when they were added. The
prior is not in the sums; it is added when a belief is asked for, and may have grown wiser by then.

With Gamma priors the whole is concave: it has one maximum, and Newton's steps find it.
"""

import math

import numpy as np
from numpy.typing import NDArray

from afresh.value.compiled import compiled

Sums = NDArray[np.float32]

# Unchanged crawls: time, signals. Changed ones with few signals and those with many: how many, time, signals.
TIME, SIGNALS, FEW, FEW_TIME, FEW_SIGNALS, MANY, MANY_TIME, MANY_SIGNALS = range(8)
SUMS = 8
LEAST_SHAPE, MOST_SHAPE = 0.05, 50.0
_CERTAIN = 30.0  # x from which on a change says nothing
_STEPS = 40
_LAST = 0.05  # after a step this small what is left is about its square, far below what is known of any page


@compiled
def _digamma_parts(x: float) -> tuple[float, float]:
    """(y, d) such that ψ(x) = log(y) + d, to about ten digits; for x > 0. Mostly the logarithm need not be taken."""
    above, below = 0.0, 1.0  # 1/x + 1/(x + 1) + … as one fraction: a division takes as long as several products
    while x < 6.0:
        above = above * x + below
        below *= x
        x += 1.0
    f = 1.0 / (x * x)
    return x, -above / below - 0.5 / x - f * (1 / 12 - f * (1 / 120 - f * (1 / 252 - f / 240)))


@compiled
def digamma(x: float) -> float:
    """ψ(x), for x > 0."""
    y, rest = _digamma_parts(x)
    return math.log(y) + rest


@compiled
def geometric(shape: float) -> float:
    """The geometric mean of a Gamma distribution of this shape, as a share of its mean."""
    y, rest = _digamma_parts(shape)
    return y / shape * math.exp(rest)


@compiled
def mean_log(mean: float, shape: float) -> float:
    """The mean logarithm of a Gamma distribution."""
    y, rest = _digamma_parts(shape)
    return math.log(mean * y / shape) + rest


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
def pull(x: float) -> float:
    """How much a changed crawl of staleness x speaks for a higher logarithm of it: x/(eˣ − 1), from 1 down to 0."""
    return x / math.expm1(x) if x > 0.0 else 1.0


@compiled
def pull_inverse(share: float) -> float:
    """The staleness whose `pull` this is."""
    u = -math.log(min(max(share, 1e-300), 1.0))
    x = u + math.log1p(u)
    if x < 1e-6:
        return max(x, 1e-9)
    for _ in range(2):
        h = 1.0 / math.expm1(x)
        x += (u + math.log(x * h)) / (1.0 + h - 1.0 / x)
    return x


@compiled
def changed_crawls(sums: Sums, place: int) -> tuple[float, float, float]:
    """(how many, elapsed time, signals) of the changed crawls of one kind."""
    count = np.float64(sums[place])
    if count <= 0.0:
        return 0.0, 0.0, 0.0
    return count, sums[place + 1] / count, sums[place + 2] / count


@compiled
def _odds_of_fresh(x: float) -> float:
    """1/(eˣ − 1), at least to twelve digits; 0 where x is 0."""
    if x > 1e-3:
        return 1.0 / (math.exp(x) - 1.0)  # `expm1` takes twice as long
    return 1.0 / math.expm1(x) if x > 0.0 else 0.0


@compiled
def mode(sums: Sums, a: float, r: float, p: float, q: float) -> tuple[float, float, float, float]:
    """(α, b, shape of α, shape of b) under the priors Gamma(a, r) of α and Gamma(p, q) of b.

    The mode is taken in the logarithms, where a Gamma density has it at its mean; the shapes are those of the Gamma
    distributions of the same spread, each with the other parameter unknown.
    """
    rate, weight = r + np.float64(sums[TIME]), q + np.float64(sums[SIGNALS])
    c0, t0, n0 = changed_crawls(sums, FEW)
    c1, t1, n1 = changed_crawls(sums, MANY)
    if c0 + c1 <= 0.0:
        return a / rate, p / weight, a, p
    # Of the changes that time explains, at first.
    share0 = a * t0 / (a * t0 + p * n0 * r / q) if t0 + n0 > 0.0 else 0.0
    share1 = a * t1 / (a * t1 + p * n1 * r / q) if t1 + n1 > 0.0 else 0.0
    alpha = (a + c0 * share0 + c1 * share1) / (rate + 0.5 * (c0 * t0 + c1 * t1))
    b = (p + c0 * (1.0 - share0) + c1 * (1.0 - share1)) / (weight + 0.5 * (c0 * n0 + c1 * n1))
    bend_a, bend_b, twist = a, p, 0.0
    for _ in range(_STEPS):
        # All in the logarithms of α and b, or rather in shares of them: near the mode the same.
        y, z, u, v = alpha * t0, b * n0, alpha * t1, b * n1
        h0, h1 = _odds_of_fresh(y + z), _odds_of_fresh(u + v)
        slope_a = a - rate * alpha + c0 * y * h0 + c1 * u * h1
        slope_b = p - weight * b + c0 * z * h0 + c1 * v * h1
        k0, k1 = c0 * h0 * (1.0 + h0), c1 * h1 * (1.0 + h1)
        bend_a = a + k0 * y * y + k1 * u * u
        bend_b = p + k0 * z * z + k1 * v * v
        twist = k0 * y * z + k1 * u * v
        inverse = 1.0 / (bend_a * bend_b - twist * twist)
        step_a = (bend_b * slope_a - twist * slope_b) * inverse
        step_b = (bend_a * slope_b - twist * slope_a) * inverse
        down = max(-step_a, -step_b)
        short = 1.0 if down < 0.9 else 0.9 / down  # both stay above 0
        alpha *= 1.0 + short * step_a
        b *= 1.0 + short * step_b
        if abs(step_a) < _LAST and abs(step_b) < _LAST:
            break
    return alpha, b, bend_a - twist * twist / bend_b, bend_b - twist * twist / bend_a


@compiled
def are_many(sums: Sums, elapsed: float, signals: float) -> bool:
    """Whether so many signals in this time are more than the page has sent before, by its sums."""
    time = sums[TIME] + sums[FEW_TIME] + sums[MANY_TIME]
    if time <= 0.0:
        return signals > 0.0
    return bool(signals * time > elapsed * (sums[SIGNALS] + sums[FEW_SIGNALS] + sums[MANY_SIGNALS]))


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
    place = MANY if are_many(sums, elapsed, signals) else FEW
    before = np.float64(sums[place])
    after = before + 1.0
    by_time = pull(x)
    by_signals = by_time * b * signals / x
    by_time -= by_signals
    if before > 0.0:
        y, z = alpha * sums[place + 1] / before, b * sums[place + 2] / before
        pulled = before * pull(y + z) / max(y + z, 1e-300)
        by_time += pulled * y
        by_signals += pulled * z
    both = max(by_time + by_signals, 1e-300)
    staleness = pull_inverse(both / after)
    sums[place] = after
    sums[place + 1] = after * staleness * by_time / both / alpha
    sums[place + 2] = after * staleness * by_signals / both / b

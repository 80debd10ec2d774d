"""A page's crawls in eight numbers, from which the likelihood of any silent rate and signal weight follows.

The likelihood of a page's crawls is that of P(changed) = 1 − exp(−x), x = α·elapsed + b·signals. An unchanged crawl
adds −x: linear, so two sums hold all of them. A changed one adds log(1 − exp(−x)). Those that came with fewer signals
than is usual for the page are kept as a number of crawls with one elapsed time and one number of signals, and so
are those that came with more:

    −T·α − N·b + c₀·log(1 − exp(−(α·t₀ + b·n₀))) + c₁·log(1 − exp(−(α·t₁ + b·n₁)))

Two kinds are needed to tell α from b: what time explains shows where signals are few, what signals explain where they
are many. (Crawls without any signal would do as the first kind only for a page that hardly ever sends one.)

When a crawl joins, t and n become those that keep the gradient at what is believed at that moment. Plain means would
not, and the estimate would settle beside the truth. The curve is that of a real crawl, so it still serves when belief
has moved far: long intervals in which every page changes say nothing, whatever was believed when they were added. The
prior is not in the sums; it is added when a belief is asked for, and may have grown wiser by then.
"""

import math

import numpy as np
from numpy.typing import NDArray

from afresh.value.compiled import compiled

Sums = NDArray[np.float32]

# Unchanged crawls: time, signals. Changed ones with few signals and those with many: how many, time, signals.
TIME, SIGNALS, FEW, FEW_TIME, FEW_SIGNALS, MANY, MANY_TIME, MANY_SIGNALS = range(8)
SUMS = 8
_CERTAIN = 30.0  # x from which on a change says nothing


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
def tell_of_signals(sums: Sums) -> bool:
    """Whether any crawl says something about what signals weigh."""
    return bool(sums[SIGNALS] + sums[FEW_SIGNALS] + sums[MANY_SIGNALS] > 0.0)


@compiled
def are_many(sums: Sums, elapsed: float, signals: float) -> bool:
    """Whether this many signals in this time are more than the page has sent before, by its sums."""
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

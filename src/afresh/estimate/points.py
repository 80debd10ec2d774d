"""What a page may be: how likely each of some silent rates α, and of some signal weights b, is by its crawls.

The sums of a page (`sums`) hold the likelihood of its crawls at any pair (α, b). Here it is taken at 60 rates, two an
octave, and, where signals were heard, at 8 weights. The prior of both has any shape: it is what pages of the same group
turned out to be, so it has a place for pages that never change beside those that change all the time.

What is said of a copy is averaged over all of it. A schedule wants few numbers. Of α it gets the Gamma distribution
with the same mean and the same mean logarithm, which is the closest one. (The same mean and variance would not do:
where a page changed at every visit all high rates are possible, the highest of them rules the variance, and the page
would seem fresh for ever.) Of b it gets the weight that one signal has on average over freshness, −log E e^(−b).
"""

import math

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.sums import FEW, MANY, SIGNALS, TIME, Sums, changed_crawls
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Logs = NDArray[np.float32]

RATES = 60
PER_OCTAVE = 2  # e^(−αt) of one octave is the square of that of the octave before, which saves most exponentials
SLOWEST = 2.0**-18  # of the rates, times the typical rate
WORTHLESS = 1e-6  # the least weight: signals that say nothing, however many there are
WEIGHTS = np.array([WORTHLESS, 0.1, 0.35, 0.8, 1.3, 2.0, 3.2, 5.5])  # of b
MAX_TOGETHER = 300.0  # signals whose joint weight is asked for: beyond that all copies are stale
PAIRS = (RATES + 2) * WEIGHTS.size
_RATES = SLOWEST * 2.0 ** (np.arange(RATES) / PER_OCTAVE)
_LOG_RATES = np.log(_RATES)
_UNLIKELY = -25.0  # nats below the likeliest: does not count
_LEAST_GUESS = math.log(1e-5)  # against the likeliest rate: pages far faster than typical are not ruled out
_LEAST = 1e-12  # no crawl rules a point out for ever
MIN_SHAPE, MAX_SHAPE = 0.05, 50.0


def guessed_rates(shape: float, around: float = 1.0) -> Logs:
    """Logarithms of the chances of the rates before anything is seen: Gamma, of this shape, round the typical rate.

    Or `around` so many times the typical rate.
    """
    logs = shape * (_LOG_RATES - _RATES / around)
    return _normalised(np.maximum(logs, logs.max() + _LEAST_GUESS))


def spread_rates(spread: float, around: float) -> Logs:
    """The same for a log-normal distribution: two thirds of it are within a factor of `spread` of its median, which is
    `around` times the typical rate.
    """
    logs = -0.5 * ((_LOG_RATES - math.log(around)) / math.log(spread)) ** 2
    return _normalised(np.maximum(logs, logs.max() + _LEAST_GUESS))


def all_rates() -> Floats:
    """The rates, in times the typical rate."""
    return _RATES.copy()


def guessed_weights(shape: float, mean: float) -> Logs:
    """Logarithms of the chances of the weights before anything is seen: Gamma, of this shape and mean.

    Signals that say nothing are as likely as the least of those that say something.
    """
    return _normalised(shape * (np.log(np.maximum(WEIGHTS, WEIGHTS[1])) - WEIGHTS / mean))


def _normalised(logs: Floats) -> Logs:
    return np.asarray(logs - math.log(np.exp(logs).sum()), np.float32)


@compiled
def weigh_rates(sums: Sums, typical_rate: float, prior: Logs, chance: Floats) -> None:
    """Fill in the probability of each rate, for a page that has sent no signal.

    `chance` may be longer: the rest of it is for weights.
    """
    count, time, _ = changed_crawls(sums, FEW)
    more, longer, _ = changed_crawls(sums, MANY)
    top = -math.inf
    for first in range(PER_OCTAVE):
        rate = _RATES[first] * typical_rate
        still, still_longer = math.exp(-rate * time), math.exp(-rate * longer)
        silent = rate * np.float64(sums[TIME])
        for k in range(first, RATES, PER_OCTAVE):
            likely = np.float64(prior[k]) - silent
            if likely > top + _UNLIKELY:  # what follows only makes it less likely
                if count > 0.0:
                    likely += count * math.log(max(1.0 - still, _LEAST))
                if more > 0.0:
                    likely += more * math.log(max(1.0 - still_longer, _LEAST))
                top = max(top, likely)
            chance[k] = likely
            still, still_longer, silent = still * still, still_longer * still_longer, 2.0 * silent
    _to_chances(chance, RATES, top)


@compiled
def weigh_pairs(
    sums: Sums, typical_rate: float, prior: Logs, prior_weights: Logs, pairs: Floats, chance: Floats
) -> None:
    """Fill in the probability of each rate, and after these of each weight; `pairs` has room for `PAIRS` numbers."""
    count, time, signals = changed_crawls(sums, FEW)
    more, longer, louder = changed_crawls(sums, MANY)
    weights = WEIGHTS.size
    quiet, loud = RATES * weights, RATES * weights + weights  # e^(−b·signals), by weight
    for j in range(weights):
        pairs[quiet + j], pairs[loud + j] = math.exp(-WEIGHTS[j] * signals), math.exp(-WEIGHTS[j] * louder)
    top = -math.inf
    for first in range(PER_OCTAVE):
        rate = _RATES[first] * typical_rate
        still, still_longer = math.exp(-rate * time), math.exp(-rate * longer)
        silent = rate * np.float64(sums[TIME])
        for k in range(first, RATES, PER_OCTAVE):
            for j in range(weights):
                likely = np.float64(prior[k]) + np.float64(prior_weights[j]) - silent - sums[SIGNALS] * WEIGHTS[j]
                if likely > top + _UNLIKELY:
                    if count > 0.0:
                        likely += count * math.log(max(1.0 - still * pairs[quiet + j], _LEAST))
                    if more > 0.0:
                        likely += more * math.log(max(1.0 - still_longer * pairs[loud + j], _LEAST))
                    top = max(top, likely)
                pairs[k * weights + j] = likely
            still, still_longer, silent = still * still, still_longer * still_longer, 2.0 * silent
    _to_chances(pairs, RATES * weights, top)
    chance[: RATES + weights] = 0.0
    for k in range(RATES):
        for j in range(weights):
            likely = pairs[k * weights + j]
            chance[k] += likely
            chance[RATES + j] += likely


@compiled
def _to_chances(logs: Floats, count: int, top: float) -> None:
    total = 0.0
    for k in range(count):
        logs[k] = math.exp(logs[k] - top) if logs[k] > top + _UNLIKELY else 0.0
        total += logs[k]
    for k in range(count):
        logs[k] /= total


@compiled
def rate_of(chance: Floats, typical_rate: float) -> tuple[float, float, float]:
    """(mean, shape, geometric mean) of the silent rate: of the Gamma distribution closest to these chances."""
    mean, mean_log = 0.0, 0.0
    for k in range(RATES):
        mean += chance[k] * _RATES[k]
        mean_log += chance[k] * _LOG_RATES[k]
    gap = max(math.log(mean) - mean_log, 1e-9)
    # Within 1.5 % of the shape whose log of the mean exceeds its mean log by so much.
    shape = (3.0 - gap + math.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
    return typical_rate * mean, min(max(shape, MIN_SHAPE), MAX_SHAPE), typical_rate * math.exp(mean_log)


@compiled
def fresh_of(chance: Floats, typical_rate: float, elapsed: float, signals: float) -> float:
    """How likely a copy is to be current, over all rates and weights that the page may have."""
    by_time, by_signals = 0.0, 1.0
    for first in range(PER_OCTAVE):
        still = math.exp(-_RATES[first] * typical_rate * elapsed)
        for k in range(first, RATES, PER_OCTAVE):
            by_time += chance[k] * still
            still *= still
    if signals > 0.0:
        by_signals = 0.0
        for j in range(WEIGHTS.size):
            by_signals += chance[RATES + j] * math.exp(-WEIGHTS[j] * signals)
    return min(by_time * by_signals, 1.0)


@compiled
def weight_of(chance: Floats, signals: float) -> float:
    """What each of this many signals adds to the staleness, on average over freshness.

    The more there are, the more counts the chance that they say nothing at all.
    """
    together, kept = min(max(signals, 1.0), MAX_TOGETHER), 0.0
    for j in range(WEIGHTS.size):
        kept += chance[RATES + j] * math.exp(-WEIGHTS[j] * together)
    return -math.log(max(kept, 1e-300)) / together


@compiled
def weight_beside(pairs: Floats, chance: Floats, typical_rate: float, elapsed: float, signals: float) -> float:
    """The same where it is to be used beside a silent rate that is nearly unknown: of the weights that go with rates at
    which a copy is still fresh after `elapsed`. `pairs` is as `weigh_pairs` leaves it.

    Where a page changed each time, signals explain all if time does not. Apart, each would seem to explain little.
    """
    weights, fresh, kept = WEIGHTS.size, 0.0, 0.0
    together = min(max(signals, 1.0), MAX_TOGETHER)
    for k in range(RATES):
        if chance[k] > 0.0:
            still = math.exp(-_RATES[k] * typical_rate * elapsed)
            for j in range(weights):
                fresh += pairs[k * weights + j] * still
                kept += pairs[k * weights + j] * still * math.exp(-WEIGHTS[j] * together)
    return -math.log(min(max(kept, 1e-300) / max(fresh, 1e-300), 1.0)) / together

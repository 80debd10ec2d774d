"""Several senders of signals for one page: a sitemap, a feed, a ping service, each with its own recall and precision.

Evidence adds up: x = α·elapsed + Σ_s b_s·n_s. The senders' signals are independent Poisson streams, so each change is
reported by one sender at most, and a sender's recall is the share of changes that it is the first to report; together
the recalls are at most 1, and α = (1 − Σ λ_s)Δ. In all functions the last axis of `signals`, `recall` and `false_rate`
runs over the senders.

The product counts signals of all senders as a number of the best one's; this is the exact value, to compare with.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.value.arguments import blame
from afresh.value.poisson import signal_term, two_or_more

Floats = NDArray[np.float64]

_MOST_TERMS = 100_000  # with more, steps are so small against x that the closed form's error is below 1e-5


def combined_staleness(
    elapsed: ArrayLike, signals: ArrayLike, *, change_rate: ArrayLike, recall: ArrayLike, false_rate: ArrayLike
) -> Any:
    """x = α·elapsed + Σ b_s·n_s.

    >>> one = combined_staleness(10.0, [1, 0], change_rate=0.1, recall=[0.5, 0.25], false_rate=[0.05, 0.0])
    >>> round(one, 6), combined_staleness(10.0, [0, 1], change_rate=0.1, recall=[0.5, 0.25], false_rate=[0.05, 0.0])
    (0.943147, inf)
    """
    return _each_page(False, elapsed, signals, change_rate, recall, false_rate, 1.0)


def combined_freshness(
    elapsed: ArrayLike, signals: ArrayLike, *, change_rate: ArrayLike, recall: ArrayLike, false_rate: ArrayLike
) -> Any:
    """Probability that the copy is fresh, e^{−x}."""
    fresh = np.exp(-np.asarray(_each_page(False, elapsed, signals, change_rate, recall, false_rate, 1.0)))
    return float(fresh) if fresh.ndim == 0 else fresh


def combined_crawl_value(
    elapsed: ArrayLike,
    signals: ArrayLike,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike,
    false_rate: ArrayLike,
    request_rate: ArrayLike = 1.0,
) -> Any:
    """V = ∫₀ˣ e^{−u}ψ(u) du times the request rate, where ψ is the mean time that all senders together take to u.

    >>> both = combined_crawl_value(5.0, [0, 0], change_rate=0.5, recall=[0.25, 0.25], false_rate=[0.15, 0.15])
    >>> round(both, 5)  # two halves of a sender are as good as the whole
    0.80989
    """
    return _each_page(True, elapsed, signals, change_rate, recall, false_rate, request_rate)


def _each_page(value: bool, *given: ArrayLike) -> Any:
    names = ("elapsed", "signals", "change_rate", "recall", "false_rate", "request_rate")
    blame(dict(zip(names, given, strict=True)))
    elapsed, signals, change_rate, recall, false_rate, request_rate = (np.asarray(v, dtype=np.float64) for v in given)
    if (recall.sum(axis=-1) > 1 + 1e-12).any():
        raise ValueError("recall must sum to at most 1 over the senders: a change counts for the first to report it")
    signals, recall, false_rate = np.broadcast_arrays(*map(np.atleast_1d, (signals, recall, false_rate)))
    shape = np.broadcast_shapes(elapsed.shape, change_rate.shape, request_rate.shape, signals.shape[:-1])
    several = (*shape, signals.shape[-1])
    flat = np.stack([np.broadcast_to(v, shape).ravel() for v in (elapsed, change_rate, request_rate)])
    wide = np.stack([np.broadcast_to(v, several).reshape(-1, several[-1]) for v in (signals, recall, false_rate)])
    answer = np.empty(flat.shape[1])
    _fill(value, flat, wide, answer)
    return float(answer[0]) if not shape else answer.reshape(shape)


def _fill(value: bool, flat: Floats, wide: Floats, answer: Floats) -> None:
    for i in range(answer.size):
        elapsed, change_rate, request_rate = flat[0, i], flat[1, i], flat[2, i]
        signals, recall, false_rate = wide[0, i], wide[1, i], wide[2, i]
        silent_rate = max(0.0, 1.0 - recall.sum()) * change_rate
        if silent_rate < 1e-15 * change_rate:
            silent_rate = 0.0  # recalls that sum to 1 but for rounding
        useful = recall * change_rate > 0.0  # other signals say nothing
        heard, noise = (recall * change_rate)[useful], false_rate[useful]
        with np.errstate(divide="ignore"):  # a sender that is never wrong
            weights = np.log1p(heard / noise)
        x = silent_rate * elapsed if silent_rate > 0.0 else 0.0
        for count, weight in zip(signals[useful], weights, strict=True):
            if count > 0.0:
                x += count * weight
        answer[i] = request_rate * combined_value(x, silent_rate, heard + noise, weights) if value else x


def combined_value(x: float, silent_rate: float, signal_rates: Floats, weights: Floats) -> float:
    """V at staleness x, per unit of request rate, of a page with these senders."""
    change_rate = silent_rate - float((signal_rates * np.expm1(-weights)).sum())
    if x <= 0.0 or change_rate == 0.0:
        return 0.0
    if x == math.inf or x > 45.0:
        return 1.0 / change_rate
    if signal_rates.size == 0:
        return two_or_more(x) / silent_rate
    count = 1.0
    for weight in weights:
        count *= float(np.floor(x / weight)) + 1.0
    if count > _MOST_TERMS:
        return _closed_form(x, silent_rate, signal_rates, weights)
    return _all_terms(x, silent_rate, signal_rates, weights)


def _closed_form(x: float, silent_rate: float, signal_rates: Floats, weights: Floats) -> float:
    """V where signals are many, as for one sender: only the moments of the steps matter."""
    drift, half, second, third, change_rate = silent_rate, 0.0, 0.0, 0.0, silent_rate
    for rate, weight in zip(signal_rates, weights, strict=True):
        drift += rate * weight
        half += 0.5 * rate * weight * weight
        cubic = weight**3 / 6.0 * (1.0 - weight / 4.0 * (1.0 - weight / 5.0 * (1.0 - weight / 6.0)))
        if weight > 0.02:
            cubic = 0.5 * weight * weight - weight - math.expm1(-weight)
        third += rate * cubic
        second += rate * (0.5 * weight * weight - cubic)
        change_rate -= rate * math.expm1(-weight)
    settling = (half * second - third * drift) / (change_rate * drift)
    return (two_or_more(x) - half / drift * math.expm1(-x) + settling) / drift


def _all_terms(x: float, silent_rate: float, signal_rates: Floats, weights: Floats) -> float:
    """V as a sum over all counts (n_1, n_2, …) of signals that stay below x, in the manner of an odometer."""
    total_rate = silent_rate + float(signal_rates.sum())
    silent_share = silent_rate / total_rate
    log_ratio = -math.log1p(-silent_share)
    log_false = np.log(signal_rates / total_rate) - weights
    counts = np.zeros(weights.size, dtype=np.int64)
    value = 0.0
    while True:
        z, log_share, k = x, 0.0, 0
        for s in range(weights.size):
            if counts[s] > 0:
                z -= counts[s] * weights[s]
                log_share += counts[s] * log_false[s] - math.lgamma(counts[s] + 1.0)
                k += counts[s]
        place = 0
        if z > 0.0:
            gain, _, _ = signal_term(k, z, silent_share, log_ratio)
            value += math.exp(log_share + math.lgamma(k + 1.0)) * gain
        else:
            # Too many: the next place gets one more, this one and those before it start again.
            while place < weights.size and counts[place] == 0:
                place += 1
            if place < weights.size:
                counts[place] = 0
            place += 1
        if place >= weights.size:
            return value / total_rate
        counts[place] += 1

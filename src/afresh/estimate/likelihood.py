"""How good a page's signals are, from its crawls: by maximum likelihood, and as it seems at first sight.

The model: a crawl `elapsed` after the last one, with `signals` heard in between, finds a change with probability
1 − exp(−(α·elapsed + b·signals)), a binomial regression with the complementary log-log link. γ is counted; then
ν = γ·e^{−b}, the signalled changes are γ − ν, and Δ = α + γ − ν.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_STEPS = 100


@dataclass(frozen=True, slots=True)
class Quality:
    """What is thought of a page's changes and signals."""

    change_rate: float
    recall: float
    precision: float


def fit(elapsed: Floats, signals: Floats, changed: NDArray[np.bool_]) -> tuple[float, float]:
    """(α, b) ≥ 0 of the greatest likelihood, by Fisher scoring with step halving."""
    design = np.stack([elapsed, signals])
    time, heard = float(elapsed.sum()), float(signals.sum())
    theta = np.array([max(float(changed.sum()), 0.5) / time, 0.5 if heard > 0 else 0.0])
    best = _log_likelihood(theta, design, changed)
    for _ in range(_STEPS):
        x = np.maximum(theta @ design, 1e-12)
        fresh = np.exp(-x)
        stale = -np.expm1(-x)
        slope = design @ np.where(changed, fresh / stale, -1.0)
        weight = fresh / stale
        information = (design * weight) @ design.T
        free = (theta > 0) | (slope > 0)  # a bound that the slope pushes against holds
        if heard == 0:
            free[1] = False
        step = np.zeros(2)
        step[free] = np.linalg.lstsq(information[np.ix_(free, free)], slope[free], rcond=None)[0]
        theta, best, moved = _advance(theta, step, best, design, changed)
        if not moved:
            break
    return float(theta[0]), float(theta[1])


def _advance(
    theta: Floats, step: Floats, best: float, design: Floats, changed: NDArray[np.bool_]
) -> tuple[Floats, float, bool]:
    for _ in range(40):
        new = np.maximum(theta + step, 0.0)
        found = _log_likelihood(new, design, changed)
        if found > best + 1e-10 * abs(best):
            return new, found, True
        step = step / 2
    return theta, best, False


def _log_likelihood(theta: Floats, design: Floats, changed: NDArray[np.bool_]) -> float:
    x = np.maximum(theta @ design, 1e-12)
    return float(np.where(changed, np.log(-np.expm1(-x)), -x).sum())


def signal_quality(elapsed: Floats, signals: Floats, changed: NDArray[np.bool_]) -> Quality:
    """Change rate, recall and precision by maximum likelihood."""
    silent_rate, weight = fit(elapsed, signals, changed)
    signal_rate = float(signals.sum() / elapsed.sum())
    false_rate = signal_rate * math.exp(-weight)
    told = signal_rate - false_rate
    change_rate = silent_rate + told
    return Quality(
        change_rate,
        recall=told / change_rate if change_rate > 0 else 0.0,
        precision=told / signal_rate if signal_rate > 0 else 0.0,
    )


def naive_quality(elapsed: Floats, signals: Floats, changed: NDArray[np.bool_]) -> Quality:
    """As it seems at first sight: the share of crawls after signals that found a change, and of finds that had one."""
    heard = signals > 0
    both = float((heard & changed).sum())
    return Quality(
        change_rate=float(changed.sum() / elapsed.sum()),
        recall=both / max(float(changed.sum()), 1.0),
        precision=both / max(float(heard.sum()), 1.0),
    )

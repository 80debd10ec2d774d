"""Change rate and signal quality from a page's whole history, by maximum likelihood or a posteriori.

The model: a crawl `elapsed` after the last one, with n_s signals of sender s heard in between, finds a change with
probability 1 − exp(−(α·elapsed + Σ b_s·n_s)), a binomial regression with the complementary log-log link. The signal
rates γ_s are counted; then ν_s = γ_s·e^{−b_s}, the signalled changes are γ_s − ν_s, and Δ = α + Σ(γ_s − ν_s).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.estimate.counting import Quality

Floats = NDArray[np.float64]
_STEPS = 100
_LEAST = 1e-12


@dataclass(frozen=True, slots=True)
class Fit:
    """What a history says of a page."""

    silent_rate: float  # α
    signal_weight: Floats  # b, one a sender
    covariance: Floats  # of (α, b_1, …): the inverse of the information; a parameter held at 0 counts as known


def fit_change(
    elapsed: ArrayLike,
    signals: ArrayLike,
    changed: ArrayLike,
    prior: Sequence[tuple[float, float]] | None = None,
) -> Fit:
    """(α, b_1 … b_S) ≥ 0 of the greatest likelihood, or with `prior` of the greatest posterior density.

    `signals` has one number a crawl, or one row a crawl and one column a sender. `prior` gives (shape, rate) of a Gamma
    density for each parameter, α first, over its logarithm: its mode is then its mean, shape/rate.

    >>> fit = fit_change([1.0, 1.0, 2.0, 2.0], [0, 1, 0, 1], [False, True, False, True])
    >>> fit.silent_rate, fit.signal_weight.shape, fit.covariance.shape
    (0.0, (1,), (2, 2))
    """
    time, heard, seen = np.asarray(elapsed, float), np.asarray(signals, float), np.asarray(changed, bool)
    if heard.ndim == 1:
        heard = heard[:, None]
    if time.ndim != 1 or heard.shape[0] != len(time) or seen.shape != time.shape or not len(time):
        raise ValueError("elapsed, signals and changed must have one row a crawl, and at least one")
    design = np.column_stack([time, heard]).T
    if not (np.isfinite(design) & (design >= 0)).all() or not time.sum() > 0:
        raise ValueError("elapsed and signals must be finite and at least 0, and some time must have passed")
    shape, rate = _gammas(prior, len(design))
    theta, information, free = _maximise(design, seen, shape, rate)
    covariance = np.zeros_like(information)
    covariance[np.ix_(free, free)] = np.linalg.pinv(information[np.ix_(free, free)], hermitian=True)
    return Fit(float(theta[0]), theta[1:], covariance)


def _gammas(prior: Sequence[tuple[float, float]] | None, parameters: int) -> tuple[Floats, Floats]:
    if prior is None:
        return np.zeros(parameters), np.zeros(parameters)
    pairs = np.asarray(prior, float)
    if pairs.shape != (parameters, 2) or not (np.isfinite(pairs) & (pairs > 0)).all():
        raise ValueError(f"prior must hold {parameters} pairs (shape, rate) of numbers above 0")
    return pairs[:, 0], pairs[:, 1]


def _maximise(
    design: Floats, changed: NDArray[np.bool_], shape: Floats, rate: Floats
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Fisher scoring with step halving: the objective is concave, so that what it finds is the maximum."""
    told = design.sum(axis=1) > 0
    theta = np.where(
        told, np.concatenate([[max(changed.sum(), 0.5) / design[0].sum()], np.full(len(shape) - 1, 0.5)]), 0.0
    )
    theta = np.where(shape > 0, np.maximum(theta, shape / np.maximum(rate, _LEAST)), theta)
    best = _objective(theta, design, changed, shape, rate)
    for _ in range(_STEPS):
        slope, information = _derivatives(theta, design, changed, shape, rate)
        free = ((theta > 0) | (slope > 0)) & (told | (shape > 0))  # a bound that the slope pushes against holds
        step = np.zeros(len(theta))
        step[free] = np.linalg.lstsq(information[np.ix_(free, free)], slope[free], rcond=None)[0]
        for _ in range(40):
            new = np.maximum(theta + step, np.where(shape > 0, 0.1 * theta, 0.0))
            found = _objective(new, design, changed, shape, rate)
            if found > best + 1e-11 * abs(best):
                break
            step = step / 2
        else:
            break
        theta, best = new, found
    slope, information = _derivatives(theta, design, changed, shape, rate)
    return theta, information, ((theta > 0) | (slope > 0)) & (told | (shape > 0))


def _derivatives(
    theta: Floats, design: Floats, changed: NDArray[np.bool_], shape: Floats, rate: Floats
) -> tuple[Floats, Floats]:
    x = np.maximum(theta @ design, _LEAST)
    odds = np.exp(-x) / -np.expm1(-x)
    with np.errstate(divide="ignore", invalid="ignore"):
        pull = np.where(shape > 0, shape / theta, 0.0)
        bend = np.where(shape > 0, pull / theta, 0.0)
    slope = design @ np.where(changed, odds, -1.0) + pull - rate
    return slope, (design * odds) @ design.T + np.diag(bend)


def _objective(theta: Floats, design: Floats, changed: NDArray[np.bool_], shape: Floats, rate: Floats) -> float:
    x = np.maximum(theta @ design, _LEAST)
    prior = np.where(shape > 0, shape * np.log(np.maximum(theta, 1e-300)) - rate * theta, 0.0)
    return float(np.where(changed, np.log(-np.expm1(-x)), -x).sum() + prior.sum())


def signal_quality(elapsed: Floats, signals: Floats, changed: NDArray[np.bool_]) -> Quality:
    """Change rate, recall and precision by maximum likelihood, of one sender."""
    fit = fit_change(elapsed, signals, changed)
    signal_rate = float(signals.sum() / elapsed.sum())
    told = -signal_rate * float(np.expm1(-fit.signal_weight[0]))
    change_rate = fit.silent_rate + told
    return Quality(
        change_rate,
        recall=told / change_rate if change_rate > 0 else 0.0,
        precision=told / signal_rate if signal_rate > 0 else 0.0,
    )

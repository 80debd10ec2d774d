import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma

from afresh.estimate.points import (
    MAX_SHAPE,
    MIN_SHAPE,
    PAIRS,
    PER_OCTAVE,
    RATES,
    SLOWEST,
    WEIGHTS,
    guessed_rates,
    guessed_weights,
    rate_of,
    weigh_pairs,
    weigh_rates,
    weight_beside,
    weight_of,
)
from afresh.estimate.sums import SUMS, add_crawl
from afresh.value.predictive import predictive_staleness

SILENT_RATES = SLOWEST * 2.0 ** (np.arange(RATES) / PER_OCTAVE)  # times the typical rate
KEPT = st.lists(
    # Crawls right after each other, which tell nothing, are weighed less exactly.
    st.floats(0.0, 50.0).map(lambda sum_: sum_ if sum_ > 1e-3 else 0.0),
    min_size=SUMS,
    max_size=SUMS,
)
PRIORS = st.lists(st.floats(-15.0, 0.0), min_size=RATES + WEIGHTS.size, max_size=RATES + WEIGHTS.size)


def weighed(sums: np.ndarray, typical_rate: float, prior: np.ndarray) -> np.ndarray:
    chance = np.full(RATES + WEIGHTS.size, np.nan)
    weigh_rates(sums, typical_rate, prior, chance)
    assert np.isnan(chance[RATES:]).all()  # which is not its business
    return chance[:RATES]


def weighed_pairs(
    sums: np.ndarray, typical_rate: float, prior: np.ndarray, prior_weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    chance = np.full(RATES + WEIGHTS.size, np.nan)
    weigh_pairs(sums, typical_rate, prior, prior_weights, np.full(PAIRS, np.nan), chance)
    return chance[:RATES], chance[RATES:]


def plain(kept: np.ndarray, prior: np.ndarray, alpha: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The formula, without haste: prior times the likelihood that the sums stand for."""
    likely = prior - float(kept[0]) * alpha - float(kept[1]) * b
    for count, elapsed, signals in (kept[2:5].astype(float), kept[5:8].astype(float)):
        if count > 0:
            likely = likely + count * np.log(np.maximum(-np.expm1(-(alpha * elapsed + b * signals) / count), 1e-12))
    expected = np.exp(likely - likely.max())
    return np.asarray(expected / expected.sum())


def test_the_guesses_are_distributions_round_what_is_typical() -> None:
    chance = np.exp(guessed_rates(0.5))
    assert chance.sum() == pytest.approx(1.0, rel=1e-5)
    assert chance @ SILENT_RATES == pytest.approx(1.0, rel=0.2)
    assert chance.min() < 0.01 < chance.max() < 0.3
    assert np.exp(guessed_weights(0.5, 0.5)).sum() == pytest.approx(1.0, rel=1e-5)


@settings(max_examples=200, deadline=None)
@given(sums=KEPT, typical_rate=st.floats(0.01, 1.0), logs=PRIORS)
def test_chances_of_rates_are_those_of_the_formula(sums: list[float], typical_rate: float, logs: list[float]) -> None:
    kept, prior = np.array(sums, np.float32), np.array(logs[:RATES], np.float32)
    kept[[1, 4, 7]] = 0.0  # no signal was heard
    expected = plain(kept, prior.astype(float), typical_rate * SILENT_RATES, np.zeros(RATES))
    np.testing.assert_allclose(weighed(kept, typical_rate, prior), expected, atol=1e-4)


@settings(max_examples=200, deadline=None)
@given(sums=KEPT, typical_rate=st.floats(0.01, 1.0), logs=PRIORS)
def test_chances_of_pairs_are_those_of_the_formula(sums: list[float], typical_rate: float, logs: list[float]) -> None:
    kept = np.array(sums, np.float32)
    prior, weights = np.array(logs[:RATES], np.float32), np.array(logs[RATES:], np.float32)
    alpha, b = typical_rate * SILENT_RATES[:, None], WEIGHTS[None, :]
    expected = plain(kept, prior[:, None].astype(float) + weights[None, :], alpha, b)
    found = weighed_pairs(kept, typical_rate, prior, weights)
    np.testing.assert_allclose(found[0], expected.sum(1), atol=1e-4)
    np.testing.assert_allclose(found[1], expected.sum(0), atol=1e-4)


@settings(max_examples=50, deadline=None)
@given(sums=KEPT, logs=PRIORS, elapsed=st.floats(0.0, 100.0), signals=st.floats(0.0, 20.0))
def test_the_weight_beside_a_rate_says_what_both_say_together(
    sums: list[float], logs: list[float], elapsed: float, signals: float
) -> None:
    kept, rate, signals = np.array(sums, np.float32), 0.3, max(signals, 1.0)
    prior, weights = np.array(logs[:RATES], np.float32), np.array(logs[RATES:], np.float32)
    joint = plain(kept, prior[:, None].astype(float) + weights[None, :], rate * SILENT_RATES[:, None], WEIGHTS[None, :])
    pairs, chance = np.zeros(PAIRS), np.zeros(RATES + WEIGHTS.size)
    weigh_pairs(kept, rate, prior, weights, pairs, chance)
    found = weight_beside(pairs, chance, rate, elapsed, signals)
    still = joint * np.exp(-rate * SILENT_RATES[:, None] * elapsed)
    together = (still * np.exp(-WEIGHTS[None, :] * signals)).sum()
    assert still.sum() * math.exp(-found * signals) == pytest.approx(together, abs=1e-3)


@settings(max_examples=50, deadline=None)
@given(sums=KEPT, typical_rate=st.floats(0.01, 1.0), logs=PRIORS)
def test_without_signals_weights_stay_what_the_prior_says(
    sums: list[float], typical_rate: float, logs: list[float]
) -> None:
    kept, prior = np.array(sums, np.float32), np.array(logs[:RATES], np.float32)
    kept[[1, 4, 7]] = 0.0
    weights = guessed_weights(0.5, 0.5)
    rates, found = weighed_pairs(kept, typical_rate, prior, weights)
    np.testing.assert_allclose(rates, weighed(kept, typical_rate, prior), atol=1e-6)
    np.testing.assert_allclose(found, np.exp(weights), rtol=1e-4)


def test_many_crawls_leave_little_doubt() -> None:
    rng, alpha, b = np.random.default_rng(1), 0.3, 0.8
    sums = np.zeros(SUMS, np.float32)
    for _ in range(3000):
        elapsed, signals = float(rng.exponential(3.0)), float(rng.poisson(0.5))
        add_crawl(sums, elapsed, signals, bool(rng.random() > np.exp(-(alpha * elapsed + b * signals))), alpha, b)
    rates, weights = weighed_pairs(sums, 0.1, guessed_rates(0.5), guessed_weights(0.5, 0.5))
    assert rates.sum() == pytest.approx(1.0)
    assert rates[(alpha / 2 < 0.1 * SILENT_RATES) & (alpha * 2 > 0.1 * SILENT_RATES)].sum() > 0.95  # its neighbours
    assert WEIGHTS[weights.argmax()] == pytest.approx(b, rel=0.1)


@settings(max_examples=200, deadline=None)
@given(logs=PRIORS, typical_rate=st.floats(1e-6, 1e4))
def test_the_gamma_distribution_has_the_same_mean_and_mean_logarithm(logs: list[float], typical_rate: float) -> None:
    chance = np.exp(np.array(logs))
    chance[:RATES] /= chance[:RATES].sum()
    mean, shape, geometric = rate_of(chance, typical_rate)
    assert mean == pytest.approx(typical_rate * (chance[:RATES] @ SILENT_RATES))
    mean_log = math.log(typical_rate) + chance[:RATES] @ np.log(SILENT_RATES)
    assert math.log(geometric) == pytest.approx(mean_log)
    assert MIN_SHAPE <= shape <= MAX_SHAPE
    gap = math.log(mean) - mean_log
    if shape == MIN_SHAPE:
        assert math.log(shape) - digamma(shape) <= gap * 1.05
    else:
        # E log of a Gamma distribution is digamma(A) − log(A/mean); the shape is within 1.5 % of where that fits.
        below, above = (math.log(each) - digamma(each) for each in (0.985 * shape, 1.015 * shape))
        assert above < gap < below


@pytest.mark.parametrize("point", [0, 10, 20, 35])
def test_a_rate_beyond_doubt_is_itself(point: int) -> None:
    chance = np.zeros(RATES + WEIGHTS.size)
    chance[point] = 1.0
    mean, shape, geometric = rate_of(chance, 3.0)
    assert mean == pytest.approx(3.0 * SILENT_RATES[point])
    assert geometric == pytest.approx(mean)
    assert shape == MAX_SHAPE


def test_a_signal_weighs_what_it_takes_of_freshness_on_average() -> None:
    chance = np.zeros(RATES + WEIGHTS.size)
    chance[RATES + 1], chance[-1] = 0.3, 0.7
    for signals in (1.0, 7.0):
        fresh = 0.3 * math.exp(-WEIGHTS[1] * signals) + 0.7 * math.exp(-WEIGHTS[-1] * signals)
        assert weight_of(chance, signals) == pytest.approx(-math.log(fresh) / signals)
    assert weight_of(chance, 0.0) == weight_of(chance, 1.0)


def test_a_chance_that_signals_say_nothing_bounds_what_many_of_them_say() -> None:
    chance = np.zeros(RATES + WEIGHTS.size)
    chance[RATES], chance[-1] = 0.1, 0.9
    assert weight_of(chance, 1.0) > 2.0
    assert 200.0 * weight_of(chance, 200.0) == pytest.approx(-math.log(0.1), rel=0.01)


@pytest.mark.parametrize("visits", [1, 3, 10, 100])
def test_a_page_that_changes_at_every_visit_is_not_thought_fresh_for_ever(visits: int) -> None:
    sums, prior = np.zeros(SUMS, np.float32), guessed_rates(0.5)
    chance = np.zeros(RATES + WEIGHTS.size)
    for _ in range(visits):
        weigh_rates(sums, 1.0, prior, chance)
        add_crawl(sums, 1.0, 0.0, True, rate_of(chance, 1.0)[2], 1.0)
    weigh_rates(sums, 1.0, prior, chance)
    mean, shape, _ = rate_of(chance, 1.0)
    fresh = [math.exp(-predictive_staleness(age, 0.0, mean, 0.0, shape)) for age in (0.0, 1.0, 5.0, 50.0)]
    exact = [float(chance[:RATES] @ np.exp(-SILENT_RATES * age)) for age in (0.0, 1.0, 5.0, 50.0)]
    assert fresh == pytest.approx(exact, abs=0.05)
    assert fresh[1] < 0.6 if visits == 1 else fresh[1] < 1.5 / visits**0.5
    assert fresh[3] < 0.1

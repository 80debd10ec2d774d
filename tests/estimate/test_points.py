import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gamma

from afresh.estimate.points import POINTS, SILENT_RATES, WEIGHTS, Gammas, guessed, weigh_points
from afresh.estimate.posterior import SUMS, add_crawl

OF_ALL = Gammas(0.8, 2.0, 0.6, 1.5)


def weighed(sums: np.ndarray, typical_rate: float, prior: np.ndarray, own: Gammas = OF_ALL) -> np.ndarray:
    chance = np.empty(POINTS)
    weigh_points(sums, typical_rate, prior, own, OF_ALL, chance)
    return chance


def more_likely(value: np.ndarray, shape: float, rate: float, of_all: float, rate_of_all: float) -> np.ndarray:
    own, others = gamma(shape, scale=1 / rate), gamma(of_all, scale=1 / rate_of_all)
    most: np.ndarray = np.minimum(own.logpdf(value) - others.logpdf(value), np.log(100.0))
    return most


def test_the_guess_is_a_distribution_round_the_typical_rate() -> None:
    chance = np.exp(guessed(0.5, 0.5))
    assert chance.sum() == pytest.approx(1.0)
    by_rate = chance.reshape(len(SILENT_RATES), -1).sum(1)
    assert by_rate @ SILENT_RATES == pytest.approx(1.0, rel=0.2)
    assert by_rate.min() < 0.01 < by_rate.max() < 0.2


@settings(max_examples=100, deadline=None)
@given(
    # Crawls right after each other, which tell nothing, are weighed less exactly.
    sums=st.lists(st.floats(0.0, 50.0).map(lambda sum_: sum_ if sum_ > 1e-3 else 0.0), min_size=SUMS, max_size=SUMS),
    typical_rate=st.floats(0.01, 1.0),
    own=st.tuples(*[st.floats(0.05, 20.0) for _ in range(4)]),
)
def test_chances_are_those_of_the_formula(
    sums: list[float], typical_rate: float, own: tuple[float, float, float, float]
) -> None:
    kept, prior = np.array(sums, np.float32), guessed(0.5, 0.5)
    alpha, b = typical_rate * np.repeat(SILENT_RATES, len(WEIGHTS)), np.tile(WEIGHTS, len(SILENT_RATES))
    likely = prior - float(kept[0]) * alpha - float(kept[1]) * b
    for count, elapsed, signals in (kept[2:5].astype(float), kept[5:8].astype(float)):
        if count > 0:
            x = (alpha * elapsed + b * signals) / count
            likely += count * np.log(np.maximum(-np.expm1(-x), 1e-12))
    likely += more_likely(alpha, own[0], own[1], OF_ALL.shape, OF_ALL.rate)
    likely += more_likely(b, own[2], own[3], OF_ALL.signal_shape, OF_ALL.signal_rate)
    expected = np.exp(likely - likely.max())
    np.testing.assert_allclose(weighed(kept, typical_rate, prior, Gammas(*own)), expected / expected.sum(), atol=1e-4)


def test_many_crawls_leave_little_doubt() -> None:
    rng, alpha, b = np.random.default_rng(1), 0.3, 0.8
    sums = np.zeros(SUMS, np.float32)
    for _ in range(3000):
        elapsed, signals = float(rng.exponential(3.0)), float(rng.poisson(0.5))
        add_crawl(sums, elapsed, signals, bool(rng.random() > np.exp(-(alpha * elapsed + b * signals))), alpha, b)
    chance = weighed(sums, 0.1, guessed(0.5, 0.5)).reshape(len(SILENT_RATES), -1)
    assert chance.sum() == pytest.approx(1.0)
    assert 0.1 * SILENT_RATES[chance.sum(1).argmax()] == pytest.approx(alpha, rel=0.25)
    assert np.sort(chance.sum(1))[-2:].sum() > 0.95  # two neighbours, at most
    assert WEIGHTS[chance.sum(0).argmax()] == pytest.approx(b, rel=0.1)

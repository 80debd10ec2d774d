import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.estimate.points import POINTS, SILENT_RATES, WEIGHTS, Tilt, guessed, weigh_points
from afresh.estimate.posterior import SUMS, add_crawl

LEVEL = Tilt(0.0, 0.0, 0.0, 0.0)


def weighed(sums: np.ndarray, typical_rate: float, prior: np.ndarray, tilt: Tilt = LEVEL) -> np.ndarray:
    chance = np.empty(POINTS)
    weigh_points(sums, typical_rate, prior, tilt, chance)
    return chance


def test_the_guess_is_a_distribution_round_the_typical_rate() -> None:
    chance = np.exp(guessed(0.5, 0.5))
    assert chance.sum() == pytest.approx(1.0)
    by_rate = chance.reshape(len(SILENT_RATES), -1).sum(1)
    assert by_rate @ SILENT_RATES == pytest.approx(1.0, rel=0.2)
    assert by_rate.min() < 0.01 < by_rate.max() < 0.2


@settings(max_examples=100, deadline=None)
@given(
    sums=st.lists(st.floats(0.0, 50.0), min_size=SUMS, max_size=SUMS),
    typical_rate=st.floats(0.01, 1.0),
    tilt=st.tuples(*[st.floats(-0.4, 3.0) for _ in range(4)]),
)
def test_chances_are_those_of_the_formula(
    sums: list[float], typical_rate: float, tilt: tuple[float, float, float, float]
) -> None:
    kept, prior = np.array(sums, np.float32), guessed(0.5, 0.5)
    alpha, b = typical_rate * np.repeat(SILENT_RATES, len(WEIGHTS)), np.tile(WEIGHTS, len(SILENT_RATES))
    likely = prior - float(kept[0]) * alpha - float(kept[1]) * b
    for count, elapsed, signals in (kept[2:5].astype(float), kept[5:8].astype(float)):
        if count > 0:
            x = (alpha * elapsed + b * signals) / count
            likely += count * np.log(np.maximum(-np.expm1(-x), 1e-12))
    likely += tilt[0] * np.log(alpha) - tilt[1] * alpha + tilt[2] * np.log(b) - tilt[3] * b
    expected = np.exp(likely - likely.max())
    np.testing.assert_allclose(weighed(kept, typical_rate, prior, Tilt(*tilt)), expected / expected.sum(), atol=1e-6)


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

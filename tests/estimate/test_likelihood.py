import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.estimate import fit_change
from afresh.estimate.counting import cho_garcia_molina_rate, naive_quality, naive_rate
from afresh.estimate.likelihood import signal_quality


def test_maximum_likelihood_finds_what_the_naive_count_misses() -> None:
    rng = np.random.default_rng(6)
    change_rate, recall, precision = 0.2, 0.6, 0.5
    false_rate = recall * change_rate * (1 - precision) / precision
    elapsed = rng.exponential(10.0, 50_000)
    told, untold = rng.poisson(recall * change_rate * elapsed), rng.poisson((1 - recall) * change_rate * elapsed)
    signals, changed = (told + rng.poisson(false_rate * elapsed)).astype(float), (told + untold) > 0
    found = signal_quality(elapsed, signals, changed)
    assert found.precision == pytest.approx(precision, abs=0.02)
    assert found.recall == pytest.approx(recall, abs=0.02)
    assert found.change_rate == pytest.approx(change_rate, rel=0.03)
    assert naive_quality(elapsed, signals, changed).precision > precision + 0.1
    silent = fit_change(elapsed, np.zeros_like(elapsed), changed)
    assert silent.signal_weight[0] == 0.0
    assert silent.silent_rate == pytest.approx(change_rate, rel=0.03)


def test_every_source_gets_its_own_weight_and_its_own_doubt() -> None:
    rng = np.random.default_rng(7)
    errors, doubts = [], []
    for _ in range(40):
        elapsed = rng.exponential(5.0, 3000)
        heard = rng.poisson(np.outer(elapsed, [0.2, 0.1, 0.3]))
        x = 0.05 * elapsed + heard @ np.array([0.9, 2.0, 0.0])
        fit = fit_change(elapsed, heard, rng.random(3000) < -np.expm1(-x))
        truth = np.array([0.05, 0.9, 2.0])
        errors.append(np.array([fit.silent_rate, *fit.signal_weight[:2]]) - truth)
        doubts.append(np.sqrt(np.diag(fit.covariance)[:3]))
    assert np.abs(np.mean(errors, axis=0)) == pytest.approx(0.0, abs=0.1)
    assert np.std(errors, axis=0) == pytest.approx(np.mean(doubts, axis=0), rel=0.35)


def test_a_prior_is_weighed_by_what_it_is_worth() -> None:
    elapsed, changed = np.full(10, 1.0), np.array([True, False] * 5)
    alone = fit_change(elapsed, np.zeros(10), changed).silent_rate
    weak = fit_change(elapsed, np.zeros(10), changed, prior=[(0.1, 0.01), (1.0, 1.0)]).silent_rate
    strong = fit_change(elapsed, np.zeros(10), changed, prior=[(1000.0, 100.0), (1.0, 1.0)]).silent_rate
    assert alone == pytest.approx(np.log(2.0), rel=1e-3)
    assert weak == pytest.approx(alone, rel=0.05)
    assert strong == pytest.approx(10.0, rel=0.1)
    assert fit_change([1.0], [0.0], [False], prior=[(2.0, 4.0), (3.0, 2.0)]).signal_weight[0] == pytest.approx(1.5)


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.floats(0.01, 100.0), st.integers(0, 5), st.integers(0, 5), st.booleans()), min_size=1, max_size=30
    )
)
def test_nothing_nearby_is_likelier(crawls: list[tuple[float, int, int, bool]]) -> None:
    elapsed, signals = np.array([c[0] for c in crawls]), np.array([c[1:3] for c in crawls], float)
    changed = np.array([c[3] for c in crawls])
    prior = [(1.0, 1.0), (1.0, 1.0), (1.0, 1.0)]
    fit = fit_change(elapsed, signals, changed, prior=prior)
    theta = np.array([fit.silent_rate, *fit.signal_weight])
    assert np.isfinite(theta).all()
    assert np.isfinite(fit.covariance).all()

    def density(theta: np.ndarray) -> float:
        x = theta[0] * elapsed + signals @ theta[1:]
        return float(np.where(changed, np.log(-np.expm1(-x)), -x).sum() + (np.log(theta) - theta).sum())

    best = density(theta)
    for k in range(3):
        for factor in (0.8, 1.25):
            moved = theta.copy()
            moved[k] *= factor
            assert density(moved) <= best + 1e-6 * (1 + abs(best))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (([], [], []), "one row a crawl"),
        (([1.0, 2.0], [0.0], [True, False]), "one row a crawl"),
        (([0.0], [0.0], [True]), "time must have passed"),
        (([float("nan")], [0.0], [True]), "finite"),
        (([1.0], [0.0], [True], [(1.0, 1.0)]), "2 pairs"),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[object, ...], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        fit_change(*arguments)  # type: ignore[arg-type]


def test_counting_misses_changes_and_the_correction_finds_them() -> None:
    rng = np.random.default_rng(8)
    elapsed = np.full(20_000, 2.0)
    changed = rng.random(20_000) < -np.expm1(-0.5 * 2.0)
    assert naive_rate(elapsed, changed) < 0.35
    assert cho_garcia_molina_rate(elapsed, changed) == pytest.approx(0.5, rel=0.03)

"""The value of a crawl over all rates that a page may have, against its integrals and against watching such pages."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gammainc

from afresh.value import crawl_value
from afresh.value.kernels import page_curve
from afresh.value.predictive import (
    STALEST_HEARD,
    predictive_curve,
    predictive_staleness,
    silent_time,
    told,
)

RATES = st.floats(-3, 2).map(lambda power: 10.0**power)
SHAPES = st.floats(math.log(0.05), math.log(50.0)).map(math.exp)
WEIGHTS = st.floats(1e-6, 5.5)
NEVER = (0.0, 0.0)  # rate and weight of no signals


def integral_of_freshness(x: float, rate: float, shape: float) -> float:
    """V without signals as it is defined: ∫F dt − T·F(T), by numbers."""
    end = silent_time(x, rate, shape)
    # F is near 1 up to 1/α and falls by a power afterwards: each decade on its own.
    edges = [0.0, *(edge for edge in np.geomspace(1e-3, 1e29, 33) / rate if edge < end), end]
    fresh = sum(
        quad(lambda t: (1 + rate * t / shape) ** -shape, low, high, epsabs=0.0, epsrel=1e-9)[0]
        for low, high in itertools.pairwise(edges)
    )
    return fresh - end * math.exp(-x)


def expected_interval(x: float, rate: float, signal_rate: float, weight: float, shape: float) -> float:
    """ψ as it is defined: the sum over all numbers of signals that do not reach the threshold."""
    n = np.arange(math.ceil(x / weight))
    times = np.array([silent_time(x - weight * k, rate, shape) for k in n])
    return float(gammainc(n + 1.0, signal_rate * times).sum() / signal_rate)


def integral_of_intervals(x: float, *page: float) -> float:
    """V as the integral of e^(−u)·ψ(u), with a break wherever one more signal begins to matter."""
    weight = page[2]
    edges = sorted({0.0, x, *(x * 2.0**-k for k in range(1, 12)), *np.arange(0.0, x, weight)[:60]})
    return sum(
        quad(lambda u: math.exp(-u) * expected_interval(u, *page), low, high, epsabs=0.0, epsrel=1e-7)[0]
        for low, high in itertools.pairwise(edges)
    )


def watched(
    rng: np.random.Generator, runs: int, x: float, rate: float, signal_rate: float, weight: float, shape: float
) -> tuple[float, float]:
    """(V, ψ) by drawing pages: a rate from its Gamma distribution, then changes, signals and the moment of the crawl.

    V is the fresh time between crawls less what the same time is worth at the staleness of the crawl.
    """
    stale_at = rng.exponential(1.0, runs) / rng.gamma(shape, rate / shape, runs)  # the first silent change
    now, crawled_at, heard = np.zeros(runs), np.full(runs, np.nan), 0
    while np.isnan(crawled_at).any():
        due = silent_time(x - weight * heard, rate, shape)
        ahead = np.isnan(crawled_at)
        late = ahead & (now >= due)
        crawled_at[late] = now[late]  # the last signal carried it beyond the threshold
        coming = now + rng.exponential(1.0 / signal_rate, runs)
        quiet = ahead & ~late & (coming >= due)
        crawled_at[quiet] = due
        told = ahead & ~late & ~quiet & (rng.random(runs) < -math.expm1(-weight))
        stale_at[told] = np.minimum(stale_at[told], coming[told])
        now, heard = coming, heard + 1
    fresh = np.minimum(stale_at, crawled_at).mean()
    return float(fresh - math.exp(-x) * crawled_at.mean()), float(crawled_at.mean())


@settings(max_examples=200)
@given(x=st.floats(1e-6, 12.0), rate=RATES, shape=SHAPES)
def test_without_signals_it_is_the_integral_of_freshness(x: float, rate: float, shape: float) -> None:
    assume(x / shape < 60.0)
    value, interval, bend = predictive_curve(x, rate, *NEVER, shape)
    if x > 1e-2:  # the two parts of the definition are too close to each other before
        assert value == pytest.approx(integral_of_freshness(x, rate, shape), rel=1e-6)
    whole = quad(lambda u: math.exp(-u) * silent_time(u, rate, shape), 0.0, x, epsabs=0.0, epsrel=1e-7, limit=200)[0]
    assert value == pytest.approx(whole, rel=1e-5)
    assert interval == pytest.approx(silent_time(x, rate, shape))
    later = silent_time(x * (1 + 1e-5), rate, shape) - silent_time(x * (1 - 1e-5), rate, shape)
    assert bend == pytest.approx(later / (2e-5 * x), rel=1e-4)


@settings(max_examples=100)
@given(share=st.floats(0.01, 12.0), rate=RATES, often=RATES, weight=WEIGHTS, shape=SHAPES)
def test_with_few_signals_it_is_the_integral_of_the_intervals(
    share: float, rate: float, often: float, weight: float, shape: float
) -> None:
    x, page = share * weight, (rate, often * rate, weight, shape)
    assume(x < 12.0)
    value, interval, bend = predictive_curve(x, *page)
    assert interval == pytest.approx(expected_interval(x, *page), rel=1e-6)
    # Eight nodes a panel see ψ less well where it is nearly a flight of stairs or grows by orders of magnitude.
    close = often <= 1 and shape >= 0.5
    assert value == pytest.approx(integral_of_intervals(x, *page), rel=1e-2 if close else 6e-2)
    if abs(share - round(share)) > 1e-3:
        step = 1e-4 * x
        around = expected_interval(x + step, *page) - expected_interval(x - step, *page)
        assert bend == pytest.approx(around / (2 * step), rel=2e-2, abs=1e-3 * interval / x)


@pytest.mark.parametrize(
    "page",
    [
        (1.5, 0.3, 0.8, 0.6, 0.5),
        (2.0, 0.9, 0.4, 0.2, 2.0),
        (0.7, 0.1, 1.2, 1.0, 10.0),
        (1.0, 0.5, 2.0, 0.3, 0.3),
        (3.0, 0.2, 0.1, 2.5, 1.0),
    ],
)
def test_it_is_what_watching_such_pages_shows(page: tuple[float, float, float, float, float]) -> None:
    value, interval = watched(np.random.default_rng(1), 1_000_000, *page)
    found = predictive_curve(*page)
    assert found[0] == pytest.approx(value, rel=0.01)
    assert found[1] == pytest.approx(interval, rel=0.01)


@pytest.mark.parametrize(
    "page",
    [
        (1.5, 0.3, 8.0, 0.05, 0.5),
        (1.0, 0.1, 30.0, 0.03, 2.0),
        (2.0, 0.5, 20.0, 0.1, 0.3),
    ],
)
def test_very_many_signals_act_like_a_drift(page: tuple[float, float, float, float, float]) -> None:
    assert page[0] > 12 * page[3]
    value, interval = watched(np.random.default_rng(2), 300_000, *page)
    found = predictive_curve(*page)
    assert found[0] == pytest.approx(value, rel=0.03)
    # ψ leaves out that the last signal goes beyond the threshold, by half a weight on average.
    assert found[1] == pytest.approx(interval, rel=0.03 + 0.5 * page[3] / page[0])


@given(x=st.floats(0.01, 6.0), rate=RATES, often=RATES, weight=WEIGHTS)
def test_a_rate_that_is_known_is_the_limit(x: float, rate: float, often: float, weight: float) -> None:
    exact = page_curve(x, rate, often * rate, weight)
    assert predictive_curve(x, rate, often * rate, weight, math.inf) == exact
    assert predictive_curve(x, rate, 0.0, 0.0, 1e6) == pytest.approx(page_curve(x, rate, 0.0, 0.0), rel=1e-3)
    if x <= 12 * weight:
        nearly = predictive_curve(x, rate, often * rate, weight, 1e6)
        assert nearly[0] == pytest.approx(exact[0], rel=1e-2 if often <= 1 else 6e-2)
        assert nearly[1] == pytest.approx(exact[1], rel=1e-3)


@given(elapsed=RATES, signals=st.integers(0, 3), rate=RATES, weight=WEIGHTS, shape=SHAPES)
def test_silence_takes_its_time(elapsed: float, signals: int, rate: float, weight: float, shape: float) -> None:
    for how_surely in (shape, math.inf):
        x = predictive_staleness(elapsed, signals, rate, weight, how_surely)
        assert silent_time(x - told(signals, weight, how_surely), rate, how_surely) == pytest.approx(elapsed, rel=1e-6)
    assert silent_time(0.0, rate, shape) == silent_time(-1.0, rate, shape) == 0.0
    assert silent_time(1.0, 0.0, shape) == math.inf


@given(signals=st.floats(0.0, 1e6), weight=WEIGHTS, shape=SHAPES)
def test_once_a_copy_is_surely_stale_more_signals_say_nothing(signals: float, weight: float, shape: float) -> None:
    assert told(signals, weight, math.inf) == weight * signals
    assert told(signals, weight, shape) == min(weight * signals, STALEST_HEARD)
    assert told(signals, 0.0, shape) == told(0.0, math.inf, shape) == 0.0
    assert math.exp(-STALEST_HEARD) < 1e-5


@given(elapsed=st.floats(0.01, 50.0), rate=st.floats(0.05, 2.0), shape=SHAPES)
def test_a_copy_is_as_fresh_as_all_rates_together_say(elapsed: float, rate: float, shape: float) -> None:
    rng = np.random.default_rng(3)
    drawn = np.exp(-rng.gamma(shape, rate / shape, 20_000) * elapsed)
    off = 6 * drawn.std() / math.sqrt(20_000) + 1e-3
    assert math.exp(-predictive_staleness(elapsed, 0.0, rate, 0.0, shape)) == pytest.approx(drawn.mean(), abs=off)


def test_arrays_take_a_shape() -> None:
    shapes = np.array([0.5, 2.0, math.inf])
    found = crawl_value(3.0, 1, change_rate=0.5, recall=0.5, false_rate=0.2, shape=shapes)
    alone = [crawl_value(3.0, 1, change_rate=0.5, recall=0.5, false_rate=0.2, shape=each) for each in shapes]
    assert np.asarray(found) == pytest.approx(alone)
    assert crawl_value(3.0, 1, change_rate=0.5, recall=0.5, false_rate=0.2) == alone[2]
    with pytest.raises(ValueError, match="shape"):
        crawl_value(3.0, 0, change_rate=0.5, shape=0.0)

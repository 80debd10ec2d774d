import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammainc

from afresh.value import crawl_value
from afresh.value.kernels import page_rates, page_value, page_value_and_interval

# (effective age, change rate, recall, false rate) → (V, ψ), from a simulation of the page.
SIMULATED = {
    (1.0, 0.5, 0.5, 0.3): (0.08930, 0.76918),
    (5.0, 0.5, 0.5, 0.3): (0.80989, 2.45457),
    (8.0, 0.7, 0.2, 0.5): (1.34164, 6.27747),
    (3.0, 0.9, 0.95, 0.1): (0.08746, 0.98745),
    (6.0, 0.5, 0.05, 0.3): (1.55526, 5.69261),
}


def plain_sums(
    x: float, silent_rate: float, signal_rate: float, weight: float, most: int = 10**6
) -> tuple[float, float]:
    """The published sums, term by term, as they stand."""
    total = silent_rate + signal_rate
    false_rate = signal_rate * math.exp(-weight)
    i = np.arange(min(most, int(x // weight) + 1))
    left = (x - i * weight) / silent_rate
    interval = gammainc(i + 1, signal_rate * left).sum() / signal_rate
    fresh_time = (np.exp(i * np.log(false_rate / total)) / total * gammainc(i + 1, total * left)).sum()
    return fresh_time - math.exp(-x) * interval, interval


@pytest.mark.parametrize(("case", "expected"), SIMULATED.items())
def test_value_and_interval_agree_with_simulated_ones(
    case: tuple[float, float, float, float], expected: tuple[float, float]
) -> None:
    age, change_rate, recall, false_rate = case
    page = page_rates(change_rate, recall, false_rate)
    assert page_value_and_interval(page[0] * age, *page) == pytest.approx(expected, abs=1e-5)
    value = crawl_value(age, 0, change_rate=change_rate, recall=recall, false_rate=false_rate)
    assert value == pytest.approx(expected[0], abs=1e-5)


def test_value_agrees_with_the_published_sums() -> None:
    rng = np.random.default_rng(1)
    for _ in range(500):
        page = page_rates(10 ** rng.uniform(-2, 2), rng.beta(0.4, 0.4), 10 ** rng.uniform(-2, 2))
        x = 10 ** rng.uniform(-1, 1.5)
        if x / page[2] > 1e4 or page[0] == 0:
            continue
        value, interval = plain_sums(x, *page)
        # The plain sums lose digits to cancellation; 1e-8 is what is left of them.
        assert page_value_and_interval(x, *page) == pytest.approx((value, interval), rel=1e-8)


rates = st.floats(-12, 6).map(lambda power: 10.0**power)
false_rates = st.one_of(st.just(0.0), rates)
recalls = st.one_of(
    st.sampled_from([0.0, 1.0]),
    st.floats(0, 1),
    st.floats(-15, 0).map(lambda power: 10.0**power),
    st.floats(-15, 0).map(lambda power: 1 - 10.0**power),
)
ages = st.one_of(st.just(0.0), st.floats(-9, 12).map(lambda power: 10.0**power))
counts = st.one_of(st.integers(0, 10), st.integers(0, 10**6))

# Sums of a hundred terms are good to about this; V may seem to fall by as much.
ROUNDING = 1 + 1e-12


@settings(max_examples=500)
@given(ages, counts, rates, recalls, false_rates, st.floats(1, 10), st.integers(1, 10))
def test_value_grows_with_time_and_signals_up_to_its_limit(
    elapsed: float, signals: int, change_rate: float, recall: float, false_rate: float, later: float, more: int
) -> None:
    page = {"change_rate": change_rate, "recall": recall, "false_rate": false_rate}
    now = crawl_value(elapsed, signals, **page)
    assert 0 <= now <= ROUNDING / change_rate
    assert crawl_value(elapsed * later, signals, **page) * ROUNDING >= now
    assert crawl_value(elapsed, signals + more, **page) * ROUNDING >= now
    assert crawl_value(math.inf, signals, **page) == pytest.approx(
        1 / change_rate if recall < 1 or signals else 0.0
    ) or (recall == 1 and false_rate > 0)


def test_value_is_continuous_where_the_way_of_computing_it_changes() -> None:
    for change_rate, recall, false_rate in ((1.0, 0.3, 0.4), (1.0, 0.9, 0.1), (1.0, 0.999, 3.0), (1.0, 0.5, 1e-9)):
        page = page_rates(change_rate, recall, false_rate)
        x = np.concatenate([np.geomspace(1e-8, 80, 20_001), np.linspace(30, 60, 3001)])
        x.sort()
        curve = np.array([page_value_and_interval(at, *page) for at in x])
        values = np.array([page_value(at, *page) for at in x])
        assert values == pytest.approx(curve[:, 0], rel=1e-10)
        assert (np.diff(values) >= -1e-13 * values[1:]).all()
        # V' = e^{−x}ψ bounds each step from both sides: a jump would stand out.
        slope = np.exp(-x) * curve[:, 1]
        steps, gaps = np.diff(values), np.diff(x)
        slack = 1e-13 * values[1:]
        highest = np.maximum(slope[1:], slope[:-1]) * np.exp(gaps)
        assert (steps <= highest * gaps * 1.01 + slack).all()


LIMITS = {
    "no signals": ((3.0, 0), (0.4, 0.0, 0.0), (1 - math.exp(-1.2) * 2.2) / 0.4),
    "signals that say nothing": ((3.0, 7), (0.4, 0.0, 2.0), (1 - math.exp(-1.2) * 2.2) / 0.4),
    "no false signals, one heard": ((3.0, 1), (0.4, 0.25, 0.0), 1 / 0.4),
    "no false signals, none heard": (
        (3.0, 0),
        (0.4, 0.25, 0.0),
        (1 - math.exp(-1.2)) / 0.4 - math.exp(-0.9) * (1 - math.exp(-0.3)) / 0.1,
    ),
    "every change signalled": (
        (3.0, 2),
        (0.4, 1.0, 0.4),
        (1 + 0.5 - 2 * 0.25) / 0.8,
    ),
    "every change signalled, none heard": ((3.0, 0), (0.4, 1.0, 0.4), 0.0),
    "perfect signals, none heard": ((3.0, 0), (0.4, 1.0, 0.0), 0.0),
    "perfect signals, one heard": ((0.0, 1), (0.4, 1.0, 0.0), 1 / 0.4),
    "never changes": ((3.0, 5), (0.0, 0.5, 1.0), 0.0),
    "just crawled": ((0.0, 0), (0.4, 0.5, 1.0), 0.0),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    (elapsed, signals), (change_rate, recall, false_rate), expected = LIMITS[name]
    value = crawl_value(elapsed, signals, change_rate=change_rate, recall=recall, false_rate=false_rate)
    assert value == pytest.approx(expected, rel=1e-13, abs=1e-300)


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("tiny", [1e-7, 1e-10, 1e-13])
def test_limits_are_approached(name: str, tiny: float) -> None:
    (elapsed, signals), (change_rate, recall, false_rate), expected = LIMITS[name]
    near = {
        "change_rate": change_rate + tiny,
        "recall": min(recall, 1 - tiny) if recall else tiny,
        "false_rate": false_rate + tiny,
    }
    value = crawl_value(elapsed, signals, **near)
    # The approach is logarithmic where a signal's weight, log(γ/ν), goes to infinity.
    sure = recall > 0 and false_rate == 0
    assert value == pytest.approx(expected, rel=tiny**0.2 if sure else 1e-4, abs=2e-5)


def test_tiny_weights_act_like_drift() -> None:
    # Ten million signals of no weight each: as if the page had none.
    value = crawl_value(1e7, 10**6, change_rate=1e-7, recall=1e-9, false_rate=1.0)
    assert value == pytest.approx(crawl_value(1e7, 0, change_rate=1e-7), rel=1e-5)


@given(ages, counts, rates, recalls, false_rates, st.floats(-3, 3).map(lambda power: 10.0**power))
def test_value_scales_with_the_unit_of_time(
    elapsed: float, signals: int, change_rate: float, recall: float, false_rate: float, unit: float
) -> None:
    value = crawl_value(elapsed, signals, change_rate=change_rate, recall=recall, false_rate=false_rate)
    scaled = crawl_value(
        elapsed * unit, signals, change_rate=change_rate / unit, recall=recall, false_rate=false_rate / unit
    )
    assert scaled == pytest.approx(value * unit, rel=1e-9)


def test_small_values_keep_their_digits() -> None:
    for y in (1e-9, 1e-6, 1e-3, 0.1, 0.59, 0.61):
        exact = sum(Fraction(-1) ** k * Fraction(y) ** k * (k - 1) / math.factorial(k) for k in range(2, 40))
        assert crawl_value(y, 0, change_rate=1.0) == pytest.approx(float(exact), rel=1e-14)


def test_terms_approach_the_value_from_below() -> None:
    page = {"change_rate": 0.7, "recall": 0.2, "false_rate": 0.5}
    exact = crawl_value(8.0, 3, **page)
    partial = [crawl_value(8.0, 3, terms=terms, **page) for terms in (1, 2, 3, 10, 200)]
    assert partial == sorted(partial)
    assert partial[0] < 0.9 * exact
    assert partial[-1] == pytest.approx(exact, rel=1e-12)


@given(
    st.floats(0.1, 20),
    rates.filter(lambda r: 1e-3 < r < 10),
    st.floats(0.05, 0.95),
    st.floats(0.01, 3),
    st.integers(1, 4),
)
def test_terms_are_those_of_the_published_sums(
    age: float, change_rate: float, recall: float, false_rate: float, terms: int
) -> None:
    page = page_rates(change_rate, recall, false_rate)
    value = crawl_value(age, 0, change_rate=change_rate, recall=recall, false_rate=false_rate, terms=terms)
    expected, _ = plain_sums(page[0] * age, *page, terms)
    assert value == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_assumptions() -> None:
    page = {"change_rate": 0.7, "recall": 0.2, "false_rate": 0.5}
    assert crawl_value(3.0, 2, assume="none", **page) == crawl_value(3.0, 0, change_rate=0.7)
    assert crawl_value(3.0, 2, assume="perfect", **page) == pytest.approx(1 / 0.7)
    assert crawl_value(3.0, 0, assume="perfect", **page) == crawl_value(3.0, 0, change_rate=0.7, recall=0.2)
    assert crawl_value(3.0, 2, assume="noisy", **page) == crawl_value(3.0, 2, **page)


def test_arrays_give_what_numbers_give() -> None:
    elapsed, signals = np.linspace(0, 9, 10), np.arange(10)
    values = crawl_value(elapsed, signals, change_rate=0.3, recall=0.5, false_rate=0.2, request_rate=2.0)
    one_by_one = [
        crawl_value(e, s, change_rate=0.3, recall=0.5, false_rate=0.2, request_rate=2.0)
        for e, s in zip(elapsed, signals, strict=True)
    ]
    assert values.tolist() == one_by_one


@pytest.mark.parametrize(("recall", "false_rate"), [(0.0, 0.0), (0.0, 0.3), (0.5, 0.3), (0.5, 0.0), (1.0, 0.3)])
def test_a_page_without_a_copy_is_worth_the_most(recall: float, false_rate: float) -> None:
    """Age infinity means that there is no copy yet: the limit μ/Δ, or 0 where time alone never makes a copy stale."""
    value = crawl_value(np.inf, 0, change_rate=0.1, recall=recall, false_rate=false_rate, request_rate=3.0)
    assert value == (0.0 if recall == 1.0 else pytest.approx(30.0))


@pytest.mark.parametrize("shape", [0.05, 0.5, 5.0, math.inf])
@pytest.mark.parametrize("change_rate", [1e-30, 0.5, 1e30])
def test_no_age_is_worth_less_than_a_younger_one(change_rate: float, shape: float) -> None:
    ages = np.geomspace(1e-3, 0.99e300, 300)
    for signals in ({}, {"recall": 0.5, "false_rate": 0.1}) if min(change_rate, shape) >= 0.5 else ({},):
        values = crawl_value(ages, change_rate=change_rate, shape=shape, **signals)
        assert np.isfinite(values).all()
        assert (np.diff(values) >= -1e-9 * values[:-1]).all()

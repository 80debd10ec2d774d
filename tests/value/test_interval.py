import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.value import crawl_interval, crawl_rate, crawl_value, fresh_share, fresh_time, interval_slope, value_slope

PAGES = [(0.5, 0.5, 0.3), (0.7, 0.2, 0.5), (0.9, 0.95, 0.1), (0.5, 0.05, 0.3), (1.0, 0.4, 0.0)]
rates = st.floats(-2, 1).map(lambda power: 10.0**power)


def simulate(threshold: float, page: tuple[float, float, float], runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Time until the crawl and fresh time until then, of many lives of a page: changes and signals are really drawn."""
    change_rate, recall, false_rate = page
    rng = np.random.default_rng(11)
    silent_rate, heard_rate = (1 - recall) * change_rate, recall * change_rate
    weight = math.log1p(heard_rate / false_rate) if false_rate else math.inf
    now, x, first_change = np.zeros(runs), np.zeros(runs), np.full(runs, math.inf)
    alive = np.ones(runs, dtype=bool)
    while alive.any():
        k = np.flatnonzero(alive)
        silent, heard, noise = (
            rng.exponential(1 / rate, k.size) if rate else np.full(k.size, math.inf)
            for rate in (silent_rate, heard_rate, false_rate)
        )
        due = (threshold - x[k]) / silent_rate
        step = np.minimum.reduce([silent, heard, noise, due])
        now[k] += step
        x[k] += silent_rate * step
        changed = (step == silent) | (step == heard)
        first_change[k] = np.where(changed, np.minimum(first_change[k], now[k]), first_change[k])
        signalled = (step == heard) | (step == noise)
        x[k[signalled]] += weight
        alive[k] = (step < due) & (x[k] < threshold)
    return now, np.minimum(now, first_change)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("age", [0.7, 4.0])
def test_interval_and_fresh_time_agree_with_a_simulation(page: tuple[float, float, float], age: float) -> None:
    change_rate, recall, false_rate = page
    lives, fresh = simulate((1 - recall) * change_rate * age, page, 100_000)
    named = {"change_rate": change_rate, "recall": recall, "false_rate": false_rate}
    for sample, expected in ((lives, crawl_interval(age, **named)), (fresh, fresh_time(age, **named))):
        assert abs(sample.mean() - expected) < 4.5 * sample.std() / math.sqrt(sample.size)


@given(st.floats(0.05, 20), rates, st.floats(0, 0.9), st.floats(0.01, 3))
def test_value_is_what_one_more_crawl_gains(age: float, change_rate: float, recall: float, false_rate: float) -> None:
    # V = dO/dξ, for the objective O = w/ψ as a function of the crawl rate ξ = 1/ψ.
    page = {"change_rate": change_rate, "recall": recall, "false_rate": false_rate}
    if crawl_value(age, **page) * change_rate > 0.999:
        return  # the objective is all but flat there
    # A staircase hides between the two points where nearly all changes are signalled: stay below the first step.
    step = 1e-4 * age
    rate = [crawl_rate(at, **page) for at in (age - step, age + step)]
    share = [fresh_share(at, **page) for at in (age - step, age + step)]
    if share[0] - share[1] < 1e-9:
        return  # so flat that the difference would be mostly rounding
    slope = (share[0] - share[1]) / (rate[0] - rate[1])
    low, high = crawl_value(age - step, **page), crawl_value(age + step, **page)
    assert low * (1 - 1e-5) - 1e-9 <= slope <= high * (1 + 1e-5) + 1e-9


@given(st.floats(0.05, 20), rates, st.floats(0, 0.9), st.floats(0.01, 3))
def test_slopes_bound_the_differences(age: float, change_rate: float, recall: float, false_rate: float) -> None:
    page = {"change_rate": change_rate, "recall": recall, "false_rate": false_rate}
    step = 1e-5 * age
    gained = crawl_value(age + step, **page) - crawl_value(age, **page)
    assert gained / step == pytest.approx(value_slope(age + step / 2, **page), rel=1e-3, abs=1e-8)
    grown = (crawl_interval(age + step, **page) - crawl_interval(age, **page)) / step
    ends = [interval_slope(at, **page) for at in (age, age + step / 2, age + step)]
    assert 0.98 * min(ends) - 1e-5 <= grown <= 1.02 * max(ends) + 1e-5


def test_without_signals_the_interval_is_the_age() -> None:
    assert crawl_interval(7.0, change_rate=0.3) == pytest.approx(7.0)
    assert crawl_interval(7.0, 3, change_rate=0.3, false_rate=2.0) == pytest.approx(7.0)
    assert fresh_time(7.0, change_rate=0.3) == pytest.approx((1 - math.exp(-2.1)) / 0.3)
    assert interval_slope(7.0, change_rate=0.3) == pytest.approx(1.0)


def test_where_every_change_is_signalled_the_interval_counts_signals() -> None:
    page = {"change_rate": 0.4, "recall": 1.0, "false_rate": 0.4}
    assert crawl_interval(0.0, 3, **page) == pytest.approx(3 / 0.8)
    assert fresh_time(0.0, 3, **page) == pytest.approx((1 + 0.5 + 0.25) / 0.8)
    for signals in range(1, 2000, 37):
        assert crawl_interval(5.0, signals, **page) == pytest.approx(signals / 0.8, rel=1e-12)


def test_ends_of_the_scale() -> None:
    page = {"change_rate": 0.4, "recall": 0.5, "false_rate": 0.4}
    assert crawl_interval(0.0, **page) == 0
    assert crawl_rate(0.0, **page) == math.inf
    assert fresh_share(0.0, **page) == 1
    assert crawl_interval(math.inf, **page) == math.inf
    assert fresh_time(math.inf, **page) == pytest.approx(2.5)
    assert crawl_interval(5.0, change_rate=0.0) == fresh_time(5.0, change_rate=0.0) == 5.0
    assert crawl_rate(np.array([0.0, 2.0]), change_rate=1.0).tolist() == [math.inf, 0.5]


@pytest.mark.parametrize("silent_share", [1e-9, 1e-4, 0.01, 0.3])
def test_interval_follows_the_stairs_of_many_signals(silent_share: float) -> None:
    # Nearly every change is signalled: ψ climbs a stair per signal, which time smooths more and more.
    page = {"change_rate": 1.0, "recall": 1 - silent_share, "false_rate": 1.0}
    signals = np.arange(1, 400)
    interval = crawl_interval(0.0, signals, **page)
    assert (np.diff(interval) > 0).all()
    # Wald: staleness grows by α + γb per second, and overshoots the threshold by one signal's weight at most.
    weight = math.log(2 - silent_share)
    drift = silent_share + (2 - silent_share) * weight
    assert (signals * weight <= interval * drift * (1 + 1e-12)).all()
    assert (interval * drift <= (signals + 1) * weight * (1 + 1e-12)).all()

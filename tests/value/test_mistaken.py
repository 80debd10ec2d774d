import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.value.kernels import page_fresh_time, page_interval, page_threshold
from afresh.value.mistaken import NEVER, Rates, best_gain, fresh_time_when_mistaken, gain_when_mistaken

RATES = st.floats(0.02, 3.0)
WEIGHTS = st.floats(0.05, 4.0)


def simulated(
    rng: np.random.Generator,
    x: float,
    silent_rate: float,
    signal_rate: float,
    weight: float,
    true_silent_rate: float,
    true_weight: float,
) -> float:
    """Fresh time between crawls, by watching a page signal by signal; times of being fresh are averaged exactly."""
    total = 0.0
    runs = 20_000
    for _ in range(runs):
        now, heard = 0.0, 0
        while True:
            end = (x - weight * heard) / silent_rate  # without another signal
            if end <= now:
                break
            until = min(now + rng.exponential(1 / signal_rate), end)
            fresh = math.exp(-true_weight * heard - true_silent_rate * now)
            total += fresh * -math.expm1(-true_silent_rate * (until - now)) / true_silent_rate
            if until == end:
                break
            now, heard = until, heard + 1
    return total / runs


@pytest.mark.parametrize(
    "page",
    [
        (1.5, 0.3, 0.8, 0.6, 0.9, 0.1),
        (2.0, 0.9, 0.4, 0.2, 0.1, 1.5),
        (0.7, 0.1, 1.2, 1.0, 0.4, 0.4),
        (3.0, 0.5, 2.0, 0.3, 0.5, 0.05),
    ],
)
def test_it_is_what_watching_the_page_shows(page: tuple[float, float, float, float, float, float]) -> None:
    seen = simulated(np.random.default_rng(1), *page)
    x, silent_rate, signal_rate, weight, *true = page
    assert fresh_time_when_mistaken(x, Rates(silent_rate, signal_rate, weight), *true) == pytest.approx(seen, rel=0.02)


@settings(max_examples=200, deadline=None)
@given(x=st.floats(0.05, 8.0), silent_rate=RATES, signal_rate=RATES, weight=WEIGHTS)
def test_with_the_true_rates_it_is_the_fresh_time_of_the_schedule(
    x: float, silent_rate: float, signal_rate: float, weight: float
) -> None:
    fresh = fresh_time_when_mistaken(x, Rates(silent_rate, signal_rate, weight), silent_rate, weight)
    time = fresh_time_when_mistaken(x, Rates(silent_rate, signal_rate, weight), 0.0, 0.0)
    # Many small signals are taken for a drift, which forgets that the last one goes beyond the threshold.
    exact = x * signal_rate <= 20.0 * (silent_rate + signal_rate * weight)
    assert fresh == pytest.approx(page_fresh_time(x, silent_rate, signal_rate, weight), rel=1e-5 if exact else 0.05)
    assert time == pytest.approx(page_interval(x, silent_rate, signal_rate, weight), rel=1e-5 if exact else 0.05)


@settings(max_examples=200, deadline=None)
@given(price=st.floats(0.05, 5.0), rate=RATES, signal_rate=RATES, weight=WEIGHTS, true_rate=RATES, true_weight=WEIGHTS)
def test_being_wrong_never_gains(
    price: float, rate: float, signal_rate: float, weight: float, true_rate: float, true_weight: float
) -> None:
    believed, true = Rates(rate, signal_rate, weight), Rates(true_rate, signal_rate, true_weight)
    x = page_threshold(price, *believed, 0.0)
    best = best_gain(price, true, 0.0)
    assert best == pytest.approx(math.exp(-page_threshold(price, *true, 0.0)))
    assert best_gain(price, true, min(x, 5.0)) == pytest.approx(best, abs=1e-6)
    if x >= NEVER:
        assert gain_when_mistaken(price, x, math.inf, believed, true) == 0.0
        return
    interval = fresh_time_when_mistaken(x, believed, 0.0, 0.0)
    fresh = fresh_time_when_mistaken(x, believed, true_rate, true_weight)
    gained = gain_when_mistaken(price, x, interval, believed, true)
    assert gained == pytest.approx((fresh - price) / interval, abs=1e-9)
    if x * signal_rate <= 20.0 * (rate + signal_rate * weight):
        assert gained <= best + 1e-6
    assert gain_when_mistaken(price, x, interval, believed, believed) == pytest.approx(math.exp(-x), abs=0.02)


def test_a_page_without_signals_needs_no_sum() -> None:
    assert fresh_time_when_mistaken(2.0, Rates(0.5, 0.0, 0.7), 0.25, 0.7) == pytest.approx(-math.expm1(-1.0) / 0.25)
    assert fresh_time_when_mistaken(2.0, Rates(0.5, 0.0, 0.7), 0.0, 0.0) == 4.0

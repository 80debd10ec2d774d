import math

import numpy as np
import pytest
from scipy.special import gammainc

from afresh.value import crawl_value
from afresh.value.kernels import page_rates, page_value_and_interval

# (effective age, change rate, recall, false rate) → (V, ψ), from a simulation of the page.
SIMULATED = {
    (1.0, 0.5, 0.5, 0.3): (0.08930, 0.76918),
    (5.0, 0.5, 0.5, 0.3): (0.80989, 2.45457),
    (8.0, 0.7, 0.2, 0.5): (1.34164, 6.27747),
    (3.0, 0.9, 0.95, 0.1): (0.08746, 0.98745),
    (6.0, 0.5, 0.05, 0.3): (1.55526, 5.69261),
}


def plain_sums(x: float, silent_rate: float, signal_rate: float, weight: float) -> tuple[float, float]:
    """The published sums, term by term, as they stand."""
    total = silent_rate + signal_rate
    false_rate = signal_rate * math.exp(-weight)
    i = np.arange(int(x // weight) + 1)
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


@pytest.mark.parametrize(("recall", "false_rate"), [(0.0, 0.0), (0.0, 0.3), (0.5, 0.3), (0.5, 0.0), (1.0, 0.3)])
def test_a_page_without_a_copy_is_worth_the_most(recall: float, false_rate: float) -> None:
    """Age infinity means that there is no copy yet: the limit μ/Δ, or 0 where time alone never makes a copy stale."""
    value = crawl_value(np.inf, 0, change_rate=0.1, recall=recall, false_rate=false_rate, request_rate=3.0)
    assert value == (0.0 if recall == 1.0 else pytest.approx(30.0))

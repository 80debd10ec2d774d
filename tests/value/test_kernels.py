import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.value.kernels import (
    no_signal_threshold,
    page_change_rate,
    page_interval,
    page_rates,
    page_threshold,
    page_threshold_curve,
    page_value,
)
from afresh.value.poisson import two_or_more

rates = st.floats(-3, 3).map(lambda power: 10.0**power)
recalls = st.floats(0, 1)


@given(rates, recalls, rates, st.floats(1e-6, 0.999), st.floats(1e-3, 1e3))
def test_value_at_the_threshold_is_the_price_from_any_start(
    change_rate: float, recall: float, false_rate: float, share: float, off: float
) -> None:
    page = page_rates(change_rate, recall, false_rate)
    price = share / change_rate
    x = page_threshold(price, *page, 0.0)
    assert page_value(x, *page) == pytest.approx(price, rel=1e-9)
    assert page_value(page_threshold(price, *page, x * off), *page) == pytest.approx(price, rel=1e-9)


@given(rates, recalls, rates)
def test_a_page_that_is_never_worth_the_price_has_no_threshold(
    change_rate: float, recall: float, false_rate: float
) -> None:
    page = page_rates(change_rate, recall, false_rate)
    assert page_threshold(1.000001 / change_rate, *page, 0.0) == math.inf
    assert page_change_rate(*page) == pytest.approx(change_rate, rel=1e-12)


@given(st.floats(-9, 1.3).map(lambda power: 10.0**power))
def test_threshold_without_signals_inverts_the_value(x: float) -> None:
    # Beyond x = 20 the value is within 1e-8 of its limit and says little about x.
    assert no_signal_threshold(two_or_more(x)) == pytest.approx(x, rel=1e-6 if x > 10 else 1e-11)


@given(st.floats(-2, 0), st.floats(0.1, 1.2), st.floats(0.3, 0.9999), st.floats(0.1, 3))
def test_a_rough_threshold_has_a_rough_interval_also_where_the_value_is_nearly_flat(
    silent: float, weight: float, share: float, off: float
) -> None:
    page = (10.0**silent, 1.0, weight)
    price = share / page_change_rate(*page)
    start = off * page_threshold(price, *page, 0.0)
    x, interval, _ = page_threshold_curve(price, *page, start, 3e-2)
    assert interval == pytest.approx(page_interval(x, *page), rel=0.25)


def test_the_interval_of_a_rough_threshold_is_never_negative() -> None:
    page = (0.00092441775, 0.03, 0.7079651)
    _, interval, _ = page_threshold_curve(12.955539 / 0.21315397, *page, 0.60160726, 3e-2)
    assert interval > 0

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammainc
from scipy.stats import poisson

from afresh.value.poisson import poisson_probability, signal_term, sure_terms

shares = st.floats(-6, -0.01).map(lambda power: 10.0**power)


@given(st.integers(0, 5000), st.floats(1e-3, 6000))
def test_probabilities_are_those_of_scipy(k: int, mean: float) -> None:
    assert poisson_probability(k, mean) == pytest.approx(poisson.pmf(k, mean), rel=1e-9, abs=1e-290)


@given(st.integers(0, 400), st.floats(1e-2, 500), shares)
def test_terms_are_the_plain_ones_where_those_have_digits(i: int, y: float, silent_share: float) -> None:
    z = y * silent_share
    signal_share = 1 - silent_share
    gain, tail, density = signal_term(i, z, silent_share, -math.log1p(-silent_share))
    assert tail == pytest.approx(gammainc(i + 1, signal_share * y), rel=1e-9, abs=1e-14)
    assert density == pytest.approx(signal_share * poisson.pmf(i, signal_share * y), rel=1e-9, abs=1e-14)
    scale = (i + 1) * math.log1p(-silent_share)
    if -z - scale < 30:
        plain = gammainc(i + 1, y) - math.exp(-z - scale) * gammainc(i + 1, signal_share * y)
        assert gain == pytest.approx(plain, rel=1e-9, abs=1e-12)


@given(st.integers(1, 3000), st.floats(-9, 0).map(lambda power: 10.0**power), st.floats(0, 5), st.floats(0, 1))
def test_sure_terms_are_their_sum(count: int, drop: float, further: float, log_ratio: float) -> None:
    x = count * drop + further + log_ratio
    plain = math.fsum(-math.exp(-i * drop) * math.expm1(-(x - log_ratio - i * drop)) for i in range(count))
    assert sure_terms(float(count), x, drop, log_ratio) == pytest.approx(plain, rel=1e-10)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from afresh.sim.web import dice

seeds = st.integers(0, 2**64 - 1)
items = st.integers(0, 10**9)


@given(seeds, st.integers(0, 2**40), items, items)
def test_the_array_form_agrees_with_the_plain_one(seed: int, stream: int, item: int, count: int) -> None:
    stream_key = dice.key(seed, stream)
    assert dice.uniform_many(stream_key, item, count)[0] == dice.uniform(stream_key, item, count)
    assert dice.exponential_row(stream_key, item, count, 3)[1] == dice.exponential_many(stream_key, item, count + 1)[0]


def test_numbers_are_uniform_and_streams_are_unrelated() -> None:
    first = dice.uniform_many(dice.key(1, dice.Stream.CHANGE), np.arange(20_000), 5)
    second = dice.uniform_many(dice.key(1, dice.Stream.TEXT), np.arange(20_000), 5)
    shifted = dice.uniform_many(dice.key(1, dice.Stream.CHANGE), np.arange(20_000), 6)
    assert stats.kstest(first, "uniform").pvalue > 0.001
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03
    assert abs(np.corrcoef(first, shifted)[0, 1]) < 0.03


def test_normal_numbers_have_the_right_shape() -> None:
    draws = dice.normal_many(dice.key(4, dice.Stream.LAYOUT), np.arange(20_000), 2)
    assert stats.kstest(draws, "norm").pvalue > 0.001
    assert draws.std() == pytest.approx(1.0, abs=0.03)

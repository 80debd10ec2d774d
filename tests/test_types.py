import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.types import Beliefs, Outcome
from afresh.value import freshness


@given(
    st.floats(min_value=0, max_value=1e9),
    st.integers(min_value=0, max_value=1000),
    st.floats(min_value=1e-9, max_value=1e3),
    st.floats(min_value=0, max_value=1),
    st.floats(min_value=0, max_value=1e3),
)
def test_beliefs_know_freshness_as_the_value_package_does(
    elapsed: float, signals: int, change_rate: float, recall: float, false_rate: float
) -> None:
    believed = Beliefs(change_rate=change_rate, recall=recall, false_rate=false_rate)
    expected = freshness(elapsed, signals, change_rate=change_rate, recall=recall, false_rate=false_rate)
    assert believed.freshness(elapsed, signals) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_a_signal_that_is_always_right_leaves_no_doubt() -> None:
    believed = Beliefs(change_rate=1.0, recall=0.5)
    assert believed.freshness(1.0, 1) == 0.0
    assert believed.freshness(0.0, 0) == 1.0


def test_only_a_confirmed_or_replaced_copy_is_refreshed() -> None:
    assert {outcome for outcome in Outcome if outcome.refreshed} == {Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED}

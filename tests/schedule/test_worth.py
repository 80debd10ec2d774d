"""The value that pages are ranked by, taken from the curve round the threshold, against the sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.schedule import Scheduler
from afresh.schedule.wheel.worth import about, set_threshold, value_of

rates = st.floats(-2, 1).map(lambda power: 10.0**power)


def one_page(budget: float, **page: float) -> Scheduler:
    """One page among ten like it, all with a copy of this moment."""
    machine = Scheduler(budget=budget)
    machine.add_many(**{name: np.full(10, value) for name, value in page.items()}, now=0.0, age=0.0)  # type: ignore[arg-type]
    return machine


def moment_of(machine: Scheduler, share: float) -> float:
    """When the first page has reached this share of its threshold."""
    page = machine.state.pages[0]
    return share * float(page["threshold"]) / float(page["silent_rate"])


@given(rates, rates, st.floats(0.3, 5.0), st.floats(0.0, 10.0))
def test_without_signals_the_curve_round_the_threshold_is_the_value(
    request_rate: float, change_rate: float, often: float, share: float
) -> None:
    machine = one_page(10 * often * change_rate, request_rate=request_rate, change_rate=change_rate)
    now = moment_of(machine, share)
    assert machine.state.pages[0]["anchor"] > 0
    assert about(machine.state.core, 0, now) == pytest.approx(float(value_of(machine.state.core, 0, now)), rel=1e-3)


@given(rates, st.floats(0.05, 0.95), rates, st.floats(0.3, 5.0), st.floats(0.5, 3.0), st.integers(0, 3))
def test_with_signals_it_ranks_within_a_few_percent(
    change_rate: float, recall: float, noise: float, often: float, share: float, heard: int
) -> None:
    false_rate = noise * change_rate
    machine = one_page(
        10 * often * change_rate, request_rate=1.0, change_rate=change_rate, recall=recall, false_rate=false_rate
    )
    page = machine.state.pages[0]
    page["signals"] = heard
    now = moment_of(machine, share)
    exact = float(value_of(machine.state.core, 0, now))
    assert about(machine.state.core, 0, now) == pytest.approx(exact, rel=0.08)


def test_a_threshold_is_kept_while_the_price_is_nearly_the_same() -> None:
    machine = one_page(5.0, request_rate=1.0, change_rate=1.0, recall=0.5, false_rate=0.3)
    page, control = machine.state.pages[0], machine.state.control[0]
    before = float(page["threshold"])
    control["price"] *= 1.008
    set_threshold(machine.state.core, 0)
    assert page["threshold"] == before
    control["price"] *= 1.008
    set_threshold(machine.state.core, 0)
    assert page["threshold"] > before


def test_new_beliefs_give_a_new_threshold() -> None:
    machine = one_page(5.0, request_rate=1.0, change_rate=1.0)
    before = float(machine.state.pages[0]["threshold"])
    machine.update(0, now=0.0, request_rate=2.0)
    assert machine.state.pages[0]["threshold"] < before

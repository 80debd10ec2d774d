"""One number is checked and kept as an array of one is."""

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.schedule import Scheduler
from afresh.schedule.wheel.columns import column, counts

NUMBERS = st.one_of(st.floats(), st.integers(-3, 3), st.integers(-(1 << 70), 1 << 70), st.booleans())


def outcome(act: Callable[[], Any]) -> Any:
    try:
        found = act()
    except (ValueError, OverflowError) as error:
        return type(error), str(error)
    return found.tolist(), found.dtype, found.ndim, found.flags.writeable


@given(NUMBERS, st.sampled_from([inf, 1.0]), st.sampled_from([0.0, 0.5]), st.booleans())
def test_a_number_is_a_column_of_one(number: float, most: float, least: float, infinite: bool) -> None:
    alone = outcome(lambda: column("x", number, least=least, most=most, infinite=infinite))
    assert alone == outcome(lambda: column("x", [number], least=least, most=most, infinite=infinite))


@given(NUMBERS, st.sampled_from([0, -1]))
def test_a_count_is_a_column_of_one(number: float, least: int) -> None:
    assert outcome(lambda: counts("x", number, least=least)) == outcome(lambda: counts("x", [number], least=least))


def test_a_slot_that_was_never_given_or_was_taken_back_is_refused() -> None:
    machine = Scheduler(budget=1.0)
    slot, other = (machine.add(request_rate=1.0, change_rate=1.0, now=0.0) for _ in range(2))
    machine.remove(other)
    for wrong in (other, 17, -1, np.array([slot, other])):
        with pytest.raises(ValueError, match="slot must be"):
            machine.update_many(wrong, now=1.0, change_rate=2.0)
    machine.update(slot, now=1.0, change_rate=2.0)

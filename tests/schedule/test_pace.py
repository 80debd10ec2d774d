from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import ConfigError
from afresh.schedule import Pace


def spend(pace: Pace, asks: list[float]) -> list[float]:
    """Ask at each moment; the moments at which a token was there."""
    taken = []
    for now in asks:
        if pace.wait(now) is None:
            pace.take(now)
            taken.append(now)
    return taken


def most_in_a_second(times: list[float]) -> int:
    return max((bisect_left(times, start + 1.0 - 1e-6) - index for index, start in enumerate(times)), default=0)


@given(
    st.floats(min_value=0.3, max_value=200),
    st.lists(st.floats(min_value=0, max_value=0.2), min_size=1, max_size=300),
)
def test_no_second_ever_holds_more_than_the_budget(budget: float, pauses: list[float]) -> None:
    pace, now, asks = Pace(budget), 0.0, []
    for pause in pauses:
        now += pause
        asks.append(now)
    whole = int(budget) if budget == int(budget) else int(budget) + 1
    assert most_in_a_second(spend(pace, asks)) <= max(1, whole)


@pytest.mark.parametrize("budget", [0.5, 1.0, 7.0, 50.0, 333.3])
def test_a_caller_who_always_asks_gets_the_whole_budget(budget: float) -> None:
    pace, now, taken = Pace(budget), 0.0, 0
    while now < 20:
        wait = pace.wait(now)
        if wait is None:
            pace.take(now)
            taken += 1
        else:
            assert wait.until > now
            now = wait.until
    assert taken == pytest.approx(20 * budget, abs=1.1)


def test_a_late_timer_loses_nothing() -> None:
    pace, now, taken = Pace(100.0), 0.0, 0
    while now < 20:
        wait = pace.wait(now)
        if wait is None:
            pace.take(now)
            taken += 1
        else:
            now = wait.until + 0.004  # every wake-up is 4 ms late, nearly half a step
    assert taken == pytest.approx(2000, rel=0.01)


def test_a_long_pause_is_lost_not_saved_up() -> None:
    pace = Pace(10.0)
    spend(pace, [0.0])
    asks = [100.0 + 0.001 * step for step in range(1000)]
    taken = spend(pace, asks)
    assert len(taken) <= 11
    assert taken[5] - taken[0] > 0.4


def test_a_new_budget_holds_at_once() -> None:
    pace = Pace(1.0)
    spend(pace, [0.0])
    pace.budget = 4.0
    assert len(spend(pace, [1 + 0.01 * step for step in range(200)])) in (7, 8, 9)
    pace.budget = 0.0
    assert pace.wait(1e9) is not None


def test_a_dearer_page_takes_more_of_the_budget() -> None:
    pace = Pace(10.0)
    pace.take(0.0, cost=5.0)
    assert pace.wait(0.4) is not None
    assert pace.wait(0.5) is None


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_a_budget_must_be_a_rate(bad: float) -> None:
    with pytest.raises(ConfigError, match="budget"):
        Pace(bad)

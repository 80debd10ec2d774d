import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.value import crawl_value, freshness
from combined import combined_crawl_value, combined_freshness, combined_staleness

rates = st.floats(-1, 1).map(lambda power: 10.0**power)


@given(st.floats(0, 20), st.integers(0, 5), st.integers(0, 5), rates, st.floats(0.01, 1), rates, st.floats(0.05, 0.95))
def test_a_sender_cut_in_two_is_worth_the_whole(
    elapsed: float, one: int, two: int, change_rate: float, recall: float, false_rate: float, part: float
) -> None:
    shares = np.array([part, 1 - part, 0.0])  # and a third that says nothing
    cut = {"change_rate": change_rate, "recall": recall * shares, "false_rate": false_rate * shares + [0, 0, 0.4]}
    whole = {"change_rate": change_rate, "recall": recall, "false_rate": false_rate}
    assert combined_freshness(elapsed, [one, two, 9], **cut) == pytest.approx(
        freshness(elapsed, one + two, **whole), rel=1e-9
    )
    assert combined_crawl_value(elapsed, [one, two, 9], **cut) == pytest.approx(
        crawl_value(elapsed, one + two, **whole), rel=1e-8
    )


def test_value_of_two_unlike_senders_agrees_with_a_simulation() -> None:
    rng = np.random.default_rng(5)
    change_rate, recall, false_rate = 1.2, np.array([0.3, 0.4]), np.array([0.1, 0.7])
    silent_rate = 0.3 * change_rate
    signal_rate = recall * change_rate + false_rate
    weight = np.log(signal_rate / false_rate)
    goal, runs = silent_rate * 4 + weight[0] + weight[1], 100_000
    x, fresh_time, time = np.zeros(runs), np.zeros(runs), np.zeros(runs)
    alive = np.arange(runs)
    while alive.size:
        gap = rng.exponential(1 / signal_rate.sum(), alive.size)
        step = np.minimum(gap, (goal - x[alive]) / silent_rate)
        fresh_time[alive] += np.exp(-x[alive]) * -np.expm1(-silent_rate * step) / silent_rate
        time[alive] += step
        x[alive] += silent_rate * step
        sender = rng.choice(2, alive.size, p=signal_rate / signal_rate.sum())
        x[alive] += np.where(step == gap, weight[sender], 0.0)
        alive = alive[(step == gap) & (x[alive] < goal)]
    gains = fresh_time - math.exp(-goal) * time
    value = combined_crawl_value(4.0, [1, 1], change_rate=change_rate, recall=recall, false_rate=false_rate)
    assert abs(gains.mean() - value) < 4.5 * gains.std() / math.sqrt(runs)


def test_many_light_signals_meet_the_closed_form() -> None:
    cut = {"change_rate": 1e-3, "recall": [0.3, 0.2, 0.1], "false_rate": [1.0, 0.5, 2.0]}
    # 100,001 counts are one too many for the sum; just below the limit it is still taken.
    below, above = (combined_crawl_value(at, [0, 0, 0], **cut) for at in (38.0, 60.0))
    assert 0 < below < above
    whole = [crawl_value(at, 0, change_rate=1e-3) for at in (38.0, 60.0)]
    assert below / above == pytest.approx(whole[0] / whole[1], rel=0.05)


def test_pages_broadcast_over_senders() -> None:
    values = combined_crawl_value(
        np.array([1.0, 2.0]), [[0, 1], [2, 0]], change_rate=0.5, recall=[0.2, 0.3], false_rate=[0.1, 0.0]
    )
    assert values.shape == (2,)
    assert values[0] == pytest.approx(2.0)  # the second sender is never wrong
    assert combined_staleness(1.0, [0, 0], change_rate=0.5, recall=[0.5, 0.5], false_rate=0.1) == 0
    assert combined_crawl_value(1.0, [5, 5], change_rate=0.0, recall=[0.5, 0.5], false_rate=0.1) == 0


def test_recalls_beyond_all_changes_are_refused() -> None:
    with pytest.raises(ValueError, match="recall must sum to at most 1"):
        combined_freshness(1.0, [0, 0], change_rate=0.5, recall=[0.7, 0.7], false_rate=0.1)
    with pytest.raises(ValueError, match="false_rate must be"):
        combined_freshness(1.0, [0, 0], change_rate=0.5, recall=[0.7, 0.1], false_rate=[-1.0, 0.1])

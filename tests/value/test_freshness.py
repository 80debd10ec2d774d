import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.value import crawl_interval, crawl_value, freshness, staleness

rates = st.one_of(st.just(0.0), st.floats(-12, 6).map(lambda power: 10.0**power))
recalls = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
ages = st.one_of(st.just(0.0), st.floats(-6, 12).map(lambda power: 10.0**power))
counts = st.one_of(st.integers(0, 5), st.integers(0, 10**6))


@given(ages, counts, rates, recalls, rates)
def test_freshness_is_a_probability_that_falls_with_time_and_signals(
    elapsed: float, signals: int, change_rate: float, recall: float, false_rate: float
) -> None:
    page = {"change_rate": change_rate, "recall": recall, "false_rate": false_rate}
    now = freshness(elapsed, signals, **page)
    assert 0 <= now <= 1
    assert freshness(2 * elapsed, signals, **page) <= now
    assert freshness(elapsed, signals + 1, **page) <= now
    assert freshness(0.0, 0, **page) == 1


def test_freshness_follows_bayes() -> None:
    # Given the signals of an interval, true and false ones alike, by counting outcomes of many simulated intervals.
    rng = np.random.default_rng(7)
    runs, elapsed, change_rate, recall, false_rate = 400_000, 2.0, 0.4, 0.6, 0.5
    changes = rng.poisson(change_rate * elapsed, runs)
    heard = rng.binomial(changes, recall) + rng.poisson(false_rate * elapsed, runs)
    for signals in range(4):
        fresh = changes[heard == signals] == 0
        error = fresh.std() / math.sqrt(fresh.size)
        expected = freshness(elapsed, signals, change_rate=change_rate, recall=recall, false_rate=false_rate)
        assert abs(fresh.mean() - expected) < 4.5 * error


def test_certain_signals_and_silent_ones() -> None:
    assert freshness(5.0, 1, change_rate=0.1, recall=0.5) == 0  # no false signals: one is enough
    assert freshness(1e12, 0, change_rate=0.1, recall=1.0) == 1  # every change signalled, none heard
    assert freshness(5.0, 9, change_rate=0.1, false_rate=3.0) == pytest.approx(math.exp(-0.5))  # they say nothing
    assert freshness(math.inf, 0, change_rate=0.1) == 0
    assert staleness(5.0, 2, change_rate=0.2, recall=0.5, false_rate=0.1) == pytest.approx(0.5 + 2 * math.log(2))


def test_arrays_broadcast() -> None:
    table = freshness(np.array([[1.0], [2.0]]), [0, 1, 2], change_rate=0.1, recall=0.5, false_rate=0.1)
    assert table.shape == (2, 3)
    assert table[1, 2] == freshness(2.0, 2, change_rate=0.1, recall=0.5, false_rate=0.1)
    assert isinstance(freshness(1, 0, change_rate=1), float)


GOOD = {"elapsed": 1.0, "signals": 1, "change_rate": 0.5, "recall": 0.5, "false_rate": 0.2}


@pytest.mark.parametrize("function", [freshness, crawl_value, crawl_interval])
@pytest.mark.parametrize("name", list(GOOD))
@pytest.mark.parametrize("bad", [-1.0, math.nan])
@pytest.mark.parametrize("wide", [False, True])
def test_bad_arguments_are_named(function, name: str, bad: float, wide: bool) -> None:  # type: ignore[no-untyped-def]
    values = dict(GOOD)
    values[name] = np.array([GOOD[name], bad]) if wide else bad
    with pytest.raises(ValueError, match=f"^{name} must be"):
        function(**values)


def test_other_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"^recall must be at least 0 and at most 1, but is 1.5"):
        crawl_value(1.0, 0, change_rate=1.0, recall=1.5)
    with pytest.raises(ValueError, match=r"^request_rate must be"):
        crawl_value(1.0, 0, change_rate=1.0, request_rate=-1.0)
    with pytest.raises(ValueError, match=r"^change_rate must be at least 0 and finite"):
        crawl_value(1.0, 0, change_rate=math.inf)
    for assume in ("none", "perfect", "noisy"):
        with pytest.raises(ValueError, match=r"^false_rate must be"):
            crawl_value(1.0, 0, change_rate=1.0, false_rate=-1.0, assume=assume)
    with pytest.raises(ValueError, match=r"^terms must be"):
        crawl_value(1.0, 0, change_rate=1.0, terms=0)
    with pytest.raises(ValueError, match=r"^assume must be"):
        crawl_value(1.0, 0, change_rate=1.0, assume="all")  # type: ignore[arg-type]

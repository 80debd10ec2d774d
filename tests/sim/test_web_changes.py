import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from afresh.sim.web.changes import BURST_CHANGES, BURST_LENGTH, BURST_TIME, DAY_SHAPE, Cursor, Process, Timeline

ALL = [Process.POISSON, Process.RHYTHM, Process.BURSTS]


def line(process: Process, *, pages: int = 40, rate: float = 3.0, seed: int = 5) -> Timeline:
    """Pages that all change at the same rate, with a day of 10 seconds."""
    phases = np.linspace(0.0, 0.9, pages)
    return Timeline(seed, [rate] * pages, processes=[process] * pages, day=10.0, phases=phases)


@pytest.mark.parametrize("process", ALL)
@settings(max_examples=30, deadline=None)
@given(asks=st.lists(st.floats(0.0, 200.0), min_size=1, max_size=8), seed=st.integers(0, 1000))
def test_the_order_of_questions_does_not_alter_the_answers(process: Process, asks: list[float], seed: int) -> None:
    asked, fresh = line(process, pages=2, seed=seed), line(process, pages=2, seed=seed)
    answers = [asked.version(1, t) for t in asks]
    times = fresh.changes(1, 0.0, 500.0)
    assert answers == [sum(moment <= t for moment in times) for t in asks]
    assert asked.changes(1, 0.0, 500.0) == times


@pytest.mark.parametrize("process", ALL)
@settings(max_examples=30, deadline=None)
@given(t=st.floats(0.0, 100.0), rate=st.floats(0.01, 20.0))
def test_version_last_and_next_change_tell_one_story(process: Process, t: float, rate: float) -> None:
    story = line(process, pages=1, rate=rate)
    last, then = story.last_change(0, t), story.next_change(0, t)
    version = story.version(0, t)
    assert last <= t < then
    assert story.change_time(0, version) == last
    assert story.change_time(0, version + 1) == then
    assert story.version(0, then) == version + 1
    assert story.changes(0, t, then) == ([last] if last == t else [])


@pytest.mark.parametrize("process", ALL)
def test_pages_change_at_their_rate(process: Process) -> None:
    counts = line(process, pages=200).versions(1000.0)
    # Standard error of the mean: measured over the 200 independent pages.
    assert counts.mean() == pytest.approx(3000.0, abs=4 * counts.std() / np.sqrt(200))
    assert len(set(counts.tolist())) > 20


def test_poisson_gaps_are_exponential_and_counts_as_variable_as_their_mean() -> None:
    story = line(Process.POISSON, pages=400)
    times = np.array(story.changes(0, 0.0, 2000.0))
    assert stats.kstest(np.diff(times), "expon", args=(0, 1 / 3.0)).pvalue > 0.001
    counts = story.versions(20.0)
    # The index of dispersion of n Poisson counts is chi-squared / (n - 1).
    assert counts.var(ddof=1) / counts.mean() == pytest.approx(1.0, abs=4 * np.sqrt(2 / 399))


def test_bursts_are_bursts() -> None:
    counts = line(Process.BURSTS, pages=2000).versions(50.0)
    # Index of dispersion of a two-state process over a long time: 1 + 2 · variance of the rate · memory / mean rate.
    busy, quiet = 3.0 * BURST_CHANGES / BURST_TIME, 3.0 * (1 - BURST_CHANGES) / (1 - BURST_TIME)
    stay = BURST_LENGTH / busy
    memory = 1 / (1 / stay + BURST_TIME / (1 - BURST_TIME) / stay)
    expected = 1 + 2 * BURST_TIME * (1 - BURST_TIME) * (busy - quiet) ** 2 * memory / 3.0
    assert expected > 5
    assert counts.var() / counts.mean() == pytest.approx(expected, rel=0.15)


def test_rhythm_follows_the_hours_of_the_page_own_day() -> None:
    story = line(Process.RHYTHM, pages=10)
    hours = np.zeros(24)
    for page in range(10):
        local = (np.array(story.changes(page, 0.0, 3000.0)) / 10.0 + story.phases[page]) % 1.0
        hours += np.histogram(local, bins=24, range=(0.0, 1.0))[0]
    expected = DAY_SHAPE / 24 * hours.sum()
    assert stats.chisquare(hours, expected).pvalue > 0.001


def test_a_page_without_a_rate_never_changes() -> None:
    story = Timeline(1, [0.0, 1.0])
    assert story.version(0, 1e12) == 0
    assert story.next_change(0, 0.0) == story.change_time(0, 7) == np.inf
    assert story.changes(0, 0.0, 1e12) == []


def test_the_first_version_is_older_than_the_site_by_a_usual_gap() -> None:
    story = Timeline(2, [0.5] * 4000)
    ages = [-story.last_change(page, 0.0) for page in range(4000)]
    assert stats.kstest(ages, "expon", args=(0, 2.0)).pvalue > 0.001


def test_bad_rates_are_refused() -> None:
    for rate in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="rates"):
            Timeline(0, [rate])


@settings(max_examples=30, deadline=None)
@given(steps=st.lists(st.floats(0.0, 5.0), min_size=1, max_size=10))
def test_a_cursor_meets_each_change_once_and_in_order(steps: list[float]) -> None:
    story = line(Process.BURSTS, pages=5)
    cursor, met, t = Cursor(story), [], 0.0
    for step in steps:
        t += step
        met += cursor.advance(t)
    expected = sorted((moment, page) for page in range(5) for moment in story.changes(page, 0.0, np.nextafter(t, 1e9)))
    assert met == [item for item in expected if item[0] > 0.0]

"""Pages that change together: the plain form, and the compiled one against it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.errors import ConfigError
from afresh.estimate.activity import LEVELS, MOST_BRANCHES, NO_ROOM, SLICES, Activity, _averaged
from afresh.estimate.activity_online import fresh, learn_activity, slices_of, stretched
from afresh.sim.history import History, make_history
from afresh.sim.replay import replay

HOUR, DAY = 3600.0, 86400.0
NAMES = ("host", "host/docs")

crawls = st.lists(
    st.tuples(
        st.integers(0, 3),  # branch
        st.floats(0.0, 200 * HOUR),  # elapsed
        st.floats(0.0, 5.0),  # expected
        st.sampled_from([0.0, 0.0, 0.7, 1e9]),  # told
        st.booleans(),
        st.sampled_from([0.0, 0.0, 0.0, 80 * HOUR]),  # how long after it ended the crawl is heard of
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=60)
@given(crawls, st.floats(1.0, 1e9))
def test_compiled_activity_is_the_plain_one(
    evidence: list[tuple[int, float, float, float, bool, float]], start: float
) -> None:
    plain, other = Activity(width=HOUR), Activity(width=HOUR)
    names = [("a", "a/x"), ("a", "a/y"), ("b", "b/x"), ("a", "a/x", "a/x/1", "a/x/1/i")]
    branches = [plain.branches(each) for each in names]
    assert [other.branches(each) for each in names] == branches
    slices = slices_of(other)
    now = start
    for branch, elapsed, expected, told, changed, late in evidence:
        now += 0.3 * HOUR
        mine, then = branches[branch], now - late
        plain.learn(mine, then - elapsed, then, expected=expected, told=told, changed=changed)
        learn_activity(slices, np.array(mine), then - elapsed, then, expected, told, changed)
        for since in (now - elapsed, now - 3 * HOUR):
            one, two = plain.stretched(mine, since, now), stretched(slices, np.array(mine), since, now)
            assert math.isfinite(one)
            assert one >= 0
            assert two == pytest.approx(one, rel=1e-6, abs=1e-6)
            said = plain.fresh(mine, since, now, expected)
            assert 0 <= said <= 1
            assert fresh(slices, np.array(mine), since, now, expected) == pytest.approx(said, rel=1e-6, abs=1e-9)
    for name in ("found", "expected", "newest", *LEVELS):
        np.testing.assert_allclose(getattr(other, name), getattr(plain, name), rtol=1e-6, atol=1e-9)


def sweep_history(together: bool, pages: int = 600, folders: int = 6) -> History:
    """Pages that change at one rate, each on its own or a folder at a time."""
    rng = np.random.default_rng(3)
    end, rate = 720 * DAY, 1 / (40 * DAY)
    page, time = [], []
    for folder in range(folders):
        members = np.arange(folder, pages, folders)
        if together:
            for moment in end * rng.random(rng.poisson(rate * end)):
                hit = members[rng.random(len(members)) < 0.9]
                page.append(hit)
                time.append(np.full(len(hit), moment) + HOUR * rng.random(len(hit)))
        else:
            count = rng.poisson(rate * end, len(members))
            page.append(np.repeat(members, count))
            time.append(end * rng.random(int(count.sum())))
    names = tuple(f"https://example.com/{i % folders}/{i}.html" for i in range(pages))
    weight = rng.permutation(1.0 / np.arange(1, pages + 1))
    return make_history(np.concatenate(page), np.concatenate(time), weight=weight, start=0.0, end=end, names=names)


@pytest.mark.parametrize("together", [True, False])
def test_sweeps_are_foretold_and_where_there_are_none_nothing_is_lost(together: bool) -> None:
    history = sweep_history(together)
    apart = make_history(
        np.repeat(np.arange(history.pages), np.diff(history.first)),
        history.times, weight=history.weight, start=0.0, end=history.end,
    )  # fmt: skip
    budget = history.pages / (20 * DAY)
    with_siblings, without = (replay(each, "afresh", budget=budget, score_from=180 * DAY) for each in (history, apart))
    if together:
        assert with_siblings.weighted > without.weighted + 0.04
        assert with_siblings.brier < 0.5 * without.brier
    else:
        assert with_siblings.weighted > without.weighted - 0.005
        assert with_siblings.brier < 1.02 * without.brier
        assert with_siblings.expected == pytest.approx(with_siblings.weighted, abs=0.02)


def swept_site(seed: int) -> History:
    """Nine pages in ten change in sweeps, one every forty days, and seldom on their own; all weigh the same."""
    rng = np.random.default_rng(seed)
    pages, days = 600, 1440
    page, time = [], []
    for moment in days * DAY * rng.random(rng.poisson(days / 40)):
        page.append(np.flatnonzero(rng.random(pages) < 0.9))
        time.append(np.full(len(page[-1]), moment))
    count = rng.poisson(days / 200, pages)
    page.append(np.repeat(np.arange(pages), count))
    time.append(days * DAY * rng.random(int(count.sum())))
    names = tuple(f"https://example.com/{i}" for i in range(pages))
    weight = np.ones(pages)
    return make_history(
        np.concatenate(page), np.concatenate(time), weight=weight, start=0.0, end=days * DAY, names=names
    )


@pytest.mark.parametrize("every", [20, 40, 80])
def test_what_is_said_comes_true_where_a_whole_site_is_swept(every: int) -> None:
    # Nobody is crawled more often than the others, so no crawl shows what happened since the last sweep.
    runs = [replay(swept_site(seed), "afresh", budget=600 / (every * DAY), score_from=180 * DAY) for seed in range(4)]
    wrong = np.array([run.expected - run.weighted for run in runs])
    # It was 0.028 at forty days, and 0.038 at eighty, without the straight line.
    assert abs(wrong.mean()) < {20: 0.015, 40: 0.015, 80: 0.03}[every]
    assert np.abs(wrong).max() < 0.05
    assert (
        np.mean([run.brier for run in runs]) < {20: 0.114, 40: 0.134, 80: 0.072}[every]
    )  # 0.117 and 0.140 with no fading slices


def test_on_one_branch_pages_are_crawled_in_the_order_in_which_they_would_be_alone() -> None:
    history = swept_site(5)
    together, alone = (
        replay(each, "afresh", budget=600 / (40 * DAY), score_from=180 * DAY)
        for each in (history, replace(history, names=()))
    )
    assert together.weighted == pytest.approx(alone.weighted, abs=0.003)  # they also share their priors
    assert together.brier < 0.9 * alone.brier


def test_a_young_copy_of_a_site_that_is_swept_is_as_fresh_as_not_knowing_when_makes_it() -> None:
    activity = Activity(width=HOUR)
    branches = activity.branches(NAMES)
    for day in range(400):  # a sweep a day, just before noon, and every crawl comes a day after the last
        for hour in range(24):
            now = day * DAY + hour * HOUR
            activity.learn(branches, now - DAY, now, expected=1.0, told=0.0, changed=hour % 3 > 0)
    usual = -math.log1p(-activity.usual[0])
    assert usual == pytest.approx(1.1, abs=0.3)
    now = 400 * DAY
    for share in (0.25, 0.5, 0.75):
        x = share * usual
        line = 1.0 - share * -math.expm1(-usual)
        assert math.exp(-x) < activity._fresh(0, x) < line
    assert activity._fresh(0, 2 * usual) == math.exp(-2 * usual)
    assert activity.fresh(branches, now, now, 0.0) == 1.0
    # Where pages change each on their own it is the exponential.
    activity.odds[0] = -20.0
    assert activity._fresh(0, 0.5 * usual) == pytest.approx(math.exp(-0.5 * usual))


def test_a_change_makes_siblings_older_and_strangers_not() -> None:
    activity = Activity(width=HOUR)
    here, there = activity.branches(NAMES), activity.branches(("other", "other/docs"))
    for _ in range(10):
        activity.learn(here, 0.0, 20 * HOUR, expected=0.05, told=0.0, changed=True)
    assert activity.stretched(here, 0.0, 20 * HOUR) > 40 * HOUR
    assert activity.stretched(there, 0.0, 20 * HOUR) == 20 * HOUR
    # A copy that was renewed since then has nothing to do with it.
    assert activity.stretched(here, 21 * HOUR, 23 * HOUR) < 5 * HOUR


def test_a_branch_that_is_crawled_often_says_no_more_of_the_others() -> None:
    # Busy branches are crawled more, because they are busy; the site as a whole is not as busy as they are.
    often, once = Activity(width=HOUR), Activity(width=HOUR)
    for activity, crawls in ((often, 200), (once, 10)):
        for folder in range(6):
            branches = activity.branches(("host", f"host/{folder}"))
            for _ in range(crawls if folder == 0 else 10):
                activity.learn(branches, 0.0, 20 * HOUR, expected=1.0, told=0.0, changed=folder == 0)
    ratios = []
    for activity in (often, once):
        unknown = activity.branches(("host", "host/new"))
        ratios.append(activity._passed(unknown, 0.0, 20 * HOUR)[0] / (20 * HOUR))
        busy = activity.branches(("host", "host/0"))
        assert activity._passed(busy, 0.0, 20 * HOUR)[0] > 2 * activity._passed(unknown, 0.0, 20 * HOUR)[0]
    assert ratios[0] < 1.5 * ratios[1]


def test_the_less_is_known_of_a_branch_the_less_is_its_copy_given_up() -> None:
    activity = Activity(width=HOUR)
    known, unknown = activity.branches(("host", "host/a")), activity.branches(("host", "host/b"))
    for crawl in range(400):
        activity.learn(known, 0.0, 20 * HOUR, expected=1.0, told=0.0, changed=crawl % 3 > 0)
    activity.odds[0], activity.folder_odds[0], level = 20.0, 20.0, math.exp(activity.tone[0])
    mean = 20 * HOUR
    for branches in (known, unknown):
        time, doubt = activity._passed(branches, 0.0, mean)
        said = activity.fresh(branches, 0.0, mean, 1.0)
        assert said == pytest.approx(activity._fresh(0, _averaged(time / mean, doubt / mean**2) * level))
        assert said > activity._fresh(0, time / mean * level)
    doubts = [activity._passed(each, 0.0, mean)[1] / activity._passed(each, 0.0, mean)[0] for each in (known, unknown)]
    assert doubts[1] > 10 * doubts[0]


@pytest.mark.parametrize("by_folder", [True, False])
def test_whether_folders_foretell_more_than_their_host_is_learned(by_folder: bool) -> None:
    # Every ten hours something is edited: a folder as a whole, or pages all over the site whatever their folder.
    rng = np.random.default_rng(4)
    activity = Activity(width=HOUR)
    folders = [activity.branches(("host", f"host/{folder}")) for folder in range(4)]
    for turn in range(600):
        now = (turn + 1) * 10 * HOUR
        edited = int(rng.integers(4))
        for folder in range(4):
            for _ in range(3):
                changed = folder == edited if by_folder else bool(rng.random() < 0.25)
                activity.learn(folders[folder], now - 10 * HOUR, now, expected=0.3, told=0.0, changed=changed)
    assert (activity.folder_odds[0] > 5.0) == by_folder
    assert (activity.folder_odds[0] < -1.0) != by_folder


def test_a_change_that_signals_explain_says_little_about_siblings() -> None:
    silent, told = Activity(width=HOUR), Activity(width=HOUR)
    for activity, signals in ((silent, 0.0), (told, 5.0)):
        branches = activity.branches(NAMES)
        for _ in range(10):
            activity.learn(branches, 0.0, 20 * HOUR, expected=0.05, told=signals, changed=True)
    assert told.stretched(told.branches(NAMES), 0.0, 20 * HOUR) < 25 * HOUR
    assert silent.stretched(silent.branches(NAMES), 0.0, 20 * HOUR) > 40 * HOUR


def test_memory_is_bounded() -> None:
    activity = Activity(width=HOUR)
    for number in range(MOST_BRANCHES + 100):
        branches = activity.branches(("host", f"host/{number}"))
    assert branches == (0,)
    assert len(activity.newest) <= MOST_BRANCHES
    # Hosts that found no room are one; those that are known stay what they are.
    strangers = {activity.branches((f"stranger{number}", f"stranger{number}/a")) for number in range(100)}
    assert strangers == {(MOST_BRANCHES,)}
    assert activity.names[MOST_BRANCHES] == NO_ROOM
    assert activity.branches(("host", "host/7")) == (0, 8)
    assert len(activity.names) == MOST_BRANCHES + 1


def test_a_crawl_that_is_heard_of_late_changes_nothing_in_newer_slices() -> None:
    activity = Activity(width=HOUR)
    branches = activity.branches(NAMES)
    activity.learn(branches, 99 * HOUR, 100 * HOUR, expected=0.1, told=0.0, changed=False)
    before = activity.found.copy(), activity.expected.copy()
    activity.learn(branches, 0.0, (100 - SLICES) * HOUR - 1.0, expected=5.0, told=0.0, changed=True)
    np.testing.assert_array_equal(activity.found, before[0])
    np.testing.assert_array_equal(activity.expected, before[1])


@pytest.mark.parametrize("length", [5e-324, 1e-300, 1e-12])
def test_an_interval_of_no_length_teaches_nothing(length: float) -> None:
    activity = Activity(width=HOUR)
    branches = activity.branches(NAMES)
    slices = slices_of(activity)
    activity.learn(branches, 0.0, length, expected=0.5, told=0.0, changed=True)
    learn_activity(slices, np.array(branches), 0.0, length, 0.5, 0.0, True)
    assert activity.found.sum() == activity.odds[0] == 0.0


def test_a_width_must_be_a_time() -> None:
    with pytest.raises(ConfigError, match="width"):
        Activity(width=0.0)


MOMENTS = st.floats(0.0, 300.0)


@given(st.lists(st.tuples(MOMENTS, MOMENTS, st.booleans()), max_size=20), MOMENTS, MOMENTS)
def test_time_that_passed_is_the_sum_over_slices(
    crawls: list[tuple[float, float, bool]], since: float, now: float
) -> None:
    activity = Activity(width=2.0)
    branches = activity.branches(("h", "h/a"))
    for begin, end, changed in crawls:
        activity.learn(branches, begin, end, expected=0.3, told=0.0, changed=changed)
    if since < now:
        first, spans, before = activity._cover(since, now)
        ratios, doubts = activity._mixed_ratios(branches, first, len(spans))
        plain = before + float(spans @ ratios), float(spans**2 @ doubts)
        assert activity._passed(branches, since, now) == pytest.approx(plain, rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(MOMENTS, MOMENTS, st.booleans()), max_size=20), MOMENTS, st.floats(0.0, 2.0))
def test_an_interval_within_one_slice_is_stretched_like_any_other(
    crawls: list[tuple[float, float, bool]], since: float, length: float
) -> None:
    activity = Activity(width=2.0)
    branches = activity.branches(("h", "h/a"))
    for begin, end, changed in crawls:
        activity.learn(branches, begin, end, expected=0.3, told=0.0, changed=changed)
    now = since + length
    last = math.floor(now / activity.width)
    if math.floor(since / activity.width) == last:
        first, spans, before = activity._cover(since, now)
        ratios, doubts = activity._mixed_ratios(branches, first, len(spans))
        plain = before + float(spans @ ratios), float(spans**2 @ doubts)
        assert activity._within(branches, last, since, now) == pytest.approx(plain, rel=1e-12)


@given(st.floats(1.0, 1e4), st.integers(0, 3))
def test_where_a_round_takes_longer_two_slices_become_one(start: float, doublings: int) -> None:
    activity = Activity(width=2.0)
    branches = activity.branches(("h", "h/a"))
    moments = start + np.arange(40)
    for now in moments:
        activity.learn(branches, now - 5.0, now, expected=0.3, told=0.0, changed=int(now) % 3 == 0)
    found = {at * 2.0: activity.found[branches[-1], at % SLICES] for at in range(int(start // 2), int(start // 2) + 21)}
    activity.follow(2.0**doublings * 32.0)
    assert activity.width == 2.0 ** max(1, doublings)
    wide = activity.width
    for at in range(int(start // wide), int((start + 40) // wide)):
        whole = sum(amount for begin, amount in found.items() if at * wide <= begin < (at + 1) * wide)
        if at * wide >= start:
            assert activity.found[branches[-1], at % SLICES] == pytest.approx(whole)
    activity.follow(1.0)
    assert activity.width == wide


def test_slices_grow_with_the_collection() -> None:
    from afresh.engine import Engine
    from afresh.estimate import Grid
    from afresh.schedule import Scheduler
    from afresh.types import Page

    engine = Engine(scheduler=Scheduler.live(budget=1.0), estimator=Grid(), activity=Activity(width=1.0))
    for number in range(200):
        engine.add(Page(f"http://e.org/{number}", "e.org"), 0.0)
    assert engine.activity is not None
    assert 200 / 32 <= engine.activity.width <= 200 / 16
    still = Engine(scheduler=Scheduler.live(budget=0.0), estimator=Grid(), activity=Activity(width=1.0))
    still.add(Page("http://e.org/", "e.org"), 0.0)
    assert still.activity is not None
    assert still.activity.width == 1.0

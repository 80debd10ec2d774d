import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.schedule.peer_rules import DAY, HOUR, MINUTE, RULES
from afresh.sim.field import close, entries_since, modified, new_field, visit
from afresh.sim.history import History, make_history
from afresh.sim.peers import replay_rates, replay_rule
from afresh.sim.queue import new_queue, pop, push
from afresh.sim.rules import first_due, new_intervals, next_due


def history(changes: list[list[float]], end: float) -> History:
    page = np.concatenate([np.full(len(times), k) for k, times in enumerate(changes)]).astype(np.int64)
    time = np.concatenate([np.array(times, float) for times in changes])
    return make_history(page, time, weight=np.ones(len(changes)), start=0.0, end=end)


def intervals_after(rule: str, found: list[bool], gap: float) -> list[float]:
    """How long after each of some visits, `gap` apart, the page is due again."""
    times = [gap * (k + 1) - 1.0 for k, changed in enumerate(found) if changed]
    field = new_field(history([times], gap * (len(found) + 1)), 0.0)
    intervals = new_intervals(field, RULES[rule])
    due = []
    for k, changed in enumerate(found):
        now = gap * (k + 1)
        assert visit(field, 0, now) == changed
        due.append(next_due(RULES[rule], intervals, field, 0, now, changed) - now)
    return due


def test_nutch_adaptive_shrinks_by_a_fifth_and_grows_by_two() -> None:
    # Changed at every visit: no time since the last change, so only the factor is left.
    assert intervals_after("nutch-adaptive", [True] * 3, DAY) == pytest.approx([24 * DAY, 19.2 * DAY, 15.36 * DAY])
    # Unchanged for a day: 30 d × 1.4 = 42 d, moved back by 0.3 of the day since the start.
    assert intervals_after("nutch-adaptive", [False], DAY) == pytest.approx([42 * DAY - 0.3 * DAY])
    # Never more than 90 days.
    assert intervals_after("nutch-adaptive", [False] * 9, 1.0)[-1] == pytest.approx(90 * DAY, rel=1e-6)


def test_nutch_as_of_1_22_is_not_moved_towards_the_last_change() -> None:
    assert intervals_after("nutch-1.22", [True] * 2, DAY) == pytest.approx([24 * DAY, 19.2 * DAY])
    assert intervals_after("nutch-1.22", [False], DAY) == pytest.approx([42 * DAY])


def test_stormcrawler_adaptive_moves_half_way_to_its_minimum() -> None:
    first, second = intervals_after("stormcrawler-adaptive", [True, True], DAY)
    assert first == pytest.approx(0.5 * DAY + 0.5 * HOUR)
    assert second == pytest.approx(0.5 * first + 0.5 * HOUR)
    assert intervals_after("stormcrawler-adaptive", [False] * 12, DAY)[-1] == 14 * DAY


def test_common_crawl_news_is_the_same_machine_retuned() -> None:
    assert intervals_after("common-crawl-news", [True], DAY) == pytest.approx([0.8 * DAY + 0.2 * 90 * MINUTE])
    assert intervals_after("common-crawl-news", [False] * 30, DAY)[-1] == 90 * DAY


def test_heritrix_multiplies_and_divides_by_one_and_a_half() -> None:
    assert intervals_after("heritrix", [True, False], DAY) == pytest.approx([8 * HOUR, 12 * HOUR])
    assert intervals_after("heritrix", [True] * 20, DAY)[-1] == HOUR
    assert intervals_after("heritrix", [False] * 20, DAY)[-1] == 28 * DAY


def test_miniflux_divides_a_week_by_its_entries_and_stays_within_a_day() -> None:
    assert intervals_after("miniflux", [True] * 8, DAY)[-1] == pytest.approx(DAY)
    assert intervals_after("miniflux", [True] * 200, HOUR)[-1] == pytest.approx(7 * DAY / 168, rel=0.02)
    assert intervals_after("miniflux", [False], DAY) == [DAY]


@pytest.mark.parametrize(("rule", "share"), [("yacy", 0.5), ("scrapy", 0.1), ("squid", 0.2)])
def test_heuristic_freshness_is_a_share_of_the_age_of_the_content(rule: str, share: float) -> None:
    due = intervals_after(rule, [True, False, False], DAY)
    ages = [1.0, DAY + 1.0, 2 * DAY + 1.0]
    assert due == pytest.approx([share * age for age in ages])


def test_squid_and_traffic_server_keep_to_their_bounds() -> None:
    assert intervals_after("squid", [False] * 40, DAY)[-1] == 3 * DAY
    assert intervals_after("traffic-server", [False] * 40, DAY)[-1] == DAY
    assert intervals_after("traffic-server", [True], DAY) == [HOUR]


def test_fixed_intervals_are_fixed() -> None:
    assert intervals_after("nutch", [True, False], DAY) == [30 * DAY] * 2
    assert intervals_after("stormcrawler", [True, False], DAY) == [DAY] * 2


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.booleans()), max_size=60))
def test_the_queue_is_a_sorted_list(steps: list[tuple[float, bool]]) -> None:
    queue, model = new_queue(60), []
    for page, (key, take) in enumerate(steps):
        push(queue, page, key)
        model.append((key, page))
        if take:
            model.sort()
            assert pop(queue) == model.pop(0)[1]
    assert [pop(queue) for _ in model] == [page for _, page in sorted(model)]
    assert pop(queue) == -1


times = st.lists(st.floats(0.1, 99.9), max_size=12, unique=True).map(sorted)


@given(changes=times, visits=times, score_from=st.sampled_from([0.0, 40.0]))
def test_the_score_is_the_share_of_time_that_the_copy_was_current(
    changes: list[float], visits: list[float], score_from: float
) -> None:
    field = new_field(history([changes], 100.0), score_from)
    for now in visits:
        last = max([0.0, *[other for other in visits if other < now]])
        assert visit(field, 0, now) == any(last < change <= now for change in changes)
    close(field)
    # By brute force: between any two moments of interest nothing happens.
    fresh = age = 0.0
    moments = sorted({score_from, 100.0, *[t for t in (*changes, *visits) if t > score_from]})
    for begin, end in pairwise(moments):
        copy = max([0.0, *[t for t in visits if t <= begin]])
        missed = [t for t in changes if copy < t <= begin]
        if missed:
            age += ((end - missed[0]) ** 2 - (begin - missed[0]) ** 2) / 2
        else:
            fresh += end - begin
    assert field.fresh_time[0] == pytest.approx(fresh, abs=1e-6)
    assert field.fresh_time[0] + field.stale_time[0] == pytest.approx(100 - score_from)
    assert field.stale_age[0] == pytest.approx(age, abs=1e-6)


def test_a_server_tells_the_last_change_and_a_feed_its_entries() -> None:
    field = new_field(history([[1.0, 5.0, 6.0]], 10.0), 0.0)
    assert modified(field, 0) == 0.0
    visit(field, 0, 5.5)
    assert modified(field, 0) == 5.0
    assert entries_since(field, 0, 0.5) == 2
    assert entries_since(field, 0, 1.0) == 1


def test_a_page_that_never_changed_was_last_modified_at_its_birth() -> None:
    field = new_field(replace(history([[], [50.0]], 100.0), births=np.array([40.0, -np.inf])), 0.0)
    assert field.current.tolist() == [40.0, 0.0]
    visit(field, 0, 60.0)
    visit(field, 1, 60.0)
    assert modified(field, 0) == 40.0
    assert modified(field, 1) == 50.0
    scrapy = RULES["scrapy"]
    assert next_due(scrapy, new_intervals(field, scrapy), field, 0, 60.0, False) == pytest.approx(62.0)


@pytest.mark.parametrize(
    ("rule", "after"),
    [("nutch", 30 * DAY), ("heritrix", 12 * HOUR), ("miniflux", DAY), ("scrapy", 0.0), ("uniform", 0.0)],
)  # fmt: skip
def test_a_newborn_is_due_as_after_a_first_fetch(rule: str, after: float) -> None:
    field = new_field(replace(history([[], []], 100 * DAY), births=np.array([0.0, 40 * DAY])), 0.0)
    assert first_due(RULES[rule], new_intervals(field, RULES[rule]), field, 1) == pytest.approx(40 * DAY + after)


def test_the_oldest_due_goes_first_and_nobody_is_left_out() -> None:
    changes = history([[]] * 20, 100 * DAY)
    field = replay_rule(changes, RULES["stormcrawler"], budget=2 / DAY, score_from=0.0)
    assert field.visits.min() == 10
    assert field.visits.max() == 10


def test_a_rule_may_rest_until_somebody_is_due() -> None:
    changes = history([[]] * 20, 100 * DAY)
    eager = replay_rule(changes, RULES["nutch"], budget=2 / DAY, score_from=0.0)
    resting = replay_rule(changes, RULES["nutch"], budget=2 / DAY, score_from=0.0, early=False)
    assert eager.tally[0] == 200
    assert resting.tally[0] == pytest.approx(20 * math.ceil(100 / 30), abs=10)


def test_yacy_waits_a_day_and_takes_the_oldest_copy() -> None:
    changes = history([[]] * 4, 60 * DAY)
    resting = replay_rule(changes, RULES["yacy"], budget=4 / DAY, score_from=0.0, early=False)
    # Each interval is half the age (or its first day) and a day on top, so visits become rare.
    assert 4 * 4 <= resting.tally[0] <= 4 * 12


def test_constant_rates_are_kept() -> None:
    changes = history([[]] * 3, 1000.0)
    field = replay_rates(changes, np.array([0.6, 0.3, 0.1]), budget=1.0, score_from=0.0)
    assert field.visits == pytest.approx([600, 300, 100], abs=2)

"""What is known of pages that change together, over a restart."""

import json
import math

import numpy as np
import pytest

from afresh.estimate.activity import LEVELS, SLICES, Activity
from afresh.estimate.activity_kept import MOST_KEPT, from_text, to_text

HOUR = 3600.0


def busy_site() -> tuple[Activity, list[tuple[int, ...]], float]:
    """Three folders, one of them edited as a whole, crawled for some days."""
    activity, now = Activity(width=HOUR), 0.0
    folders = [activity.branches(("host", f"host/{name}")) for name in "abc"]
    for crawl in range(300):
        now = 1e6 + crawl * HOUR / 4
        changed = crawl % 3 == 0 and crawl % 7 > 2
        activity.learn(folders[crawl % 3], now - 20 * HOUR, now, expected=0.5, told=0.0, changed=changed)
    return activity, folders, now


def test_what_is_known_survives_a_restart() -> None:
    activity, folders, now = busy_site()
    again = from_text(to_text(activity), width=HOUR, now=now)
    for number, name in enumerate("abc"):
        branches = again.branches(("host", f"host/{name}"))
        for age in (0.1, 1.0, 20.0, 100.0):
            said = activity.fresh(folders[number], now - age * HOUR, now, 0.02 * age)
            assert again.fresh(branches, now - age * HOUR, now, 0.02 * age) == pytest.approx(said, rel=1e-5)
    assert len(again.names) == 4
    assert to_text(again) == to_text(activity)


@pytest.mark.parametrize("text", [None, "", "{}", "[]", "null", "7", "[" * 100_000])
def test_of_other_text_nothing_is_made(text: str | None) -> None:
    assert from_text(text, width=HOUR, now=0.0).names == []


@pytest.mark.parametrize("fault", ["names", "newest", "levels", "slices", "width"])
def test_what_was_kept_and_cannot_be_is_not_used(fault: str) -> None:
    activity, _, now = busy_site()
    assert from_text(to_text(activity)[:-30], width=HOUR, now=now).names == []
    for value in (None, -3, -1.0, "x", [], [1], math.nan, {"a": 1}, "!" * 50, "A" * 40):
        kept = json.loads(to_text(activity))
        kept[fault] = value
        other = from_text(json.dumps(kept), width=HOUR, now=now)
        assert other.names == []
        assert other.width == HOUR


def test_levels_stay_within_their_bounds() -> None:
    activity, _, now = busy_site()
    for name in LEVELS:
        getattr(activity, name)[0] = 1e9
    other = from_text(to_text(activity), width=HOUR, now=now)
    said = other.fresh(other.branches(("host", "host/a")), now - HOUR, now, 0.1)
    assert 0.0 <= said <= 1.0
    assert math.isfinite(other.stretched((0, 1), now - HOUR, now))


def test_slices_that_are_far_too_long_are_not_taken_over_and_shorter_ones_are_joined() -> None:
    activity, _, now = busy_site()
    shorter = from_text(to_text(activity), width=HOUR / 10, now=now)
    assert shorter.width == HOUR / 10
    assert shorter.found.sum() == 0
    assert shorter.odds[0] == activity.odds[0]
    longer = from_text(to_text(activity), width=10 * HOUR, now=now)
    assert longer.width == 8 * HOUR
    assert longer.found.sum() == pytest.approx(activity.found.sum(), rel=1e-5)


@pytest.mark.parametrize("hours", [0.5, 3.0, 30.0, 1000.0])
def test_of_a_clock_that_was_wrong_only_what_it_had_to_come_is_forgotten(hours: float) -> None:
    activity, folders, now = busy_site()
    then = now - hours * HOUR
    back = from_text(to_text(activity), width=HOUR, now=then)
    branches = back.branches(("host", "host/a"))
    last = math.floor(then / HOUR)
    for slice_ in range(last - SLICES + 1, last + 1):
        kept = slice_ > activity.newest[folders[0][-1]] - SLICES
        expected = activity.found[folders[0][-1], slice_ % SLICES] if kept else 0.0
        assert back.found[branches[-1], slice_ % SLICES] == pytest.approx(expected, rel=1e-6)
    assert back.newest[branches[-1]] == last
    before = back.found[branches[-1], last % SLICES]
    back.learn(branches, then - 0.1 * HOUR, then, expected=0.5, told=0.0, changed=True)
    assert back.found[branches[-1], last % SLICES] > before


def test_hosts_are_kept_before_folders_and_nothing_that_is_out_of_date() -> None:
    activity, hosts = Activity(width=HOUR), MOST_KEPT // 2 + 400
    for number in range(hosts):
        branches = activity.branches((f"host{number}", f"host{number}/a"))
        for _ in range(2):
            activity.learn(branches, 0.0, 2 * HOUR, expected=4.0, told=0.0, changed=True)
    again = from_text(to_text(activity), width=HOUR, now=2 * HOUR)
    assert len(again.names) == MOST_KEPT
    assert sum("/" not in name for name in again.names) == hosts
    for number in range(100):  # much later, and only these are visited still
        branches = activity.branches((f"host{number}", f"host{number}/b"))
        activity.learn(branches, 1000 * HOUR, 1002 * HOUR, expected=0.1, told=0.0, changed=False)
    again = from_text(to_text(activity), width=HOUR, now=1002 * HOUR)
    assert sum(name.endswith("/b") for name in again.names) == 100
    assert not any(name.endswith("/a") for name in again.names)
    assert len(to_text(activity)) < 500 * MOST_KEPT
    np.testing.assert_array_equal(
        again.odds[again.branches(("host7",))[0]], activity.odds[activity.branches(("host7",))[0]]
    )

"""Grades against the truth: senders whose precision and recall are known, crawls that follow their hints."""

import math
import random

import numpy as np
import pytest

from afresh.estimate.grades import MAX_CLOSED, MAX_PAIRS, MAX_WAITING, Grades
from afresh.estimate.validators import ETAG

HOST = "e.org"
READ = "read "  # before the name of a list


def events_of(
    rng: random.Random, senders: dict[str, tuple[float, float]], rate: float, until: float
) -> list[tuple[float, str]]:
    """Changes of a page, and who told of them or of others, not in order."""

    def moments(rate: float) -> list[float]:
        found, t = [], 0.0
        while rate > 0 and (t := t + rng.expovariate(rate)) < until:
            found.append(t)
        return found

    changes = moments(rate)
    events = [(each, "") for each in changes]
    for name, (recall, precision) in senders.items():
        events += [(each + 1e-6, name) for each in changes if rng.random() < recall]
        events += [(each, name) for each in moments(recall * rate * (1 / precision - 1) if precision > 0 else recall)]
    return events


def world(
    senders: dict[str, tuple[float, float]],
    *,
    seed: int,
    pages: int = 60,
    until: float = 20_000.0,
    follow: str = "",
    read: dict[str, float] | None = None,
    between: float = 60.0,
) -> Grades:
    """Grades after a while; senders by (recall, precision); crawls come by and by, and soon after hints of one.

    Those that are `read` are lists: read so often, each time they show the latest hint of a page alone.
    """
    rng, grades = random.Random(seed), Grades()
    for page in range(pages):
        rate = rng.uniform(0.002, 0.02)
        events = events_of(rng, senders, rate, until)
        url, copy, stale = f"p{page}", 0.0, False
        crawl = rng.expovariate(1 / between)
        for name, interval in (read or {}).items():
            events += [(interval * nth, READ + name) for nth in range(1, int(until / interval))]
        shown = dict.fromkeys(read or {}, (0.0, 0.0))  # when a list was read, and the moment that it showed
        latest: dict[str, float] = {}
        for t, name in sorted([*events, (until, "")]):
            while crawl < t:
                grades.crawled(url, HOST, copy, crawl, changed=stale, rate=rate)
                copy, stale, crawl = crawl, False, crawl + rng.expovariate(1 / between)
            if name.startswith(READ):
                name = name.removeprefix(READ)
                before, moment = shown[name]
                if (newest := latest.get(name, 0.0)) > moment:
                    grades.hear(
                        url, HOST, name, newest, current=copy, now=t, says_when=True, deaf_since=before or -math.inf
                    )
                grades.read(HOST, name, t, grades.waiting(HOST))
                shown[name] = t, newest
            elif name in shown:
                latest[name] = t
            elif name:
                grades.hear(url, HOST, name, t, current=copy, now=t)
                if name == follow:
                    crawl = min(crawl, t + rng.uniform(0.0, 5.0))
            else:
                stale = True
    return grades


@pytest.mark.parametrize("follow", ["", "honest", "sitemap"])
def test_grades_are_near_the_truth_whoever_the_crawls_follow(follow: str) -> None:
    truth = {"sitemap": (0.5, 0.2), "honest": (0.7, 0.95), "liar": (0.01, 0.0)}
    found = [world(truth, seed=seed, follow=follow, pages=30, until=8_000.0) for seed in range(4)]
    for name, (recall, precision) in truth.items():
        grades = [grades.grade(name, HOST) for grades in found]
        assert np.mean([grade.precision for grade in grades]) == pytest.approx(precision, abs=0.07), (name, grades)
        if name != "liar":
            assert np.mean([grade.recall for grade in grades]) == pytest.approx(recall, abs=0.07), (name, grades)
        else:
            assert all(grade.recall < 0.1 for grade in grades)
        for grade in grades:
            for share, (low, high) in ((precision, grade.precision_range), (recall, grade.recall_range)):
                assert low - 0.05 <= share <= high + 0.05, (name, grade)


@pytest.mark.parametrize("interval", [20.0, 100.0, 300.0])
@pytest.mark.parametrize("follow", ["", "honest"])
def test_a_list_that_is_read_now_and_then_is_graded_right(interval: float, follow: str) -> None:
    """Who is heard at once has pages crawled before it is read, and what it says later hides what it had said."""
    truth = {"sitemap": (0.5, 0.2), "honest": (0.6, 0.9)}
    found = [
        world(truth, seed=seed, pages=12, until=40.0 * max(interval, 150.0), follow=follow, read={"sitemap": interval})
        for seed in range(8)
    ]
    said = [grades.grade("sitemap", HOST).recall or 0.0 for grades in found]
    print(f"read every {interval:g} s, crawled for {follow or 'nobody'}: {np.mean(said):.2f} ± {np.std(said):.2f}")
    for name, (recall, precision) in truth.items():
        grades = [grades.grade(name, HOST) for grades in found]
        assert np.mean([grade.recall for grade in grades]) == pytest.approx(recall, abs=0.07), (name, grades)
        assert np.mean([grade.precision for grade in grades]) == pytest.approx(precision, abs=0.05), (name, grades)


def test_pages_that_seldom_change_between_two_crawls_count_with_all_their_crawls() -> None:
    """If what is quiet is forgotten before what is not, pages seem to change more often, and recall to be less."""
    found = [world({"honest": (0.5, 0.9)}, seed=seed, pages=30, until=8_000.0, between=5.0) for seed in range(3)]
    assert np.mean([grades.grade("honest", HOST).recall for grades in found]) == pytest.approx(0.5, abs=0.05)
    assert np.mean([grades._hosts[HOST].pace for grades in found]) == pytest.approx(1.0, abs=0.1)


def test_what_a_list_says_of_a_window_counts_once_it_was_read_later() -> None:
    def heard(*, read: bool) -> float:
        grades = Grades()
        for nth in range(200):
            begin, end = 100.0 * nth, 100.0 * (nth + 1)
            grades.crawled("u", HOST, begin, end, changed=True, rate=0.01)
            if read or nth < 20:
                grades.hear(
                    "u", HOST, "map", end - 5.0, current=end, now=end + 1.0, says_when=True, deaf_since=begin + 1.0
                )
                grades.read(HOST, "map", end + 1.0, grades.waiting(HOST))
        recall = grades.grade("map", HOST).recall
        assert recall is not None
        return recall

    assert heard(read=True) > 0.6
    assert heard(read=False) == pytest.approx(heard(read=True), abs=0.15), "what was not read is not silence"


def test_pages_that_wait_for_lists_are_bounded() -> None:
    grades = Grades()
    grades.hear("p0", HOST, "map", 0.0, current=0.0, now=0.0, deaf_since=-1.0)
    grades.read(HOST, "map", 1.0, [])
    for nth in range(2 * MAX_WAITING):
        for turn in range(3):
            grades.crawled(f"p{nth}", HOST, 2.0 + turn, 3.0 + turn, changed=False, rate=0.1)
    assert grades.waiting(HOST) == [f"p{nth}" for nth in range(MAX_WAITING, 2 * MAX_WAITING)]
    for turn in range(10):
        grades.crawled("p9", HOST, 10.0 + turn, 11.0 + turn, changed=True, rate=0.1)
        assert len(grades._pages["p9"].closed) <= MAX_CLOSED
    grades.read(HOST, "map", 15.0, grades.waiting(HOST))
    assert grades.waiting(HOST) == ["p9"], "two of its crawls were later than that"
    grades.read(HOST, "map", 30.0, grades.waiting(HOST))
    assert grades.waiting(HOST) == []


def test_a_hint_that_says_when_belongs_to_the_window_of_that_moment() -> None:
    grades = Grades()
    grades.hear("u", HOST, "map", 0.0, current=0.0, now=0.0)
    for nth in range(1, 200):
        start = 100.0 * nth
        grades.crawled("u", HOST, start, start + 100.0, changed=True, rate=0.01)
        grades.hear("u", HOST, "map", start + 50.0, current=start + 100.0, now=start + 110.0, says_when=True)
    grade = grades.grade("map", HOST)
    assert grade.precision == pytest.approx(1.0, abs=0.1)
    assert grade.late == pytest.approx(60.0, abs=1.0)
    assert grade.recall is not None
    assert grade.recall > 0.5, "though every one of them was heard after the crawl"
    assert grade.recall_range[1] == 1.0


def test_g5_who_lies_loses_and_regains_when_honest() -> None:
    grades, start = Grades(), 0.0

    def rounds(number: int, *, honest: bool) -> float:
        nonlocal start
        for nth in range(number):
            changed = nth % 2 == 0
            if changed == honest:
                grades.hear("u", HOST, "cms", start + 50.0, current=start, now=start + 50.0)
            grades.crawled("u", HOST, start, start + 100.0, changed=changed, rate=0.005)
            start += 100.0
        precision = grades.grade("cms", HOST).precision
        assert precision is not None
        return precision

    assert rounds(500, honest=True) > 0.9
    assert rounds(1500, honest=False) < 0.1
    assert rounds(3000, honest=True) > 0.8


def test_validators_that_lie_are_graded() -> None:
    grades = Grades()
    for nth in range(100):
        grades.validator("stuck.test", ETAG, moved=False, changed=nth % 2 == 0, now=0.0)
        grades.validator("jumpy.test", ETAG, moved=True, changed=nth % 4 == 0, now=0.0)
        grades.validator("good.test", ETAG, moved=nth % 2 == 0, changed=nth % 2 == 0, now=0.0)
    assert grades.grade(ETAG, "stuck.test").recall == pytest.approx(0.0, abs=0.1)
    assert grades.grade(ETAG, "jumpy.test").precision == pytest.approx(0.25, abs=0.1)
    good = grades.grade(ETAG, "good.test")
    assert good.precision == pytest.approx(1.0, abs=0.05)
    assert good.recall == pytest.approx(1.0, abs=0.05)


def test_what_was_counted_survives_a_restart_and_memory_is_bounded() -> None:
    grades = world({"map": (0.5, 0.5)}, seed=1, pages=5, until=3000.0)
    grades.grade("map", HOST)
    again = Grades.from_text(grades.to_text(), now=3000.0)
    ahead = Grades.from_text(grades.to_text(), now=-1e9)  # it was kept while a clock ran ahead
    ahead.hear("p0", HOST, "map", -1e8, current=-2e8, now=-1e8)
    ahead.crawled("p0", HOST, -2e8, -1e7, changed=True, rate=1e-8)
    assert sum(tally.crawls for tally in ahead._hosts[HOST].tallies) > 0.0
    assert again.grade("map", HOST).precision == pytest.approx(grades.grade("map", HOST).precision, abs=1e-4)
    again.crawled("p0", HOST, 2900.0, 3100.0, changed=True, rate=0.01)
    assert again.grade("map", HOST).recall == pytest.approx(grades.grade("map", HOST).recall, abs=1e-4), (
        "hints before are forgotten"
    )
    for nth in range(10_000):  # a flood in one window neither fills memory nor drowns another's hint
        grades.hear("p0", HOST, "flood", 3101.0 + nth, current=3100.0, now=3101.0 + nth)
    assert sum(len(page.open) for page in grades._pages.values()) < 100
    for nth in range(1_000):  # nor do many names take the places of those of whom something is known
        grades.hear("p0", HOST, f"name-{nth}", 13200.0 + nth, current=3100.0, now=13200.0 + nth)
    names = [grade.sender for grade in grades.all()]
    assert len(names) == 16
    assert {"map", "flood", "name-999"} <= set(names)
    grades.crawled("p0", HOST, 3100.0, 15000.0, changed=True, rate=0.01)
    assert grades.grade("name-999", HOST).heard == 1.0
    for nth in range(2 * MAX_PAIRS):
        grades.hear("u", f"h{nth}", "map", 1.0, current=0.0, now=1.0)
    assert len(list(grades.all())) <= MAX_PAIRS
    with pytest.raises((ValueError, TypeError)):
        Grades.from_text('{"hosts": [["a", "b", "c"]]}')

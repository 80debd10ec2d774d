"""Grades against the truth: senders whose precision and recall are known, crawls that follow their hints."""

import random

import pytest

from afresh.estimate.grades import MAX_PAIRS, Grades
from afresh.estimate.validators import ETAG

HOST = "e.org"


def world(
    senders: dict[str, tuple[float, float]], *, seed: int, pages: int = 60, until: float = 20_000.0, follow: str = ""
) -> Grades:
    """Grades after a while; senders by (recall, precision); crawls come by and by, and soon after hints of one."""
    rng, grades = random.Random(seed), Grades()
    for page in range(pages):
        rate = rng.uniform(0.002, 0.02)
        changes: list[float] = []
        t = 0.0
        while (t := t + rng.expovariate(rate)) < until:
            changes.append(t)
        events = [(each, "", True) for each in changes]
        for name, (recall, precision) in senders.items():
            events += [(each + 1e-6, name, True) for each in changes if rng.random() < recall]
            false = recall * rate * (1 - precision) / precision if precision > 0 else recall
            t = 0.0
            while false > 0 and (t := t + rng.expovariate(false)) < until:
                events.append((t, name, False))
        url, copy, stale = f"p{page}", 0.0, False
        crawl = rng.expovariate(1 / 60.0)
        for t, name, _ in sorted([*events, (until, "", True)]):
            while crawl < t:
                grades.crawled(url, HOST, copy, crawl, changed=stale, rate=rate)
                copy, stale, crawl = crawl, False, crawl + rng.expovariate(1 / 60.0)
            if name:
                grades.hear(url, HOST, name, t, current=copy, now=t)
                if name == follow:
                    crawl = min(crawl, t + rng.uniform(0.0, 5.0))
            else:
                stale = True
    return grades


@pytest.mark.parametrize("follow", ["", "honest", "sitemap"])
def test_grades_are_near_the_truth_whoever_the_crawls_follow(follow: str) -> None:
    truth = {"sitemap": (0.5, 0.2), "honest": (0.7, 0.95), "liar": (0.01, 0.0)}
    grades = world(truth, seed=3, follow=follow)
    for name, (recall, precision) in truth.items():
        grade = grades.grade(name, HOST)
        assert grade.precision == pytest.approx(precision, abs=0.1), (name, grade)
        if name != "liar":
            assert grade.recall == pytest.approx(recall, abs=0.1), (name, grade)
            assert grade.precision_range[0] < grade.precision < grade.precision_range[1]
        for share, (low, high) in ((precision, grade.precision_range), (recall, grade.recall_range)):
            assert low - 0.05 <= share <= high + 0.05, (name, grade)
    assert grades.grade("liar", HOST).recall < 0.1


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

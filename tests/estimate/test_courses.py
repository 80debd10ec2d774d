import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.estimate import Learner
from afresh.estimate.courses import (
    COURSES,
    FOUND,
    HEIGHT,
    HOUR,
    JUDGED,
    KINDS,
    LAST,
    PROOF,
    SCORE,
    SHAPE,
    SPREAD,
    WEIGHT,
    are_used,
    course,
    expected,
    fits,
    new_courses,
)
from afresh.estimate.requests import MEMORY

HALF_MINUTE = 30.0


def plain(kept: np.ndarray, age: float, ahead: float, requests: float, burst: float, average: float) -> float:
    """What `expected` says, from integrals of the courses themselves."""
    fine = np.arange(HALF_MINUTE / 2, LAST + HOUR, HALF_MINUTE)
    logs, found = [], []
    for nth, form in enumerate(COURSES):
        own = course(*form, fine)
        past, coming = fine < age, (fine >= age) & (fine < age + ahead)
        interest = own[past].sum() * HALF_MINUTE + 1.0
        lately = (own * np.exp(-(age - fine) / MEMORY.fast))[past].sum() * HALF_MINUTE / interest
        lately = min(max(lately, 1e-4), 1 - 1e-4)
        mean = (kept[HEIGHT + nth] + average) / (kept[FOUND + nth] + 1)
        counted, rate, late = requests / SPREAD + SHAPE, SHAPE / mean, min(burst, requests)
        logs.append(
            np.log(kept[WEIGHT + nth])
            + SHAPE * np.log(rate)
            + requests / SPREAD * np.log(interest)
            - counted * np.log(rate + interest / SPREAD)
            + (late * np.log(lately) + (requests - late) * np.log(1 - lately)) / SPREAD
        )
        found.append(counted / (rate + interest / SPREAD) * own[coming].sum() * HALF_MINUTE)
    chances = np.exp(np.array(logs) - max(logs))
    return float(chances @ np.array(found) / chances.sum())


@given(st.integers(1, 80), st.floats(0, 300), st.floats(0, 1), st.floats(1e-5, 1e-1))
def test_tables_say_what_integrals_do(half_hours: int, requests: float, share: float, average: float) -> None:
    kept, age = new_courses(MEMORY.fast), half_hours * HOUR / 2
    asked = (age, HOUR, requests, share * requests, average)
    assert expected(kept, *asked) == pytest.approx(plain(kept, *asked), rel=0.03, abs=1e-6)


def asks(learner: Learner, slot: int, births: float, at: np.ndarray) -> None:
    for moment in np.sort(at):
        learner.requested(slot, 1.0, births + float(moment))


def news(learner: Learner, pages: int, rng: np.random.Generator) -> None:
    """Pages that are born every hour: interest rises at once, and decays within two hours."""
    for slot in range(pages):
        learner.add(slot, now=slot * HOUR, kin=("h",))
        asks(learner, slot, slot * HOUR, rng.exponential(2.0 * HOUR, rng.poisson(60)))


def test_courses_are_used_once_they_have_foretold_better_and_then_see_interest_end() -> None:
    rng = np.random.default_rng(0)
    learner, counts = Learner(), Learner()
    kept = learner.asking.courses
    assert not are_used(kept)
    news(learner, 60, rng)
    news(counts, 60, np.random.default_rng(0))
    assert kept[JUDGED] > 200
    assert kept[SCORE] > PROOF
    counts.asking.courses[SCORE] = 0.0
    for one in (learner, counts):
        one.add(100, now=200 * HOUR, kin=("h",))
        asks(one, 100, 200 * HOUR, np.random.default_rng(1).exponential(2.0 * HOUR, 60))
    truth = 60 / (2.0 * HOUR) * np.exp(-5.0)  # ten hours after its birth
    by_courses, by_counts = (one.beliefs(100, 210 * HOUR).request_rate for one in (learner, counts))
    assert abs(np.log(by_courses / truth)) < abs(np.log(by_counts / truth)) - 0.5


def test_steady_interest_is_not_taken_for_news() -> None:
    rng = np.random.default_rng(2)
    learner = Learner()
    for slot in range(40):
        learner.add(slot, now=0.0, kin=("h",))
        asks(learner, slot, 0.0, rng.uniform(0, 40 * HOUR, 200))
    for slot in range(40):
        assert learner.beliefs(slot, 40 * HOUR).request_rate == pytest.approx(200 / (40 * HOUR), rel=0.5)


def test_weights_stay_shares_and_an_old_or_unknown_page_has_no_course() -> None:
    learner = Learner()
    news(learner, 20, np.random.default_rng(3))
    kept = learner.asking.courses
    weights = kept[WEIGHT : WEIGHT + KINDS]
    assert weights.sum() == pytest.approx(1.0)
    assert weights.min() > 0.0
    assert not fits(kept, LAST, 100.0)
    assert not fits(kept, HOUR, 1.0)
    assert fits(kept, HOUR, 10.0)


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e15)), max_size=30))
def test_no_request_makes_a_belief_that_is_not_a_number(asked: list[tuple[float, float]]) -> None:
    learner = Learner()
    learner.add(0, now=0.0, kin=("h",))
    learner.asking.courses[SCORE] = 1e6
    for now, count in asked:
        learner.requested(0, count, now)
        assert np.isfinite(learner.beliefs(0, now).request_rate)
    assert np.isfinite(learner.asking.courses).all()

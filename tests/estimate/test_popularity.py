"""Requests: what a group's pages get on average, and how a page's own rate follows its requests."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.estimate import Estimator, Grid, Learner
from afresh.estimate.popularity import MOST_GROUPS, Popularity
from afresh.estimate.requests import MEMORY, exposure, faded
from afresh.types import Importance

HOUR, DAY = 3600.0, 86400.0

events = st.lists(
    st.tuples(st.sampled_from(["add", "ask", "remove"]), st.integers(0, 5), st.floats(0.0, 5 * DAY)), max_size=60
)


@given(events)
def test_a_groups_count_is_the_sum_over_its_pages(given_events: list[tuple[str, int, float]]) -> None:
    popularity, now = Popularity(), 0.0
    groups = [popularity.group(("host", f"host/{page % 2}")) for page in range(6)]
    since: dict[int, float] = {}
    asked: dict[int, tuple[float, float]] = {}  # count, when
    for what, page, gap in given_events:
        now += gap
        if what == "add" and page not in since:
            since[page], asked[page] = now, (0.0, now)
            popularity.add(groups[page], now)
        elif what == "ask" and page in since:
            asked[page] = faded(asked[page][0], now - asked[page][1], MEMORY.slow) + 3.0, now
            popularity.ask(groups[page], 3.0, now)
        elif what == "remove" and page in since:
            count, when = asked.pop(page)
            popularity.remove(groups[page], now, since=since.pop(page), requests=faded(count, now - when, MEMORY.slow))
    now += DAY
    requests = sum(faded(count, now - when, MEMORY.slow) for count, when in asked.values())
    seconds = sum(exposure(now - begun, MEMORY.slow) for begun in since.values())
    if since:
        assert popularity.average(0, now) == pytest.approx(requests / seconds, abs=1e-9)
        for group in set(groups):
            assert 0 <= popularity.average(group, now) < math.inf


def test_groups_are_bounded() -> None:
    popularity = Popularity()
    numbers = {popularity.group(("host", f"host/{number}")) for number in range(MOST_GROUPS + 10)}
    assert max(numbers) == MOST_GROUPS - 1


@pytest.fixture(params=[Grid, Learner])
def estimator(request: pytest.FixtureRequest) -> Estimator:
    return request.param(typical_rate=1 / DAY)  # type: ignore[no-any-return]


def rate(estimator: Estimator, slot: int, now: float) -> float:
    return estimator.beliefs(slot, now).request_rate


def test_a_page_that_nobody_asked_for_is_taken_to_be_like_its_siblings(estimator: Estimator) -> None:
    for slot in range(40):
        estimator.add(slot, now=0.0, kin=("host", f"host/{'news' if slot < 20 else 'archive'}"))
    for slot in range(20):
        estimator.requested(slot, 50.0, DAY)
    estimator.add(40, now=DAY, kin=("host", "host/news"))
    estimator.add(41, now=DAY, kin=("host", "host/archive"))
    estimator.add(42, now=DAY, kin=("host", "host/other"))
    news, archive, other = (rate(estimator, slot, DAY) for slot in (40, 41, 42))
    assert news == pytest.approx(50 / DAY, rel=0.35)
    assert archive < 0.3 * news
    assert archive < other < news
    for _ in range(5):  # its own requests soon count for more than its siblings'
        estimator.requested(41, 100.0, 2 * DAY)
    assert rate(estimator, 41, 2 * DAY) > 2 * news


def test_importance_overrides_or_multiplies(estimator: Estimator) -> None:
    for slot, importance in enumerate((None, Importance(0.25), Importance(5.0, times=True), Importance(0.0))):
        estimator.add(slot, now=0.0, importance=importance, kin=("host",))
    for slot in range(4):
        estimator.requested(slot, 86.4, DAY)
    learned = rate(estimator, 0, DAY)
    assert rate(estimator, 1, DAY) == 0.25
    assert rate(estimator, 2, DAY) == pytest.approx(5 * learned)
    assert rate(estimator, 3, DAY) == 0.0
    estimator.remove(2)
    estimator.add(2, now=DAY, kin=("host",))
    assert rate(estimator, 2, DAY) < learned + 1e-12


def test_a_burst_of_interest_is_followed_up_and_down(estimator: Estimator) -> None:
    """Rise like a sigmoid within hours, a plateau of three days, exponential decay: twenty times the ordinary rate."""
    rng, ordinary = np.random.default_rng(1), 2 / HOUR

    def true_rate(now: float) -> float:
        after = now - 60 * DAY
        rise = 1 / (1 + math.exp(-min(after / (2 * HOUR), 50.0))) if after > -DAY else 0.0
        return ordinary * (1 + 19 * rise * (1.0 if after < 3 * DAY else math.exp(-(after - 3 * DAY) / DAY)))

    for slot in range(2):
        estimator.add(slot, now=0.0, kin=("host",))
    at = {}
    for hour in range(24 * 75):
        now = hour * HOUR
        if count := rng.poisson(true_rate(now) * HOUR):
            estimator.requested(0, float(count), now)
        estimator.requested(1, 2.0, now)
        at[hour] = rate(estimator, 0, now) / true_rate(now)
    start = 24 * 60
    assert at[start - 48] == pytest.approx(1.0, abs=0.35)
    assert at[start + 24] > 0.6  # a day after the rise
    assert at[start + 60] == pytest.approx(1.0, abs=0.3)  # on the plateau
    assert 0.7 < at[start + 24 * 5] < 4.0  # two days into the decay
    assert rate(estimator, 1, 75 * DAY) == pytest.approx(ordinary, rel=0.1)

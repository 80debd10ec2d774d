import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.estimate import Grid
from afresh.types import Importance


def crawl(grid: Grid, slot: int, rate: float, rng: np.random.Generator, *, count: int, every: float) -> None:
    for _ in range(count):
        changed = bool(rng.uniform() < -np.expm1(-rate * every))
        grid.crawled(slot, elapsed=every, signals=0, changed=changed)


@pytest.mark.parametrize("rate", [0.002, 0.05, 1.0])
def test_a_rate_is_found_from_crawls(rate: float) -> None:
    # What was seen fades, so of 600 crawls about a hundred count, and one run is off by a seventh or so.
    found = []
    for seed in range(12):
        grid = Grid(typical_rate=0.01)
        grid.add(0, now=0.0)
        crawl(grid, 0, rate, np.random.default_rng(seed), count=600, every=0.7 / rate)
        found.append(grid.beliefs(0, 1.0).change_rate)
        assert grid.beliefs(0, 1.0).observations == 600
    assert np.exp(np.log(found).mean()) == pytest.approx(rate, rel=0.15)
    assert max(abs(np.log(np.array(found) / rate))) < 0.45


@pytest.mark.parametrize("typical_rate", [1.0, 0.1, 0.01, 0.001])
def test_a_new_page_is_believed_to_be_like_the_others(typical_rate: float) -> None:
    grid, rng = Grid(typical_rate=typical_rate), np.random.default_rng(5)
    for slot in range(200):
        grid.add(slot, now=0.0)
        crawl(grid, slot, 0.01, rng, count=20, every=100.0)
    grid.add(999, now=0.0)
    assert grid.fresh_probability(999, 100.0, 0) == pytest.approx(np.exp(-1.0), abs=0.02)
    if typical_rate < 1.0:  # else two pages' worth of the first guess, a hundred times as high, show in the mean
        assert grid.beliefs(999, 1.0).change_rate == pytest.approx(0.01, rel=0.25)


def test_a_good_signal_earns_trust_and_a_bad_one_loses_it() -> None:
    rng = np.random.default_rng(7)
    good, bad = Grid(typical_rate=0.1), Grid(typical_rate=0.1)
    for grid in (good, bad):
        grid.add(0, now=0.0)
    for _ in range(300):
        signals = int(rng.poisson(0.7))
        good.crawled(0, elapsed=10.0, signals=signals, changed=signals > 0)
        bad.crawled(0, elapsed=10.0, signals=signals, changed=bool(rng.uniform() < 0.2))
        good.signalled(0, signals)
        bad.signalled(0, signals)
    assert good.beliefs(0, 3000.0).recall > 0.9
    assert bad.beliefs(0, 3000.0).recall < 0.3
    assert bad.beliefs(0, 3000.0).false_rate > 0.04


def test_request_rates_follow_what_is_asked_for() -> None:
    grid = Grid()
    for slot in range(3):
        grid.add(slot, now=0.0, importance=Importance(5.0) if slot == 2 else None)
    assert grid.beliefs(0, 10.0).request_rate == grid.beliefs(1, 10.0).request_rate
    grid.requested(0, 300)
    assert grid.beliefs(0, 100.0).request_rate == pytest.approx(3.0, rel=0.05)
    assert 0 < grid.beliefs(1, 100.0).request_rate < 0.05
    assert grid.beliefs(2, 100.0).request_rate == 5.0


def test_what_was_learned_survives_a_restart() -> None:
    grid, rng = Grid(typical_rate=0.01), np.random.default_rng(11)
    grid.add(0, now=0.0)
    crawl(grid, 0, 0.03, rng, count=50, every=30.0)
    grid.requested(0, 12)
    grid.signalled(0, 3)
    again = Grid(typical_rate=0.01)
    again.add(0, now=500.0, learned=grid.learned(0))
    before, after = grid.beliefs(0, 600.0), again.beliefs(0, 600.0)
    assert after.change_rate == pytest.approx(before.change_rate, rel=1e-4)
    assert after.request_rate == pytest.approx(before.request_rate, rel=1e-6)
    assert after.observations == before.observations


@pytest.mark.parametrize("typical_rate", [0.0001, 0.003, 0.5])
def test_what_was_learned_does_not_depend_on_the_first_guess(typical_rate: float) -> None:
    grid, rng = Grid(typical_rate=0.01), np.random.default_rng(12)
    grid.add(0, now=0.0)
    crawl(grid, 0, 0.03, rng, count=200, every=30.0)
    again = Grid(typical_rate=typical_rate)
    again.add(0, now=0.0, learned=grid.learned(0))
    assert again.beliefs(0, 1.0).change_rate == pytest.approx(grid.beliefs(0, 1.0).change_rate, rel=0.2)


def test_foreign_memory_is_not_misread() -> None:
    grid = Grid()
    grid.add(0, now=0.0, learned=b"something else")
    assert grid.beliefs(0, 1.0).observations == 0


def test_a_removed_page_leaves_no_trace() -> None:
    grid, fresh = Grid(), Grid()
    grid.add(0, now=0.0)
    crawl(grid, 0, 1.0, np.random.default_rng(1), count=30, every=1.0)
    grid.requested(0, 10)
    grid.remove(0)
    for one in (grid, fresh):
        one.add(1, now=0.0)
    assert grid.beliefs(1, 10.0).change_rate == pytest.approx(fresh.beliefs(1, 10.0).change_rate)
    assert grid.beliefs(1, 10.0).request_rate == fresh.beliefs(1, 10.0).request_rate


@given(
    st.lists(
        st.tuples(st.floats(min_value=0, max_value=1e12), st.integers(min_value=0, max_value=10**6), st.booleans()),
        max_size=20,
    ),
    st.floats(min_value=0, max_value=1e12),
)
def test_beliefs_are_always_numbers_within_their_bounds(crawls: list[tuple[float, int, bool]], now: float) -> None:
    grid = Grid()
    grid.add(0, now=0.0)
    for elapsed, signals, changed in crawls:
        grid.signalled(0, signals)
        grid.crawled(0, elapsed=elapsed, signals=signals, changed=changed)
    believed = grid.beliefs(0, now)
    assert np.isfinite([believed.change_rate, believed.request_rate, believed.false_rate]).all()
    assert believed.change_rate > 0
    assert 0 <= believed.recall <= 1
    assert believed.false_rate >= 0


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1e6), st.integers(0, 3), st.booleans()), max_size=12))
def test_what_is_kept_is_what_is_known_at_that_moment(crawls: list[tuple[int, float, int, bool]]) -> None:
    """Parts of it are kept ready; the plain way is to write all of it out each time."""
    grid = Grid()
    for slot in range(3):
        grid.add(slot, now=0.0)
    for slot, elapsed, signals, changed in crawls:
        grid.signalled(slot, signals)
        grid.crawled(slot, elapsed=elapsed, signals=signals, changed=changed)
        for each in range(3):
            numbers = np.frombuffer(grid.learned(each), "<f4", offset=64)
            likelihood = np.concatenate([grid._pages[each].likelihood, grid._signal_likelihood])
            assert (numbers == likelihood.astype("<f4")).all()
        other = Grid()
        other.add(9, now=0.0, learned=grid.learned(slot))
        assert other.learned(9) == grid.learned(slot)

"""Budget moved by price: never more in force than there is, and none lost, whatever is late."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.cluster import Share, allot, in_force, moved, owners
from afresh.lab.shards import flowing
from afresh.store.slices import SLICES

PRICES = st.one_of(st.none(), st.floats(1e-9, 1e9))


@given(data=st.data(), total=st.floats(0.01, 1e4), workers=st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_no_more_is_in_force_than_there_is_and_nothing_is_lost(data: st.DataObject, total: float, workers: int) -> None:
    """Workers die, come back, hear late, and act late on what they heard."""
    granted = [0.0] * workers
    spending = [0.0] * workers  # as the coordinator knows it
    heard = [0.0] * workers
    real = [0.0] * workers
    flags = st.lists(st.booleans(), min_size=workers, max_size=workers)
    for _ in range(data.draw(st.integers(1, 12))):
        beats, acts, alive = data.draw(flags), data.draw(flags), data.draw(flags)
        for nth in range(workers):
            if not alive[nth]:  # its lease is over, and a new one begins with nothing
                granted[nth] = spending[nth] = heard[nth] = real[nth] = 0.0
            if acts[nth]:
                real[nth] = heard[nth]
            if beats[nth] and alive[nth]:  # it says what it goes by, and is told something else
                spending[nth], heard[nth] = max(real[nth], granted[nth]), granted[nth]
        shares = [
            Share(granted[nth], spending[nth], data.draw(PRICES), data.draw(st.floats(0, 100)), alive[nth])
            for nth in range(workers)
        ]
        granted = allot(total, shares)
        told = [Share(g, s.spending, alive=s.alive) for g, s in zip(granted, shares, strict=True)]
        assert in_force(told) <= total * (1 + 1e-9)
        assert sum(real) <= total * (1 + 1e-9)
        assert all(g == 0.0 for g, s in zip(granted, shares, strict=True) if not s.alive)
    # Once all hear, all of it is in force: what is given up is heard of in one round, and given to others in the next.
    for _ in range(3):
        granted = allot(total, [Share(g, g) for g in granted])
    assert sum(granted) == pytest.approx(total, rel=1e-9)


def test_prices_agree_in_the_end_however_late_some_are_heard() -> None:
    """A worker's price falls as the square of what it may spend; one of them is heard of 20 seconds late."""
    worth = np.array([1.0, 30.0, 900.0, 7.0])
    granted, said = [25.0] * 4, []
    for _ in range(400):
        said.append([float(price) for price in worth / np.array(granted) ** 2])
        shares = [
            Share(granted[nth], granted[nth], said[max(len(said) - 1 - late, 0)][nth], float(late))
            for nth, late in enumerate((0, 0, 1, 20))
        ]
        granted = allot(100.0, shares)
    assert granted == pytest.approx((100 * np.sqrt(worth) / np.sqrt(worth).sum()).tolist(), rel=0.02)


def test_a_change_of_their_number_moves_the_least() -> None:
    for workers in (1, 2, 4, 8, 31):
        before, after = owners(workers), owners(workers + 1)
        assert all(new == workers for old, new in zip(before, after, strict=True) if old != new)
        assert moved(workers, workers + 1) == pytest.approx(1 / (workers + 1), rel=0.25)
        assert set(before) == set(range(workers))
    assert len(owners(5)) == SLICES


def test_eight_shards_are_as_good_as_one_engine() -> None:
    found = flowing(8_000, 1, 8)
    assert found["budget flows"].accuracy > 0.995 * found["one engine"].accuracy
    assert found["1/N each"].accuracy < 0.6 * found["one engine"].accuracy


def test_budget_flows_among_shards_that_die_join_and_speak_late() -> None:
    found = flowing(6_000, 2, 120, troubled=True)
    assert found["budget flows"].accuracy > 0.93 * found["one engine"].accuracy
    assert found["1/N each"].accuracy < 0.6 * found["one engine"].accuracy


def test_no_worker_is_starved_where_hosts_allow_less_than_the_budget() -> None:
    """What one cannot spend goes to the others, however prices differ, and none gets nothing."""
    capacities, prices = [5.0, 12.0, 9.0], [500.0, 0.01, 1.0]
    shares = [Share(20.0 / 3, 20.0 / 3, price, capacity=room) for price, room in zip(prices, capacities, strict=True)]
    for _ in range(600):
        granted = allot(20.0, shares)
        assert sum(granted) <= 20.0 * (1 + 1e-9)
        shares = [
            Share(given, given, price, capacity=room)
            for given, price, room in zip(granted, prices, capacities, strict=True)
        ]
    assert granted[0] == pytest.approx(6.25, rel=0.02)  # all that its hosts allow, and a quarter more
    assert granted[2] == pytest.approx(11.25, rel=0.02)
    assert granted[1] == pytest.approx(2.5, rel=0.05)  # the cheapest has what the others cannot spend
    assert sum(granted) == pytest.approx(20.0)
    alone = allot(20.0, [Share(10.0, 10.0, 1.0), Share(10.0, 10.0, 1.0, capacity=0.0)])
    assert alone[1] < 10.0


def test_a_slow_host_of_many_pages_takes_no_budget_from_workers_that_have_no_price_yet() -> None:
    """Its worker has a price, those of few pages have none: they get by what their hosts allow."""
    held, allows, prices = (60.0, 10_060.0, 60.0), (12.0, 16.0, 12.0), (None, 13.0, None)
    granted = [1.0, 18.0, 1.0]
    for _ in range(60):
        shares = [
            Share(given, given, price, pages=pages, capacity=capacity)
            for given, price, pages, capacity in zip(granted, prices, held, allows, strict=True)
        ]
        granted = allot(20.0, shares)
        assert in_force([Share(given, given) for given in granted]) <= 20.0 * (1 + 1e-9)
    assert min(granted) > 5.0

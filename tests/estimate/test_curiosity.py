import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.estimate.curiosity import MOST_INTEREST, Doubt, horizon, interest, spread, told, value_of_knowing
from afresh.value.kernels import page_threshold, page_value
from afresh.value.mistaken import Rates

ROUGHLY = Doubt(mean_rate=0.5, shape=0.8, signal_shape=0.8, together=-0.2)
WELL = Doubt(mean_rate=0.5, shape=50.0, signal_shape=50.0, together=-0.2)


def test_spread_is_the_root_of_the_trigamma_function() -> None:
    assert spread(1.0) == pytest.approx(math.pi / math.sqrt(6), rel=1e-4)
    assert spread(0.5) == pytest.approx(math.pi / math.sqrt(2), rel=1e-4)
    assert spread(40.0) == pytest.approx(math.sqrt(1 / 40 + 1 / 3200), rel=1e-3)


@pytest.mark.parametrize("shape", [0.6, 2.0, 15.0])
@pytest.mark.parametrize("elapsed", [0.1, 1.0, 3.0, 10.0])
def test_a_crawl_removes_the_share_of_doubt_that_its_outcome_depends_on(shape: float, elapsed: float) -> None:
    rates = np.random.default_rng(1).gamma(shape, 0.5 / shape, 400_000)
    fresh = np.exp(-rates * elapsed)
    assert told(elapsed, 0.5, shape) == pytest.approx(fresh.var() / (fresh.mean() * (1 - fresh.mean())), rel=0.03)


def test_a_crawl_tells_nothing_at_once_or_when_a_change_is_certain() -> None:
    moments = [told(elapsed, 0.5, 20.0) for elapsed in (0.0, 1e-6, 3.0, 1e3)]
    assert moments[0] == 0.0
    assert moments[1] < 1e-5
    assert moments[2] > 0.02
    assert moments[3] < 1e-6


def test_plans_begin_with_learning_and_end_with_using_it() -> None:
    assert horizon(16.0, 0.0) == 16.0
    assert horizon(16.0, 7.0) == pytest.approx(8.0)
    assert horizon(16.0, 14.0) == horizon(16.0, 19.9) == 0.0
    assert horizon(16.0, 20.0) == pytest.approx(16.0 * 5 / 7)
    assert horizon(16.0, 70.0) == horizon(16.0, 99.0) == 0.0
    assert horizon(16.0, 100.0) > 0.0
    assert horizon(0.0, 0.0) == horizon(16.0, math.inf) == 0.0


@settings(max_examples=100, deadline=None)
@given(
    price=st.floats(0.01, 10.0),
    rate=st.floats(0.01, 3.0),
    signal_rate=st.one_of(st.just(0.0), st.floats(0.01, 3.0)),
    weight=st.floats(0.01, 3.0),
    shape=st.floats(0.05, 50.0),
    signal_shape=st.floats(0.05, 50.0),
    together=st.floats(-1.0, 0.0),
    ahead=st.floats(0.0, 1e3),
)
def test_interest_is_always_a_number_and_never_less_than_one(
    price: float,
    rate: float,
    signal_rate: float,
    weight: float,
    shape: float,
    signal_shape: float,
    together: float,
    ahead: float,
) -> None:
    believed, doubt = Rates(rate, signal_rate, weight), Doubt(rate, shape, signal_shape, together)
    assert 0.0 <= value_of_knowing(price, believed, doubt) < math.inf
    assert 1.0 <= interest(price, ahead, believed, doubt) <= MOST_INTEREST


def test_the_less_is_known_the_more_knowing_is_worth() -> None:
    worth = [
        value_of_knowing(1.0, Rates(0.5, 0.5, 0.7), Doubt(0.5, shape, shape, 0.0)) for shape in (0.5, 2.0, 8.0, 50.0)
    ]
    assert worth == sorted(worth, reverse=True)
    assert worth[0] > 20 * worth[-1] > 0


def brute_force(price: float, rate: float, mean_rate: float, shape: float) -> float:
    """What knowing the rate of a page without signals would gain, over draws of what it may be."""
    may_be = np.random.default_rng(2).gamma(shape, mean_rate / shape, 20_000)
    best = np.exp([-page_threshold(price, each, 0.0, 0.0, 0.0) for each in may_be])
    time = page_threshold(price, rate, 0.0, 0.0, 0.0) / rate
    kept = (-np.expm1(-may_be * time) / may_be - price) / time if time < math.inf else 0.0
    return float(np.mean(best - kept))


@pytest.mark.parametrize(("price", "rate"), [(0.5, 0.5), (1.5, 0.5), (3.0, 0.5), (0.2, 2.0)])
@pytest.mark.parametrize("shape", [1.0, 4.0, 20.0])
def test_four_points_stand_for_all_that_a_page_may_be(price: float, rate: float, shape: float) -> None:
    exact = brute_force(price, rate, rate, shape)
    rough = value_of_knowing(price, Rates(rate, 0.0, 0.5), Doubt(rate, shape, 1.0, 0.0))
    assert 0.3 * exact - 0.002 < rough < 3.0 * exact + 0.01


def due(factor: float, price: float, rate: float, signal_rate: float, weight: float) -> float:
    """After how long a page comes up whose request rate is multiplied by this, if nothing is heard of it."""
    return page_threshold(price / factor, rate, signal_rate, weight, 0.0) / rate


def test_a_page_that_is_not_known_well_is_crawled_at_a_telling_moment() -> None:
    price, rate, signal_rate, weight = 1.5, 0.5, 0.4, 0.7  # by these rates it is never worth a crawl: V < 1/Δ < price
    assert page_threshold(price, rate, signal_rate, weight, 0.0) == math.inf
    known_well = interest(price, 20.0, Rates(rate, signal_rate, weight), WELL)
    assert known_well == 1.0
    roughly = interest(price, 20.0, Rates(rate, signal_rate, weight), ROUGHLY)
    elapsed = due(roughly, price, rate, signal_rate, weight)
    assert 0.2 < rate * elapsed < 5.0  # neither at once, which tells nothing, nor when a change is certain
    assert roughly * page_value(rate * elapsed, rate, signal_rate, weight) == pytest.approx(price)
    # The longer what is learned will count, the sooner.
    assert (
        due(interest(price, 200.0, Rates(rate, signal_rate, weight), ROUGHLY), price, rate, signal_rate, weight)
        < elapsed
    )
    assert interest(price, 0.0, Rates(rate, signal_rate, weight), ROUGHLY) == 1.0


def test_a_page_that_is_worth_its_crawls_anyway_comes_up_a_little_sooner() -> None:
    price, rate, signal_rate, weight = 0.5, 0.5, 0.4, 0.7
    sooner = due(interest(price, 5.0, Rates(rate, signal_rate, weight), ROUGHLY), price, rate, signal_rate, weight)
    assert 0.3 * due(1.0, price, rate, signal_rate, weight) < sooner < due(1.0, price, rate, signal_rate, weight)


@pytest.mark.parametrize(
    ("price", "shape", "ahead"),
    [(0.8, 0.7, 40.0), (1.5, 0.7, 40.0), (1.5, 2.0, 160.0), (2.5, 0.7, 10.0), (2.5, 2.0, 40.0)],
)
def test_the_moment_is_that_of_the_best_interval(price: float, shape: float, ahead: float) -> None:
    rate, doubt = 0.5, Doubt(0.5, shape, 1.0, 0.0)
    worth = ahead * value_of_knowing(price, Rates(rate, 0.0, 0.5), doubt)
    moments = np.geomspace(0.05, 40.0, 600)
    taught = np.array([worth * told(elapsed, rate, shape) for elapsed in moments])
    gained = (-np.expm1(-rate * moments) / rate + taught - price) / moments
    best = moments[np.argmax(gained)]
    assert best < 0.6 * due(1.0, price, rate, 0.0, 0.5)  # it matters
    assert due(interest(price, ahead, Rates(rate, 0.0, 0.5), doubt), price, rate, 0.0, 0.5) == pytest.approx(
        best, rel=0.06
    )

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.estimate.curiosity import (
    MOST_INTEREST,
    RESTART,
    Copy,
    Outlook,
    Prices,
    horizon,
    interest,
    outlook,
    told,
)
from afresh.estimate.curiosity import value_of_knowing as filling_value_of_knowing
from afresh.estimate.points import POINTS, SILENT_RATES, WEIGHTS
from afresh.value.kernels import page_threshold, page_value
from afresh.value.mistaken import Rates

TYPICAL = 0.5
ALPHAS, BS = TYPICAL * np.repeat(SILENT_RATES, len(WEIGHTS)), np.tile(WEIGHTS, len(SILENT_RATES))


def doubtful(spread: float, rate: float = 0.5, weight: float = 0.7) -> np.ndarray:
    """Chances round these, with so much spread in both logarithms."""
    away = (np.log(ALPHAS / rate) ** 2 + np.log(BS / weight) ** 2) / (2 * spread**2)
    chance: np.ndarray = np.exp(-(away - away.min()))
    return chance / chance.sum()


ROUGHLY, WELL = doubtful(1.2), doubtful(0.1)


def factor(
    price: float,
    ahead: float,
    believed: Rates,
    chance: np.ndarray,
    *,
    plain_price: float | None = None,
    elapsed: float = 0.0,
    signals: float = 0.0,
) -> float:
    plain = price if plain_price is None else plain_price
    return float(interest(Prices(price, plain), ahead, believed, chance.copy(), TYPICAL, Copy(elapsed, signals)))


def knowing_and_outlook(
    price: float, believed: Rates, chance: np.ndarray, signals: float = 0.0
) -> tuple[float, Outlook]:
    gains = np.empty(POINTS)
    value = filling_value_of_knowing(price, believed, chance, TYPICAL, gains)
    return float(value), outlook(chance, gains, TYPICAL, signals)


def value_of_knowing(price: float, believed: Rates, chance: np.ndarray) -> float:
    return knowing_and_outlook(price, believed, chance)[0]


@pytest.mark.parametrize("signals", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("elapsed", [0.1, 1.0, 3.0, 10.0])
def test_a_crawl_removes_what_is_doubtful_about_the_gain_before_its_outcome_is_known(
    elapsed: float, signals: float
) -> None:
    price, believed = 1.0, Rates(0.5, 0.4, 0.7)
    gain = np.exp([-page_threshold(price, alpha, 0.4, b, 0.0) for alpha, b in zip(ALPHAS, BS, strict=True)])
    mean = ROUGHLY @ gain
    doubt, left = ROUGHLY @ (gain - mean) ** 2, 0.0
    fresh = np.exp(-(ALPHAS * elapsed + BS * signals))
    for likely in (fresh, 1 - fresh):
        after = ROUGHLY * likely
        left += after @ (gain - after @ gain / after.sum()) ** 2
    _, ahead = knowing_and_outlook(price, believed, ROUGHLY, signals)
    assert told(elapsed, ahead) == pytest.approx(1 - left / doubt, rel=1e-6, abs=1e-9)
    assert ahead.gain == pytest.approx(mean)


def test_what_is_doubtful_but_makes_no_difference_is_not_worth_learning() -> None:
    # Two kinds of pages, both so restless that no crawl of them pays; and two of which one does.
    both_hopeless, one_hopeful = np.zeros(POINTS), np.zeros(POINTS)
    rate = {k: TYPICAL * SILENT_RATES[k // len(WEIGHTS)] for k in range(POINTS)}
    slow, fast, faster = (min(rate, key=lambda k: abs(rate[k] - wanted)) for wanted in (0.1, 3.0, 12.0))
    both_hopeless[[fast, faster]] = one_hopeful[[slow, fast]] = 0.5
    hopeless, hopeful = (
        knowing_and_outlook(1.0, Rates(2.0, 0.0, 0.5), chance) for chance in (both_hopeless, one_hopeful)
    )
    assert hopeless[0] == 0.0
    assert told(0.2, hopeless[1]) == 0.0
    assert hopeful[0] > 0.1
    assert told(0.5, hopeful[1]) > 0.2


def test_a_crawl_tells_nothing_at_once_or_when_a_change_is_certain() -> None:
    _, silent = knowing_and_outlook(1.0, Rates(0.5, 0.4, 0.7), doubtful(0.5))
    moments = [told(elapsed, silent) for elapsed in (0.0, 1e-6, 3.0, 1e4)]
    assert moments[0] < 1e-6
    assert moments[1] < 1e-5
    assert moments[2] > 0.02
    assert moments[3] < 1e-6


def test_plans_begin_with_learning_and_end_with_using_it() -> None:
    assert horizon(3.0, 0.0, 20.0) == 60.0
    assert horizon(3.0, 8.0, 20.0) == pytest.approx(30.0)
    assert horizon(3.0, 16.0, 20.0) == horizon(3.0, 19.9, 20.0) == 0.0
    assert horizon(3.0, 20.0, 20.0) == pytest.approx(300.0 * 3 / 4)
    assert horizon(3.0, 80.0, 20.0) == horizon(3.0, 99.0, 20.0) == 0.0
    assert horizon(3.0, 100.0, 20.0) > 0.0
    assert horizon(3.0, 2.0, 5.0) == pytest.approx(7.5)
    assert horizon(0.0, 0.0, 20.0) == horizon(3.0, math.inf, 20.0) == 0.0
    assert horizon(3.0, 1.0, 0.0) == horizon(3.0, 1.0, -1.0) == horizon(3.0, 1.0, math.inf) == 0.0


@settings(max_examples=100, deadline=None)
@given(
    price=st.floats(0.01, 10.0),
    cheaper=st.floats(0.03, 1.0),
    rate=st.floats(0.01, 3.0),
    signal_rate=st.one_of(st.just(0.0), st.floats(0.01, 3.0)),
    weight=st.floats(0.01, 3.0),
    spread=st.floats(0.05, 3.0),
    ahead=st.floats(0.0, 1e3),
    elapsed=st.floats(0.0, 1e4),
    signals=st.floats(0.0, 30.0),
)
def test_interest_is_always_a_number_and_never_less_than_one(
    price: float,
    cheaper: float,
    rate: float,
    signal_rate: float,
    weight: float,
    spread: float,
    ahead: float,
    elapsed: float,
    signals: float,
) -> None:
    believed, chance = Rates(rate, signal_rate, weight), doubtful(spread, rate, weight)
    assert 0.0 <= value_of_knowing(price, believed, chance) < math.inf
    found = factor(price, ahead, believed, chance, plain_price=cheaper * price, elapsed=elapsed, signals=signals)
    assert 1.0 <= found <= MOST_INTEREST


def test_the_less_is_known_the_more_knowing_is_worth() -> None:
    believed = Rates(0.5, 0.5, 0.7)
    worth = [value_of_knowing(1.0, believed, doubtful(spread)) for spread in (1.2, 0.6, 0.3, 0.1)]
    assert worth == sorted(worth, reverse=True)
    assert worth[0] > 20 * worth[-1] > 0


def due(multiple: float, price: float, rate: float, signal_rate: float, weight: float) -> float:
    """After how long a page comes up whose request rate is multiplied by this, if nothing is heard of it."""
    return page_threshold(price / multiple, rate, signal_rate, weight, 0.0) / rate


def test_a_page_that_is_not_known_well_is_crawled_at_a_telling_moment() -> None:
    price, rate, signal_rate, weight = 1.5, 0.5, 0.4, 0.7  # by these rates it is never worth a crawl: V < 1/Δ < price
    believed = Rates(rate, signal_rate, weight)
    assert page_threshold(price, rate, signal_rate, weight, 0.0) == math.inf
    assert factor(price, 20.0, believed, WELL) == 1.0
    roughly = factor(price, 20.0, believed, ROUGHLY)
    elapsed = due(roughly, price, rate, signal_rate, weight)
    assert 0.2 < rate * elapsed < 5.0  # neither at once, which tells nothing, nor when a change is certain
    assert roughly * page_value(rate * elapsed, rate, signal_rate, weight) == pytest.approx(price)
    # The longer what is learned will count, the sooner.
    assert due(factor(price, 200.0, believed, ROUGHLY), price, rate, signal_rate, weight) < elapsed
    assert factor(price, 0.0, believed, ROUGHLY) == 1.0
    # And it counts more where it will be used at a lower price, as long as the page is not worth it anyway.
    assert due(factor(price, 20.0, believed, ROUGHLY, plain_price=1.2), price, rate, signal_rate, weight) < elapsed


def test_signals_say_when_there_is_nothing_left_to_learn_from_a_crawl() -> None:
    price, believed = 1.5, Rates(0.5, 0.4, 0.7)
    chance = doubtful(0.5)
    telling = due(factor(price, 60.0, believed, chance), price, *believed)
    at_once = factor(price, 60.0, believed, chance, elapsed=telling, signals=0.0)
    assert at_once * page_value(0.5 * telling, *believed) == pytest.approx(price, rel=0.05)
    # Eight signals later a change is certain, and a crawl teaches nothing.
    assert factor(price, 60.0, believed, chance, elapsed=telling, signals=8.0) == 1.0


def test_a_page_that_is_long_overdue_is_crawled_only_if_it_is_worth_several_prices_to_start_again() -> None:
    price, believed = 1.5, Rates(0.5, 0.4, 0.7)
    chance, late = doubtful(0.5), 200.0
    best = {}
    for ahead in (60.0, 2000.0):
        knowing = ahead * value_of_knowing(price, believed, chance)
        silent = knowing_and_outlook(price, believed, chance)[1]
        moments = np.geomspace(0.1, 20.0, 200)
        taught = np.array([told(elapsed, silent) for elapsed in moments])
        slope = np.gradient(taught, moments)
        values = np.array([page_value(0.5 * elapsed, *believed) for elapsed in moments])
        best[ahead] = float((values + knowing * (taught - moments * slope)).max())
    assert price < best[60.0] < RESTART * price < best[2000.0]
    assert factor(price, 60.0, believed, chance, elapsed=late) == 1.0
    again = factor(price, 2000.0, believed, chance, elapsed=late)
    assert again > 1.0
    assert again * page_value(0.5 * late, *believed) == pytest.approx(price)


def test_a_page_that_is_worth_its_crawls_anyway_comes_up_a_little_sooner() -> None:
    price, rate, signal_rate, weight = 0.5, 0.5, 0.4, 0.7
    sooner = due(factor(price, 5.0, Rates(rate, signal_rate, weight), ROUGHLY), price, rate, signal_rate, weight)
    assert 0.3 * due(1.0, price, rate, signal_rate, weight) < sooner < due(1.0, price, rate, signal_rate, weight)


@pytest.mark.parametrize(
    ("price", "spread", "ahead"),
    [(0.8, 1.2, 40.0), (1.5, 1.2, 40.0), (1.5, 0.6, 160.0), (2.5, 1.2, 60.0), (2.5, 0.6, 800.0)],
)
def test_the_moment_is_that_of_the_best_interval(price: float, spread: float, ahead: float) -> None:
    believed, chance = Rates(0.5, 0.0, 0.5), doubtful(spread)
    worth = ahead * value_of_knowing(price, believed, chance)
    moments = np.geomspace(0.05, 40.0, 600)
    silent = knowing_and_outlook(price, believed, chance)[1]
    taught = np.array([worth * told(elapsed, silent) for elapsed in moments])
    gained = (-np.expm1(-0.5 * moments) / 0.5 + taught - price) / moments
    best = moments[np.argmax(gained)]
    assert best < 0.6 * due(1.0, price, 0.5, 0.0, 0.5)  # it matters
    assert due(factor(price, ahead, believed, chance), price, 0.5, 0.0, 0.5) == pytest.approx(best, rel=0.06)


def test_points_of_hardly_any_probability_leave_theirs_to_the_others() -> None:
    chance = doubtful(0.6)
    unlikely = chance <= 1e-3
    assert 20 < unlikely.sum() < POINTS - 20
    before = chance.copy()
    interest(Prices(1.0, 1.0), 20.0, Rates(0.5, 0.4, 0.7), chance, TYPICAL, Copy(0.0, 0.0))
    assert not chance[unlikely].any()
    np.testing.assert_allclose(chance[~unlikely], before[~unlikely] / before[~unlikely].sum())


def test_every_point_counts_once() -> None:
    assert len(ALPHAS) == len(BS) == POINTS
    gains = np.linspace(0.0, 1.0, POINTS)
    whole = outlook(ROUGHLY, gains, TYPICAL, 0.0)
    assert whole.fresh.sum() == pytest.approx(1.0)
    assert whole.fresh_gain.sum() == pytest.approx(whole.gain)
    assert whole.gain == pytest.approx(ROUGHLY @ gains)
    assert whole.variance == pytest.approx(ROUGHLY @ gains**2 - whole.gain**2)

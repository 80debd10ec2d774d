import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize

from afresh.errors import SolverError
from afresh.value import crawl_rate, crawl_value, fresh_share, optimum
from afresh.value.demand import threshold_of_rate
from afresh.value.kernels import page_rates, page_value


def some_pages(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "request_rate": rng.uniform(0, 1, count),
        "change_rate": rng.uniform(0, 1, count),
        "recall": rng.beta(0.25, 0.25, count),
        "false_rate": rng.uniform(0.1, 0.6, count),
    }


def freshness_of(rates: np.ndarray, pages: dict[str, np.ndarray]) -> float:
    """Expected share of requests served fresh at any rates, from the published formulas and the rates alone."""
    fresh = 0.0
    for rate, request_rate, *page in zip(rates, *pages.values(), strict=True):
        if rate > 0:
            numbers = page_rates(*page)
            x = threshold_of_rate(rate, *numbers)
            fresh += request_rate * min(1.0, page_value(x, *numbers) * rate + math.exp(-x))
    return fresh / float(pages["request_rate"].sum())


def test_all_crawled_pages_have_the_same_value_and_the_budget_is_spent() -> None:
    pages = some_pages(500)
    best = optimum(budget=50.0, **pages)
    assert best.rates.sum() == pytest.approx(50.0, rel=1e-10)
    assert best.cost == pytest.approx(50.0, rel=1e-10)
    crawled = (best.rates > 0) & np.isfinite(best.thresholds)
    named = {key: pages[key][crawled] for key in ("change_rate", "recall", "false_rate")}
    values = crawl_value(best.thresholds[crawled], 0, request_rate=pages["request_rate"][crawled], **named)
    assert values == pytest.approx(best.price, rel=1e-7)
    never = best.rates == 0
    assert (pages["request_rate"][never] / pages["change_rate"][never] <= best.price * (1 + 1e-9)).all()
    # And the answer's parts fit together.
    smooth = pages["recall"][crawled] < 0.999
    assert crawl_rate(best.thresholds[crawled], **named)[smooth] == pytest.approx(best.rates[crawled][smooth], rel=1e-6)
    assert fresh_share(best.thresholds[crawled], **named) == pytest.approx(best.page_freshness[crawled], rel=1e-5)
    weights = pages["request_rate"] / pages["request_rate"].sum()
    assert best.freshness == pytest.approx(weights @ best.page_freshness)


page = st.tuples(
    st.one_of(st.just(0.0), st.floats(1e-6, 5)),
    st.floats(-2, 1).map(lambda power: 10.0**power),
    st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)),
    st.one_of(st.just(0.0), st.floats(0.01, 2)),
)


@settings(max_examples=200)
@given(st.lists(page, min_size=1, max_size=6), st.floats(0.01, 20), st.floats(0, 0.002), st.integers(0, 2**32 - 1))
def test_no_other_rates_are_better(
    rows: list[tuple[float, float, float, float]], budget: float, floor: float, seed: int
) -> None:
    pages = dict(zip(("request_rate", "change_rate", "recall", "false_rate"), np.array(rows).T, strict=True))
    if pages["request_rate"].sum() == 0 or floor * len(rows) > budget:
        return
    best = optimum(budget=budget, floor=floor, **pages)
    assert best.cost <= budget * (1 + 1e-9)
    # A price of less than the smallest normal float is as good as none.
    assert best.cost == pytest.approx(budget, rel=1e-9) or best.price <= 1e-300
    assert (best.rates >= floor * (1 - 1e-12)).all()
    assert freshness_of(best.rates, pages) == pytest.approx(best.freshness, abs=1e-6)
    rng = np.random.default_rng(seed)
    spare = budget - floor * len(rows)
    for share in rng.dirichlet(np.full(len(rows), 0.5), 15):
        other = floor + spare * share
        assert freshness_of(other, pages) <= best.freshness + 1e-9
        near = 0.98 * best.rates + 0.02 * other
        assert freshness_of(near, pages) <= best.freshness + 1e-9


@pytest.mark.parametrize("unit", [1e-300, 1e-150, 1e150, 1e300])
def test_the_unit_of_request_rates_does_not_matter(unit: float) -> None:
    pages = some_pages(20, seed=5)
    best = optimum(budget=3.0, **pages)
    other = optimum(budget=3.0, **(pages | {"request_rate": np.asarray(pages["request_rate"]) * unit}))
    assert other.rates == pytest.approx(best.rates, rel=1e-6)
    assert other.freshness == pytest.approx(best.freshness, rel=1e-9)
    assert other.price == pytest.approx(best.price * unit, rel=1e-6)


def test_a_general_optimiser_finds_nothing_better() -> None:
    pages = some_pages(12, seed=3) | {"recall": np.linspace(0, 0.9, 12)}
    best = optimum(budget=3.0, **pages)
    found = minimize(
        lambda rates: -freshness_of(rates, pages),
        np.full(12, 0.25),
        bounds=[(1e-9, None)] * 12,
        constraints={"type": "eq", "fun": lambda rates: rates.sum() - 3.0},
        method="SLSQP",
        options={"maxiter": 300, "ftol": 1e-12},
    )
    assert -found.fun <= best.freshness + 1e-9
    assert best.freshness == pytest.approx(-found.fun, abs=1e-4)


def test_without_signals_it_is_the_classic_optimum() -> None:
    rng = np.random.default_rng(2)
    weight, change = rng.exponential(1, 40), rng.uniform(0.01, 3, 40)

    def rates(price: float) -> np.ndarray:
        # max Σ μ/Δ·ξ(1 − e^{−Δ/ξ}): one price for the derivative μ/Δ·(1 − e^{−y}(1 + y)), y = Δ/ξ.
        found = np.zeros(40)
        for i in np.flatnonzero(weight / change > price):
            y = brentq(
                lambda y, i=i: weight[i] / change[i] * (1 - math.exp(-y) * (1 + y)) - price, 1e-9, 700, xtol=1e-14
            )
            found[i] = change[i] / y
        return found

    price = brentq(lambda price: rates(price).sum() - 10.0, 1e-4, (weight / change).max(), xtol=1e-13)
    best = optimum(budget=10.0, request_rate=weight, change_rate=change)
    assert best.price == pytest.approx(price, rel=1e-9)
    assert best.rates == pytest.approx(rates(price), rel=1e-6, abs=1e-9)
    positive = best.rates > 0
    y = change[positive] / best.rates[positive]
    assert best.freshness == pytest.approx((weight[positive] * -np.expm1(-y) / y).sum() / weight.sum(), rel=1e-9)
    assert best.thresholds[positive] == pytest.approx(1 / best.rates[positive], rel=1e-9)


def test_a_page_may_cost_more_than_another() -> None:
    pages = some_pages(300, seed=5)
    cost = np.random.default_rng(6).uniform(0.2, 5, 300)
    best = optimum(budget=40.0, cost=cost, **pages)
    assert (best.rates * cost).sum() == pytest.approx(40.0, rel=1e-10)
    crawled = (best.rates > 0) & np.isfinite(best.thresholds)
    values = crawl_value(np.where(crawled, best.thresholds, 0.0), 0, **pages)
    assert (values / cost)[crawled] == pytest.approx(best.price, rel=1e-7)
    # Twice the cost and twice the budget are the same problem.
    double = optimum(budget=80.0, cost=2 * cost, **pages)
    assert double.rates == pytest.approx(best.rates, rel=1e-6, abs=1e-12)


def test_hosts_with_caps_have_their_own_price() -> None:
    pages = some_pages(400, seed=7) | {"recall": np.linspace(0, 0.9, 400)}
    host = np.arange(400) % 5
    caps = {0: 1.0, 1: 4.0, 3: 1000.0}
    best = optimum(budget=60.0, host=host, host_budget=caps, **pages)
    assert best.host_prices is not None
    spent = np.bincount(host, weights=best.rates)
    assert spent.sum() == pytest.approx(60.0, rel=1e-9)
    assert spent[0] == pytest.approx(1.0, rel=1e-9)
    assert spent[1] == pytest.approx(4.0, rel=1e-9)
    assert (best.host_prices[:2] > 0).all()
    assert best.host_prices[0] > best.host_prices[1]
    assert best.host_prices[2:].tolist() == [0, 0, 0]
    crawled = best.rates > 0
    values = crawl_value(np.where(crawled, best.thresholds, 0.0), 0, **pages)
    assert values[crawled] == pytest.approx((best.price + best.host_prices[host])[crawled], rel=1e-6)
    # A host left alone with its cap as budget would do the same.
    mine = host == 1
    alone = optimum(budget=4.0, **{name: values[mine] for name, values in pages.items()})
    assert alone.rates == pytest.approx(best.rates[mine], rel=1e-6, abs=1e-12)


def test_hosts_that_count_signals_still_spend_their_caps() -> None:
    pages = {
        "request_rate": [1.0, 1.0, 1.0, 2.0],
        "change_rate": [0.1, 0.2, 0.1, 0.3],
        "recall": [1.0, 1.0, 0.5, 1.0],
        "false_rate": [0.1, 0.3, 0.0, 0.2],
    }
    best = optimum(budget=0.5, host=[0, 0, 1, 1], host_budget=[0.13, math.inf], **pages)
    assert np.bincount([0, 0, 1, 1], weights=best.rates) == pytest.approx([0.13, 0.37])


def test_a_least_rate_for_every_page() -> None:
    pages = some_pages(100, seed=9)
    free = optimum(budget=10.0, **pages)
    best = optimum(budget=10.0, floor=0.02, **pages)
    assert best.rates.min() == pytest.approx(0.02)
    assert best.rates.sum() == pytest.approx(10.0, rel=1e-10)
    assert best.price > free.price
    assert best.freshness < free.freshness
    held = (best.rates <= 0.02 * (1 + 1e-9)) & np.isfinite(best.thresholds) & (pages["recall"] < 0.99)
    named = {key: pages[key][held] for key in ("change_rate", "recall", "false_rate")}
    assert crawl_rate(best.thresholds[held], **named) == pytest.approx(0.02, rel=1e-6)


def test_floors_beyond_a_budget_are_refused() -> None:
    with pytest.raises(SolverError, match=r"more than the budget of 1\. Lower floor or raise budget"):
        optimum(budget=1.0, request_rate=1.0, change_rate=np.ones(3), floor=0.5)
    with pytest.raises(SolverError, match="host 1 cost 1 per second"):
        optimum(budget=9, request_rate=1.0, change_rate=np.ones(3), floor=0.5, host=[0, 1, 1], host_budget=0.7)
    exact = optimum(budget=1.5, request_rate=1.0, change_rate=np.ones(3), floor=0.5)
    assert exact.rates.tolist() == [0.5, 0.5, 0.5]


def test_no_budget_and_budget_for_all() -> None:
    nothing = optimum(budget=0.0, request_rate=[2.0, 1.0, 1.0], change_rate=[0.1, 0.1, 0.0])
    assert nothing.rates.tolist() == [0, 0, 0]
    assert nothing.price == pytest.approx(20.0)
    assert nothing.freshness == pytest.approx(0.25)  # of the page that never changes
    ample = optimum(budget=9.0, request_rate=[1.0, 1.0], change_rate=[0.1, 0.2], recall=1.0, false_rate=[0.1, 0.0])
    assert ample.price == 0
    assert ample.rates == pytest.approx([0.2, 0.2])  # at each signal, and nothing is left to gain
    assert ample.freshness == 1
    assert ample.cost == pytest.approx(0.4)
    held = optimum(budget=9.0, request_rate=1.0, change_rate=[0.1, 0.2], host=[0, 1], host_budget=1.0)
    assert held.price == 0
    assert held.rates == pytest.approx([1, 1])
    assert optimum(budget=1.0, request_rate=[], change_rate=[]).rates.size == 0
    assert optimum(budget=1.0, request_rate=0.0, change_rate=[1.0, 2.0]).rates.tolist() == [0, 0]


def test_large_and_small_instances_agree() -> None:
    small = some_pages(1000, seed=1)
    large = {name: np.tile(values, 100) for name, values in small.items()}
    one, hundred = optimum(budget=80.0, **small), optimum(budget=8000.0, **large)
    assert hundred.price == pytest.approx(one.price, rel=1e-7)
    assert hundred.freshness == pytest.approx(one.freshness, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("budget", math.nan),
        ("budget", -1.0),
        ("budget", math.inf),
        ("request_rate", [1.0, -1.0]),
        ("change_rate", [math.nan, 1.0]),
        ("recall", 1.1),
        ("false_rate", -0.1),
        ("cost", 0.0),
        ("floor", -0.1),
        ("host", [0.5, 1.0]),
        ("host_budget", -1.0),
    ],
)
def test_bad_arguments_are_named(name: str, value: object) -> None:
    arguments: dict[str, object] = {"budget": 1.0, "request_rate": 1.0, "change_rate": [0.1, 0.2], "host": [0, 1]}
    with pytest.raises(ValueError, match=f"^{name} must be"):
        optimum(**(arguments | {name: value}))  # type: ignore[arg-type]


def test_arrays_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="change_rate has 2 values, but there are 4 pages"):
        optimum(budget=1.0, request_rate=1.0, change_rate=np.ones(2), recall=np.ones(3), false_rate=np.ones(4))


def test_the_budget_is_met_where_one_signal_all_but_settles_the_matter() -> None:
    # V is nearly flat here while the rate falls by half: a rough look at the demand is on the wrong side of the budget.
    page = {"change_rate": 7.628948827001421, "recall": 0.8824647017710507, "false_rate": 0.01}
    best = optimum(budget=4.94921875, request_rate=1.0, **page)
    assert best.cost == pytest.approx(4.94921875, rel=1e-9)
    assert best.freshness == pytest.approx(
        freshness_of(best.rates, {"request_rate": np.ones(1), **{k: np.array([v]) for k, v in page.items()}}), rel=1e-9
    )


@given(st.integers(0, 2**32 - 1))
def test_the_budget_is_met_over_the_whole_range(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 40))

    def powers(low: float, high: float) -> np.ndarray:
        return 10 ** rng.uniform(low, high, count)

    near_one = rng.choice([rng.random(count), 1 - powers(-12, 0), powers(-12, 0)])
    pages = {
        "request_rate": powers(-6, 0.7),
        "change_rate": powers(-7, 4),
        "recall": np.where(rng.random(count) < 0.2, rng.integers(0, 2, count), near_one),
        "false_rate": np.where(rng.random(count) < 0.3, 0.0, powers(-8, 4)),
    }
    budget = 10 ** rng.uniform(-6, 4)
    best = optimum(budget=budget, **pages)
    assert best.cost == pytest.approx(budget, rel=1e-7) or (best.price <= 1e-300 and best.cost <= budget)

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.value import expected_freshness, refresh_probabilities

METHODS = ("exact", "build", "reduce", "increments")
items = st.lists(
    st.tuples(
        st.one_of(st.just(0.0), st.floats(1e-3, 1e3)), st.one_of(st.sampled_from([0.0, 1.0]), st.floats(1e-3, 0.999))
    ),
    min_size=1,
    max_size=12,
)
budgets = st.one_of(st.just(1.0), st.floats(0.01, 8))


@given(items, budgets)
def test_the_four_methods_agree(pairs: list[tuple[float, float]], budget: float) -> None:
    u, c = np.array(pairs).T
    found = {method: refresh_probabilities(u, c, budget, method, increments=5000) for method in METHODS}
    for p in found.values():
        assert ((p >= 0) & (p <= 1)).all()
        assert p.sum() <= budget * (1 + 1e-9)
    best = expected_freshness(u, c, found["exact"])
    for method in ("build", "reduce"):
        assert expected_freshness(u, c, found[method]) == pytest.approx(best, rel=1e-7)
    # Each part of the budget goes where the slope is greatest; what is lost is of second order in a part's size.
    assert expected_freshness(u, c, found["increments"]) == pytest.approx(best, rel=2e-3)
    assert expected_freshness(u, c, found["increments"]) <= best * (1 + 1e-7)


@given(items, budgets)
def test_refreshed_items_share_one_price_and_the_others_are_not_worth_it(
    pairs: list[tuple[float, float]], budget: float
) -> None:
    u, c = np.array(pairs).T
    p = refresh_probabilities(u, c, budget)
    useful = (u > 0) & (c > 0)
    if budget >= useful.sum():
        assert (p[useful] == 1).all()
        return
    assert p.sum() == pytest.approx(budget, rel=1e-9)
    slope = u[useful] * c[useful] / (p + c - p * c)[useful] ** 2
    between = (p[useful] > 1e-6) & (p[useful] < 1 - 1e-6)
    if between.any():
        price = slope[between].mean()
        assert slope[between] == pytest.approx(price, rel=1e-5)
        assert (slope[p[useful] <= 1e-6] <= price * (1 + 1e-4)).all()
        assert (slope[p[useful] >= 1 - 1e-6] >= price * (1 - 1e-4)).all()


def test_random_search_finds_nothing_better() -> None:
    rng = np.random.default_rng(3)
    u, c = rng.exponential(1, 6), rng.uniform(0.05, 0.9, 6)
    best = expected_freshness(u, c, refresh_probabilities(u, c))
    for trial in rng.dirichlet(np.ones(6), 20_000):
        assert expected_freshness(u, c, trial) <= best + 1e-12


def test_error_of_increments_shrinks() -> None:
    rng = np.random.default_rng(4)
    u, c = rng.exponential(1, 50), rng.uniform(0.05, 0.9, 50)
    exact = refresh_probabilities(u, c)
    errors = [
        np.abs(refresh_probabilities(u, c, method="increments", increments=n) - exact).max()
        for n in (10, 100, 1000, 10000)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 2e-4


def test_large_sets_are_solved_from_a_sample() -> None:
    rng = np.random.default_rng(5)
    u, c = rng.exponential(1, 100_000), rng.uniform(0, 1, 100_000)
    for budget in (1.0, 5000.0, 60_000.0):
        assert refresh_probabilities(u, c, budget) == pytest.approx(
            refresh_probabilities(u, c, budget, "build"), abs=1e-6
        )


def test_an_item_that_changes_at_every_step_is_all_or_nothing() -> None:
    assert refresh_probabilities([3.0, 2.0, 1.0], [1.0, 1.0, 1.0], 2.0) == pytest.approx([1, 1, 0], abs=1e-6)
    assert refresh_probabilities([3.0, 2.0], [1.0, 1.0], 0.0).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("weight", ([-1.0], [0.5])),
        ("weight", ([math.nan], [0.5])),
        ("change_probability", ([1.0], [1.5])),
        ("change_probability", ([1.0], [math.nan])),
        ("budget", ([1.0], [0.5], -1.0)),
        ("method", ([1.0], [0.5], 1.0, "guess")),
        ("increments", ([1.0], [0.5], 1.0, "increments", 0)),
    ],
)
def test_bad_arguments_are_named(name: str, arguments: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be"):
        refresh_probabilities(*arguments)  # type: ignore[arg-type]

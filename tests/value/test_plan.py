import numpy as np
import pytest

from afresh.errors import ConfigError, SolverError
from afresh.value import budget_for, optimum, plan


def pages(count: int = 200) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(8)
    return {
        "request_rate": rng.exponential(1, count),
        "change_rate": rng.uniform(0, 1, count),
        "recall": rng.beta(0.25, 0.25, count),
        "false_rate": rng.uniform(0.1, 0.6, count),
    }


def test_more_budget_buys_less_and_less() -> None:
    table = plan(**pages())
    assert (np.diff(table.freshness) > 0).all()
    assert (np.diff(table.prices) < 0).all()
    gained = np.diff(table.freshness) / np.diff(table.budgets) * pages()["request_rate"].sum()
    assert (gained <= table.prices[:-1] * (1 + 1e-9)).all()
    assert (gained >= table.prices[1:] * (1 - 1e-9)).all()


@pytest.mark.parametrize("goal", [0.0, 0.05, 0.5, 0.95, 0.9999])
def test_budget_for_is_the_inverse(goal: float) -> None:
    best = budget_for(goal, **pages())
    assert best.freshness == pytest.approx(goal, abs=1e-9)
    if best.cost > 0:
        assert optimum(budget=best.cost * 0.999, **pages()).freshness < goal


def test_what_floors_give_already_costs_the_floors() -> None:
    best = budget_for(0.01, floor=0.5, **pages())
    assert best.cost == pytest.approx(100.0)
    assert best.freshness > 0.3


def test_perfect_signals_make_all_fresh_for_a_finite_budget() -> None:
    best = budget_for(1.0, request_rate=[1.0, 2.0], change_rate=[0.1, 0.2], recall=1.0, false_rate=[0.1, 0.0])
    assert best.freshness == 1
    assert best.cost == pytest.approx(0.4, rel=1e-6)


def test_what_cannot_be_reached_is_said() -> None:
    with pytest.raises(SolverError, match="No finite budget"):
        budget_for(1.0, **pages())
    with pytest.raises(SolverError, match=r"0\.8665 is the most"):
        budget_for(0.99, request_rate=1.0, change_rate=[0.1, 0.2, 0.3], host=[0, 0, 1], host_budget=1.0)
    with pytest.raises(ConfigError, match="freshness must be"):
        budget_for(1.5, **pages())

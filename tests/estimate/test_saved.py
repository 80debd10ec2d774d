"""Crawls saved, against the counterfactual: worlds with a sender, and the same without, at the same freshness."""

import numpy as np
import pytest

from afresh.estimate.saved import crawls_saved
from afresh.sim.simulate import simulate
from afresh.sim.world import make_world

PAGES = 100


@pytest.mark.parametrize(
    ("recall", "precision", "crawls"), [(0.6, 0.9, 0.4), (0.6, 0.9, 1.0), (0.5, 0.2, 3.0), (0.95, 0.95, 3.0)]
)
def test_so_many_more_crawls_are_needed_without_the_sender(recall: float, precision: float, crawls: float) -> None:
    """`crawls`: for each change, on average."""
    rates = np.random.default_rng(1).lognormal(-2.3, 0.6, PAGES)
    budget = crawls * float(rates.sum())
    heard = make_world(
        request_rate=np.ones(PAGES),
        change_rate=rates,
        recall=recall,
        false_rate=recall * rates * (1 - precision) / precision,
    )
    silent = make_world(request_rate=np.ones(PAGES), change_rate=rates)
    with_it = simulate(heard, budget=budget, horizon=600.0, warm_up=100.0)
    budgets = budget * np.geomspace(1.0, 40.0, 10)
    without = [simulate(silent, "greedy", budget=each, horizon=200.0, warm_up=50.0).accuracy for each in budgets]
    needed = float(np.exp(np.interp(with_it.accuracy, without, np.log(budgets)))) / budget - 1.0
    seen = with_it.rates > 0.02 * rates
    changes = float(rates[seen].sum() / with_it.rates[seen].sum())
    stated = crawls_saved(1.0, changes, precision, recall)
    print(f"recall {recall}, precision {precision}, {crawls} crawls a change: {needed:.2f} more, stated {stated:.2f}")
    assert stated == pytest.approx(needed, rel=0.3, abs=0.1)


def test_who_says_nothing_saves_nothing() -> None:
    assert crawls_saved(1000.0, 1.0, 0.02, 0.01) < 1.0
    assert crawls_saved(0.0, 1.0, 0.9, 0.9) == crawls_saved(10.0, 0.0, 0.9, 0.9) == 0.0
    assert 0.0 < crawls_saved(1.0, 1e-4, 1.0, 1.0) <= 100.0
    assert 0.0 <= crawls_saved(1.0, 1e4, 0.5, 0.5) <= 100.0

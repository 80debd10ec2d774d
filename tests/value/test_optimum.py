import numpy as np
import pytest

from afresh.errors import SolverError
from afresh.value import crawl_value, optimum


def some_pages(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "request_rate": rng.uniform(0, 1, count),
        "change_rate": rng.uniform(0, 1, count),
        "recall": rng.beta(0.25, 0.25, count),
        "false_rate": rng.uniform(0.1, 0.6, count),
    }


def test_all_crawled_pages_have_the_same_value_and_the_budget_is_spent() -> None:
    pages = some_pages(500)
    best = optimum(budget=50.0, **pages)
    assert best.rates.sum() == pytest.approx(50.0, rel=1e-12)
    crawled = (best.rates > 0) & np.isfinite(best.thresholds)
    values = crawl_value(best.thresholds, 0, **pages)
    assert values[crawled] == pytest.approx(best.price, rel=1e-7)
    never = best.rates == 0
    assert (pages["request_rate"][never] / pages["change_rate"][never] <= best.price * (1 + 1e-9)).all()


def test_least_rates_that_cost_more_than_the_budget_are_refused() -> None:
    with pytest.raises(SolverError, match="more than the budget"):
        optimum(budget=1.0, request_rate=1.0, change_rate=np.ones(3), floor=0.5)

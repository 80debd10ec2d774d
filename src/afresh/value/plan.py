"""Budget against freshness: "what would twice the crawls buy me?" and "what does 95 % cost?"."""

import math
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from afresh.checks import number
from afresh.errors import SolverError
from afresh.value.arguments import Floats, blame, numbers
from afresh.value.optimum import HostBudgets, Optimum, optimum


class PageArguments(TypedDict, total=False):
    """What `optimum` takes besides the budget."""

    request_rate: ArrayLike
    change_rate: ArrayLike
    recall: ArrayLike
    false_rate: ArrayLike
    cost: ArrayLike
    floor: ArrayLike
    host: ArrayLike | None
    host_budget: HostBudgets


@dataclass(frozen=True, slots=True)
class Plan:
    """What each budget buys under the optimum."""

    budgets: Floats  # cost per second
    freshness: Floats  # expected share of requests served fresh
    prices: Floats  # requests per second served fresh that one more unit of budget would gain


def plan(budgets: ArrayLike | None = None, **pages: Unpack[PageArguments]) -> Plan:
    """Expected freshness for each budget; without budgets, for 1/64 … 16 times the cost of one crawl per change.

    >>> plan([1.0, 2.0], request_rate=[1.0, 1.0], change_rate=[0.1, 0.1]).freshness.round(4).tolist()
    [0.9063, 0.9516]
    """
    if budgets is None:
        changes = numbers("change_rate", pages["change_rate"]) * numbers("cost", pages.get("cost", 1.0))
        budgets = float(np.broadcast_to(changes, _pages_count(pages)).sum()) * 2.0 ** np.arange(-6.0, 4.5, 0.5)
    wanted = np.atleast_1d(numbers("budgets", budgets))
    answers = [optimum(budget=float(budget), **pages) for budget in wanted]
    return Plan(
        budgets=wanted,
        freshness=np.array([best.freshness for best in answers]),
        prices=np.array([best.price for best in answers]),
    )


def budget_for(freshness: float, **pages: Unpack[PageArguments]) -> Optimum:
    """The optimum with the least budget that serves this share of requests fresh; its `cost` is that budget.

    >>> best = budget_for(0.95, request_rate=[1.0, 1.0], change_rate=[0.1, 0.1])
    >>> round(best.cost, 3), round(best.freshness, 6)
    (1.933, 0.95)
    """
    freshness = number("freshness", freshness, most=1.0)
    total = _total(pages)
    low = _floor_cost(pages)
    best = optimum(budget=low, **pages)
    if best.freshness >= freshness:
        return best
    # Freshness is concave in the budget, with slope price/Σμ: a tangent never goes past the goal, halving closes in.
    high = math.inf
    budget = low + (freshness - best.freshness) * total / best.price
    for _ in range(200):
        best = optimum(budget=budget, **pages)
        miss = best.freshness - freshness
        if best.price == 0 and miss < -1e-12:
            raise SolverError(
                f"No budget serves {freshness:.4g} of the requests fresh; {best.freshness:.4g} is the most.",
                hint="Raise host_budget, or ask for less.",
            )
        if abs(miss) <= 1e-12 or (miss > 0 and best.price == 0):
            break
        low, high = (budget, high) if miss < 0 else (low, budget)
        if (high < math.inf and high - low <= 1e-12 * high) or budget > 1e200:
            break
        new = budget - miss * total / best.price
        if not low < new < high or (miss < 0 and high == math.inf and new < 1.5 * budget):
            new = min(2.0 * budget, 0.5 * (low + high))
        budget = new
    if best.freshness < freshness - 1e-9 or (freshness == 1 and best.price > 0):
        raise SolverError(
            f"No finite budget serves {freshness:.12g} of the requests fresh.", hint="Ask for a little less."
        )
    return best


def _pages_count(pages: PageArguments) -> int:
    given = (pages["request_rate"], pages["change_rate"], pages.get("recall", 0.0), pages.get("false_rate", 0.0))
    return max(np.size(values) for values in (*given, pages.get("cost", 1.0), pages.get("floor", 0.0)))


def _total(pages: PageArguments) -> float:
    rates = numbers("request_rate", pages["request_rate"])
    return float(np.broadcast_to(rates, _pages_count(pages)).sum())


def _floor_cost(pages: PageArguments) -> float:
    blame({name: pages.get(name, 1.0) for name in ("cost", "floor")})
    least = numbers("floor", pages.get("floor", 0.0)) * numbers("cost", pages.get("cost", 1.0))
    return float(np.broadcast_to(least, _pages_count(pages)).sum())

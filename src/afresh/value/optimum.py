"""The best that any policy of this kind can do under a budget: one price for all, and what follows from it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from afresh.value.arguments import blame, numbers
from afresh.value.demand import Caps, Floats, Integers, Pages, fill, solve_hosts, solve_price
from afresh.value.pages import check_floors, host_budgets, prepare_pages

_SAMPLE = 20_000
_EVERYTHING = np.empty(0, dtype=np.int64)
_WIDER = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)  # in the logarithm of the price

_Prices = tuple[float, Floats]  # logarithms: of the common price, and of each host's

HostBudgets = ArrayLike | Mapping[int, float] | None


@dataclass(frozen=True, slots=True)
class Optimum:
    """The continuous optimum: crawl page i when its crawl value reaches price × cost, plus its host's price × cost."""

    price: float  # Λ: what one more unit of budget would gain, in requests served fresh per unit of cost
    freshness: float  # expected share of requests served fresh
    cost: float  # what the crawls cost per second: the budget, or less where that suffices for all
    rates: Floats  # crawls per second
    staleness: Floats  # x = α·elapsed + b·signals at which the page is crawled; infinity: never
    thresholds: Floats  # the same as effective age, ι = x/α seconds; infinity also where time alone never makes it due
    page_freshness: Floats  # expected share of time that the copy is fresh
    host_prices: Floats | None = None  # per host number: what one more unit of the host's own budget would gain


def optimum(
    *,
    budget: float,
    request_rate: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike = 0.0,
    false_rate: ArrayLike = 0.0,
    cost: ArrayLike = 1.0,
    floor: ArrayLike = 0.0,
    host: ArrayLike | None = None,
    host_budget: HostBudgets = None,
) -> Optimum:
    """The thresholds and rates that serve the largest share of requests fresh for `budget` (cost per second).

    A page is crawled when V reaches price·cost (Theorem 1); `floor` is the least crawl rate of a page. `host` numbers
    each page's host from 0; `host_budget` is the most a host may cost per second: one number for all, one per host, or
    a mapping from host number (others are free).

    >>> best = optimum(budget=1.0, request_rate=[1.0, 1.0], change_rate=[0.1, 0.1])
    >>> best.rates.round(6).tolist(), round(best.freshness, 4)
    ([0.5, 0.5], 0.9063)
    """
    blame({"budget": budget})
    if np.ndim(budget) != 0:
        raise ValueError("budget must be one number")
    # The answer does not depend on the unit of request rates; the arithmetic does, at the ends of what floats can hold.
    largest = float(np.max(numbers("request_rate", request_rate), initial=0.0))
    if 0.0 < largest < 1e-100 or 1e100 < largest < math.inf:
        scaled = np.asarray(request_rate, dtype=np.float64) / largest
        best = optimum(
            budget=budget,
            request_rate=scaled,
            change_rate=change_rate,
            recall=recall,
            false_rate=false_rate,
            cost=cost,
            floor=floor,
            host=host,
            host_budget=host_budget,
        )
        host_prices = None if best.host_prices is None else best.host_prices * largest
        return replace(best, price=best.price * largest, host_prices=host_prices)
    named = {
        "request_rate": request_rate,
        "change_rate": change_rate,
        "recall": recall,
        "false_rate": false_rate,
        "cost": cost,
        "floor": floor,
    }
    pages, count = prepare_pages(named, host)
    budgets = host_budgets(host_budget, pages.host)
    check_floors(pages, count, float(budget), budgets)
    return _solve(pages, count, float(budget), budgets)


def _solve(pages: Pages, count: int, budget: float, budgets: Floats) -> Optimum:
    x = np.zeros(count)
    host_low, host_high = _host_prices(pages, budgets, x)
    caps = Caps(budgets, host_high)
    low, high = solve_price(pages, _EVERYTHING, budget, caps, x, _guess(pages, count, budget, caps, x))
    rates, fresh = np.empty(count), np.empty(count)
    if high > low or (host_high > host_low).any():
        _spend_exactly(pages, budget, ((low, host_low), (high, host_high)), caps, (x, rates, fresh))
    else:
        fill(pages, low, host_low, x, rates, fresh)
    price = math.exp(high)
    weights = np.broadcast_to(pages.request_rate, count)
    total = float(weights.sum())
    thresholds = np.full(count, math.inf)
    with np.errstate(over="ignore"):  # to infinity, which is right
        np.divide(x, pages.silent_rate, out=thresholds, where=np.broadcast_to(pages.silent_rate > 0, count))
    return Optimum(
        price=price,
        cost=float((pages.cost * rates).sum()),
        freshness=float(weights @ fresh) / total if total > 0 else 1.0,
        rates=rates,
        staleness=x,
        thresholds=thresholds,
        page_freshness=fresh,
        host_prices=np.maximum(np.exp(host_high) - price, 0.0) if budgets.size else None,
    )


def _host_prices(pages: Pages, budgets: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Each host's own price does not depend on the others: solve it first, alone."""
    if not budgets.size:
        return np.empty(0), np.empty(0)
    hosts = np.broadcast_to(pages.host, x.size)
    order = np.argsort(hosts, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(hosts, minlength=budgets.size))])
    low, high = solve_hosts(pages, order, starts, budgets, x)
    return low, high


def _guess(pages: Pages, count: int, budget: float, caps: Caps, x: Floats) -> float:
    """The price for a sample of the pages: a start from which a few passes over all of them suffice."""
    if count < 4 * _SAMPLE or caps.budget.size:
        return math.nan
    # A fixed stride, coprime to the number of pages in effect, that has no rhythm in common with the caller's order.
    sample = np.unique((np.arange(_SAMPLE, dtype=np.int64) * 2_654_435_761) % count)
    low, _ = solve_price(pages, sample, budget * sample.size / count, caps, x, math.nan)
    return low if math.isfinite(low) else math.nan


def _spend_exactly(
    pages: Pages, budget: float, prices: tuple[_Prices, _Prices], caps: Caps, answer: tuple[Floats, Floats, Floats]
) -> None:
    """Between two prices that are as good as equal the demand jumps: share the time out so that the budget is met.

    A page's share of the objective is linear in its rate along such a jump, so the shares may be mixed.
    """
    (low, host_low), (high, host_high) = prices
    x, rates, fresh = answer
    other_x, other_rates, other_fresh = x.copy(), np.empty_like(rates), np.empty_like(fresh)
    hosts: Integers = np.broadcast_to(pages.host, x.size)
    # Purse 0 is what all hosts share; a host that is held by its cap has its own, the one after its number.
    held = np.flatnonzero(caps.log_price > high)
    purse_of_host = np.zeros(max(caps.budget.size, 1 + int(hosts.max(initial=0))), dtype=np.int64)
    purse_of_host[held] = 1 + held
    purse = purse_of_host[hosts]
    wanted = np.zeros(1 + purse_of_host.size)
    wanted[1 + held] = caps.budget[held]
    wanted[0] = budget - wanted.sum() if low > -math.inf else math.inf
    for wider in _WIDER:
        fill(pages, low - wider, host_low - wider, x, rates, fresh)
        fill(pages, high + wider, host_high + wider, other_x, other_rates, other_fresh)
        more = np.bincount(purse, weights=pages.cost * rates, minlength=wanted.size)
        less = np.bincount(purse, weights=pages.cost * other_rates, minlength=wanted.size)
        # Where V is flat to the last digit, the demand at one price depends on where its search began.
        if (more >= np.where(wanted < math.inf, wanted, 0.0)).all() and (less <= wanted).all():
            break
    share_of_purse = np.ones(wanted.size)  # of the time at the lower price
    np.divide(wanted - less, more - less, out=share_of_purse, where=more > less)
    share = share_of_purse.clip(0.0, 1.0)[purse]
    for low_side, high_side in ((rates, other_rates), (fresh, other_fresh)):
        np.copyto(low_side, np.where(share > 0, low_side, high_side) * share + high_side * (1 - share), where=share < 1)

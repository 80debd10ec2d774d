"""From what the caller gives to the arrays that the solver works on."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from afresh.errors import SolverError
from afresh.value.arguments import blame
from afresh.value.compiled import compiled
from afresh.value.demand import Floats, Integers, Pages
from afresh.value.kernels import page_rates


def _flat(name: str, given: Any) -> Floats:
    """A one-dimensional, contiguous, writable array (numba compiles anew for every other kind)."""
    values = np.ascontiguousarray(np.atleast_1d(np.asarray(given, dtype=np.float64)))
    if values.ndim != 1:
        raise ValueError(f"{name} must be a number or a one-dimensional array")
    return values if values.flags.writeable else values.copy()


@compiled
def _all_rates(change_rate: Floats, recall: Floats, false_rate: Floats) -> tuple[Floats, Floats, Floats]:
    count = max(change_rate.size, recall.size, false_rate.size)
    silent_rate, signal_rate, weight = np.empty(count), np.empty(count), np.empty(count)
    for i in range(count):
        silent_rate[i], signal_rate[i], weight[i] = page_rates(
            change_rate[i % change_rate.size], recall[i % recall.size], false_rate[i % false_rate.size]
        )
    return silent_rate, signal_rate, weight


def prepare_pages(named: dict[str, Any], host: ArrayLike | None) -> tuple[Pages, int]:
    """The pages and their number; `named` holds request_rate, change_rate, recall, false_rate, cost and floor."""
    blame(named)
    arrays = {name: _flat(name, given) for name, given in named.items()}
    if (arrays["cost"] <= 0).any():
        raise ValueError("cost must be more than 0, but is 0.0")
    hosts = _host_numbers(host)
    sizes = {name: values.size for name, values in arrays.items()} | {"host": hosts.size}
    count = max(sizes.values()) if min(sizes.values()) > 0 else 0
    for name, size in sizes.items():
        if size not in (1, count):
            raise ValueError(f"{name} has {size} values, but there are {count} pages")
    change_rate, recall, false_rate = arrays["change_rate"], arrays["recall"], arrays["false_rate"]
    if recall.size == 1 and recall[0] == 0:
        # Signals that say nothing: no need to keep three arrays for them.
        rates = change_rate, np.zeros(1), np.zeros(1)
    else:
        rates = _all_rates(change_rate, recall, false_rate)
    return Pages(*rates, arrays["request_rate"], arrays["cost"], arrays["floor"], hosts), count


def _host_numbers(host: ArrayLike | None) -> Integers:
    numbers = np.atleast_1d(np.asarray(0 if host is None else host))
    if numbers.size and (numbers.dtype.kind not in "iu" or numbers.ndim != 1 or numbers.min() < 0):
        raise ValueError("host must be whole numbers of at least 0, one for each page")
    flat = np.ascontiguousarray(numbers, dtype=np.int64)
    return flat if flat.flags.writeable else flat.copy()


def host_budgets(given: ArrayLike | Mapping[int, float] | None, hosts: Integers) -> Floats:
    """The budget of each host by its number, infinity where there is none; empty if no host has one."""
    if given is None:
        return np.empty(0)
    count = int(hosts.max()) + 1 if hosts.size else 0
    if isinstance(given, Mapping):
        count = max(count, max(given, default=-1) + 1)
        budgets = np.full(count, math.inf)
        for number, budget in given.items():
            budgets[number] = budget
    else:
        budgets = np.array(given, dtype=np.float64)
        if budgets.ndim == 0:
            budgets = np.full(count, float(budgets))
    if budgets.ndim != 1 or budgets.size < count:
        raise ValueError(f"host_budget must be one number, a mapping or one number for each of the {count} hosts")
    if not (budgets >= 0).all():
        raise ValueError("host_budget must be at least 0")
    return budgets


def check_floors(pages: Pages, count: int, budget: float, budgets: Floats) -> None:
    """Raise a SolverError if the least crawl rates alone cost more than a budget."""
    least = np.broadcast_to(pages.cost * pages.floor, count)
    total = float(least.sum())
    if total > budget * (1 + 1e-12):
        raise SolverError(
            f"The least crawl rates cost {total:g} per second, more than the budget of {budget:g}.",
            hint="Lower floor or raise budget.",
        )
    if budgets.size:
        per_host = np.bincount(np.broadcast_to(pages.host, count), weights=least, minlength=budgets.size)
        over = np.flatnonzero(per_host > budgets * (1 + 1e-12))
        if over.size:
            worst = int(over[0])
            raise SolverError(
                f"The least crawl rates of host {worst} cost {per_host[worst]:g} per second, "
                f"more than its budget of {budgets[worst]:g}.",
                hint="Lower floor for its pages or raise its host_budget.",
            )

"""How fast `afresh.value` is, as ratios measured in one run.

python benchmarks/bench_value.py [--quick]     --quick: a tenth of the pages, without the 10^7-page optimum
"""

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from afresh.value import crawl_value, optimum, refresh_probabilities

QUICK = "--quick" in sys.argv
PAGES = 100_000 if QUICK else 1_000_000


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Processor time of the best of some runs: what the work takes when nothing else disturbs it."""
    work()
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def figure_4(count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Pages of the published experiment with noisy signals."""
    return {
        "request_rate": rng.uniform(0, 1, count),
        "change_rate": rng.uniform(0, 1, count),
        "recall": rng.beta(0.25, 0.25, count),
        "false_rate": rng.uniform(0.1, 0.6, count),
    }


def random_states(
    pages: dict[str, np.ndarray], budget: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Time and signals since the last crawl, at a random moment under the optimum."""
    rates = optimum(budget=budget, **pages).rates
    longest = 20 * rates.size / budget
    elapsed = rng.random(rates.size) * np.minimum(1 / np.maximum(rates, 1e-12), longest)
    signal_rate = pages["recall"] * pages["change_rate"] + pages["false_rate"]
    return elapsed, rng.poisson(signal_rate * elapsed)


def bench_value_without_signals(rng: np.random.Generator) -> None:
    """Against one numpy pass over the same array."""
    elapsed, change_rate = rng.uniform(0, 20, PAGES), rng.uniform(0, 1, PAGES)
    y = elapsed * change_rate
    ours = seconds(lambda: crawl_value(elapsed, 0, change_rate=change_rate))
    numpy = seconds(lambda: 1 - np.exp(-y) * (1 + y))
    print(f"crawl_value without signals: {ours / numpy:.2f} × one numpy pass (at most 3)")


def bench_value_with_signals(rng: np.random.Generator) -> None:
    """Nanoseconds a page, for several ratios of pages to budget."""
    costs = []
    for per_page in (1.0, 0.5, 0.2, 0.1, 0.01):
        pages = figure_4(PAGES, rng)
        elapsed, signals = random_states(pages, PAGES * per_page, rng)
        costs.append(seconds(lambda e=elapsed, s=signals, p=pages: crawl_value(e, s, **p), 3) / PAGES * 1e9)
    listed = ", ".join(f"{cost:.0f}" for cost in costs)
    print(f"crawl_value with noisy signals: {np.mean(costs):.0f} ns a page (at most 300; {listed})")


def bench_optimum_in_passes(rng: np.random.Generator) -> None:
    """A third of the pages with noisy signals, against passes of crawl_value over the same pages."""
    pages: dict[str, Any] = figure_4(PAGES, rng)
    without = rng.random(PAGES) > 1 / 3
    pages["recall"][without] = 0
    pages["false_rate"][without] = 0
    elapsed, signals = random_states(pages, PAGES / 10, rng)
    once = seconds(lambda: crawl_value(elapsed, signals, **pages), 3)
    solve = seconds(lambda: optimum(budget=PAGES / 10, **pages), 2)
    print(f"optimum, a third with signals: {solve / once:.1f} passes of crawl_value (under 25), {solve:.2f} s")


def bench_large_optimum(rng: np.random.Generator) -> None:
    """Ten million pages without signals: seconds and memory."""
    count = 10_000_000
    request_rate, change_rate = rng.uniform(0, 1, count), rng.uniform(0, 1, count)
    start = time.process_time()
    optimum(budget=count / 10, request_rate=request_rate, change_rate=change_rate)
    took = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"optimum of 10^7 pages: {took:.1f} s of one core (under 20), peak {peak:.2f} GiB (under 2)")


def bench_against_scipy(rng: np.random.Generator) -> None:
    """scipy's general constrained optimiser on the largest instance that it still solves in about a minute."""
    count = 100 if QUICK else 400
    weight, change = rng.uniform(0.1, 1, count), rng.uniform(0.1, 1, count)
    weight /= weight.sum()
    budget = count / 3

    def loss(rates: np.ndarray) -> tuple[float, np.ndarray]:
        y = change / rates
        gone = np.exp(-y)
        return -float((weight * (1 - gone) / y).sum()), -weight / change * (1 - gone * (1 + y))

    start = time.process_time()
    found = minimize(
        loss,
        np.full(count, budget / count),
        jac=True,
        bounds=[(1e-6, None)] * count,
        constraints={"type": "eq", "fun": lambda r: r.sum() - budget, "jac": np.ones_like},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    scipy_took = time.process_time() - start
    ours = seconds(lambda: optimum(budget=budget, request_rate=weight, change_rate=change))
    best = optimum(budget=budget, request_rate=weight, change_rate=change)
    print(
        f"optimum against SLSQP with gradients, {count} pages: {scipy_took / ours:.0f} × as fast (at least 100), "
        f"objective better by {best.freshness + found.fun:.1e}"
    )


def bench_probabilities(rng: np.random.Generator) -> None:
    """Against sorting the same array."""
    weight, change = rng.exponential(1, PAGES), rng.random(PAGES)
    sort = seconds(lambda: np.sort(weight))
    for budget in (1.0, PAGES / 10, PAGES / 2):
        ours = seconds(lambda b=budget: refresh_probabilities(weight, change, b))
        print(f"refresh_probabilities, budget {budget:g}: {ours / sort:.1f} sorts (at most 5)")


def main() -> None:
    """Run them all, the most memory-hungry first so that its peak is its own."""
    rng = np.random.default_rng(1)
    if not QUICK:
        optimum(budget=1.0, request_rate=[1.0, 1.0], change_rate=[1.0, 2.0])  # compile
        bench_large_optimum(rng)
    bench_value_without_signals(rng)
    bench_value_with_signals(rng)
    bench_optimum_in_passes(rng)
    bench_against_scipy(rng)
    bench_probabilities(rng)


if __name__ == "__main__":
    main()

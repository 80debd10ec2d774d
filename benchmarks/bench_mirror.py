"""How fast the steps and trials of `afresh.mirror` are: ratios and processor time measured in one run.

python benchmarks/bench_mirror.py
"""

import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from afresh.lab.families import cost_of
from afresh.lab.mirrored import FAMILIES, LEARNERS, ROUND, ROUNDS, learner_of
from afresh.mirror import mirror_step, project
from afresh.mirror.scheduler import ByCosts
from afresh.schedule import Plain, Uniform

LOW, HIGH = 0.025, 3.0 / 1.05


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Processor time of the best of some runs, after one that compiles."""
    work()
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def instance(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Rates of the published sum, and a gradient as the learners see it: mostly zeros."""
    total = 0.4 * count / 1.05
    rates = project(rng.gamma(1.0, total / count, count), low=LOW, high=HIGH, total=total)
    gradient = -rng.exponential(20.0, count) * (rng.random(count) < 0.4) / count
    return rates, gradient, total


def by_slsqp(
    rates: np.ndarray, gradient: np.ndarray, eta: float, total: float, *, exact_slope: bool, goal: float
) -> np.ndarray:
    """The same step by a general optimiser, with numerical slopes (as published) or exact ones."""
    found = minimize(
        lambda x: eta * gradient @ x + np.sum(-np.log(x / rates) + x / rates - 1.0),
        rates,
        jac=(lambda x: eta * gradient - 1.0 / x + 1.0 / rates) if exact_slope else None,
        bounds=[(LOW, HIGH)] * rates.size,
        constraints={"type": "eq", "fun": lambda x: x.sum() - total, "jac": lambda x: np.ones_like(x)},
        method="SLSQP",
        options={"ftol": goal},
    )
    return np.asarray(found.x)


def bench_step_against_slsqp(rng: np.random.Generator) -> None:
    """At 100 arms; `off` is the largest difference of SLSQP's rates from ours."""
    rates, gradient, total = instance(100, rng)
    eta = 2.7

    def ours() -> np.ndarray:
        return mirror_step(rates, gradient, eta=eta, low=LOW, high=HIGH, total=total)

    fast = seconds(ours, 200)
    for name, exact_slope, goal in (("numerical", False, 1e-6), ("exact", True, 1e-6), ("exact", True, 1e-12)):

        def theirs(exact_slope: bool = exact_slope, goal: float = goal) -> np.ndarray:
            return by_slsqp(rates, gradient, eta, total, exact_slope=exact_slope, goal=goal)

        off = np.abs(theirs() - ours()).max()
        print(
            f"mirror_step, 100 arms: {seconds(theirs, 3) / fast:,.0f} × SLSQP with {name} slopes to {goal:g} "
            f"(off by {off:.1e}; ours takes {1e6 * fast:.0f} µs)"
        )


def bench_a_million_arms(rng: np.random.Generator) -> None:
    """Both steps at 10^6 arms, from a random gradient and from one over many orders of magnitude."""
    rates, gradient, total = instance(10**6, rng)
    wide = -(10.0 ** rng.uniform(-12, 12, 10**6))
    for name, slope in (("random", gradient), ("wide", wide)):
        taken = seconds(lambda: mirror_step(rates, slope, eta=2.7e4, low=LOW, high=HIGH, total=total), 3)  # noqa: B023
        print(f"mirror_step, 10^6 arms, {name} gradient: {1e3 * taken:.0f} ms (below 200)")
        taken = seconds(lambda: project(rates - 8e2 * slope, low=LOW, high=HIGH, total=total), 3)  # noqa: B023
        print(f"project, 10^6 arms, {name} gradient: {1e3 * taken:.0f} ms (below 200)")


def bench_trials() -> None:
    """A published trial: 240 rounds of 100 arms, with costs drawn and the exact cost taken after each round."""
    for family, published in FAMILIES.items():
        law = published.instance(100, 0)
        for name in LEARNERS:

            def trial(family: str = family, name: str = name, law: object = law) -> None:
                learner = learner_of(family, name, 100, 0)
                for count in range(1, ROUNDS + 1):
                    while learner.now < count * ROUND:
                        plays = learner.plays(count * ROUND)
                        learner.observe(plays, law.costs(plays))  # type: ignore[attr-defined]
                    cost_of(law, learner.rates)  # type: ignore[arg-type]

            print(f"trial, {family}, {name}: {seconds(trial, 2):.3f} s (below 0.5)")


def bench_updates_at_scale(rng: np.random.Generator) -> None:
    """10^6 arms, updates with new samples of few of them: the step is about these alone."""
    learner = LEARNERS["AsyncMirrorSync"](10**6, 0.4e6, rng=rng, update_interval=0.005)
    for _ in range(5):
        plays = learner.plays(1e9)
        learner.observe(plays, plays.age)
    start, played, handed = time.process_time(), 0, 0.0
    for _ in range(20):
        began = time.process_time()
        plays = learner.plays(1e9)
        handed += time.process_time() - began
        learner.observe(plays, plays.age)
        played += len(plays.arm)
    taken = time.process_time() - start
    print(
        f"10^6 arms, {played / 20:,.0f} plays an update: {1e3 * handed / 20:.1f} ms to hand out the plays, "
        f"{1e3 * (taken - handed) / 20:.1f} ms to take costs and update"
    )


def bench_live_decisions(rng: np.random.Generator) -> None:
    """What picks the next page in the product, beside a rule of others, which looks at all pages for each."""
    for pages in (1_000, 20_000, 200_000, 1_000_000):
        times = {}
        for name, scheduler, ticks in (
            ("mirror", ByCosts(budget=1000.0, rng=rng), 5_000),
            ("uniform", Plain(Uniform(), budget=1000.0), 50),
        ):
            if name == "uniform" and pages > 200_000:
                continue
            began = time.process_time()
            for page in range(pages):
                scheduler.add(request_rate=1.0, change_rate=0.1, host=page % 5_000, now=0.0, age=float(page % 97))
            added = (time.process_time() - began) / pages
            scheduler.next(0.5)
            start = time.process_time()
            for tick in range(ticks):
                now = 1.0 + tick / 500
                pick = scheduler.next(now)
                if isinstance(scheduler, ByCosts):
                    scheduler.saw(pick.slot, 1.0, now, probe=pick.probe)
                scheduler.finish(pick.slot, now, crawled=None if pick.probe else now)
            times[name] = (time.process_time() - start) / ticks
            if isinstance(scheduler, ByCosts):
                _bench_live_update(scheduler, rng, pages, added)
        beside = f", {times['mirror'] / times['uniform']:.2g} x that of uniform" if len(times) > 1 else ""
        print(f"a decision among {pages:,} pages: {1e6 * times['mirror']:.0f} us{beside}")


def _bench_live_update(scheduler: ByCosts, rng: np.random.Generator, pages: int, added: float) -> None:
    scheduler._cost = scheduler._refreshes = 1e5
    rows = scheduler.timetable.rows
    rows["count"][:pages], rows["sum"][:pages] = 1, rng.normal(-1.0, 1.0, pages)
    start = time.process_time()
    scheduler._update()
    every = time.process_time() - start
    rows["count"][:100] = 1
    start = time.process_time()
    scheduler._update()
    arrays = scheduler._pages.nbytes + scheduler._nodes.nbytes + rows.nbytes
    print(
        f"{pages:,} pages: {1e6 * added:.0f} us to add one, {arrays / pages:.0f} bytes each, an update of all rates "
        f"{1e3 * every:.0f} ms, of 100 pages {1e3 * (time.process_time() - start):.1f} ms"
    )


if __name__ == "__main__":
    random, wanted = np.random.default_rng(1), set(sys.argv[1:])
    for bench in (bench_step_against_slsqp, bench_a_million_arms, bench_updates_at_scale, bench_live_decisions):
        if not wanted or bench.__name__ in wanted:
            bench(random)
    if not wanted or "bench_trials" in wanted:
        bench_trials()

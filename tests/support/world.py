"""A small compiled world to try schedulers in: signals are drawn, freshness is integrated exactly.

Given the signals, the copy of a page is fresh with probability e^{−x}. So neither changes nor requests need be drawn,
and what is measured has only the noise of the signals.
"""

import math

import numpy as np
from numba import njit

from afresh.schedule import Scheduler
from afresh.schedule.wheel.events import signal
from afresh.schedule.wheel.memory import control_at
from afresh.schedule.wheel.policies import THRESHOLD
from afresh.schedule.wheel.turn import crawl, take
from afresh.value import optimum


@njit
def _gain(i, until, seen_until, current, heard, alpha, weight):
    """∫ e^{−x} dt from where page i was last looked at."""
    start = seen_until[i]
    seen_until[i] = until
    if weight[i] == math.inf and heard[i] > 0:
        return 0.0
    at = math.exp(-weight[i] * heard[i]) if heard[i] > 0 else 1.0
    if alpha[i] <= 0.0:
        return at * (until - start)
    return at * (math.exp(-alpha[i] * (start - current[i])) - math.exp(-alpha[i] * (until - current[i]))) / alpha[i]


@njit
def _draw_page(total, cumulative, guide):
    u = np.random.random()  # noqa: NPY002 - the compiled generator
    i = guide[int(u * guide.size)]
    while cumulative[i] < u * total:
        i += 1
    return i


@njit
def _run(core, times, until, rates, cumulative, guide, pages, share, seed, picks):
    """Ticks and signals in order of time; (fresh share, picks)."""
    np.random.seed(seed)  # noqa: NPY002 - the compiled generator
    alpha, weight, seen_until, current, heard = pages
    total = cumulative[-1] if cumulative.size else 0.0
    tick, next_signal, start = times[0], times[1], times[2]
    step = 1.0 / control_at(core).budget
    free = control_at(core).policy == THRESHOLD
    fresh, count = 0.0, 0
    while True:
        if next_signal < tick:
            if next_signal > until:
                break
            i = _draw_page(total, cumulative, guide)
            fresh += share[i] * _gain(i, next_signal, seen_until, current, heard, alpha, weight)
            heard[i] += 1
            signal(core, i, next_signal, 1)
            next_signal += np.random.exponential(1.0 / total)  # noqa: NPY002 - the compiled generator
            continue
        if tick > until:
            break
        while True:
            i = take(core, tick)
            if i >= 0:
                fresh += share[i] * _gain(i, tick, seen_until, current, heard, alpha, weight)
                current[i], heard[i] = tick, 0
                crawl(core, i, tick)
                picks[i] += 1
                count += 1
            if not free or i < 0:
                break
        tick += step
    for i in range(alpha.size):
        fresh += share[i] * _gain(i, until, seen_until, current, heard, alpha, weight)
    times[0], times[1], times[2] = tick, next_signal, until
    return fresh / (until - start), count


class World:
    """Pages that age and send signals, and a scheduler that is to keep them fresh. Slots are 0, 1, 2, …"""

    def __init__(self, scheduler: Scheduler, pages: dict[str, np.ndarray], *, seed: int = 0, add: bool = True) -> None:
        self.scheduler, self.pages, self.seed = scheduler, pages, seed
        count = len(pages["request_rate"])
        if add:
            given = {name: values for name, values in pages.items() if name != "true_signal_rate"}
            assert (scheduler.add_many(**given, now=0.0, age=0.0) == np.arange(count)).all()
        change, zero = pages["change_rate"], np.zeros(count)
        recall, false = pages.get("recall", zero), pages.get("false_rate", zero)
        self.alpha = (1 - recall) * change
        rates = recall * change + false
        with np.errstate(divide="ignore", invalid="ignore"):
            self.weight = np.where(recall * change > 0, np.log1p(recall * change / false), 0.0)
        self.rates = rates
        self.cumulative = np.cumsum(rates) if rates.sum() > 0 else np.zeros(0)
        grid = np.arange(4 * count) / (4 * count)
        self.guide = (
            np.searchsorted(self.cumulative, grid * self.cumulative[-1]) if len(self.cumulative) else np.zeros(0, int)
        )
        self.share = pages["request_rate"] / pages["request_rate"].sum()
        self.arrays = (self.alpha, self.weight, np.zeros(count), np.zeros(count), np.zeros(count, np.int64))
        self.times = np.array([1 / scheduler.budget, 0.0 if len(self.cumulative) else math.inf, 0.0])
        self.picks = np.zeros(count, np.int64)
        self.runs = 0

    def run(self, until: float) -> float:
        """Share of requests served fresh from where the last run ended."""
        self.runs += 1
        fresh, self.count = _run(
            self.scheduler.state.core,
            self.times,
            until,
            self.rates,
            self.cumulative,
            self.guide,
            self.arrays,
            self.share,
            self.seed * 1000 + self.runs,
            self.picks,
        )
        return float(fresh)

    def ceiling(self, **options: object) -> float:
        """What no scheduler of this kind can beat."""
        names = ("request_rate", "change_rate", "recall", "false_rate", "cost", "host")
        given = {name: self.pages[name] for name in names if name in self.pages}
        return optimum(budget=self.scheduler.budget, **given, **options).freshness  # type: ignore[arg-type]


def figure(number: int, count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Pages of the settings of Figures 2 (no signals), 3 (no false signals) and 4 (noisy signals)."""
    rng = np.random.default_rng(seed)
    pages = {"request_rate": rng.uniform(0, 1, count), "change_rate": rng.uniform(0, 1, count)}
    if number >= 3:
        pages["recall"] = rng.beta(0.25, 0.25, count)
    if number == 4:
        pages["false_rate"] = rng.uniform(0.1, 0.6, count)
    return pages

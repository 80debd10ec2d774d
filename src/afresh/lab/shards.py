"""Many schedulers that share one budget, in virtual time: what its flow is worth.

Shards differ in importance by orders of magnitude. Each reports its price once a second, some of them late; some die
and come back, some join later. What each may spend is checked every second: it is never more than there is.
"""

from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from afresh.cluster.budget import Share, allot, in_force
from afresh.lab.base import Floats, Sample
from afresh.schedule import Scheduler
from afresh.value import optimum

Integers = NDArray[np.int64]

STEP = 1.0  # seconds between two reports
LEASE = 10.0  # seconds until the budget of a shard that died is given to others
ROUNDS = 8  # times pages/budget that are played
SETTLED = 4  # of them, after which freshness is measured


@dataclass
class _Shard:
    """Some of the pages, their scheduler, and when each was crawled."""

    importance: Floats
    change_rate: Floats
    budget: float
    late: int = 0  # steps until its price is known to others
    joins: float = 0.0
    dies: float = np.inf
    returns: float = np.inf
    fresh: float = 0.0
    spending: float = 0.0
    said: deque[float] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.current = np.zeros(len(self.importance))
        self.scheduler = Scheduler(budget=self.budget, policy="greedy")
        self.scheduler.add_many(request_rate=self.importance, change_rate=self.change_rate, now=0.0, age=0.0)
        self.spending = self.budget

    def runs(self, now: float) -> bool:
        return now >= self.joins and not self.dies <= now < self.returns

    def leased(self, now: float) -> bool:
        """Whether others must still count with what it was given."""
        return now >= self.joins and not self.dies + LEASE <= now < self.returns

    def run(self, now: float) -> None:
        """Crawl up to now."""
        picked = self.scheduler.next_many(now, 4 + int(4 * STEP * max(self.spending, 1.0)))
        for page in picked.tolist():
            self.fresh += self._gain(page, now)
            self.current[page] = now

    def _gain(self, page: int, now: float) -> float:
        rate = self.change_rate[page]
        return float(self.importance[page] * -np.expm1(-rate * (now - self.current[page])) / rate)

    def measure(self, now: float) -> float:
        """Fresh time, weighted by importance, up to now."""
        rest = self.importance * -np.expm1(-self.change_rate * (now - self.current)) / self.change_rate
        return self.fresh + float(rest.sum())


def flowing(pages: int, seed: int, shards: int, *, spread: float = 4.0**7, troubled: bool = False) -> dict[str, Sample]:
    """One repetition: one scheduler with all pages, budget that flows by price between shards, and 1/N each."""
    rng = np.random.default_rng([seed, pages, shards])
    shard_of = np.arange(pages) % shards
    skew = spread ** -(rng.permutation(shards) / max(shards - 1, 1))
    importance = rng.random(pages) * skew[shard_of]
    change_rate = rng.uniform(0.05, 1.0, pages)
    budget = pages / 20.0
    best = optimum(budget=budget, request_rate=importance, change_rate=change_rate).freshness
    samples, curves = {}, {}
    for name, count, flows in (("one engine", 1, False), ("budget flows", shards, True), ("1/N each", shards, False)):
        made = _make(importance, change_rate, shard_of, count, budget, rng if troubled and count > 1 else None)
        accuracy, curves[name] = _play(made, budget, ROUNDS * pages / budget, flows, float(importance.sum()))
        samples[name] = Sample(accuracy, best, best, curves={"x": curves[name][0], "y": curves[name][1]})
    return samples


def _make(
    importance: Floats,
    change_rate: Floats,
    shard_of: Integers,
    count: int,
    budget: float,
    rng: np.random.Generator | None,
) -> list[_Shard]:
    time = ROUNDS * len(importance) / budget
    made = []
    for number in range(count):
        own = np.flatnonzero(shard_of % count == number) if count > 1 else np.arange(len(importance))
        shard = _Shard(importance[own], change_rate[own], budget / count)
        if rng is not None:
            if number % 20 == 7:
                shard.joins = time / ROUNDS
            if number % 20 == 13:
                shard.dies = time * rng.uniform(0.2, 0.8)
                shard.returns = shard.dies + 15.0
            if number % 10 == 3:
                shard.late = int(rng.integers(5, 30))
        made.append(shard)
    return made


def _play(
    shards: list[_Shard], budget: float, time: float, flows: bool, weight: float
) -> tuple[float, tuple[Floats, Floats]]:
    """(freshness once settled, its course): shards crawl, say what their prices are, and hear what they may spend."""
    granted = [0.0 if shard.joins > 0 and flows else budget / len(shards) for shard in shards]
    times, fresh, before = [], [], 0.0
    settled = (0.0, 0.0)
    for now in np.arange(STEP, time + STEP / 2, STEP).tolist():
        for nth, shard in enumerate(shards):
            if not shard.runs(now):
                continue
            if shard.spending != granted[nth]:
                shard.scheduler.budget = shard.spending = granted[nth]
            shard.run(now)
            shard.said.append(shard.scheduler.price)
            while len(shard.said) > shard.late + 1:
                shard.said.popleft()
        if flows:
            known = [_share(shard, given, now) for shard, given in zip(shards, granted, strict=True)]
            granted = allot(budget, known)
            told = [replace(each, granted=given) for given, each in zip(granted, known, strict=True)]
            if in_force(told) > budget * (1 + 1e-9):
                raise AssertionError(f"{in_force(told)} in force at {now}, and there is {budget}")
        total = sum(shard.measure(now) for shard in shards)
        times.append(now)
        fresh.append((total - before) / weight / STEP)
        before = total
        if now <= SETTLED / ROUNDS * time:
            settled = now, total
    accuracy = (before - settled[1]) / weight / (times[-1] - settled[0])
    return accuracy, (np.array(times), np.array(fresh))


def _share(shard: _Shard, granted: float, now: float) -> Share:
    alive = shard.leased(now)
    price, age = (shard.said[0], STEP * len(shard.said)) if shard.said else (None, 0.0)
    return Share(granted if alive else 0.0, shard.spending if alive else 0.0, price, age, alive)

"""What most figures have in common: some policies, in one and the same world, against its ceiling and its baseline."""

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from afresh.lab.base import Sample
from afresh.sim.simulate import Score, simulate
from afresh.sim.world import World, paper_world

BUDGET = 100.0
HORIZON = 1000.0
WARM_UP = 100.0  # all copies are fresh at time 0, which is nobody's merit
BASELINE = "baseline"


def paper_trial(pages: int, seed: int, policies: Iterable[str], signals: str, signal_delay: float = 0.0) -> Any:
    """The papers' setting: budget 100, until time 1000; the baseline is computed, not run."""
    world = paper_world(np.random.default_rng([seed, pages]), pages, signals=signals, signal_delay=signal_delay)
    samples, _ = contest(world, seed, policies, budget=BUDGET, horizon=HORIZON, warm_up=WARM_UP)
    reference = next(iter(samples.values()))
    samples[BASELINE] = Sample(reference.baseline, reference.ceiling, reference.baseline)
    return samples


def contest(
    world: World, seed: int, policies: Iterable[str], *, budget: float, horizon: float, warm_up: float, **options: Any
) -> tuple[dict[str, Sample], dict[str, Score]]:
    """Every policy over the same changes."""
    ceiling, baseline = world.ceiling(budget).freshness, world.baseline(budget).freshness
    samples, scores = {}, {}
    for policy in policies:
        began = time.perf_counter()
        score = simulate(world, policy, budget=budget, horizon=horizon, warm_up=warm_up, seed=seed, **options)
        samples[policy] = Sample(score.accuracy, ceiling, baseline, time.perf_counter() - began)
        scores[policy] = score
    return samples, scores


def rates_trial(pages: int, seed: int, policies: Iterable[str], signals: str, colour: str) -> dict[str, Sample]:
    """Each page's empirical crawl rate against its baseline rate, with a colour."""
    world = paper_world(np.random.default_rng([seed, pages]), pages, signals=signals)
    samples, scores = contest(world, seed, policies, budget=BUDGET, horizon=HORIZON, warm_up=WARM_UP)
    expected = world.baseline(BUDGET).rates
    shade = world.recall if colour == "recall" else world.change_rate
    return {
        policy: Sample(
            sample.accuracy,
            sample.ceiling,
            sample.baseline,
            sample.seconds,
            {"x": expected, "y": scores[policy].rates, "colour": shade},
        )
        for policy, sample in samples.items()
    }

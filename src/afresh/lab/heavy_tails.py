"""Figure 5: a large collection with heavy tails, and beliefs about the signals that are more and more wrong.

The paper's data set is not public. The stand-in has what is told of it: few pages (4.5 %) with good signals that carry
about a quarter of the weight, bad signals elsewhere, and importance and change rates over several orders of magnitude.
"""

import numpy as np

from afresh.lab.base import Sample
from afresh.lab.trials import contest
from afresh.sim.world import World, make_world

CORRUPTION = (0.0, 0.1, 0.2)
GOOD_PAGES, GOOD_WEIGHT = 0.045, 0.25
BUDGET_PER_PAGE = 0.05  # 5,000 a step for 100,000 pages
STEPS, WARM_UP = 200.0, 20.0


def heavy_tailed_world(rng: np.random.Generator, pages: int) -> tuple[World, np.ndarray, np.ndarray]:
    """(world, precision, recall) of the stand-in."""
    good = rng.random(pages) < GOOD_PAGES
    importance = rng.pareto(1.5, pages) + 0.05
    importance[good] *= GOOD_WEIGHT / (1 - GOOD_WEIGHT) * importance[~good].sum() / max(importance[good].sum(), 1e-300)
    change_rate = np.exp(rng.normal(np.log(0.05), 1.5, pages))
    precision = np.where(good, rng.uniform(0.7, 1.0, pages), rng.uniform(0.02, 0.7, pages))
    recall = np.where(good, rng.uniform(0.6, 1.0, pages), rng.uniform(0.0, 0.6, pages))
    world = make_world(
        request_rate=importance,
        change_rate=change_rate,
        recall=recall,
        false_rate=recall * change_rate * (1 - precision) / precision,
    )
    return world, precision, recall


def heavy_tailed_trial(pages: int, seed: int) -> dict[str, Sample]:
    """Three policies under three degrees of wrong beliefs."""
    rng = np.random.default_rng([seed, pages])
    world, precision, recall = heavy_tailed_world(rng, pages)
    found: dict[str, Sample] = {}
    for share in CORRUPTION:
        seen_precision = (1 - share) * precision + share * rng.random(pages)
        seen_recall = (1 - share) * recall + share * rng.random(pages)
        believed = world.believed(
            recall=seen_recall,
            false_rate=seen_recall * world.change_rate * (1 - seen_precision) / np.maximum(seen_precision, 1e-3),
        )
        samples, _ = contest(
            world,
            seed,
            ("greedy-ncis", "greedy-cis+", "greedy") if share == 0 else ("greedy-ncis", "greedy-cis+"),
            budget=BUDGET_PER_PAGE * pages,
            horizon=STEPS,
            warm_up=WARM_UP,
            believed=believed,
        )
        found |= {f"{policy} p={share:g}" if policy != "greedy" else policy: each for policy, each in samples.items()}
    return found

"""Figure 9: the bandwidth rises by half and falls back, and nobody computes anything anew."""

import numpy as np

from afresh.lab.base import Sample
from afresh.sim.history import Floats
from afresh.sim.simulate import simulate
from afresh.sim.world import paper_world

HORIZON = 400.0
THIRD = HORIZON / 3
PHASES = (("before", 100.0), ("more", 150.0), ("after", 100.0))
BINS = 2000  # of time, 20 or 30 crawls each
WINDOW = 1000  # crawls over which the accuracy is averaged, as in the paper


def bandwidth_trial(pages: int, seed: int) -> dict[str, Sample]:
    """The accuracy of GREEDY over the last crawls, at every moment; each phase is scored in its second half."""
    world = paper_world(np.random.default_rng([seed, pages]), pages)
    steps = [(THIRD * (k + 1), budget) for k, (_, budget) in enumerate(PHASES)]
    score = simulate(world, "greedy", horizon=HORIZON, seed=seed, requests=True, bins=BINS, steps=steps)
    moments = np.arange(1, BINS + 1) * HORIZON / BINS
    accuracy = over_last_crawls(moments, score.asked, np.nan_to_num(score.curve) * score.asked)
    found = {}
    for k, (name, budget) in enumerate(PHASES):
        scored = (moments > THIRD * (k + 0.5)) & (moments <= THIRD * (k + 1))
        best = world.baseline(budget).freshness
        curves = {"x": moments, "y": accuracy, "level": np.array([THIRD * k, THIRD * (k + 1), best])}
        name = f"greedy {name} (R={budget:g})"
        found[name] = Sample(float(accuracy[scored].mean()), best, best, curves=curves)
    return found


def over_last_crawls(moments: Floats, asked: Floats, hits: Floats) -> Floats:
    """At each moment, the share of hits among the requests since the 1,000th last crawl."""
    edges = np.concatenate([[0.0], moments])
    rates = np.array([budget for _, budget in PHASES])
    inside = np.clip(edges[:, None] - THIRD * np.arange(len(PHASES)), 0.0, THIRD)  # of each phase, passed by each edge
    crawls = inside @ rates
    since = np.interp(crawls[1:] - WINDOW, crawls, edges)
    all_asked, all_hits = (np.concatenate([[0.0], np.cumsum(each)]) for each in (asked, hits))
    requests = all_asked[1:] - np.interp(since, edges, all_asked)
    return np.asarray((all_hits[1:] - np.interp(since, edges, all_hits)) / np.maximum(requests, 1e-300))

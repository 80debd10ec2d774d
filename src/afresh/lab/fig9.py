"""Figure 9: the bandwidth rises by half and falls back, and nobody computes anything anew."""

import numpy as np

from afresh.lab.base import Experiment, Sample
from afresh.sim.simulate import simulate
from afresh.sim.world import paper_world

HORIZON = 400.0
THIRD = HORIZON / 3
PHASES = (("before", 100.0), ("more", 150.0), ("after", 100.0))
BINS = 200  # at m = 1000 about a thousand requests each


def trial(pages: int, seed: int) -> dict[str, Sample]:
    """The accuracy of GREEDY over time; each phase is scored in its second half."""
    world = paper_world(np.random.default_rng([seed, pages]), pages)
    steps = [(THIRD * (k + 1), budget) for k, (_, budget) in enumerate(PHASES)]
    score = simulate(world, "greedy", horizon=HORIZON, seed=seed, requests=True, bins=BINS, steps=steps)
    middle = (np.arange(BINS) + 0.5) * HORIZON / BINS
    found = {}
    for k, (name, budget) in enumerate(PHASES):
        scored = (middle > THIRD * (k + 0.5)) & (middle <= THIRD * (k + 1))
        best = world.baseline(budget).freshness
        curves = {"x": middle, "y": score.curve, "level": np.array([THIRD * k, THIRD * (k + 1), best])}
        name = f"greedy {name} (R={budget:g})"
        found[name] = Sample(float(score.curve[scored].mean()), best, best, curves=curves)
    return found


FIGURE = Experiment(
    name="fig9",
    title="Bandwidth 100, then 150, then 100 again",
    claim="the accuracy rises to the new optimum and falls back by itself",
    sizes=(1000,),
    trial=trial,
    reps=10,
    picture="steps",
)

"""Figure 8: signals that arrive late may be about a change that was fetched already.

Two things are lost by the delay: a page stays stale until its signal is there, which no policy can help, and crawls go
to pages whose change was fetched already. Signals that told when they were sent would mend the second completely: the
row "dated" is the most that can be won back.
"""

import numpy as np

from afresh.lab.base import Sample
from afresh.lab.trials import BUDGET, HORIZON, WARM_UP, contest
from afresh.sim.world import paper_world

DELAY = 6.0  # ticks
DATED = "greedy-ncis, dated"


def late_trial(pages: int, seed: int) -> dict[str, Sample]:
    """The policies under delay, and what they would do if signals told when they were sent."""
    world = paper_world(np.random.default_rng([seed, pages]), pages, signals="noisy", signal_delay=DELAY)
    setting = {"budget": BUDGET, "horizon": HORIZON, "warm_up": WARM_UP}
    samples, _ = contest(world, seed, ("greedy", "greedy-ncis", "greedy-ncis-d"), **setting)
    dated, _ = contest(world, seed, ("greedy-ncis",), dated=True, **setting)
    reference = samples["greedy"]
    return samples | {
        DATED: dated["greedy-ncis"],
        "baseline": Sample(reference.baseline, reference.ceiling, reference.baseline),
    }

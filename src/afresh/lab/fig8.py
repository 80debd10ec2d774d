"""Figure 8: signals that arrive late may be about a change that was fetched already."""

from functools import partial

from afresh.lab.base import Experiment
from afresh.lab.trials import paper_trial

FIGURE = Experiment(
    name="fig8",
    title="Noisy signals that arrive late: six ticks on average",
    claim="GREEDY-NCIS drops where bandwidth is ample; GREEDY-NCIS-D wins most of it back",
    sizes=(100, 200, 500, 750, 1000),
    trial=partial(paper_trial, policies=("greedy", "greedy-ncis", "greedy-ncis-d"), signals="noisy", signal_delay=6.0),
    reps=8,
)

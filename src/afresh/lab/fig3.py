"""Figure 3: signals without false ones; who listens does better."""

from functools import partial

from afresh.lab.base import Experiment
from afresh.lab.trials import paper_trial

FIGURE = Experiment(
    name="fig3",
    title="Some changes send a signal, and none is false",
    claim="GREEDY-CIS well above GREEDY = BASELINE",
    sizes=(100, 300, 500, 1000, 10000),
    trial=partial(paper_trial, policies=("greedy", "greedy-cis"), signals="perfect"),
    reps=6,
)

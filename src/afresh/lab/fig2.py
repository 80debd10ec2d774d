"""Figure 2: without signals, the greedy policies reach the continuous optimum."""

from functools import partial

from afresh.lab.base import Experiment
from afresh.lab.trials import paper_trial

FIGURE = Experiment(
    name="fig2",
    title="Discrete policies without signals",
    claim="GREEDY = LDS = BASELINE within noise",
    sizes=(100, 500, 1000, 10000),
    trial=partial(paper_trial, policies=("greedy", "lds"), signals="none"),
    reps=8,
)

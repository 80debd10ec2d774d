"""Figure 13: as Figure 12, by change rate."""

from functools import partial

from afresh.lab.base import Experiment
from afresh.lab.trials import rates_trial

FIGURE = Experiment(
    name="fig13",
    title="Empirical crawl rates with signals, by change rate",
    claim="300 pages: those that GREEDY-CIS crawls more than the baseline change fast",
    sizes=(100, 300),
    trial=partial(rates_trial, policies=("greedy", "greedy-cis"), signals="perfect", colour="change rate"),
    reps=10,
    full_reps=10,
    picture="scatter",
    keep=10,
)

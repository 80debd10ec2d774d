"""Figure 14: with noisy signals, who believes all of them crawls some pages far too often."""

from functools import partial

from afresh.lab.base import Experiment
from afresh.lab.trials import rates_trial

FIGURE = Experiment(
    name="fig14",
    title="Empirical crawl rates with noisy signals, by recall",
    claim="GREEDY-CIS runs after false signals; GREEDY-NCIS does not",
    sizes=(100, 500),
    trial=partial(rates_trial, policies=("greedy", "greedy-cis", "greedy-ncis"), signals="noisy", colour="recall"),
    reps=10,
    full_reps=10,
    picture="scatter",
    keep=10,
)

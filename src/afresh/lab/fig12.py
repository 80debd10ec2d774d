"""Figure 12: with signals that are never false, which pages are crawled more than by the baseline; by recall."""

from functools import partial

from afresh.lab.base import Experiment
from afresh.lab.trials import rates_trial

FIGURE = Experiment(
    name="fig12",
    title="Empirical crawl rates with signals, by recall",
    claim="GREEDY-CIS moves crawls by recall: pages that announce their changes need fewer or are worth more",
    sizes=(100, 500),
    trial=partial(rates_trial, policies=("greedy", "greedy-cis"), signals="perfect", colour="recall"),
    reps=10,
    full_reps=10,
    picture="scatter",
    keep=10,
)

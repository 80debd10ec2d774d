"""Figure 12: with signals that are never false, which pages are crawled more than by the baseline; by recall."""

from functools import partial

from afresh.lab.base import Experiment
from afresh.lab.trials import rates_trial

FIGURE = Experiment(
    name="fig12",
    title="Empirical crawl rates with signals, by recall",
    claim="100 pages: GREEDY-CIS takes crawls from pages with many signals; 300: it gives them to some of these",
    sizes=(100, 300),
    trial=partial(rates_trial, policies=("greedy", "greedy-cis"), signals="perfect", colour="recall"),
    reps=10,
    full_reps=10,
    picture="scatter",
    keep=10,
)

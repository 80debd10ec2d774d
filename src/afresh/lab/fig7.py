"""Figure 7: without signals, how often each page is crawled against how often the optimum would."""

from functools import partial

from afresh.lab.base import Experiment
from afresh.lab.trials import rates_trial

FIGURE = Experiment(
    name="fig7",
    title="Empirical crawl rates without signals, by change rate",
    claim="LDS crawls at the baseline's rates; GREEDY scatters around them and does as well",
    sizes=(100, 500),
    trial=partial(rates_trial, policies=("greedy", "lds"), signals="none", colour="change rate"),
    reps=10,
    full_reps=10,
    picture="scatter",
    keep=10,
)

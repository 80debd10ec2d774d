"""Figure 10: precision and recall of signals as crawls seem to show them: the naive estimate is biased."""

from functools import partial

from afresh.lab.base import Experiment
from afresh.lab.signals import signal_trial

FIGURE = Experiment(
    name="fig10",
    title="The naive estimate of precision and recall",
    claim="biased, the more so the rarer the crawls",
    sizes=(100,),
    trial=partial(signal_trial, estimator="naive"),
    reps=4,
    full_reps=20,
    measure="1 − |mean error|",
    picture="truth",
)

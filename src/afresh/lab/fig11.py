"""Figure 11: precision and recall of signals by maximum likelihood."""

from functools import partial

from afresh.lab.base import Experiment
from afresh.lab.signals import signal_trial

FIGURE = Experiment(
    name="fig11",
    title="Precision and recall by maximum likelihood",
    claim="unbiased",
    sizes=(100,),
    trial=partial(signal_trial, estimator="likelihood"),
    reps=4,
    full_reps=20,
    measure="1 − |mean error|",
    picture="truth",
)

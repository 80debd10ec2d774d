"""Figure 4: noisy signals; who weighs them does best, who believes them loses."""

from functools import partial

from afresh.lab.base import Experiment
from afresh.lab.trials import paper_trial

POLICIES = ("greedy", "greedy-cis", "greedy-ncis", "greedy-ncis-approx-1", "greedy-ncis-approx-2")

FIGURE = Experiment(
    name="fig4",
    title="Some changes send a signal, and some signals are false",
    claim="GREEDY-NCIS above all; its approximations close for m ≤ 500 and worse beyond; GREEDY-CIS falls with m",
    sizes=(100, 200, 500, 750, 1000, 10000),
    trial=partial(paper_trial, policies=POLICIES, signals="noisy"),
)

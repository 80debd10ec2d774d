"""The table of all experiments: the published figures, and what we measure besides.

Each line says what is drawn, what must show, and how one repetition is made. Longer trials have modules of their own.
"""

from functools import partial

from afresh.errors import ConfigError
from afresh.lab.bandwidth_steps import bandwidth_trial
from afresh.lab.base import Experiment
from afresh.lab.hearing import DELAY, SENDERS, WEIGHTS
from afresh.lab.heavy_tails import heavy_tailed_trial
from afresh.lab.late_signals import late_trial
from afresh.lab.learning import LEARN
from afresh.lab.signals import ERRORS, signal_trial
from afresh.lab.trials import paper_trial, rates_trial
from afresh.lab.value_curve import value_curve_trial

_SIGNALLED = ("greedy", "greedy-cis", "greedy-ncis")
_FIGURES = (
    Experiment(
        name="fig2",
        title="Discrete policies without signals",
        claim="GREEDY = LDS = BASELINE within noise",
        sizes=(100, 500, 1000, 10000),
        trial=partial(paper_trial, policies=("greedy", "lds"), signals="none"),
        reps=8,
    ),
    Experiment(
        name="fig3",
        title="Some changes send a signal, and none is false",
        claim="GREEDY-CIS well above GREEDY = BASELINE",
        sizes=(100, 300, 500, 1000, 10000),
        trial=partial(paper_trial, policies=("greedy", "greedy-cis"), signals="perfect"),
        reps=6,
    ),
    Experiment(
        name="fig4",
        title="Some changes send a signal, and some signals are false",
        claim="GREEDY-NCIS above all; its approximations close for m ≤ 500 and worse beyond; GREEDY-CIS falls with m",
        sizes=(100, 200, 500, 750, 1000, 10000),
        trial=partial(
            paper_trial, policies=(*_SIGNALLED, "greedy-ncis-approx-1", "greedy-ncis-approx-2"), signals="noisy"
        ),
    ),
    Experiment(
        name="fig5",
        title="A heavy-tailed collection with corrupted beliefs about signals",
        claim="GREEDY-NCIS degrades gracefully; GREEDY-CIS+ is close at p = 0 and loses with p",
        sizes=(100_000,),
        trial=heavy_tailed_trial,
        reps=2,
        full_reps=10,
        picture="bars",
    ),
    Experiment(
        name="fig6",
        title="The crawl value and its approximations",
        claim="each further term follows the exact value further",
        sizes=(1,),
        trial=value_curve_trial,
        reps=1,
        full_reps=1,
        measure="mean share of the exact value",
        picture="lines",
    ),
    Experiment(
        name="fig7",
        title="Empirical crawl rates without signals, by change rate",
        claim="LDS crawls at the baseline's rates; GREEDY scatters around them and does as well",
        sizes=(100, 500),
        trial=partial(rates_trial, policies=("greedy", "lds"), signals="none", colour="change rate"),
        reps=10,
        full_reps=10,
        picture="scatter",
        keep=10,
    ),
    Experiment(
        name="fig8",
        title="Noisy signals that arrive late: six ticks on average",
        claim="GREEDY-NCIS drops where bandwidth is ample; GREEDY-NCIS-D wins most of it back (of what dates could)",
        sizes=(100, 200, 500, 750, 1000),
        trial=late_trial,
        reps=8,
    ),
    Experiment(
        name="fig9",
        title="Bandwidth 100, then 150, then 100 again",
        claim="the accuracy rises to the new optimum and falls back by itself",
        sizes=(1000,),
        trial=bandwidth_trial,
        reps=10,
        picture="steps",
    ),
    Experiment(
        name="fig10",
        title="The naive estimate of precision and recall",
        claim="biased, the more so the rarer the crawls",
        sizes=(100,),
        trial=partial(signal_trial, estimator="naive"),
        reps=4,
        full_reps=20,
        measure="1 − |mean error|",
        picture="truth",
    ),
    Experiment(
        name="fig11",
        title="Precision and recall by maximum likelihood",
        claim="unbiased",
        sizes=(100,),
        trial=partial(signal_trial, estimator="likelihood"),
        reps=4,
        full_reps=20,
        measure="1 − |mean error|",
        picture="truth",
    ),
    Experiment(
        name="fig12",
        title="Empirical crawl rates with signals, by recall",
        claim="100 pages: GREEDY-CIS takes crawls from pages with many signals; 300: it gives them to some of these",
        sizes=(100, 300),
        trial=partial(rates_trial, policies=("greedy", "greedy-cis"), signals="perfect", colour="recall"),
        reps=10,
        full_reps=10,
        picture="scatter",
        keep=10,
    ),
    Experiment(
        name="fig13",
        title="Empirical crawl rates with signals, by change rate",
        claim="300 pages: those that GREEDY-CIS crawls more than the baseline change fast",
        sizes=(100, 300),
        trial=partial(rates_trial, policies=("greedy", "greedy-cis"), signals="perfect", colour="change rate"),
        reps=10,
        full_reps=10,
        picture="scatter",
        keep=10,
    ),
    Experiment(
        name="fig14",
        title="Empirical crawl rates with noisy signals, by recall",
        claim="GREEDY-CIS runs after false signals; GREEDY-NCIS does not",
        sizes=(100, 500),
        trial=partial(rates_trial, policies=_SIGNALLED, signals="noisy", colour="recall"),
        reps=10,
        full_reps=10,
        picture="scatter",
        keep=10,
    ),
)
EXPERIMENTS: dict[str, Experiment] = {each.name: each for each in (*_FIGURES, ERRORS, LEARN, SENDERS, WEIGHTS, DELAY)}


def experiment(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in EXPERIMENTS:
        raise ConfigError(f"There is no experiment {name!r}.", hint=f"Choose one of {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]

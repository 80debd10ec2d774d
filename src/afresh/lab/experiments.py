"""The table of all experiments: the published figures, and what we measure besides.

Each entry says what is drawn, what must show, at which sizes, and how one repetition is made: a function of `trials`
or `mirrored`, with its parameters.
"""

from functools import partial
from typing import Any

from afresh.errors import ConfigError
from afresh.lab import graded, mirrored, shards, trials
from afresh.lab.base import Experiment
from afresh.lab.missed import AGE_SQUARED, SIGNIFICANCE, STALE

_SIGNALLED = ("greedy", "greedy-cis", "greedy-ncis")
_RATES: dict[str, Any] = {"reps": 10, "full_reps": 10, "picture": "scatter", "keep": 10}
_ESTIMATES: dict[str, Any] = {"reps": 4, "full_reps": 20, "measure": "1 − |mean error|", "picture": "truth"}
_LEARNED: dict[str, Any] = {"full_reps": 20, "picture": "bars"}
_COSTS: dict[str, Any] = {"full_reps": 150, "measure": "cost J", "picture": "rounds", "told": (0, 10, 30, 60, 120, 240)}
_AGAINST: dict[str, Any] = {**_COSTS, "reps": 4, "full_reps": 20}
_WITH_RESETS, _BY_SQUARES = ("MirrorSync", "AsyncMirrorSync"), ("AsyncMirrorSync", "AsyncPsgdSync")
_ALL = (
    Experiment(
        "fig1",
        "Precision and recall of sitemaps, weighted by importance",
        "most hosts' sitemaps are poor; a few good ones carry much of the importance; grades follow the truth",
        (1_000,),
        graded.sitemaps_graded,
        reps=3,
        full_reps=20,
        measure="1 − weighted error",
        picture="grades",
        keep=3,
    ),
    Experiment(
        "fig2",
        "Discrete policies without signals",
        "GREEDY = LDS = BASELINE within noise",
        (100, 500, 1000, 10000),
        partial(trials.paper, policies=("greedy", "lds"), signals="none"),
        reps=8,
    ),
    Experiment(
        "fig3",
        "Some changes send a signal, and none is false",
        "GREEDY-CIS well above GREEDY = BASELINE",
        (100, 300, 500, 1000, 10000),
        partial(trials.paper, policies=("greedy", "greedy-cis"), signals="perfect"),
        reps=6,
    ),
    Experiment(
        "fig4",
        "Some changes send a signal, and some signals are false",
        "GREEDY-NCIS above all; its approximations close for m ≤ 500 and worse beyond; GREEDY-CIS falls with m",
        (100, 200, 500, 750, 1000, 10000),
        partial(trials.paper, policies=(*_SIGNALLED, "greedy-ncis-approx-1", "greedy-ncis-approx-2"), signals="noisy"),
    ),
    Experiment(
        "fig5",
        "A heavy-tailed collection with corrupted beliefs about signals",
        "GREEDY-NCIS degrades gracefully; GREEDY-CIS+ is close at p = 0 and loses with p",
        (100_000,),
        partial(trials.heavy_tailed, corruption=(0.0, 0.1, 0.2)),
        reps=2,
        full_reps=10,
        picture="bars",
    ),
    Experiment(
        "fig6",
        "The crawl value and its approximations",
        "each further term follows the exact value further",
        (1,),
        partial(trials.value_curve, change_rate=0.5, recall=0.5, false_rate=0.3, terms=(1, 2, 3)),
        reps=1,
        full_reps=1,
        measure="mean share of the exact value",
        picture="lines",
    ),
    Experiment(
        "fig7",
        "Empirical crawl rates without signals, by change rate",
        "LDS crawls at the baseline's rates; GREEDY scatters around them and does as well",
        (100, 500),
        partial(trials.crawl_rates, policies=("greedy", "lds"), signals="none", colour="change_rate"),
        **_RATES,
    ),
    Experiment(
        "fig8",
        "Noisy signals that arrive late: six ticks on average",
        "GREEDY-NCIS drops where bandwidth is ample; GREEDY-NCIS-D wins most of it back (of what dates could)",
        (100, 200, 500, 750, 1000),
        partial(
            trials.paper,
            policies=("greedy", "greedy-ncis", "greedy-ncis-d"),
            dated=("greedy-ncis",),
            signals="noisy",
            signal_delay=6.0,
        ),
        reps=8,
    ),
    Experiment(
        "fig9",
        "Bandwidth 100, then 150, then 100 again",
        "the accuracy rises to the new optimum and falls back by itself",
        (1000,),
        trials.bandwidth_steps,
        reps=10,
        picture="steps",
    ),
    Experiment(
        "fig10",
        "The naive estimate of precision and recall",
        "biased, the more so the rarer the crawls",
        (100,),
        partial(trials.signal_quality_of, estimator="naive"),
        **_ESTIMATES,
    ),
    Experiment(
        "fig11",
        "Precision and recall by maximum likelihood",
        "unbiased",
        (100,),
        partial(trials.signal_quality_of, estimator="likelihood"),
        **_ESTIMATES,
    ),
    Experiment(
        "fig12",
        "Empirical crawl rates with signals, by recall",
        "100 pages: GREEDY-CIS takes crawls from pages with many signals; 300: it gives them to some of these",
        (100, 300),
        partial(trials.crawl_rates, policies=("greedy", "greedy-cis"), signals="perfect", colour="recall"),
        **_RATES,
    ),
    Experiment(
        "fig13",
        "Empirical crawl rates with signals, by change rate",
        "300 pages: those that GREEDY-CIS crawls more than the baseline change fast",
        (100, 300),
        partial(trials.crawl_rates, policies=("greedy", "greedy-cis"), signals="perfect", colour="change_rate"),
        **_RATES,
    ),
    Experiment(
        "fig14",
        "Empirical crawl rates with noisy signals, by recall",
        "GREEDY-CIS runs after false signals; GREEDY-NCIS does not",
        (100, 500),
        partial(trials.crawl_rates, policies=_SIGNALLED, signals="noisy", colour="recall"),
        **_RATES,
    ),
    Experiment(
        "errors",
        "Error of precision and recall against crawls a page",
        "the naive error stays; by likelihood and online it falls like one over the root of the crawls",
        (100,),
        partial(trials.errors, crawls_a_page=(10, 30, 100, 300, 1000, 3000)),
        measure="root mean square error",
        **_LEARNED,
    ),
    Experiment(
        "shards",
        "Eight shards of unequal importance, and one budget",
        "budget that flows by price within 0.5 % of one engine; 1/N each far below",
        (8_000,),
        partial(shards.flowing, shards=8),
        reps=3,
        full_reps=10,
        picture="bars",
    ),
    Experiment(
        "shards-1000",
        "A thousand shards: some die, some join later, some say their prices late",
        "budget still flows; 1/N each far below",
        (50_000,),
        partial(shards.flowing, shards=1_000, troubled=True),
        reps=1,
        full_reps=5,
        picture="bars",
    ),
    Experiment(
        "learn",
        "From nothing to good: figure 4's pages, nothing known",
        "at least as fresh as without exploring over any number of crawls, and never below uniform",
        (1000,),
        partial(trials.learn, lengths=(3.0, 10.0, 30.0, 100.0, 300.0)),
        reps=5,
        measure="share of what knowing all rates scores",
        **_LEARNED,
    ),
    Experiment(
        "senders",
        "A good and a useless sender of signals",
        "told apart, they are worth what the good one is alone",
        (300,),
        trials.senders,
        **_LEARNED,
    ),
    Experiment(
        "weights",
        "Error of the weights of two senders against crawls a page",
        "online it falls with the crawls, below that of each page by itself; one count cannot",
        (50,),
        partial(trials.weights, crawls_a_page=(10, 30, 100, 300)),
        measure="root mean square error",
        **_LEARNED,
    ),
    Experiment(
        "delay",
        "A good sender of signals that is late",
        "learning the delay gains where signals are late, and costs nothing where they are not",
        (300,),
        partial(trials.late_sender, days=(0.0, 0.06, 0.3, 1.0)),
        **_LEARNED,
    ),
    Experiment(
        "mirror-fig1",
        "Rates learned from polynomial costs, with and without free resets",
        "ASYNCMIRRORSYNC follows MIRRORSYNC, which starts every round with fresh copies",
        (100,),
        partial(mirrored.curves, family="polynomial", algorithms=_WITH_RESETS),
        reps=30,
        family="polynomial",
        **_COSTS,
    ),
    Experiment(
        "mirror-fig2",
        "Rates learned from polynomial costs, by two kinds of steps",
        "ASYNCMIRRORSYNC is ahead of ASYNCPSGDSYNC until about round 150, and behind at the end",
        (100,),
        partial(mirrored.curves, family="polynomial", algorithms=_BY_SQUARES),
        reps=30,
        family="polynomial",
        **_COSTS,
    ),
    Experiment(
        "mirror-fig3",
        "Rates learned from stale or not, with and without free resets",
        "ASYNCMIRRORSYNC follows MIRRORSYNC, which starts every round with fresh copies",
        (100,),
        partial(mirrored.curves, family="poisson", algorithms=_WITH_RESETS),
        reps=30,
        family="poisson",
        **_COSTS,
    ),
    Experiment(
        "mirror-fig4",
        "Rates learned from stale or not, by two kinds of steps",
        "ASYNCMIRRORSYNC is ahead of ASYNCPSGDSYNC",
        (100,),
        partial(mirrored.curves, family="poisson", algorithms=_BY_SQUARES),
        reps=30,
        family="poisson",
        **_COSTS,
    ),
    Experiment(
        "mirror-turns",
        "Costs turn round every 60 rounds: who was dear is cheap",
        "the learners follow every turn; rates that are fixed cannot, even the best",
        (100,),
        partial(mirrored.turning, every=60),
        reps=10,
        family="polynomial",
        **{**_COSTS, "told": (0, 59, 60, 119, 120, 179, 180, 239)},
    ),
    Experiment(
        "mirror-regret",
        "Regret of MIRRORSYNC, by the number of rounds T",
        "against the best rates of the whole budget it grows like T^(2/3), also if an adversary sees the rates",
        (20,),
        partial(mirrored.growth, lengths=(256, 1024, 4096, 16384), fastest=0.5),
        reps=4,
        family="poisson",
        **{**_COSTS, "full_reps": 20, "picture": "regret", "told": (256, 1024, 4096, 16384)},
    ),
    Experiment(
        "mirror-stale",
        "Stale or not: costs against a model of changes that is right",
        "the model of changes is better: its assumptions hold",
        (100,),
        partial(mirrored.against_model, kind=STALE),
        family="poisson",
        **_AGAINST,
    ),
    Experiment(
        "mirror-age",
        "The square of the time since the first missed change: costs against a model of changes",
        "learning from costs is better than the model of changes, which gives fast pages up",
        (100,),
        partial(mirrored.against_model, kind=AGE_SQUARED),
        family="age squared",
        **_AGAINST,
    ),
    Experiment(
        "mirror-significance",
        "The significance of what is missed, with heavy tails: costs against a model of changes",
        "learning from costs is better than the model of changes, and than visiting all alike",
        (100,),
        partial(mirrored.against_model, kind=SIGNIFICANCE),
        family="significance",
        **_AGAINST,
    ),
)
EXPERIMENTS: dict[str, Experiment] = {each.name: each for each in _ALL}


def experiment(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in EXPERIMENTS:
        raise ConfigError(f"There is no experiment {name!r}.", hint=f"Choose one of {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]

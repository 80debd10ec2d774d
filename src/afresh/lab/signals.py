"""Watching one page at a time: what its crawls say about its signals (figures 10 and 11)."""

import time

import numpy as np

from afresh.estimate.counting import naive_quality
from afresh.estimate.likelihood import signal_quality
from afresh.estimate.online import new_table, observe_many, posterior_of
from afresh.lab.base import Experiment, Sample

CRAWLS = 5_000  # of each page
ERROR_CRAWLS = (10, 30, 100, 300, 1000, 3000)
RELATIVE_RATES = (0.25, 0.5, 1.0, 2.0, 4.0)  # crawls a change


def watch(
    rng: np.random.Generator,
    *,
    change_rate: float,
    recall: float,
    false_rate: float,
    crawl_rate: float,
    crawls: int = CRAWLS,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(elapsed, signals, changed) of many crawls of one page, at random moments."""
    elapsed = rng.exponential(1.0 / crawl_rate, crawls)
    told = rng.poisson(recall * change_rate * elapsed)
    untold = rng.poisson((1 - recall) * change_rate * elapsed)
    false = rng.poisson(false_rate * elapsed)
    return elapsed, (told + false).astype(float), (told + untold) > 0


def signal_trial(pages: int, seed: int, estimator: str) -> dict[str, Sample]:
    """Precision and recall of some pages, true and estimated, for every relative crawl rate."""
    rng = np.random.default_rng([seed, pages])
    found = {}
    for relative in RELATIVE_RATES:
        began = time.perf_counter()
        truth, guess = np.empty((2, pages)), np.empty((2, pages))
        for k in range(pages):
            precision, recall = rng.uniform(0.2, 0.95, 2)
            change_rate = 1.0 / rng.uniform(2.0, 20.0)
            false_rate = recall * change_rate * (1 - precision) / precision
            seen = watch(
                rng,
                change_rate=change_rate,
                recall=recall,
                false_rate=false_rate,
                crawl_rate=relative * change_rate,
            )
            quality = naive_quality(*seen) if estimator == "naive" else signal_quality(*seen)
            truth[:, k], guess[:, k] = (precision, recall), (quality.precision, quality.recall)
        seconds = time.perf_counter() - began
        for row, name in enumerate(("precision", "recall")):
            error = float(np.mean(guess[row] - truth[row]))
            curves = {"x": truth[row], "y": guess[row]}
            found[f"{name}, {relative:g} crawls"] = Sample(1 - abs(error), 1.0, 0.0, seconds / 2, curves)
    return found


def _online_quality(pages: int, seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """(precision, recall) of pages that are learned together, crawl by crawl."""
    table = new_table(pages, typical_rate=0.1, now=0.0, memory=np.inf, crawl_memory=1.0)
    crawls = len(seen[0][0])
    table.pages["heard"] = [each[1].sum() for each in seen]
    columns = [np.stack([each[k] for each in seen], axis=1).ravel() for k in range(3)]
    observe_many(table, np.tile(np.arange(pages), crawls), *columns)
    found = np.array([posterior_of(table, page)[::2] for page in range(pages)])
    signal_rate = np.array([each[1].sum() / each[0].sum() for each in seen])
    told = -signal_rate * np.expm1(-found[:, 1])
    return told / np.maximum(signal_rate, 1e-12), told / (found[:, 0] + told)


def error_trial(pages: int, seed: int) -> dict[str, Sample]:
    """Root mean square error of precision and recall after some crawls a page, one crawl a change on average."""
    rng = np.random.default_rng([seed, pages, 7])
    found = {}
    for crawls in ERROR_CRAWLS:
        began = time.perf_counter()
        truth = rng.uniform(0.2, 0.95, (2, pages))
        change_rate = 1.0 / rng.uniform(2.0, 20.0, pages)
        false_rate = truth[1] * change_rate * (1 - truth[0]) / truth[0]
        seen = [
            watch(
                rng,
                change_rate=change_rate[k],
                recall=truth[1, k],
                false_rate=false_rate[k],
                crawl_rate=change_rate[k],
                crawls=crawls,
            )
            for k in range(pages)
        ]
        naive = np.array([(each.precision, each.recall) for each in (naive_quality(*one) for one in seen)]).T
        likely = np.array([(each.precision, each.recall) for each in (signal_quality(*one) for one in seen)]).T
        guesses = {"naive": naive, "likelihood": likely, "online": np.array(_online_quality(pages, seen))}
        seconds = (time.perf_counter() - began) / 3
        for name, guess in guesses.items():
            error = float(np.sqrt(np.mean((guess - truth) ** 2)))
            found[f"{name}, {crawls} crawls"] = Sample(error, 0.0, 0.0, seconds)
    return found


ERRORS = Experiment(
    name="errors",
    title="Error of precision and recall against crawls a page",
    claim="the naive error stays; by likelihood and online it falls like one over the root of the crawls",
    sizes=(100,),
    trial=error_trial,
    reps=3,
    full_reps=20,
    measure="root mean square error",
    picture="bars",
)

"""Watching one page at a time: what its crawls say about its signals (figures 10 and 11)."""

import time

import numpy as np

from afresh.estimate.counting import naive_quality
from afresh.estimate.likelihood import signal_quality
from afresh.lab.base import Sample

CRAWLS = 5_000  # of each page
RELATIVE_RATES = (0.25, 0.5, 1.0, 2.0, 4.0)  # crawls a change


def watch(
    rng: np.random.Generator, *, change_rate: float, recall: float, false_rate: float, crawl_rate: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(elapsed, signals, changed) of many crawls of one page, at random moments."""
    elapsed = rng.exponential(1.0 / crawl_rate, CRAWLS)
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

"""How good probabilities of kinds are: accuracy, macro-F1, likelihood, and whether they come true."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from afresh.kinds.bayes import KINDS

BINS = 10  # of the probability of the likeliest kind, with as many pages each


@dataclass(frozen=True, slots=True)
class Scores:
    """Of some pages."""

    accuracy: float
    macro_f1: float  # the mean over the kinds that are there of 2·hits / (said + are)
    log_loss: float  # nats a page
    brier: float
    calibration: float  # mean distance between what is said and what comes true


def scores(said: NDArray[np.float64], kinds: NDArray[np.int64]) -> Scores:
    """Scores of probabilities, a row for each page, against what the pages are.

    >>> scores(np.eye(7)[[0, 1, 1]], np.array([0, 1, 0])).accuracy
    0.6666666666666666
    """
    likeliest, wanted = said.argmax(axis=1), np.eye(len(KINDS))[kinds]
    hits = np.bincount(kinds[likeliest == kinds], minlength=len(KINDS))
    both = np.bincount(likeliest, minlength=len(KINDS)) + np.bincount(kinds, minlength=len(KINDS))
    there = np.bincount(kinds, minlength=len(KINDS)) > 0
    right, sure = likeliest == kinds, said.max(axis=1)
    bins = np.array_split(np.argsort(sure, kind="stable"), BINS)
    gaps = [abs(float(sure[each].mean() - right[each].mean())) * len(each) for each in bins if len(each)]
    return Scores(
        accuracy=float(right.mean()),
        macro_f1=float((2 * hits[there] / both[there]).mean()),
        log_loss=-float(np.log(np.maximum(said[np.arange(len(kinds)), kinds], 1e-12)).mean()),
        brier=float(((said - wanted) ** 2).sum(axis=1).mean()),
        calibration=sum(gaps) / len(kinds),
    )

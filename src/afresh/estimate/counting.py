"""Estimates by counting: as it seems at first sight, and with Cho and Garcia-Molina's correction. For comparison.

A crawl sees one change where there were several, so counted changes per time are too few; and a signal that a crawl
followed is not a signal that told the truth.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Quality:
    """What is thought of a page's changes and signals."""

    change_rate: float
    recall: float
    precision: float


def naive_quality(elapsed: Floats, signals: Floats, changed: NDArray[np.bool_]) -> Quality:
    """As it seems at first sight: the share of crawls after signals that found a change, and of finds that had one."""
    heard = signals > 0
    both = float((heard & changed).sum())
    return Quality(
        change_rate=naive_rate(elapsed, changed),
        recall=both / max(float(changed.sum()), 1.0),
        precision=both / max(float(heard.sum()), 1.0),
    )


def naive_rate(elapsed: Floats, changed: NDArray[np.bool_]) -> float:
    """Changes seen per time: too low, the more so the rarer the crawls.

    >>> naive_rate(np.full(4, 2.0), np.array([True, False, True, False]))
    0.25
    """
    return float(changed.sum() / elapsed.sum())


def cho_garcia_molina_rate(elapsed: Floats, changed: NDArray[np.bool_]) -> float:
    """−log((unchanged + ½)/(crawls + ½)) per interval: for crawls at regular intervals nearly without bias.

    For irregular ones the mean interval is taken, which is not what the estimator was made for.

    >>> round(cho_garcia_molina_rate(np.full(4, 2.0), np.array([True, False, True, False])), 4)
    0.2939
    """
    crawls, unchanged = len(changed), float((~changed).sum())
    return -math.log((unchanged + 0.5) / (crawls + 0.5)) * crawls / float(elapsed.sum())

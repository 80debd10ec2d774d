"""What it means to crawl a page whenever it is as stale as after `elapsed` seconds and `signals` signals.

The state is a threshold here: with signals = 0, `elapsed` is the effective age ι of the papers. Where every change is
signalled (recall = 1) time alone never makes a copy stale, and the threshold is a number of signals.
"""

import math
from typing import Any

from numpy.typing import ArrayLike

from afresh.value.arguments import evaluate
from afresh.value.compiled import elementwise
from afresh.value.freshness import make_sense
from afresh.value.kernels import page_curve, page_rates, page_staleness

_INTERVAL, _FRESH_TIME, _SHARE, _INTERVAL_SLOPE, _VALUE_SLOPE = range(5)


@elementwise
def _companion(
    elapsed: float, signals: float, change_rate: float, recall: float, false_rate: float, which: float
) -> float:
    if not make_sense(elapsed, signals, change_rate, recall, false_rate):
        return math.nan
    silent_rate, signal_rate, weight = page_rates(change_rate, recall, false_rate)
    x = page_staleness(elapsed, signals, silent_rate, weight)
    value, interval, slope = page_curve(x, silent_rate, signal_rate, weight)
    slope *= silent_rate
    if change_rate == 0.0:
        interval, slope = elapsed, 1.0
    stale = math.exp(-x)
    if which == _INTERVAL:
        return interval
    if which == _INTERVAL_SLOPE:
        return slope
    if which == _VALUE_SLOPE:
        return silent_rate * stale * interval if stale > 0.0 else 0.0
    fresh_time = value + stale * interval if stale > 0.0 else value
    if which == _FRESH_TIME:
        return fresh_time
    return min(1.0, fresh_time / interval) if interval > 0.0 else 1.0


def _evaluate(which: int, state: tuple[ArrayLike, ArrayLike], page: tuple[ArrayLike, ArrayLike, ArrayLike]) -> Any:
    names = ("elapsed", "signals", "change_rate", "recall", "false_rate", "which")
    return evaluate(_companion, dict(zip(names, (*state, *page, which), strict=True)))


def crawl_interval(
    elapsed: ArrayLike,
    signals: ArrayLike = 0,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike = 0.0,
    false_rate: ArrayLike = 0.0,
) -> Any:
    """ψ: expected seconds between crawls.

    >>> round(crawl_interval(5.0, change_rate=0.5, recall=0.5, false_rate=0.3), 5)
    2.45457
    """
    return _evaluate(_INTERVAL, (elapsed, signals), (change_rate, recall, false_rate))


def fresh_time(
    elapsed: ArrayLike,
    signals: ArrayLike = 0,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike = 0.0,
    false_rate: ArrayLike = 0.0,
) -> Any:
    """w: expected seconds between crawls during which the copy is fresh."""
    return _evaluate(_FRESH_TIME, (elapsed, signals), (change_rate, recall, false_rate))


def crawl_rate(
    elapsed: ArrayLike,
    signals: ArrayLike = 0,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike = 0.0,
    false_rate: ArrayLike = 0.0,
) -> Any:
    """f = 1/ψ: expected crawls per second; infinite at a threshold of 0."""
    interval = _evaluate(_INTERVAL, (elapsed, signals), (change_rate, recall, false_rate))
    if isinstance(interval, float):
        return 1.0 / interval if interval > 0 else math.inf
    rate = interval.copy()
    rate[interval > 0] = 1.0 / interval[interval > 0]
    rate[interval == 0] = math.inf
    return rate


def fresh_share(
    elapsed: ArrayLike,
    signals: ArrayLike = 0,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike = 0.0,
    false_rate: ArrayLike = 0.0,
) -> Any:
    """w/ψ: the share of time that the copy is fresh; times the request rate it is o, the page's part of the goal."""
    return _evaluate(_SHARE, (elapsed, signals), (change_rate, recall, false_rate))


def interval_slope(
    elapsed: ArrayLike,
    signals: ArrayLike = 0,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike = 0.0,
    false_rate: ArrayLike = 0.0,
) -> Any:
    """ψ': how fast the interval grows with the effective age."""
    return _evaluate(_INTERVAL_SLOPE, (elapsed, signals), (change_rate, recall, false_rate))


def value_slope(
    elapsed: ArrayLike,
    signals: ArrayLike = 0,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike = 0.0,
    false_rate: ArrayLike = 0.0,
) -> Any:
    """V' = α·e^{−x}·ψ: how fast the crawl value grows with time, per unit of request rate."""
    return _evaluate(_VALUE_SLOPE, (elapsed, signals), (change_rate, recall, false_rate))

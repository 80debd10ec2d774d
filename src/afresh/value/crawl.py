"""What a crawl gains now, and what crawling at that state, again and again, would cost."""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from afresh.value.arguments import blame, evaluate, numbers
from afresh.value.compiled import elementwise
from afresh.value.freshness import make_sense
from afresh.value.kernels import page_rates, page_staleness, page_value_in_terms
from afresh.value.poisson import two_or_more
from afresh.value.predictive import NO_COPY, predictive_staleness
from afresh.value.resting import resting_value

_MOST_CHANGES = 1e100  # since the last crawl, that a value is averaged over

Assumption = Literal["none", "perfect", "noisy"]


@elementwise
def value_of_pages(
    elapsed: float,
    signals: float,
    change_rate: float,
    recall: float,
    false_rate: float,
    shape: float,
    request_rate: float,
) -> float:
    """`crawl_value` of arrays, for those who call it often: NaN where an argument makes no sense."""
    sense = make_sense(elapsed, signals, change_rate, recall, false_rate) and shape > 0.0
    if not (sense and 0.0 <= request_rate < math.inf):
        return math.nan
    silent_rate, signal_rate, weight = page_rates(change_rate, recall, false_rate)
    x = predictive_staleness(elapsed, signals, silent_rate, weight, shape)
    return request_rate * resting_value(x, silent_rate, signal_rate, weight, shape)


@elementwise
def _value_in_terms(
    elapsed: float,
    signals: float,
    change_rate: float,
    recall: float,
    false_rate: float,
    request_rate: float,
    terms: float,
) -> float:
    if not (make_sense(elapsed, signals, change_rate, recall, false_rate) and 0.0 <= request_rate < math.inf):
        return math.nan
    silent_rate, signal_rate, weight = page_rates(change_rate, recall, false_rate)
    x = page_staleness(elapsed, signals, silent_rate, weight)
    return request_rate * page_value_in_terms(x, silent_rate, signal_rate, weight, int(terms))


@elementwise
def _value_without_signals(elapsed: float, signals: float, change_rate: float, request_rate: float) -> float:
    sense = elapsed >= 0.0 and signals >= 0.0 and 0.0 <= change_rate < math.inf and 0.0 <= request_rate < math.inf
    if not sense:
        return math.nan
    if change_rate == 0.0:
        return 0.0
    return request_rate * two_or_more(change_rate * elapsed) / change_rate


def crawl_value(
    elapsed: ArrayLike,
    signals: ArrayLike = 0,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike = 0.0,
    false_rate: ArrayLike = 0.0,
    shape: ArrayLike = math.inf,
    request_rate: ArrayLike = 1.0,
    terms: int | None = None,
    assume: Assumption = "noisy",
) -> Any:
    """What a crawl gains `elapsed` seconds and `signals` signals after the last one: V = μ·(w − e^{−x}ψ).

    Floats in, float out; arrays in, array out. From 1e300 s on, `elapsed` means that there is no copy yet. `terms`
    takes only this many terms of both sums. `assume` says how to treat signals: "none" ignores them (GREEDY), "perfect"
    believes each of them (GREEDY-CIS), "noisy" weighs them (GREEDY-NCIS). `shape` says how surely the rate of silent
    changes is known: V is averaged over a Gamma distribution of this shape round it, and the page may come to rest
    (`resting`); infinity: the rate is known exactly and lasts, and `terms` are only for that.

    >>> round(crawl_value(5.0, 0, change_rate=0.5), 5)
    1.42541
    >>> round(crawl_value(5.0, 0, change_rate=0.5, recall=0.5, false_rate=0.3), 5)  # silence is reassuring
    0.80989
    >>> round(crawl_value(5.0, 0, change_rate=0.5, shape=1.0), 5)  # it may hardly ever change, or come to rest
    1.3264
    """
    if assume not in ("none", "perfect", "noisy"):
        raise ValueError(f'assume must be "none", "perfect" or "noisy", but is {assume!r:.40}')
    if terms is not None and (isinstance(terms, bool) or not isinstance(terms, int | np.integer) or terms < 1):
        raise ValueError(f"terms must be a whole number of at least 1, but is {terms!r:.40}")
    if not np.all(numbers("shape", shape) > 0):
        raise ValueError("shape must be more than 0")
    named = {"elapsed": elapsed, "signals": signals, "change_rate": change_rate}
    if assume != "noisy" or np.ndim(false_rate) == 0:
        blame({"recall": recall, "false_rate": false_rate})  # which may be left out of the answer below
    known = np.ndim(shape) == 0 and shape == math.inf
    if known and (assume == "none" or (np.ndim(recall) == 0 and recall == 0 and np.ndim(false_rate) == 0)):
        return evaluate(_value_without_signals, named | {"request_rate": request_rate})
    named |= {"recall": recall, "false_rate": false_rate}
    if assume == "perfect":
        named["false_rate"] = 0.0
    elif assume == "none":
        named |= {"recall": 0.0, "false_rate": 0.0}
    if not known:  # beyond that, sums are no longer exact: an age that nothing has is worth as much as this one
        since, rate = numbers("elapsed", elapsed), np.maximum(numbers("change_rate", change_rate), 1.0)
        named["elapsed"] = np.where(since < NO_COPY, np.minimum(since, _MOST_CHANGES / rate), since)
    if terms is None or not known:
        return evaluate(value_of_pages, named | {"shape": shape, "request_rate": request_rate})
    return evaluate(_value_in_terms, named | {"request_rate": request_rate, "terms": terms})

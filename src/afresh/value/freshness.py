"""How likely a copy is to be fresh still, given its age and the signals heard since."""

import math
from typing import Any

from numpy.typing import ArrayLike

from afresh.value.arguments import evaluate
from afresh.value.compiled import compiled, elementwise
from afresh.value.kernels import page_rates, page_staleness


@compiled
def make_sense(elapsed: float, signals: float, change_rate: float, recall: float, false_rate: float) -> bool:
    """Whether the numbers that describe a page and its state are in their ranges; False for NaN."""
    page = 0.0 <= change_rate < math.inf and 0.0 <= recall <= 1.0 and 0.0 <= false_rate < math.inf
    return page and elapsed >= 0.0 and signals >= 0.0


@elementwise
def _staleness(elapsed: float, signals: float, change_rate: float, recall: float, false_rate: float) -> float:
    if not make_sense(elapsed, signals, change_rate, recall, false_rate):
        return math.nan
    silent_rate, _, weight = page_rates(change_rate, recall, false_rate)
    return page_staleness(elapsed, signals, silent_rate, weight)


@elementwise
def _freshness(elapsed: float, signals: float, change_rate: float, recall: float, false_rate: float) -> float:
    if not make_sense(elapsed, signals, change_rate, recall, false_rate):
        return math.nan
    silent_rate, _, weight = page_rates(change_rate, recall, false_rate)
    return math.exp(-page_staleness(elapsed, signals, silent_rate, weight))


def freshness(
    elapsed: ArrayLike,
    signals: ArrayLike = 0,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike = 0.0,
    false_rate: ArrayLike = 0.0,
) -> Any:
    """Probability that the copy is fresh, e^{−x}, `elapsed` seconds and `signals` signals after its last crawl.

    >>> freshness(10.0, 0, change_rate=0.05)
    0.6065306597126334
    >>> freshness(10.0, 1, change_rate=0.05, recall=0.5, false_rate=0.025)  # every other signal is a false one
    0.38940039153570244
    """
    return evaluate(_freshness, _named(elapsed, signals, change_rate, recall, false_rate))


def staleness(
    elapsed: ArrayLike,
    signals: ArrayLike = 0,
    *,
    change_rate: ArrayLike,
    recall: ArrayLike = 0.0,
    false_rate: ArrayLike = 0.0,
) -> Any:
    """x = α·elapsed + b·signals, with α = (1 − λ)Δ and b = log(γ/ν): minus the logarithm of the freshness.

    >>> staleness(10.0, 0, change_rate=0.05)
    0.5
    """
    return evaluate(_staleness, _named(elapsed, signals, change_rate, recall, false_rate))


def _named(
    elapsed: ArrayLike, signals: ArrayLike, change_rate: ArrayLike, recall: ArrayLike, false_rate: ArrayLike
) -> dict[str, ArrayLike]:
    return {
        "elapsed": elapsed,
        "signals": signals,
        "change_rate": change_rate,
        "recall": recall,
        "false_rate": false_rate,
    }

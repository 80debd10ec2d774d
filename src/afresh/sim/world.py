"""A world of pages: how often each is asked for, changes and signals, and what can be known of it in advance."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.value import Optimum, optimum

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class World:
    """The truth about every page; all processes are Poisson, as in the papers.

    `signal_delay` is the mean number of ticks that a signal is on its way (a Poisson number each).
    """

    request_rate: Floats
    change_rate: Floats
    recall: Floats
    false_rate: Floats
    signal_delay: float = 0.0

    @property
    def pages(self) -> int:
        """How many."""
        return len(self.change_rate)

    def ceiling(self, budget: float) -> Optimum:
        """The best that a schedule can do that knows all rates and weighs every signal."""
        return optimum(
            budget=budget,
            request_rate=self.request_rate,
            change_rate=self.change_rate,
            recall=self.recall,
            false_rate=self.false_rate,
        )

    def baseline(self, budget: float) -> Optimum:
        """The best constant rates, which take no notice of signals: BASELINE of the papers."""
        return optimum(budget=budget, request_rate=self.request_rate, change_rate=self.change_rate)

    def believed(self, *, recall: ArrayLike, false_rate: ArrayLike) -> "World":
        """The same pages with other signals, such as somebody wrongly believes in."""
        recalled, false = np.broadcast_arrays(np.asarray(recall, float), np.asarray(false_rate, float))
        shape = self.change_rate.shape
        return replace(
            self, recall=np.broadcast_to(recalled, shape).copy(), false_rate=np.broadcast_to(false, shape).copy()
        )


def make_world(
    *,
    request_rate: ArrayLike,
    change_rate: ArrayLike,
    recall: ArrayLike = 0.0,
    false_rate: ArrayLike = 0.0,
    signal_delay: float = 0.0,
) -> World:
    """A world from numbers or arrays, which broadcast.

    >>> make_world(request_rate=1.0, change_rate=[0.1, 0.2]).pages
    2
    """
    columns = {"request_rate": request_rate, "change_rate": change_rate, "recall": recall, "false_rate": false_rate}
    arrays = np.broadcast_arrays(*(np.asarray(values, np.float64) for values in columns.values()))
    for name, values in zip(columns, arrays, strict=True):
        if values.ndim > 1 or not (np.isfinite(values) & (values >= 0)).all():
            raise ValueError(f"{name} must be finite numbers of at least 0, one a page")
    if (arrays[2] > 1).any():
        raise ValueError("recall must be at most 1")
    if not 0 <= signal_delay <= 100:
        raise ValueError(f"signal_delay must lie between 0 and 100 ticks, not {signal_delay}")
    request, change, recalled, false = (np.array(np.atleast_1d(values), np.float64) for values in arrays)
    return World(request, change, recalled, false, signal_delay)


def paper_world(rng: np.random.Generator, pages: int, *, signals: str = "none", signal_delay: float = 0.0) -> World:
    """The papers' world: request and change rates from U(0,1), recall from Beta(¼,¼), false signals from U(0.1, 0.6).

    `signals` is "none", "perfect" (no false ones) or "noisy".
    """
    if signals not in ("none", "perfect", "noisy"):
        raise ValueError(f"signals must be none, perfect or noisy, not {signals!r}")
    request_rate, change_rate = rng.random(pages), rng.random(pages)
    recall = rng.beta(0.25, 0.25, pages) if signals != "none" else 0.0
    false_rate = rng.uniform(0.1, 0.6, pages) if signals == "noisy" else 0.0
    return make_world(
        request_rate=request_rate,
        change_rate=change_rate,
        recall=recall,
        false_rate=false_rate,
        signal_delay=signal_delay,
    )

"""The rule that is ours: a page is as urgent as its crawl is worth."""

import math

import numpy as np
import numpy.typing as npt

from afresh.value import crawl_value
from afresh.value.crawl import Assumption
from afresh.value.predictive import NO_COPY

ASSUME: dict[str, Assumption] = {"greedy": "none", "greedy-cis": "perfect", "greedy-ncis": "noisy"}


_LATEST = 1e100  # seconds; an age at which all is gained that time brings


class Greedy:
    """Crawl value per cost; the names are the papers' policies.

    `greedy` ignores signals, `greedy-cis` believes every one of them, `greedy-ncis` weighs each by its quality.
    """

    def __init__(self, policy: str = "greedy-ncis") -> None:
        if policy not in ASSUME:
            raise ValueError(f"policy must be one of {', '.join(ASSUME)}, not {policy!r}")
        self.policy = policy

    def urgency(self, pages: npt.NDArray[np.void], now: float) -> npt.NDArray[np.float64]:
        """V(elapsed, signals) / cost of every page."""
        value = crawl_value(
            np.clip(now - pages["current"], 0.0, NO_COPY),
            pages["signals"],
            change_rate=pages["change_rate"],
            recall=pages["recall"],
            false_rate=pages["false_rate"],
            shape=pages["shape"],
            request_rate=pages["request_rate"],
            assume=ASSUME[self.policy],
        )
        return np.asarray(value / pages["cost"], dtype=np.float64)

    def due(self, slot: int, page: np.void, *, price: float, now: float) -> float:
        """When the crawl value will reach the price if no signal comes: it grows with time, so halve the bracket."""

        def worth(age: float) -> float:
            alone = np.array([page])
            alone["current"] = -age
            return float(self.urgency(alone, 0.0)[0])

        low = max(0.0, now - float(page["current"]))
        if low == math.inf:
            return now if worth(low) >= price else math.inf  # time brings nothing to a page without a copy
        if worth(low) >= price:
            return now
        if worth(_LATEST) <= price:
            return math.inf
        high = max(1.0, 2 * low)
        while worth(high) < price:
            high *= 2
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if worth(middle) < price else (low, middle)
        return float(page["current"]) + high

    def added(self, slot: int, page: np.void, now: float) -> None:
        """Nothing to prepare: the value is computed from the page alone."""

    def crawled(self, slot: int, page: np.void, *, now: float, changed: bool) -> None:
        """Nothing to remember: what the crawl taught arrives as new beliefs."""

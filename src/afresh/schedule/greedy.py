"""The rule that is ours: a page is as urgent as its crawl is worth."""

import math

import numpy as np
import numpy.typing as npt

from afresh.value import crawl_value
from afresh.value.crawl import Assumption

ASSUME: dict[str, Assumption] = {"greedy": "none", "greedy-cis": "perfect", "greedy-ncis": "noisy"}


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
            # A page without a copy is very old: finite, so that rates times ages never become 0·∞.
            np.clip(now - pages["current"], 0.0, 1e300),
            pages["signals"],
            change_rate=pages["change_rate"],
            recall=pages["recall"],
            false_rate=pages["false_rate"],
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
        if worth(low) >= price:
            return now
        if worth(math.inf) <= price:
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

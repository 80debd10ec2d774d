"""When pages are due whose rates are learned: each as evenly as can be at its rate, with a probe now and then.

Every page has a rate relative to the mean one. Its n-th refresh is due n intervals after it came in, not one interval
after the refresh before: so the number of its refreshes stays close to its rate × time, whatever holds single ones up.
The page that has been due longest goes first.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SHIFT = 1e12  # seconds: pages are crawled early rather than never, and an urgency has to be above 0

_PICKS = 64  # over which the earliness of picks is averaged
_SLACK = 2.0  # mean intervals by which a page may be early or late
_FIT = 0.01  # by which the mean interval may be off before all that is due is reckoned anew

ROW = np.dtype(
    [
        ("mark", "u8"),  # a digest of its URL, that finds it again after a restart
        ("rate", "f8"),  # in times the mean one
        ("base", "f8"),  # one interval before it is due
        ("since", "f8"),  # when its copy was refreshed
        ("seen", "f8"),  # what the probe has cost; NaN: it is yet to come
        ("sum", "f8"),  # of the samples since the last update
        ("count", "u4"),
        ("phase", "f4"),  # where in the interval the probe is due, 0 … 1; NaN: there is none
        ("slope", "f4"),  # of the cost by the rate, as it was lately seen; NaN: not yet
        ("cost", "f4"),  # at the last refresh; NaN: not known
        ("probe", "f4"),  # at the last probe
        ("whole", "?"),  # nothing has cut or spoiled the interval: it gives a sample
    ]
)


class Timetable:
    """The rule of `schedule.Rule` for pages whose rates are learned."""

    def __init__(self, *, budget: float, epsilon: float, rng: np.random.Generator) -> None:
        self.budget = budget  # crawls a second, probes included
        self.epsilon = epsilon
        self.rows = np.zeros(0, ROW)
        self.unit = 1.0  # seconds between two refreshes of a page of the mean rate
        self._ahead = 0.0  # seconds by which what is picked is early, on average: probes come in no fixed number
        self._rng = rng

    def fit(self, total: float) -> bool:
        """The rates of all pages in play have this sum; whether that changes what is due when.

        A little more or less changes nothing: all pages would be earlier or later alike, which `clock` makes good.
        """
        unit = max(total, 1.0) * (1.0 + self.epsilon) / max(self.budget, 1e-12)
        if abs(unit - self.unit) <= _FIT * unit:
            return False
        self.unit = unit
        return True

    def urgency(self, pages: NDArray[np.void], now: float) -> Floats:
        """How long each page has been due; one without a copy since it was added."""
        rows, copied = self.rows[: len(pages)], pages["current"] > -np.inf
        self.fit(float(rows["rate"][pages["active"] & copied & ~pages["paused"]].sum()))
        return np.asarray(_SHIFT + (now - np.where(copied, self.events(rows), pages["added"])), dtype=np.float64)

    def events(self, rows: NDArray[np.void]) -> Floats:
        """When each page is refreshed or probed next."""
        interval = self.unit / np.maximum(rows["rate"], 1e-12)
        due = rows["base"] + interval
        probe = rows["base"] + rows["phase"] * interval
        return np.asarray(np.where(np.isnan(rows["seen"]), np.fmin(due, probe), due), dtype=np.float64)

    def event(self, slot: int) -> float:
        """When a page that has a copy is refreshed or probed next."""
        _, rate, base, _, seen, _, _, phase, *_ = self.rows.item(slot)  # field by field takes ten times as long
        share = phase if phase < 1.0 and math.isnan(seen) else 1.0
        return float(base + share * (self.unit / max(rate, 1e-12)))

    def clock(self, now: float) -> float:
        """What is due about now."""
        return now + self._ahead

    def picked(self, slot: int, now: float) -> None:
        """A page was picked since it had been due longest."""
        self._ahead += (self.event(slot) - self.clock(now)) / _PICKS

    def interval(self, slot: int) -> float:
        """Seconds from one refresh of a page to the next."""
        return self.unit / max(float(self.rows[slot]["rate"]), 1e-12)

    def probes(self, slot: int) -> bool:
        """Whether the next that happens to a page is a probe."""
        row = self.rows[slot]
        return bool(row["phase"] < 1.0 and math.isnan(row["seen"]))

    def due(self, slot: int, page: np.void, *, price: float, now: float) -> float:
        """The next refresh or probe; a first crawl is due now."""
        return max(now, now + self.event(slot) - self.clock(now)) if page["current"] > -np.inf else now

    def added(self, slot: int, page: np.void, now: float) -> None:
        """A new page has the mean rate; how far it is in its interval follows from its copy."""
        if slot >= len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros(max(slot + 1 - len(self.rows), len(self.rows), 64), ROW)])
        row = self.rows[slot]
        row["mark"], row["rate"], row["sum"], row["count"] = 0, 1.0, 0.0, 0
        row["slope"] = row["cost"] = row["probe"] = math.nan
        row["since"] = float(page["current"]) if page["current"] > -np.inf else now
        row["base"] = row["since"] + self._ahead
        self._begin(row)
        row["whole"] = False  # nobody knows whether the probe would have come in time

    def crawled(self, slot: int, page: np.void, *, now: float, changed: bool) -> None:
        """A new interval begins where the last one was to end, if that is not too far from now."""
        row, interval = self.rows[slot], self.interval(slot)
        first = not page["current"] > -np.inf
        # What was held up for long, or was the only one to be had, is not to have a burst or a gap of its own now.
        at, slack = self.clock(now), max(interval, _SLACK * self.unit)
        row["base"] = at if first else min(max(row["base"] + interval, at - slack), at + slack)
        row["since"] = now
        self._begin(row)

    def _begin(self, row: np.void) -> None:
        row["whole"], row["seen"] = True, math.nan
        row["phase"] = self._rng.random() if self._rng.random() < self.epsilon else math.nan

    def spoil(self, slot: int) -> None:
        """The present interval of a page gives no sample, and has no probe any more."""
        row = self.rows[slot]
        row["whole"], row["phase"], row["seen"] = False, math.nan, math.nan

"""The rules that others use, with their published constants: each page has an interval, and the oldest due goes first.

A budget that would be left over is spent on the page that will be due next, so that a comparison at equal budget is
one: no rule loses because it sat idle.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

DAY = 86400.0
# A rule's urgency is the time since due, shifted so that it stays positive: pages are crawled early rather than never.
_SHIFT = 1e12


class Uniform:
    """Every page equally often, in turn: the oldest copy goes first."""

    def urgency(self, pages: npt.NDArray[np.void], now: float) -> Floats:
        """The age of the copy; pages without one come first, in the order they were added."""
        age = np.where(np.isinf(pages["current"]), _SHIFT + now - pages["added"], now - pages["current"])
        return np.asarray(age, dtype=np.float64)

    def due(self, slot: int, page: np.void, *, price: float, now: float) -> float:
        """When the copy will be as old as those that are crawled now."""
        return max(now, float(page["current"]) + price)

    def added(self, slot: int, page: np.void, now: float) -> None:
        """Nothing to prepare."""

    def crawled(self, slot: int, page: np.void, *, now: float, changed: bool) -> None:
        """Nothing to remember."""


class NutchAdaptive:
    """Apache Nutch's adaptive schedule: the interval shrinks by a fifth on a change and grows by two fifths otherwise.

    Constants of its configuration file: start 30 days, increase 0.4, decrease 0.2, bounds 60 s and 365 days, of which
    90 days are enforced elsewhere. After each crawl the next one is moved towards the last change seen by 0.3 of its
    distance, and an interval shorter than that distance is stretched to it. `day` is the length of a day, for worlds
    that run faster than ours.
    """

    increase = 0.4
    decrease = 0.2
    towards_change = 0.3

    def __init__(self, *, day: float = DAY) -> None:
        self.start = 30 * day
        self.shortest = 60 * day / DAY
        self.longest = 90 * day
        self._interval = np.zeros(0)
        self._due = np.zeros(0)
        self._changed_at = np.zeros(0)

    def urgency(self, pages: npt.NDArray[np.void], now: float) -> Floats:
        """How long each page has been due."""
        return np.asarray(_SHIFT + now - self._due[: len(pages)], dtype=np.float64)

    def due(self, slot: int, page: np.void, *, price: float, now: float) -> float:
        """The end of the page's interval."""
        return max(now, float(self._due[slot]))

    def added(self, slot: int, page: np.void, now: float) -> None:
        """A new page is due at once; a page with a copy is due when its first interval ends."""
        if slot >= len(self._due):
            missing = max(slot + 1 - len(self._due), len(self._due), 64)
            self._interval = np.concatenate([self._interval, np.zeros(missing)])
            self._due = np.concatenate([self._due, np.zeros(missing)])
            self._changed_at = np.concatenate([self._changed_at, np.zeros(missing)])
        self._interval[slot] = self.start
        self._changed_at[slot] = now if np.isinf(page["current"]) else page["current"]
        self._due[slot] = now if np.isinf(page["current"]) else page["current"] + self.start

    def crawled(self, slot: int, page: np.void, *, now: float, changed: bool) -> None:
        """Shorten or lengthen the interval, then move towards the last change."""
        interval = self._interval[slot]
        if changed:
            interval *= 1 - self.decrease
            self._changed_at[slot] = now
        elif np.isfinite(page["current"]):
            interval *= 1 + self.increase
        since_change = now - self._changed_at[slot]
        interval = max(interval, since_change)
        interval = min(max(interval, self.shortest), self.longest)
        self._interval[slot] = interval
        self._due[slot] = now - self.towards_change * since_change + interval

"""The rules that others use, with their published constants: each page has an interval, and the oldest due goes first.

A budget that would be left over is spent on the page that will be due next, so that a comparison at equal budget is
one: no rule loses because it sat idle.
"""

from collections import deque

import numpy as np
import numpy.typing as npt

from afresh.schedule.peer_rules import (
    ENTRIES,
    FACTOR,
    MODIFIED,
    NUTCH,
    PROPORTIONAL,
    ROUND_ROBIN,
    STORM,
    PeerRule,
)
from afresh.value.probabilities import refresh_probabilities

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

    Constants of its configuration file: start 30 days, increase 0.4, decrease 0.2, bounds 60 s and 365 days; elsewhere
    the upper bound is limited to 90 days. After each crawl the next one is moved towards the last change seen by 0.3 of
    its distance, and an interval shorter than that distance is stretched to it. `day` is the length of a day, for
    worlds that run faster than ours.
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


class ByInterval:
    """Any of `peer_rules.RULES`, live: each page is due when its interval ends, and the oldest due goes first.

    A rule that reads Last-Modified or counts the entries of a feed is told when changes were seen instead.
    """

    def __init__(self, rule: PeerRule) -> None:
        self.rule = rule
        self._interval = np.zeros(0)
        self._due = np.zeros(0)
        self._born = np.zeros(0)
        self._changed_at = np.zeros(0)
        self._changes: dict[int, int] = {}
        self._recent: dict[int, deque[float]] = {}  # moments of changes, for rules that count them

    def urgency(self, pages: npt.NDArray[np.void], now: float) -> Floats:
        """How long each page has been due; one without a copy since it was added."""
        return np.asarray(_SHIFT + now - self._due[: len(pages)], dtype=np.float64)

    def due(self, slot: int, page: np.void, *, price: float, now: float) -> float:
        """The end of the page's interval."""
        return max(now, float(self._due[slot]))

    def added(self, slot: int, page: np.void, now: float) -> None:
        """A new page is due at once; a page with a copy when its first interval ends."""
        if slot >= len(self._due):
            more = np.zeros(max(slot + 1 - len(self._due), len(self._due), 64))
            for name in ("_interval", "_due", "_born", "_changed_at"):
                setattr(self, name, np.concatenate([getattr(self, name), more]))
        current = now if np.isinf(page["current"]) else float(page["current"])
        self._interval[slot] = self.rule.start
        self._born[slot] = self._changed_at[slot] = current
        self._changes.pop(slot, None)
        self._recent.pop(slot, None)
        self._due[slot] = now if np.isinf(page["current"]) else current + self.rule.start

    def crawled(self, slot: int, page: np.void, *, now: float, changed: bool) -> None:
        """Find out when the page is due again."""
        if changed:
            self._changed_at[slot] = now
            self._changes[slot] = self._changes.get(slot, 0) + 1
            if self.rule.machine == ENTRIES:
                self._recent.setdefault(slot, deque(maxlen=1000)).append(now)
        first = np.isinf(page["current"])
        self._due[slot] = now + self.rule.wait + self._next_interval(slot, now, changed, bool(first))

    def _next_interval(self, slot: int, now: float, changed: bool, first: bool) -> float:
        rule = self.rule
        if rule.machine == ROUND_ROBIN:
            return 0.0
        if rule.machine == MODIFIED:
            return self._clamp(rule.shift * (now - self._changed_at[slot])) if not first else rule.start
        if rule.machine == PROPORTIONAL:
            return float((now - self._born[slot]) / (self._changes.get(slot, 0) + 1.0))
        if rule.machine == ENTRIES:
            entries = sum(now - moment <= rule.shift for moment in self._recent.get(slot, ()))
            return self._clamp(rule.shift / entries) if entries else rule.longest
        if not first and rule.machine in (NUTCH, STORM, FACTOR):
            return self._adapted(slot, now, changed)
        return float(self._interval[slot])

    def _adapted(self, slot: int, now: float, changed: bool) -> float:
        """The interval after a visit, by the three machines that let it grow and shrink."""
        rule, interval = self.rule, float(self._interval[slot])
        if rule.machine == NUTCH:
            since_change = float(now - self._changed_at[slot])
            interval = max(interval * (1.0 - rule.shrink if changed else 1.0 + rule.grow), since_change)
            self._interval[slot] = interval = self._clamp(interval)
            return interval - rule.shift * since_change
        if rule.machine == STORM:
            shrunk = (1.0 - rule.shrink) * interval + rule.shrink * rule.shortest
            interval = shrunk if changed else interval * (1.0 + rule.grow)
        else:
            interval = interval / rule.shrink if changed else interval * rule.grow
        self._interval[slot] = interval = self._clamp(interval)
        return interval

    def _clamp(self, interval: float) -> float:
        return float(min(max(interval, self.rule.shortest), self.rule.longest))


class RefreshProbabilities:
    """Each crawl refreshes one page at random, by the probabilities that keep most requests fresh.

    They are solved anew from what is believed after half as many picks as there are pages. Pages without a copy come
    first.
    """

    def __init__(self, *, budget: float, rng: np.random.Generator) -> None:
        self.budget = budget  # crawls per second
        self._rng = rng
        self._chances = np.zeros(0)
        self._picks_left = 0

    def urgency(self, pages: npt.NDArray[np.void], now: float) -> Floats:
        """A race of exponential times, which each page wins with its probability; never twice the same."""
        self._picks_left -= 1
        if self._picks_left < 0 or len(self._chances) != len(pages):
            step = 1.0 / max(self.budget, 1e-12)
            weight = np.where(pages["active"], pages["request_rate"], 0.0)
            self._chances = refresh_probabilities(weight, -np.expm1(-pages["change_rate"] * step), budget=1.0)
            self._picks_left = max(1, len(pages) // 2)
        times = self._rng.standard_exponential(len(pages)) + 1e-12
        return np.asarray(np.where(np.isinf(pages["current"]), _SHIFT, self._chances / times), dtype=np.float64)

    def due(self, slot: int, page: np.void, *, price: float, now: float) -> float:
        """Nobody knows: it is drawn; on average after as many steps as its probability says."""
        chance = float(self._chances[slot]) if slot < len(self._chances) else 0.0
        return now + 1.0 / (chance * self.budget) if chance > 0 and self.budget > 0 else float("inf")

    def added(self, slot: int, page: np.void, now: float) -> None:
        """Nothing to prepare."""

    def crawled(self, slot: int, page: np.void, *, now: float, changed: bool) -> None:
        """Nothing to remember."""

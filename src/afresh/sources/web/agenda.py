"""When each list of a host is to be read: sitemaps that robots.txt, indexes or an operator name, and feeds of pages.

A list is polled by value, like a page. Its news are hints; until it is read again they wait, more of them with every
second. Where r hints a second come that gain g each, an interval of t loses r·g·t/2 a second and costs price/t: so it
is the root of 2·price/(r·g). As long as nothing is known of its worth, it is read less often the less it changes.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, isfinite, sqrt
from typing import Any

from afresh.frontier import Retries
from afresh.sources.web.digest import Roll
from afresh.types import Outcome, Validators

HOUR = 3600.0
FIRST_INTERVAL = 6 * HOUR  # between two readings; half as long after a change, twice as long without one
SHORTEST_INTERVAL = HOUR
LONGEST_INTERVAL = 7 * 24 * HOUR
LONGEST_WAIT = 31 * 24 * HOUR  # for a list that fails
SHORTEST_BY_VALUE = 5.0  # seconds; politeness asks for more on nearly every host
PUSHED_INTERVALS = 10.0  # so much longer are they while a hub pushes what is new
DEEPEST = 2  # indexes below what robots.txt names; the protocol allows none
MOST = 1_000  # lists of a host
MOST_FEEDS = 16  # of a host: some sites have one for every page
RETRIES = Retries()
MEMORY = 0.9  # what a reading leaves of the news that were counted before
ROBOTS, OPERATOR, PAGE = "", "operator", "page"  # who names a list, if no index does
SITEMAP, FEED = "sitemap", "feed"


@dataclass(slots=True)
class Known:
    """What is remembered of one list."""

    url: str
    parent: str = ROBOTS  # the index that names it, or who else does
    depth: int = 0  # indexes above it
    read: float = -inf  # when its content was last looked at
    due: float = -inf
    interval: float = FIRST_INTERVAL
    failures: int = 0
    validators: Validators = field(default_factory=Validators)
    kind: str = SITEMAP
    roll: Roll | None = None
    finds: bool = False  # whether its pages were taken in, and not only heard of
    news: float = 0.0  # hints that were worth something, and over how many seconds they were counted
    watched: float = 0.0
    gain: float = 0.0  # of one of them
    ttl: float = 0.0  # seconds for which it asks not to be read again
    pushed: float = -inf  # when a hub last delivered it
    is_pushed: bool = False  # a hub was asked to deliver it, and has agreed

    def answered(self, outcome: Outcome, validators: Validators, now: float) -> None:
        """Plan the next reading after an attempt."""
        if outcome is Outcome.CHANGED:
            self.interval = max(self.interval / 2, SHORTEST_INTERVAL)
        elif outcome is Outcome.UNCHANGED:
            self.interval = min(self.interval * 2, LONGEST_INTERVAL)
        if outcome.refreshed:
            self.read, self.validators, self.failures = now, validators, 0
            self.due = now + self.interval
        else:
            self.failures += 1
            self.due = now + RETRIES.put_off(outcome, self.failures)

    def mend(self, now: float) -> None:
        """Go on where it was kept while a clock ran ahead: else it would not be read until that moment."""
        if max(self.read, self.pushed) > now or self.due > now + LONGEST_WAIT:
            self.read, self.pushed, self.due = min(self.read, now), min(self.pushed, now), now

    def heard(self, news: float, seconds: float, gain: float | None) -> None:
        """So many useful hints have come in these seconds, and one of them gains so much (None: nobody can tell)."""
        self.news = self.news * MEMORY + news
        self.watched = self.watched * MEMORY + max(seconds, 0.0)
        if gain is not None:
            self.gain = gain if self.gain <= 0 else self.gain + (gain - self.gain) / 4

    def plan(self, price: float, size: float = 1.0) -> None:
        """Plan by what it is worth, where that is known; a reading costs `size` crawls at this price."""
        if self.failures or not isfinite(self.read):
            return
        interval = self.by_value(price, size)
        if interval is not None:
            self.interval = interval
        wait = max(self.interval, self.ttl)
        if self.is_pushed:
            wait = min(wait * PUSHED_INTERVALS, LONGEST_INTERVAL)
        self.due = max(self.read, self.pushed) + wait

    def by_value(self, price: float, size: float = 1.0) -> float | None:
        """The interval that gains most; None where nothing is known of its worth."""
        if not (price > 0 and self.watched > 0 and self.gain > 0):
            return None
        rate = (self.news + 0.1) / self.watched
        return min(max(sqrt(2.0 * price * size / (rate * self.gain)), SHORTEST_BY_VALUE), LONGEST_INTERVAL)

    def to_json(self) -> dict[str, Any]:
        """To be kept."""
        kept = {name: getattr(self, name) for name in _KEPT if getattr(self, name) != getattr(_FRESH, name)}
        known = self.validators
        kept |= {"url": self.url, "validators": [known.etag, known.last_modified, str(known.fingerprint)]}
        if self.roll is not None:
            kept["roll"] = self.roll.to_text()
        return kept

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "Known":
        """As it was kept; an error if that makes no sense."""
        etag, modified, fingerprint = kept["validators"]
        known = cls(str(kept["url"]), validators=Validators(str(etag), str(modified), int(fingerprint)))
        for name in _KEPT:
            if name in kept:
                made = type(getattr(_FRESH, name))(kept[name])
                if isinstance(made, float) and made != made:
                    raise ValueError(name)
                setattr(known, name, made)
        if "roll" in kept:
            known.roll = Roll.from_text(kept["roll"])
        return known


_KEPT = (
    *("parent", "depth", "read", "due", "interval", "failures", "kind", "finds", "news", "watched", "gain"),
    *("ttl", "pushed", "is_pushed"),
)
_FRESH = Known("")


class Agenda:
    """The lists of one host.

    Invariants: no more than `MOST`, none below more than `DEEPEST` indexes, each once; what is named no longer, by
    robots.txt or by its index, is forgotten with all that it led to. Of two turns in a row at most one is taken.
    """

    def __init__(self) -> None:
        self.lines: tuple[str, ...] = ()  # of robots.txt, as they were last looked at
        self.changed = False  # since it was last kept
        self._known: dict[str, Known] = {}
        self._due = -inf  # none is due before this
        self._taken = False  # whether the last turn went to one of them

    def __len__(self) -> int:
        return len(self._known)

    def find(self, url: str) -> Known | None:
        """The list at this address."""
        return self._known.get(url)

    def lists(self) -> Iterable[Known]:
        """All of them."""
        return self._known.values()

    def named(self, urls: Mapping[str, float | None], by: Known | None = None, *, all_of_them: bool = True) -> None:
        """Robots.txt, or an index, names these, each with the moment of its last change if that is said."""
        parent, depth = (by.url, by.depth + 1) if by is not None else (ROBOTS, 0)
        if depth > DEEPEST:
            return
        if all_of_them:
            for gone in [each for each in self._known.values() if each.parent == parent and each.url not in urls]:
                self._forget(gone)
        for url, changed in urls.items():
            known = self._known.get(url)
            if known is None:
                if len(self._known) < MOST:
                    self._known[url] = Known(url, parent, depth)
            elif changed is not None and known.read < changed and not known.failures:
                known.due = -inf
        self._due, self.changed = -inf, True

    def wanted(self, url: str) -> None:
        """An operator wants this sitemap to be followed, whoever else names it."""
        known = self._known.get(url)
        if known is None or known.parent != OPERATOR:
            self._known[url] = Known(url, OPERATOR)
            self._due, self.changed = -inf, True

    def unwanted(self, url: str) -> None:
        """The operator wants it no more."""
        known = self._known.get(url)
        if known is not None and known.parent == OPERATOR:
            self._forget(known)
            self.lines, self.changed = (), True  # robots.txt may name it still

    def announced(self, urls: Iterable[str]) -> bool:
        """Pages name these feeds; whether any is new. The least useful ones of too many make room."""
        new = False
        for url in urls:
            if url in self._known or len(self._known) >= MOST:
                continue
            feeds = [each for each in self._known.values() if each.kind == FEED]
            if len(feeds) >= MOST_FEEDS:
                least = min(feeds, key=lambda each: each.news * each.gain / max(each.watched, 1.0))
                if least.news > 0 or not isfinite(least.read) or not least.watched:
                    continue
                self._forget(least)
            self._known[url] = Known(url, PAGE, kind=FEED)
            new = True
        if new:
            self._due, self.changed = -inf, True
        return new

    def _forget(self, known: Known) -> None:
        if self._known.pop(known.url, None) is not None:
            self.changed = True
            for child in [each for each in self._known.values() if each.parent == known.url]:
                self._forget(child)

    def planned(self) -> None:
        """Something was planned anew."""
        self._due, self.changed = -inf, True

    def next_due(self) -> float:
        """When the next is due."""
        return min((each.due for each in self._known.values()), default=inf)

    def take(self, now: float) -> Known | None:
        """The list that has waited longest, if one is due and the last turn was the pages' own."""
        if self._taken or now < self._due:
            self._taken = False
            return None
        known = self.longest_due(now)
        self._taken = known is not None
        return known

    def longest_due(self, now: float) -> Known | None:
        """The list that has waited longest, if one is due."""
        known = min(self._known.values(), key=lambda each: each.due, default=None)
        self._due = known.due if known is not None else inf
        return None if known is None or now < known.due else known

    def to_text(self) -> str:
        """To be kept."""
        return json.dumps({"lines": self.lines, "lists": [known.to_json() for known in self._known.values()]})

    @classmethod
    def from_text(cls, text: str) -> "Agenda":
        """As it was kept; an error if that makes no sense."""
        made, kept = cls(), json.loads(text)
        made.lines = tuple(map(str, kept["lines"]))
        for each in kept["lists"][:MOST]:
            known = Known.from_json(each)
            made._known[known.url] = known
        return made

"""When each sitemap of a host is to be read: what robots.txt and indexes name, less often the less they change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from afresh.frontier import Retries
from afresh.types import Outcome, Validators

HOUR = 3600.0
FIRST_INTERVAL = 6 * HOUR  # between two readings; half as long after a change, twice as long without one
SHORTEST_INTERVAL = HOUR
LONGEST_INTERVAL = 7 * 24 * HOUR
DEEPEST = 2  # indexes below what robots.txt names; the protocol allows none
MOST = 1_000  # sitemaps of a host
RETRIES = Retries()


@dataclass(slots=True)
class Known:
    """What is remembered of one sitemap."""

    url: str
    parent: str = ""  # the index that names it; "": robots.txt does
    depth: int = 0  # indexes above it
    read: float = -inf  # when its content was last looked at
    due: float = -inf
    interval: float = FIRST_INTERVAL
    failures: int = 0
    validators: Validators = field(default_factory=Validators)

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


class Agenda:
    """The sitemaps of one host.

    Invariants: no more than `MOST`, none below more than `DEEPEST` indexes, each once; what is named no longer, by
    robots.txt or by its index, is forgotten with all that it led to. Of two turns in a row at most one is taken.
    """

    def __init__(self) -> None:
        self.lines: tuple[str, ...] = ()  # of robots.txt, as they were last looked at
        self._known: dict[str, Known] = {}
        self._due = -inf  # none is due before this
        self._taken = False  # whether the last turn went to one of them

    def __len__(self) -> int:
        return len(self._known)

    def named(self, urls: Mapping[str, float | None], by: Known | None = None, *, all_of_them: bool = True) -> None:
        """Robots.txt, or an index, names these, each with the moment of its last change if that is said."""
        parent, depth = (by.url, by.depth + 1) if by is not None else ("", 0)
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
        self._due = -inf

    def _forget(self, known: Known) -> None:
        if self._known.pop(known.url, None) is not None:
            for child in [each for each in self._known.values() if each.parent == known.url]:
                self._forget(child)

    def take(self, now: float) -> Known | None:
        """The sitemap that has waited longest, if one is due and the last turn was the pages' own."""
        if self._taken or now < self._due:
            self._taken = False
            return None
        known = min(self._known.values(), key=lambda each: each.due, default=None)
        self._due = known.due if known is not None else inf
        if known is None or now < known.due:
            return None
        self._taken = True
        return known

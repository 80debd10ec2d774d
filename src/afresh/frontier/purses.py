"""Budgets of paths: at most so many crawls a second of those pages of a host that a rule names.

The schedule knows budgets of whole hosts. A path has a purse here: it hands out moments, a step of 1/budget apart. A
page that is picked when no moment is free gets the next one, and waits for it; so pages of a path take turns in the
order in which they come due, and what the path may not spend goes to other pages.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from afresh.frontier.sites import SiteRule


@dataclass(slots=True)
class _Purse:
    rule: SiteRule
    free: float = float("-inf")  # the next moment that nobody has
    waiting: set[int] = field(default_factory=set)


class Purses:
    """The purses of all paths that have a budget, by host and rule.

    Invariant: any number n of crawls of one purse takes at least n − 1 steps, but for those that an operator asked for.

    >>> purses, rule = Purses(), SiteRule("a.example", "/news/*", budget=0.5)
    >>> [purses.ask("a.example", rule, slot, now=10.0) for slot in (1, 2, 3)]
    [10.0, 12.0, 14.0]
    >>> purses.ask("a.example", rule, 2, now=12.5)
    12.5
    """

    def __init__(self) -> None:
        self._purses: dict[tuple[str, str], _Purse] = {}
        self._moments: dict[int, tuple[float, _Purse]] = {}  # of the pages that wait

    def ask(self, host: str, rule: SiteRule, slot: int, now: float, *, wanted: bool = False) -> float:
        """When a page may be crawled: `now` if it may go. One that is `wanted` by an operator goes, and counts."""
        purse = self._purses.setdefault((host, f"{rule.host}{rule.path}"), _Purse(rule))
        if (moment := self.moment(slot)) is not None:
            if moment > now and not wanted:
                return moment
            self.forget(slot)
            return now
        moment = max(purse.free, now)
        purse.free = moment + 1.0 / (rule.budget or 1.0)
        if moment > now and not wanted:
            self._moments[slot] = moment, purse
            purse.waiting.add(slot)
            return moment
        return now

    def moment(self, slot: int) -> float | None:
        """What a page waits for; None if it does not wait."""
        found = self._moments.get(slot)
        return None if found is None else found[0]

    def forget(self, slot: int) -> None:
        """A page does not wait any more, or is not kept any more."""
        if (found := self._moments.pop(slot, None)) is not None:
            found[1].waiting.discard(slot)

    def clear(self) -> list[int]:
        """Forget everything, since other rules hold; the pages that waited."""
        waited = list(self._moments)
        self._purses.clear()
        self._moments.clear()
        return waited

    def summary(self, rules: Iterable[SiteRule] = ()) -> list[dict[str, object]]:
        """Each purse with its host, path, budget and how many pages wait; then rules that nobody has asked yet."""
        purses = [
            (host, purse.rule, len(purse.waiting)) for (host, _), purse in sorted(self._purses.items(), key=_name)
        ]
        asked = {(rule.host, rule.path) for _, rule, _ in purses}
        unasked = (rule for rule in rules if rule.path and rule.budget and (rule.host, rule.path) not in asked)
        purses += [(rule.host, rule, 0) for rule in unasked]
        return [{"host": host, "path": rule.path, "budget": rule.budget, "waiting": n} for host, rule, n in purses]


def _name(each: tuple[tuple[str, str], _Purse]) -> tuple[str, str]:
    return each[0]

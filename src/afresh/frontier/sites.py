"""Rules of sites: what holds for the pages of a host, of a domain, or of a path on them. The most specific wins."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from afresh.frontier.glob import Glob
from afresh.frontier.host_patterns import HostPatterns
from afresh.types import Importance, Page


@dataclass(frozen=True, slots=True)
class SiteRule:
    """What an operator wants of some pages; what is None or empty is not said."""

    host: str  # a name, or a domain as *.name
    path: str = ""  # with * for anything; "": all
    importance: Importance | None = None
    shortest: float | None = None
    longest: float | None = None
    hours: str = ""
    budget: float | None = None  # crawls per second of each host that it holds for, or of its path there


@dataclass(frozen=True, slots=True)
class _Compiled:
    rule: SiteRule
    hosts: HostPatterns
    path: Glob | None
    rank: tuple[bool, int, int] = field(default=(False, 0, 0))  # a name before a domain, then the longer ones first


class SiteRules:
    """Finds what holds for a page.

    >>> rules = SiteRules([SiteRule("*.example.org", shortest=60.0), SiteRule("a.example.org", "/news/*", longest=5.0)])
    >>> page = rules.applied(Page("https://a.example.org/news/1", "a.example.org"))
    >>> page.shortest, page.longest
    (60.0, 60.0)
    """

    def __init__(self, rules: Iterable[SiteRule] = ()) -> None:
        self.rules = tuple(rules)
        compiled = [
            _Compiled(
                rule,
                HostPatterns([rule.host]),
                Glob(rule.path) if rule.path else None,
                (not rule.host.startswith("*."), len(rule.host), len(rule.path)),
            )
            for rule in self.rules
        ]
        self.limit_paths = any(rule.path and rule.budget for rule in self.rules)
        self._rules = sorted(compiled, key=lambda each: each.rank, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def applied(self, page: Page) -> Page:
        """The page with all that its operator does not say of itself said by the most specific rule that does."""
        if not self._rules:
            return page
        importance, shortest, longest, hours = page.importance, page.shortest, page.longest, page.hours
        for rule in self._matching(page):
            importance = rule.importance if importance is None else importance
            shortest = rule.shortest if shortest is None else shortest
            longest = rule.longest if longest is None else longest
            hours = hours or rule.hours
        if longest is not None and shortest is not None:
            longest = max(longest, shortest)  # of two sources that disagree, the one that asks for less
        return replace(page, importance=importance, shortest=shortest, longest=longest, hours=hours)

    def _matching(self, page: Page) -> Iterable[SiteRule]:
        path = None
        for each in self._rules:
            if page.host not in each.hosts:
                continue
            if each.path is not None:
                path = _path_of(page.url) if path is None else path
                if not each.path.matches(path):
                    continue
            yield each.rule

    def budget(self, host: str) -> float | None:
        """Crawls per second that a whole host may have; None: nothing is said."""
        whole = (each for each in self._rules if each.path is None and each.rule.budget)
        return next((each.rule.budget for each in whole if host in each.hosts), None)

    @property
    def have_budgets(self) -> bool:
        """Whether any rule has one for whole hosts."""
        return any(each.rule.budget and each.path is None for each in self._rules)

    def path_budget(self, page: Page) -> SiteRule | None:
        """The most specific rule that limits the crawls of a path that the page is on; None: none does."""
        if not self.limit_paths:
            return None
        return next((rule for rule in self._matching(page) if rule.path and rule.budget), None)


def _path_of(url: str) -> str:
    """Path and query of a URL."""
    return "/" + url.split("/", 3)[3] if url.count("/") >= 3 else "/"

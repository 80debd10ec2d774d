"""Tells the kinds of pages at their first crawl, and keeps what kinds have proved to be worth."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from afresh.engine import Engine
from afresh.estimate.kinds import MAX_KINDS, pack, unpack
from afresh.frontier.glob import Glob
from afresh.kinds.bayes import KINDS
from afresh.types import Fetched

KEPT = "kinds"  # under this name the store holds what was learned of kinds
MAX_PAGE = 1 << 20  # bytes of a page that are read for its kind
MAX_COST = 1e15  # of any cost that is learned
COST_MEMORY = 0.999  # what a crawl leaves of what crawls of its kind have cost before


@dataclass(frozen=True, slots=True)
class KindRule:
    """What an operator says of a kind: of one that is known, or of one of their own."""

    name: str
    pages: tuple[str, ...] = ()  # patterns of addresses, with * for anything
    rate: float | None = None  # changes a second of a typical page; None: learned
    value: float = 1.0  # how much more its pages are wanted than others


def names_of(rules: Sequence[KindRule]) -> tuple[str, ...]:
    """All kinds by their numbers: those of the model, then the operator's own."""
    return tuple(dict.fromkeys((*KINDS, *(rule.name for rule in rules))))[:MAX_KINDS]


class Kinds:
    """Says of what kind a page is: what the operator says of its address, else what the page looks like."""

    def __init__(self, rules: Sequence[KindRule] = (), *, reads: bool = True) -> None:
        self.rules = tuple(rules)
        self.names = names_of(self.rules)
        self.reads = reads
        # What a refresh costs, of each kind and, first, of all pages: crawls, seconds and bytes, all of which fade.
        self._costs = [[0.0, 0.0, 0.0] for _ in range(MAX_KINDS + 1)]
        self._patterns = [(Glob(f"{page}$"), rule.name) for rule in self.rules for page in rule.pages]

    def begin(self, engine: Engine, get: Callable[[str], str | None]) -> None:
        """Tell an engine what operators say, and what kinds were worth before."""
        for rule in self.rules:
            if rule.name in self.names:
                engine.describe_kind(self.names.index(rule.name) + 1, rate=rule.rate, value=rule.value)
        kept = json.loads(get(KEPT) or "{}")
        engine.recall_kinds([float(score) for score in kept.get("scores", [])])
        for own, before in zip(self._costs, kept.get("costs", []), strict=False):
            own[:] = [min(max(float(each), 0.0), MAX_COST) for each in before[:3]]

    def crawled(self, kind: int, fetched: Fetched) -> None:
        """A page of these kinds was crawled: it cost something."""
        spent = fetched.cost
        for number, share in ((0, 1.0), *unpack(kind)):
            own = self._costs[number]
            for place, cost in enumerate((1.0, spent.seconds, float(spent.bytes))):
                own[place] = own[place] * COST_MEMORY**share + share * min(max(cost, 0.0), MAX_COST)

    def _cost(self, number: int) -> dict[str, float | None]:
        crawls, seconds, size = self._costs[number]
        return {
            "seconds": seconds / crawls if crawls else None,
            "bytes": size / crawls if crawls else None,
        }

    def of(self, url: str, fetched: Fetched) -> int:
        """The kinds of a page that was fetched, packed; 0: unknown. It reads bytes, and belongs in a thread."""
        for pattern, name in self._patterns:
            if pattern.matches(url) and name in self.names:
                return pack([float(each == name) for each in self.names])
        if not self.reads or not fetched.body or "html" not in fetched.content_type.lower():
            return 0
        from afresh.kinds.criteria import WANTED, criteria
        from afresh.kinds.model import shipped
        from afresh.reading import read

        page = read(fetched.body, fetched.content_type, wanted=WANTED, most=MAX_PAGE)
        return pack(shipped().probabilities(criteria(page, url)).tolist())

    def said(self, kind: int) -> list[tuple[str, float]]:
        """The kinds of a page by their names, with their shares."""
        return [(self.names[each - 1], share) for each, share in unpack(kind) if each <= len(self.names)]

    def values(self, engine: Engine) -> dict[str, str]:
        """What is worth keeping."""
        summary, learned = self.summary(engine), {"scores": engine.scores_of_kinds(), "costs": self._costs}
        return {} if summary is None else {KEPT: json.dumps({**summary, **learned})}

    def summary(self, engine: Engine) -> dict[str, Any] | None:
        """What is known of each kind, for people; None where the engine learns nothing of kinds."""
        found = engine.of_kinds()
        if found is None:
            return None
        kinds: list[Mapping[str, Any]] = [
            {"kind": name, **asdict(each), **self._cost(number)}
            for number, (name, each) in enumerate(zip(self.names, found.kinds, strict=False), start=1)
        ]
        return {
            "kinds": kinds,
            "unknown": found.unknown,
            "all": {**asdict(found.everything), **self._cost(0)},
            "worth": [asdict(each) for each in found.worth],
        }

"""Tells the kinds of pages at their first crawl, and keeps what kinds have proved to be worth."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from afresh.engine import Engine, KindCosts
from afresh.estimate.kinds import MAX_KINDS, pack, unpack
from afresh.frontier.glob import Glob
from afresh.kinds.bayes import KINDS
from afresh.types import Fetched

KEPT = "kinds"  # under this name the store holds what was learned of kinds
ALL = ""  # the name of all pages together
MAX_PAGE = 1 << 20  # bytes of a page that are read for its kind


@dataclass(frozen=True, slots=True)
class KindRule:
    """What an operator says of a kind: of one that is known, or of one of their own."""

    name: str
    pages: tuple[str, ...] = ()  # patterns of addresses, with * for anything
    rate: float | None = None  # changes a second of a typical page; None: learned
    value: float = 1.0  # how much more its pages are wanted than others
    spread: float | None = None  # by this factor at most the rates of two thirds of its pages differ from that
    cost: tuple[float, str] | None = None  # of a refresh, and in which unit; None: learned


def names_of(rules: Sequence[KindRule]) -> tuple[str, ...]:
    """All kinds by their numbers: those of the model, then the operator's own."""
    return tuple(dict.fromkeys((*KINDS, *(rule.name for rule in rules))))[:MAX_KINDS]


class Kinds:
    """Says of what kind a page is: what the operator says of its address, else what the page looks like."""

    def __init__(self, rules: Sequence[KindRule] = (), *, reads: bool = True) -> None:
        self.rules = tuple(rules)
        self.names = names_of(self.rules)
        self.reads = reads
        self.costs = KindCosts()
        self._patterns = [
            (Glob(f"{page}$"), pack([float(each == rule.name) for each in self.names]))
            for rule in self.rules
            if rule.name in self.names
            for page in rule.pages
        ]

    def begin(self, engine: Engine, get: Callable[[str], str | None]) -> None:
        """Tell an engine what operators say, and what kinds were worth before."""
        for rule in self.rules:
            if rule.name in self.names:
                number = self.names.index(rule.name) + 1
                engine.describe_kind(number, rate=rule.rate, spread=rule.spread, value=rule.value)
                if rule.cost is not None:
                    self.costs.give(number, *rule.cost)
        engine.use_kinds(self.costs, self.by_address if self.rules else None)
        kept = json.loads(get(KEPT) or "{}")
        engine.recall_kinds([float(score) for score in kept.get("scores", [])])
        costs = kept.get("costs_of", {})
        for number, name in enumerate((ALL, *self.names)):
            if name in costs:
                self.costs.recall(number, costs[name])

    def by_address(self, url: str, before: int) -> int:
        """The kinds of a page that comes in: as operators say of its address, else as they were told `before`."""
        for pattern, packed in self._patterns:
            if pattern.matches(url):
                return packed
        # A kind that somebody once named is of those addresses alone, and another one may have its number now.
        return 0 if any(kind > len(KINDS) for kind, _ in unpack(before)) else before

    def _cost(self, number: int) -> dict[str, float | None]:
        return {unit: self.costs.mean(number, unit) for unit in ("seconds", "bytes")}

    def of(self, url: str, fetched: Fetched) -> int:
        """The kinds of a page that was fetched, packed; 0: unknown. It reads bytes, and belongs in a thread."""
        if told := self.by_address(url, 0):
            return told
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
        summary = self.summary(engine)
        if summary is None:
            return {}
        costs = {name: self.costs.learned(number) for number, name in enumerate((ALL, *self.names))}
        return {KEPT: json.dumps({**summary, "scores": engine.scores_of_kinds(), "costs_of": costs})}

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

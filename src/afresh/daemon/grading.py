"""Grades those who send hints, by what the crawls found; and holds to what an operator says of them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from afresh.engine import AnyEngine
from afresh.estimate.grades import Grades
from afresh.sources import Sources
from afresh.store import PageState, understood
from afresh.store.messages import PINNED, Pins
from afresh.types import Fetched, Outcome, Request, Signal, Verdict

KEPT = "grades"  # under this name the store holds them
TICK_SECONDS = 5.0
MAX_TOLD = 2_000  # grades in one answer

Evidence = Signal | Request


class Grading:
    """Hears what the engine hears, and more: also what comes too late to be of use tells something of its sender."""

    def __init__(self, engine: AnyEngine, sources: Sources, clock: Callable[[], float]) -> None:
        self.engine, self.sources, self.clock = engine, sources, clock
        self.grades = Grades()
        self.pins = Pins()
        self._ticked = -1e18
        self._delays: dict[str, float] = {}  # by sender, renewed with the pins

    def begin(self, get: Callable[[str], str | None]) -> None:
        """Go on from what was kept."""
        self.grades = understood(KEPT, lambda: Grades.from_text(get(KEPT), now=self.clock()))
        self.pinned(get(PINNED))

    def pinned(self, text: str | None) -> None:
        """An operator says what senders are worth."""
        self.pins = understood(PINNED, lambda: Pins.from_text(text))
        self.engine.senders.unpin()
        self._ticked = -1e18
        self.tick()

    def tick(self) -> None:
        """Hold to it every few seconds: what is learned moves the weights."""
        if self.clock() - self._ticked < TICK_SECONDS:
            return
        self._ticked = self.clock()
        # What is said of one host comes last: it holds there, whatever is said of all.
        for (sender, host), weight in sorted(self.pins.weights.items(), key=lambda pin: pin[0][1] != ""):
            self.engine.senders.pin(sender, host, weight)
        self._delays = {name: self.engine.senders.delay_of(name) for name in self.engine.senders.names}

    def hear(self, url: str, sender: str, moment: float, *, says_when: bool = False) -> None:
        """A hint, heard now."""
        if url not in self.engine:
            return
        self.grades.hear(
            url,
            self.engine.host_of(url),
            sender,
            moment,
            current=self.engine.current(url),
            now=self.clock(),
            says_when=says_when,
            late=0.0 if says_when else self._delays.get(sender, 0.0),
        )

    def hear_many(self, evidence: Sequence[Evidence]) -> list[Evidence]:
        """What others send, as it came; what is to be learned from: all but the hints of those who are muted."""
        for each in evidence:
            if isinstance(each, Signal):
                self.hear(each.url, each.sender, each.time)
        if not self.pins.weights:
            return list(evidence)
        return [each for each in evidence if not isinstance(each, Signal) or not self.is_muted(each.url, each.sender)]

    def is_muted(self, url: str, sender: str) -> bool:
        """Whether an operator wants nothing to be learned from this sender's hints of a page."""
        return bool(self.pins.weights) and url in self.engine and self.pins.of(sender, self.engine.host_of(url)) == 0.0

    def crawled(self, before: PageState, fetched: Fetched, verdict: Verdict) -> None:
        """A crawl has shown whether the page changed, after the engine has learned from it."""
        url, host = before.page.url, before.page.host
        if before.checked is None or verdict.outcome not in (Outcome.CHANGED, Outcome.UNCHANGED):
            return
        changed, now = verdict.outcome is Outcome.CHANGED, self.clock()
        if self.grades.listens(host):
            rate = self.engine.beliefs(url, now).change_rate
            self.grades.crawled(url, host, before.checked, fetched.started, changed=changed, rate=rate)
        if fetched.body:
            for name, moved in self.sources.marks(url, before.validators, verdict.validators):
                self.grades.validator(host, name, moved=moved, changed=changed, now=now)

    def values(self) -> dict[str, str]:
        """What is worth keeping."""
        return {KEPT: self.grades.to_text()} if self.grades.learned else {}

    def told(self) -> list[dict[str, Any]]:
        """All grades, with the weight that each sender has there now."""
        senders, found = self.engine.senders, []
        for grade, _ in zip(self.grades.all(), range(MAX_TOLD), strict=False):
            known = grade.sender in senders.names
            weight = senders.weight(grade.host, senders.number(grade.sender)) if known else None
            found.append({**asdict(grade), "weight": weight, "pinned": self.pins.of(grade.sender, grade.host)})
        return json.loads(json.dumps(found))  # type: ignore[no-any-return]

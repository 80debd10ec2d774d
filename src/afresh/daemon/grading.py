"""Grades those who send hints, by what the crawls found; and holds to what an operator says of them."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import takewhile
from typing import Any

from afresh.daemon.heard import KEPT as HEARD
from afresh.daemon.heard import MUTED, NO_COPY, OLD, TAKEN, HeardOf
from afresh.engine import AnyEngine
from afresh.estimate.grades import Grades
from afresh.estimate.told import Fitted, fit
from afresh.sources import Sources
from afresh.store import PageState, understood
from afresh.store.messages import PINNED, Pins
from afresh.types import Fetched, Outcome, Request, Signal, Verdict

KEPT = "grades"  # under this name the store holds them
TICK_SECONDS = 5.0
GRADE_SECONDS = 5.0  # between two times that grades are reckoned
GRADE_AT_ONCE = 0.5  # seconds that one of them may take
MAX_GRADED = 32  # hosts at a time
ONCE = frozenset({"indexnow"})  # senders who are heard once of a page until its next crawl
MAX_TOLD = 2_000  # grades in one answer

Evidence = Signal | Request


class Grading:
    """Hears what the engine hears, and more: also what comes too late to be of use tells something of its sender."""

    def __init__(self, engine: AnyEngine, sources: Sources, clock: Callable[[], float]) -> None:
        self.engine, self.sources, self.clock = engine, sources, clock
        self.grades = Grades()
        self.heard = HeardOf()
        self.pins = Pins()
        self._ticked = -1e18
        self._delays: dict[str, float] = {}  # by sender, renewed with the pins
        self._due = -1e18  # grades are
        self._grade: asyncio.Task[None] | None = None

    def begin(self, get: Callable[[str], str | None]) -> None:
        """Go on from what was kept."""
        self.grades = understood(KEPT, lambda: Grades.from_text(get(KEPT), now=self.clock()))
        self.heard = understood(HEARD, lambda: HeardOf.from_text(get(HEARD)))
        self.pinned(get(PINNED))

    def pinned(self, text: str | None) -> None:
        """An operator says what senders are worth."""
        self.pins = understood(PINNED, lambda: Pins.from_text(text))
        self.engine.senders.unpin()
        self._ticked = -1e18
        self._hold()

    def tick(self) -> None:
        """Every few seconds, reckon grades, and hold to what is said of weights: what is learned moves them."""
        if self.grades.learned and self.clock() >= self._due and (self._grade is None or self._grade.done()):
            self._grade = asyncio.get_running_loop().create_task(self._reckon())
        self._hold()

    def _hold(self) -> None:
        if self.clock() - self._ticked < TICK_SECONDS:
            return
        self._ticked = self.clock()
        # What is said of one host comes last: it holds there, whatever is said of all.
        for (sender, host), weight in sorted(self.pins.weights.items(), key=lambda pin: pin[0][1] != ""):
            self.engine.senders.pin(sender, host, weight)
        self._delays = {name: self.engine.senders.delay_of(name) for name in self.engine.senders.names}

    async def end(self) -> None:
        """Reckon what is new before the end, as far as there is time for that."""
        if self._grade is not None:
            await asyncio.wait({self._grade})
        await self._reckon()

    async def _reckon(self) -> None:
        """Reckon what is new, in a thread: some hosts at a time, and a fiftieth of a core at most."""
        began, hosts = self.clock(), self.grades.news(MAX_GRADED)
        tasks = [self.grades.task(host) for host in hosts]

        def fitted() -> list[Fitted]:
            in_time = takewhile(lambda _: self.clock() - began < GRADE_AT_ONCE, tasks)
            return [fit(*task) for task in in_time]

        done = await asyncio.to_thread(fitted)
        for host, one in zip(hosts, done, strict=False):
            self.grades.took(host, one)
        for host in hosts[len(done) :]:
            self.grades.missed(host)
        self._due = self.clock() + max(GRADE_SECONDS, 50.0 * (self.clock() - began))

    def hear(
        self, url: str, sender: str, moment: float, *, says_when: bool = False, deaf_since: float | None = None
    ) -> None:
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
            deaf_since=deaf_since,
            once=sender in ONCE,
        )

    def hear_many(self, evidence: Sequence[Evidence]) -> list[Evidence]:
        """What others send, as it came; what is to be learned from: all but the hints of those who are muted."""
        now = self.clock()
        for each in evidence:
            if isinstance(each, Signal) and each.url in self.engine:
                self.hear(each.url, each.sender, each.time)
                self.heard.note(each.url, each.sender, now, self._became(each))
        if not self.pins.weights:
            return list(evidence)
        return [each for each in evidence if not isinstance(each, Signal) or not self.is_muted(each.url, each.sender)]

    def _became(self, signal: Signal) -> str:
        """What becomes of what others send."""
        if self.is_muted(signal.url, signal.sender):
            return MUTED
        current = self.engine.current(signal.url)
        if current is None:
            return NO_COPY
        return OLD if signal.time < current else TAKEN

    def is_muted(self, url: str, sender: str) -> bool:
        """Whether an operator wants nothing to be learned from this sender's hints of a page."""
        return bool(self.pins.weights) and url in self.engine and self.pins.of(sender, self.engine.host_of(url)) == 0.0

    def crawled(self, before: PageState, fetched: Fetched, verdict: Verdict) -> None:
        """A crawl has shown whether the page changed, after the engine has learned from it."""
        url, host = before.page.url, before.page.host
        self.heard.crawled(url, fetched.started, changed=verdict.outcome is Outcome.CHANGED)
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
        return {KEPT: self.grades.to_text(), HEARD: self.heard.to_text()} if self.grades.learned else {}

    def told(self) -> list[dict[str, Any]]:
        """All grades, with the weight that each sender has there now."""
        senders, found = self.engine.senders, []
        for grade, _ in zip(self.grades.all(), range(MAX_TOLD), strict=False):
            known = grade.sender in senders.names
            weight = senders.weight(grade.host, senders.number(grade.sender)) if known else None
            found.append({**asdict(grade), "weight": weight, "pinned": self.pins.of(grade.sender, grade.host)})
        return json.loads(json.dumps(found))  # type: ignore[no-any-return]

"""What a runner counts while it runs: for who measures it, and a row a minute for who looks back."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from afresh.daemon.events import Event, Finished, Ordered, Released, Stored
from afresh.engine import AnyEngine, Stated
from afresh.errors import InputError
from afresh.store import Store
from afresh.store.figures import UNFINISHED, Figures, from_text, name_of, outdated, to_text, with_left
from afresh.types import CHANGES, Outcome

ROW_SECONDS = 60.0
FIRST_ROW_SECONDS = 10.0  # a run that began just now has something to show soon
ROWS_A_RUN = 20  # until they come once a minute
BUCKETS = (0.005, 0.02, 0.1, 0.5, 2.0)  # seconds of a write; and longer
FAILURES = frozenset({Outcome.FAILED, Outcome.BUSY, Outcome.REFUSED})
MAX_REASONS = 100
MAX_TELLERS = 16  # serving caches
MAX_WAYS = 20  # of answering
MAX_ANSWERS = 1e12  # between two tellings


class Counting:
    """Hears events and counts them.

    Invariant: counts only grow while a runner runs, and begin at 0 with it.
    """

    def __init__(self, *, engine: AnyEngine, store: Store, clock: Callable[[], float]) -> None:
        self.engine, self.store, self.clock = engine, store, clock
        self.stated: Callable[[], Stated | None] = lambda: None
        self.began = clock()
        self.outcomes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()  # of those that failed
        self.ordered = self.released = self.stored = 0
        self.writes: Counter[float] = Counter()  # by the bucket that they fall into
        self.write_seconds = 0.0
        self.answers: Counter[str] = Counter()  # that serving caches gave, by how
        self._told: dict[str, dict[str, float]] = {}  # by serving caches, so far
        self._rows: list[Figures] = []  # of this hour
        self._unwritten: dict[str, str | None] = {}  # rows that became whole since `latest` was asked
        self._counted = 0  # crawls, when it was asked
        self._last = self.began
        self._before: Counter[str] = Counter()
        self._checked = [0, 0.0, 0.0]  # copies since the last row: how many, found fresh, said to be

    def begin(self) -> None:
        """Go on with the hour that a restart broke off, and end the minute that it left unfinished."""
        now = self.clock()
        for left in from_text(self.store.get(UNFINISHED)):
            name = name_of(left.time)
            self._rows = with_left(from_text(self.store.get(name)), left)
            self._unwritten |= {name: to_text(self._rows), UNFINISHED: None}
        if not self._rows or name_of(self._rows[-1].time) != name_of(now):
            self._rows = from_text(self.store.get(name_of(now)))
        self.began = self._last = now

    def hear(self, event: Event) -> None:
        """Something happened."""
        match event:
            case Ordered():
                self.ordered += 1
            case Released():
                self.released += 1
            case Stored(crawls=crawls):
                self.stored += len(crawls)
            case Finished(crawl=crawl):
                self.outcomes[crawl.outcome] += 1
                if crawl.outcome in FAILURES:
                    known = crawl.reason in self.reasons or len(self.reasons) < MAX_REASONS
                    self.reasons[crawl.reason if known else "others"] += 1
                if crawl.outcome.refreshed and crawl.fresh_probability is not None:
                    self._checked[0] += 1
                    self._checked[1] += crawl.outcome is Outcome.UNCHANGED
                    self._checked[2] += crawl.fresh_probability

    def wrote(self, seconds: float) -> None:
        """A batch is durable, after so long."""
        self.writes[next((bound for bound in BUCKETS if seconds <= bound), float("inf"))] += 1
        self.write_seconds += seconds

    def tick(self) -> None:
        """Add a row if a minute is over; the first ones come sooner."""
        now = self.clock()
        if now - self._last >= min(max((now - self.began) / ROWS_A_RUN, FIRST_ROW_SECONDS), ROW_SECONDS):
            self._add(now)

    def values(self) -> dict[str, str | None]:
        """The rows of this hour, to be kept; and the hours that are to be forgotten."""
        if not self._rows:
            return {}
        return {name_of(self._rows[-1].time): to_text(self._rows), **outdated(self.store, self._rows[-1].time)}

    def latest(self) -> dict[str, str | None]:
        """What came since this was asked last, to be kept at once: rows that are whole, and the one that is not."""
        values, self._unwritten = self._unwritten, {}
        if (counted := self.outcomes.total()) != self._counted:
            self._counted = counted
            unfinished = (self.outcomes - self._before).total() > 0
            values[UNFINISHED] = to_text([self._row(self.clock())]) if unfinished else None
        return values

    def summary(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """All counts since the run began."""
        return {
            "began": self.began,
            "outcomes": dict(self.outcomes),
            "failures": dict(self.reasons),
            "ordered": self.ordered,
            "released": self.released,
            "stored": self.stored,
            "writes": [[bound, self.writes[bound]] for bound in BUCKETS] + [[None, self.writes[float("inf")]]],
            "write_seconds": self.write_seconds,
            "answers": dict(self.answers),
        }

    def served(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A serving cache (`who`) says how many answers it gave in each way since it began."""
        who, said = str(arguments.get("who", ""))[:40], arguments.get("counts")
        if not isinstance(said, dict) or len(said) > MAX_WAYS:
            raise InputError("Answers are told in counts.", hint="By how they were given.")
        counts = {str(how)[:20]: float(count) for how, count in said.items() if isinstance(count, int | float)}
        before = self._told.pop(who, {})
        self._told[who] = counts
        for how, count in counts.items():
            if (how in self.answers or len(self.answers) < MAX_WAYS) and 0 < count - before.get(how, 0.0) < MAX_ANSWERS:
                self.answers[how] += int(count - before.get(how, 0.0))
        while len(self._told) > MAX_TELLERS:
            del self._told[next(iter(self._told))]
        return {}

    def _add(self, now: float) -> None:
        row = self._row(now)
        if self._rows and name_of(self._rows[-1].time) != name_of(now):
            self._rows = []
        self._rows.append(row)
        self._unwritten |= {name_of(now): to_text(self._rows), UNFINISHED: None}
        self._last, self._before, self._checked = now, self.outcomes.copy(), [0, 0.0, 0.0]

    def _row(self, now: float) -> Figures:
        """What is true now, and what was counted since the last row."""
        stated, checked = self.stated(), self._checked
        new = self.outcomes - self._before
        return Figures(
            time=now,
            freshness=None if stated is None else stated.share,
            found=checked[1] / checked[0] if checked[0] else None,
            said=checked[2] / checked[0] if checked[0] else None,
            budget=self.engine.first.budget,
            price=self.engine.first.price,
            pages=len(self.engine),
            crawls=new.total(),
            changes=sum(new[outcome] for outcome in CHANGES),
            failures=sum(new[outcome] for outcome in FAILURES),
            seconds=now - self._last,
        )

"""How far each sender of change hints is right, host by host: precision, recall, and what it saves; counted openly.

What the schedule goes by are weights (`senders`), learned inside the engine. These are the same things said for people,
by other means: each crawl closes a window since the crawl before, in which a sender was heard n times and the page had
or had not changed. In a window without a change all n were false. In one with a change each was true with probability
p / (1 − e^(−(1−λ)Δτ)·(1−p)^n): it is p unless a change is known. Precision p and recall λ follow from what was counted
so, and that again from them: expectation and maximisation, one window at a time. The rate of change Δ is the engine's.

A hint may say when the change was, or come late: then it belongs to the window that holds that moment, even if its
crawl is over. The sender's own windows begin with the first hint that is heard of it.
"""

import json
import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field
from typing import Any

MAX_PAIRS = 4_096  # of a sender and a host; further hosts are counted together, under ""
MAX_PAGES = 50_000  # whose windows are remembered; the longest unused are forgotten first
MAX_SENDERS_OF_HOST = 16
FADE = 0.998  # what a window leaves of what was counted before, of each sender on each host
FIRST_PRECISION, FIRST_RECALL = 0.5, 0.5
FIRST_WORTH = 2.0  # hints and changes that the first guesses count for
LEAST_CHANCE = 0.02  # that a page has changed by time alone
QUANTILE = 1.64  # of the normal distribution: nine of ten lie within
ETAG, LAST_MODIFIED = "ETag", "Last-Modified"  # graded like senders: a validator that moves says that the page changed


@dataclass(slots=True)
class Counts:
    """What was counted of one sender on one host; faded, but for `all_heard`."""

    since: float = 0.0
    all_heard: float = 0.0
    heard: float = 0.0  # hints in closed windows
    true: float = 0.0  # of them, as far as crawls can tell
    changes: float = 0.0  # in its windows
    saved: float = 0.0  # crawls
    late: float = 0.0  # seconds from a change to the hint, on average over those that say when it was
    late_square: float = 0.0
    dated: float = 0.0

    @property
    def precision(self) -> float:
        """The share of its hints that mean a change."""
        return (self.true + FIRST_WORTH * FIRST_PRECISION) / (self.heard + FIRST_WORTH)

    @property
    def recall(self) -> float:
        """The share of changes that it hints at."""
        return min((self.true + FIRST_WORTH * FIRST_RECALL) / (self.changes + FIRST_WORTH), 1.0)

    def expected_true(self, count: float, rate: float, seconds: float, changed: bool) -> float:
        """Of so many hints in a window of this length, how many were true."""
        if not (changed and count > 0):
            return 0.0
        precision = self.precision
        unhinted = (1.0 - min(self.recall, 0.999)) * max(rate * seconds, 1e-9)
        unchanged = math.exp(-unhinted) * (1.0 - precision) ** min(count, 1e6)
        return float(min(count * precision / max(1.0 - unchanged, 1e-12), count))

    def fade(self) -> None:
        """Some of what was counted is forgotten."""
        for name in _FADING:
            setattr(self, name, getattr(self, name) * FADE)


_FADING = ("heard", "true", "changes")


@dataclass(slots=True)
class _Window:
    """What is remembered of a page: who was heard since its copy, and the window before."""

    heard: dict[str, int] = field(default_factory=dict)
    closed: tuple[float, float, float, bool] | None = None  # begin, end, rate, whether it had changed
    heard_before: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Grade:
    """What is said of one sender on one host ("": on all of them)."""

    sender: str
    host: str
    heard: float
    precision: float | None  # None: nothing is known yet
    precision_range: tuple[float, float]
    recall: float | None
    recall_range: tuple[float, float]
    late: float | None
    late_range: tuple[float, float]  # (0, 0): nothing is known
    saved: float


class Grades:
    """Grades of all senders.

    >>> grades = Grades()
    >>> for nth in range(400):  # a page that changes every other time, and a sender who tells of it every fourth time
    ...     start, end = 100.0 * nth, 100.0 * (nth + 1)
    ...     if nth % 4 == 0:
    ...         grades.hear("u", "h", "feed", start + 50.0, current=start, now=start + 50.0)
    ...     grades.crawled("u", "h", start, end, changed=nth % 2 == 0, rate=0.005)
    >>> grade = grades.grade("feed", "h")
    >>> grade.precision > 0.9, 0.3 < grade.recall < 0.6
    (True, True)
    """

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str], Counts] = {}
        self._of_host: dict[str, list[str]] = {}
        self._pages: OrderedDict[str, _Window] = OrderedDict()
        self._began = -math.inf  # windows that began before this are not counted: a restart has forgotten their hints

    @property
    def learned(self) -> bool:
        """Whether anybody was heard."""
        return bool(self._pairs)

    def listens(self, host: str) -> bool:
        """Whether anybody sends hints of this host."""
        return host in self._of_host

    def precision(self, sender: str, host: str) -> float:
        """How far a hint of a sender is right, as far as that is known."""
        counts = self._pairs.get((sender, host))
        return FIRST_PRECISION if counts is None else counts.precision

    def hear(
        self,
        url: str,
        host: str,
        sender: str,
        moment: float,
        *,
        current: float | None,
        now: float,
        says_when: bool = False,
        late: float = 0.0,
    ) -> None:
        """A hint of a change at that moment, as far as the sender `says_when`; a sender may be known to be `late`."""
        counts = self._counts(sender, host, now)
        if counts is None:
            return
        if moment < counts.since and says_when:
            return  # what happened before anybody listened
        counts.all_heard += 1.0
        if says_when:
            self._note_delay(counts, max(now - moment, 0.0))
        if current is None:
            return
        window = self._window(url)
        closed = window.closed
        early = moment - current < late and closed is not None and closed[3] and not window.heard_before.get(sender)
        if moment < current or early:
            if closed is not None and (early or closed[0] <= moment) and closed[0] >= counts.since:
                begin, end, rate, changed = closed
                before = window.heard_before.get(sender, 0)
                window.heard_before[sender] = before + 1
                counts.heard += 1.0
                counts.true += max(
                    counts.expected_true(before + 1, rate, end - begin, changed)
                    - counts.expected_true(before, rate, end - begin, changed),
                    0.0,
                )
            return
        window.heard[sender] = window.heard.get(sender, 0) + 1

    def crawled(self, url: str, host: str, begin: float, end: float, *, changed: bool, rate: float) -> None:
        """A crawl has shown whether a page changed since the crawl before; it changes at this rate, as is believed."""
        senders = self._of_host.get(host)
        if not senders:
            return
        seconds = max(end - begin, 0.0)
        expected = rate * seconds
        changes = (expected / -math.expm1(-expected) if expected > 1e-9 else 1.0) if changed else 0.0
        window = self._window(url)
        for sender in senders:
            counts = self._pairs[sender, host]
            if begin < max(counts.since, self._began):
                continue
            heard = window.heard.get(sender, 0)
            true = counts.expected_true(heard, rate, seconds, changed)
            counts.fade()
            counts.heard += heard
            counts.true += true
            counts.changes += changes
            if heard:  # without it, so many crawls would have found as many changes
                counts.saved += (changed / max(-math.expm1(-expected), LEAST_CHANCE)) - 1.0
        window.closed, window.heard_before, window.heard = (begin, end, rate, changed), window.heard, {}

    def validator(self, host: str, name: str, *, moved: bool, changed: bool, now: float) -> None:
        """A crawl has brought content, and what a host's validator did: it should move exactly if that changed."""
        counts = self._counts(name, host, now, listed=False)
        if counts is not None:
            counts.fade()
            counts.all_heard += moved
            counts.heard += moved
            counts.true += moved and changed
            counts.changes += changed

    def grade(self, sender: str, host: str = "") -> Grade:
        """What is known of a sender on a host, or on all of them."""
        if host:
            return _grade(sender, host, self._pairs.get((sender, host), Counts()))
        total = Counts()
        for (name, _), counts in self._pairs.items():
            if name == sender:
                for part in Counts.__dataclass_fields__:
                    setattr(total, part, getattr(total, part) + getattr(counts, part))
        return _grade(sender, "", total)

    def all(self) -> Iterator[Grade]:
        """Every sender on every host, the most heard first."""
        for (sender, host), counts in sorted(self._pairs.items(), key=lambda pair: (-pair[1].all_heard, pair[0])):
            yield _grade(sender, host, counts)

    def to_text(self) -> str:
        """All that was counted, for `from_text`."""
        return json.dumps(
            [
                [sender, host, *(round(each, 4) for each in astuple(counts))]
                for (sender, host), counts in self._pairs.items()
            ]
        )

    @classmethod
    def from_text(cls, text: str | None, *, now: float = -math.inf) -> "Grades":
        """What `to_text` wrote; an error if it makes no sense."""
        made = cls()
        made._began = now
        for sender, host, *numbers in json.loads(text or "[]")[:MAX_PAIRS]:
            counts = Counts(*(_number(each) for each in numbers))
            made._pairs[str(sender), str(host)] = counts
            if sender not in (ETAG, LAST_MODIFIED):
                made._of_host.setdefault(str(host), []).append(str(sender))
        return made

    def _counts(self, sender: str, host: str, now: float, *, listed: bool = True) -> Counts | None:
        counts = self._pairs.get((sender, host))
        if counts is None:
            of_host = self._of_host.get(host, [])
            if len(self._pairs) >= MAX_PAIRS or len(of_host) >= MAX_SENDERS_OF_HOST:
                return None
            counts = self._pairs[sender, host] = Counts(since=now)
            if listed:
                self._of_host.setdefault(host, []).append(sender)
        return counts

    def _window(self, url: str) -> _Window:
        window = self._pages.pop(url, None) or _Window()
        self._pages[url] = window
        if len(self._pages) > MAX_PAGES:
            self._pages.popitem(last=False)
        return window

    @staticmethod
    def _note_delay(counts: Counts, late: float) -> None:
        weight = 1.0 / min(counts.dated + 1.0, 200.0)
        counts.dated += 1.0
        counts.late += (late - counts.late) * weight
        counts.late_square += (late * late - counts.late_square) * weight


def _grade(sender: str, host: str, counts: Counts) -> Grade:
    known = counts.heard > 0 or counts.changes > 0
    spread = math.sqrt(max(counts.late_square - counts.late**2, 0.0) / max(min(counts.dated, 200.0), 1.0)) * QUANTILE
    late = counts.late if counts.dated > 0 else None
    return Grade(
        sender,
        host,
        counts.all_heard,
        counts.precision if counts.heard > 0 else None,
        _range(counts.true, counts.heard),
        counts.recall if known and counts.changes > 0 else None,
        _range(counts.true, counts.changes),
        late,
        (max(counts.late - spread, 0.0), counts.late + spread) if late is not None else (0.0, 0.0),
        counts.saved,
    )


def _range(right: float, of: float) -> tuple[float, float]:
    """Wilson's interval for a share, nine times in ten."""
    if of <= 0:
        return 0.0, 1.0
    share, z = min(right / of, 1.0), QUANTILE
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("no number of hints")
    return number

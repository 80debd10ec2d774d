"""How far each sender of change hints is right, host by host: precision, recall, and what it saves.

What the schedule goes by are weights (`senders`), learned inside the engine. These are the same things said for people,
by other means: each crawl closes a window since the crawl before. What the latest windows of a host tell of its senders
is fitted together (`told`), whenever somebody asks.

A hint may say when the change was, or come late: then it belongs to the window that holds that moment, even if its
crawl is over. The sender's own windows begin with the first hint that is heard of it.

What a list says of a window is known when it has been read after the window's end. Until then, nothing counts of what
it said there, neither hints nor silence: else its silence would count before it could speak.
"""

import json
import math
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from afresh.checks import OUR_SENDERS
from afresh.estimate.told import UNKNOWN, Fitted, Hint, Share, Told, Window, fit
from afresh.estimate.validators import Counted

MAX_PAIRS = 4_096  # of a sender and a host; further ones are not graded
MAX_PAGES = 50_000  # whose windows are remembered; the longest unused are forgotten first
MAX_SENDERS_OF_HOST = 16
ENOUGH = 20  # hints: who has sent fewer may have to give its place to another
MAX_HINTS = 4  # of one sender in a window; it is not listened to after that
MAX_CLOSED = 4  # windows of a page whose lists are still to be read; older ones count as if nobody had listened
MAX_WAITING = 2_048  # pages of a host that have such windows
MAX_WINDOWS = 100_000  # of all hosts, in which anything happened
WINDOWS_OF_HOST = 32, 512  # at least, whatever other hosts have, and at most
FADE = 1.0 / 512  # of what was known before, that is forgotten with a window in which anything happened
VERSION = 2  # of the text
MAX_CHANGES = 1e3  # that are expected in a window: more make no difference
UNTOLD = Told()


@dataclass(slots=True)
class Tally:
    """What is counted of one sender on one host."""

    since: float = 0.0
    heard: float = 0.0
    crawls: float = 0.0  # that closed its windows
    expected: float = 0.0  # changes in them, by the rates that were believed
    late: float = 0.0  # seconds from a change to the hint, on average over those that say when it was
    late_square: float = 0.0
    dated: float = 0.0
    readings: float = 0.0  # of lists; 0: it is none, and heard the moment it speaks


@dataclass(slots=True)
class _Closed:
    """A window whose crawl is over."""

    begin: float
    end: float
    window: Window
    waits: int  # a bit for each sender whose lists have not been read since
    quiet: bool  # it is counted with others, since nothing happened in it
    forgotten: float  # of such windows, as a logarithm, when it was


@dataclass(slots=True)
class _Page:
    """What is remembered of a page: who was heard since its copy, and the windows before."""

    rate: float | None = None  # of change, as was believed when the window began
    open: list[Hint] = field(default_factory=list)  # with moments for places
    closed: list[_Closed] = field(default_factory=list)  # the latest, and those before it that wait for lists


@dataclass(slots=True)
class _Host:
    """Who sends hints of a host, and its latest windows."""

    senders: list[str] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)
    before: list[Told] = field(default_factory=list)  # what was believed before any window that is remembered
    memory: float = 1.0  # what is left of that
    windows: deque[Window] = field(default_factory=deque)
    quiet: dict[int, float] = field(default_factory=dict)  # changes expected where nothing happened, by who listened
    forgotten: float = 0.0  # of that, as a logarithm
    waiting: OrderedDict[str, None] = field(default_factory=OrderedDict)  # pages with windows that wait for lists
    pace: float = 1.0
    said: list[Told] = field(default_factory=list)
    news: bool = True  # since it was said


@dataclass(frozen=True, slots=True)
class Grade:
    """What is said of one sender on one host."""

    sender: str
    host: str
    heard: float
    precision: float | None  # None: nothing is known yet
    precision_range: tuple[float, float]
    recall: float | None
    recall_range: tuple[float, float]
    late: float | None
    late_range: tuple[float, float]  # (0, 0): nothing is known
    crawls: float  # that closed windows in which it was listened to
    changes: float  # that pages had in an average one of them


class Grades:
    """Grades of all senders.

    >>> grades = Grades()
    >>> for nth in range(400):  # a page that changes every other time, and a sender who tells of it every fourth time
    ...     start, end = 100.0 * nth, 100.0 * (nth + 1)
    ...     if nth % 4 == 0:
    ...         grades.hear("u", "h", "feed", start + 50.0, current=start, now=start + 50.0)
    ...     grades.crawled("u", "h", start, end, changed=nth % 2 == 0, rate=0.007)
    >>> grade = grades.grade("feed", "h")
    >>> grade.precision > 0.9, 0.3 < grade.recall < 0.6
    (True, True)
    """

    def __init__(self) -> None:
        self._hosts: OrderedDict[str, _Host] = OrderedDict()
        self._validators: dict[tuple[str, str], Counted] = {}
        self._pairs = 0
        self._latest: dict[str, float] = {}  # when anything was last learned of a host
        self._pages: OrderedDict[str, _Page] = OrderedDict()
        self._began = -math.inf  # windows that began before this are not counted: a restart has forgotten their hints

    @property
    def learned(self) -> bool:
        """Whether anybody was heard."""
        return self._pairs > 0

    def listens(self, host: str) -> bool:
        """Whether anybody sends hints of this host."""
        return host in self._hosts

    def precision(self, sender: str, host: str) -> float:
        """How far a hint of a sender is right, as was last said."""
        known = self._hosts.get(host)
        if known is None or sender not in known.senders:
            return UNKNOWN.mean
        return _of(known, known.senders.index(sender)).precision.mean

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
        deaf_since: float | None = None,
        once: bool = False,
    ) -> None:
        """A hint of a change at that moment, as far as the sender `says_when`; a sender may be known to be `late`.

        From `deaf_since` to the moment further hints would not have been noticed; nor, if it is heard only `once`, any
        after it until the next crawl.
        """
        known = self._hosts.get(host)
        nth = self._number(host, sender, now)
        if nth is None:
            return
        known = known or self._hosts[host]
        tally = known.tallies[nth]
        self._latest[host] = now
        if says_when and moment < tally.since:
            return  # what happened before anybody listened
        tally.heard += 1.0
        if says_when:
            _note_delay(tally, max(now - moment, 0.0))
        if current is None:
            return
        page, deaf = self._page(url), moment if deaf_since is None else min(deaf_since, moment)
        latest = page.closed[-1] if page.closed else None
        early = (
            moment - current < late
            and latest is not None
            and latest.window.changed
            and all(each.sender != nth for each in latest.window.hints)
        )
        if moment >= current and not early:
            _add(page.open, Hint(nth, moment, deaf, once))
        elif early and latest is not None:
            moment = min(max(moment - late, latest.begin), latest.end)
            deaf = min(deaf, moment)
        for closed in page.closed if latest is not None and (early or deaf < latest.end) else ():
            self._hear_late(known, closed, Hint(nth, moment, deaf, once), latest=closed is latest and early)

    def _hear_late(self, known: _Host, closed: _Closed, hint: Hint, *, latest: bool) -> None:
        """A hint of a moment in a window that is over, or after it, if nothing would have been noticed before that."""
        inside = closed.begin <= hint.place < closed.end or latest
        if not (closed.window.senders | closed.waits) >> hint.sender & 1 or not (
            inside or hint.deaf_since < closed.end <= hint.place
        ):
            return
        if closed.quiet:
            self._stirred(known, closed)
        place, since = (_place(each, closed.begin, closed.end) for each in (hint.place, hint.deaf_since))
        if inside:
            _add(closed.window.hints, Hint(hint.sender, place, since, hint.last))
        else:
            _deafen(closed.window, hint.sender, since)
        known.news = True

    def crawled(self, url: str, host: str, begin: float, end: float, *, changed: bool, rate: float) -> None:
        """A crawl has shown whether a page changed since the crawl before; it changes at this rate, as is believed."""
        known = self._hosts.get(host)
        if known is None:
            return
        self._latest[host] = end
        page = self._page(url)
        believed = rate if page.rate is None else page.rate  # before this crawl was known
        waiting = [hint for hint in page.open if hint.place > end]
        hints = [hint for hint in page.open if hint.place <= end]
        page.rate, page.open = rate, waiting
        listened = sum(1 << nth for nth, tally in enumerate(known.tallies) if tally.since <= begin)
        if begin < self._began or not end > begin or not listened:
            page.closed.clear()
            return
        waits = listened & sum(1 << nth for nth, tally in enumerate(known.tallies) if tally.readings > 0)
        window = Window(min(believed * (end - begin), MAX_CHANGES), changed, listened & ~waits)
        for hint in hints:
            # What is from before it was heard first is of another, whose place it has.
            if listened >> hint.sender & 1 and hint.place >= known.tallies[hint.sender].since:
                place, deaf = (_place(moment, begin, end) for moment in (hint.place, hint.deaf_since))
                window.hints.append(Hint(hint.sender, place, deaf, hint.last))
        for hint in waiting:
            if hint.deaf_since < end:
                _deafen(window, hint.sender, _place(hint.deaf_since, begin, end))
        quiet = not (window.hints or window.deaf or changed)
        page.closed = [each for each in page.closed if each.waits][1 - MAX_CLOSED :]
        page.closed.append(_Closed(begin, end, window, waits, quiet, known.forgotten))
        if waits:
            known.waiting[url] = None
            if len(known.waiting) > MAX_WAITING:
                self._waits_no_more(known.waiting.popitem(last=False)[0])
        for nth, tally in enumerate(known.tallies):
            if listened >> nth & 1:
                tally.crawls += 1.0
                tally.expected += window.expected
        if quiet:
            known.quiet[window.senders] = known.quiet.get(window.senders, 0.0) + window.expected
        else:
            self._remember(known, window)
        known.news = True

    def waiting(self, host: str) -> list[str]:
        """Pages of a host with windows that wait for lists to be read."""
        known = self._hosts.get(host)
        return list(known.waiting) if known is not None else []

    def read(self, host: str, sender: str, until: float, urls: Iterable[str]) -> None:
        """A list of this sender was read: all is heard that it says of these pages up to that moment."""
        known = self._hosts.get(host)
        if known is None or sender not in known.senders:
            return
        nth = known.senders.index(sender)
        known.tallies[nth].readings += 1.0
        for url in urls:
            page = self._pages.get(url)
            for closed in page.closed if page is not None else ():
                if closed.waits >> nth & 1 and known.tallies[nth].since <= closed.begin and closed.end <= until:
                    self._heard_out(known, closed, nth)
            if page is None or not any(closed.waits for closed in page.closed):
                known.waiting.pop(url, None)

    def _waits_no_more(self, url: str) -> None:
        """There are too many that wait for lists: of this one it will not be known what they said."""
        for closed in self._pages[url].closed if url in self._pages else ():
            closed.waits = 0

    def _heard_out(self, known: _Host, closed: _Closed, nth: int) -> None:
        """All is heard of a window that a sender says of it."""
        closed.waits &= ~(1 << nth)
        if closed.quiet:
            left = closed.window.expected * math.exp(closed.forgotten - known.forgotten)
            before, now = closed.window.senders, closed.window.senders | 1 << nth
            known.quiet[before] = max(known.quiet.get(before, 0.0) - left, 0.0)
            known.quiet[now] = known.quiet.get(now, 0.0) + left
        closed.window.senders |= 1 << nth
        known.news = True

    def _stirred(self, known: _Host, closed: _Closed) -> None:
        """There is more to a quiet window than was thought: it counts by itself."""
        closed.quiet, senders = False, closed.window.senders
        left = closed.window.expected * math.exp(closed.forgotten - known.forgotten)
        known.quiet[senders] = max(known.quiet.get(senders, 0.0) - left, 0.0)
        self._remember(known, closed.window)

    def validator(self, host: str, name: str, *, moved: bool, changed: bool, now: float) -> None:
        """A crawl has brought content, and what a host's validator did: it should move exactly if that changed."""
        counted = self._validators.get((name, host))
        if counted is None:
            if self._pairs >= MAX_PAIRS:
                return
            counted = self._validators[name, host] = Counted()
            self._pairs += 1
        self._latest[host] = now
        counted.note(moved=moved, changed=changed)

    def news(self, most: int) -> list[str]:
        """Hosts of which there is more to say than was said."""
        found: list[str] = []
        for host, known in self._hosts.items():
            if known.news and len(found) < most:
                found.append(host)
        return found

    def task(self, host: str) -> tuple[Sequence[Window], Sequence[Told], float]:
        """What is to be fitted of a host, for `told.fit`, in any thread."""
        known = self._hosts[host]
        known.news = False
        self._hosts.move_to_end(host)  # others have a turn before it
        quiet = [Window(expected, False, listened) for listened, expected in known.quiet.items() if expected > 0]
        before = [_faded(told, known.memory) for told in known.before]
        return [*known.windows, *quiet], before, known.pace

    def missed(self, host: str) -> None:
        """There was no time for it."""
        if (known := self._hosts.get(host)) is not None:
            known.news = True

    def took(self, host: str, fitted: Fitted) -> None:
        """It was fitted."""
        if (known := self._hosts.get(host)) is not None:
            listened = reduce(or_, (window.senders for window in known.windows), 0)
            listened = reduce(or_, known.quiet, listened)
            # Of whom nothing is known by now, since lists are still to be read, what was said holds.
            known.said = [told if listened >> nth & 1 else _of(known, nth) for nth, told in enumerate(fitted.senders)]
            known.pace = fitted.pace

    def grade(self, sender: str, host: str) -> Grade:
        """What is known of a sender on a host, reckoned now."""
        if (counted := self._validators.get((sender, host))) is not None:
            return _of_validator(sender, host, counted)
        known = self._hosts.get(host)
        if known is None or sender not in known.senders:
            return Grade(sender, host, 0.0, None, (0.0, 1.0), None, (0.0, 1.0), None, (0.0, 0.0), 0.0, 0.0)
        if known.news:
            self.took(host, fit(*self.task(host)))
        return _grade(host, known, known.senders.index(sender))

    def latest(self, host: str) -> float:
        """When anything was last learned of a host; 0: not known."""
        return self._latest.get(host, 0.0)

    def all(self) -> Iterator[Grade]:
        """Every sender on every host, the most heard first, as was last said."""
        found = [_grade(host, known, nth) for host, known in self._hosts.items() for nth in range(len(known.senders))]
        found += [_of_validator(name, host, counted) for (name, host), counted in self._validators.items()]
        yield from sorted(found, key=lambda each: (-each.heard, each.sender, each.host))

    def to_text(self) -> str:
        """All that is known, for `from_text`."""
        hosts = [
            [
                host,
                round(known.pace, 4),
                [
                    [sender, [round(each, 4) for each in astuple(tally)], _as_lists(_of(known, nth))]
                    for nth, (sender, tally) in enumerate(zip(known.senders, known.tallies, strict=True))
                ],
            ]
            for host, known in self._hosts.items()
        ]
        counted = [
            [name, host, *(round(number, 4) for number in astuple(each))]
            for (name, host), each in self._validators.items()
        ]
        latest = {host: round(moment, 3) for host, moment in self._latest.items()}
        return json.dumps({"version": VERSION, "hosts": hosts, "validators": counted, "latest": latest})

    @classmethod
    def from_text(cls, text: str | None, *, now: float = math.inf) -> "Grades":
        """What `to_text` wrote; an error if it makes no sense."""
        made = cls()
        made._began = now if now < math.inf else -math.inf
        kept = json.loads(text or "null")
        if kept is None or isinstance(kept, list):  # of an earlier form, where other things were counted
            return made
        for host, pace, senders in kept["hosts"]:
            known = made._hosts[str(host)] = _Host(pace=min(max(_number(pace), 1e-3), 1e3))
            for sender, numbers, told in senders[:MAX_SENDERS_OF_HOST]:
                known.senders.append(str(sender))
                tally = Tally(*map(_number, numbers))
                tally.since = min(tally.since, now)  # it was kept while a clock ran ahead
                known.tallies.append(tally)
                known.before.append(Told(*(_share_of(each) for each in told)))
                made._pairs += 1
            known.said, known.news = list(known.before), False
        for name, host, *numbers in kept["validators"]:
            made._validators[str(name), str(host)] = Counted(*map(_number, numbers))
            made._pairs += 1
        # Stores of earlier versions have none.
        made._latest = {str(host): min(_number(moment), now) for host, moment in kept.get("latest", {}).items()}
        return made

    def _number(self, host: str, sender: str, now: float) -> int | None:
        """The place of a sender among those of its host; None: there are too many."""
        known = self._hosts.get(host)
        if known is not None and sender in known.senders:
            return known.senders.index(sender)
        if known is not None and len(known.senders) >= MAX_SENDERS_OF_HOST:
            return _takes_a_place(known, sender, now)
        if self._pairs >= MAX_PAIRS:
            return None
        if known is None:
            known = self._hosts[host] = _Host()
        known.senders.append(sender)
        known.tallies.append(Tally(since=now))
        known.before.append(Told())
        self._pairs += 1
        return len(known.senders) - 1

    def _page(self, url: str) -> _Page:
        page = self._pages.pop(url, None) or _Page()
        self._pages[url] = page
        if len(self._pages) > MAX_PAGES:
            self._pages.popitem(last=False)
        return page

    def _remember(self, known: _Host, window: Window) -> None:
        least, most = WINDOWS_OF_HOST
        most = min(max(MAX_WINDOWS // len(self._hosts), least), most)
        known.windows.append(window)
        known.memory *= 1.0 - FADE
        while len(known.windows) > most:
            known.windows.popleft()
            known.forgotten -= math.log1p(-1.0 / most)
            for listened in known.quiet:
                known.quiet[listened] *= 1.0 - 1.0 / most


def _of(known: _Host, nth: int) -> Told:
    """What was last said of a sender."""
    return known.said[nth] if nth < len(known.said) else known.before[nth]


def _grade(host: str, known: _Host, nth: int) -> Grade:
    tally, told = known.tallies[nth], _of(known, nth)
    spread = 1.64 * math.sqrt(max(tally.late_square - tally.late**2, 0.0) / max(min(tally.dated, 200.0), 1.0))
    late = tally.late if tally.dated > 0 else None
    checked = tally.crawls > 0 and told != UNTOLD
    return Grade(
        known.senders[nth],
        host,
        tally.heard,
        told.precision.mean if checked else None,
        (told.precision.low, told.precision.high),
        told.recall.mean if checked else None,
        (told.recall.low, told.recall.high),
        late,
        (max(tally.late - spread, 0.0), tally.late + spread) if late is not None else (0.0, 0.0),
        tally.crawls,
        known.pace * tally.expected / max(tally.crawls, 1.0),
    )


def _of_validator(name: str, host: str, counted: Counted) -> Grade:
    (precision, precise), (recall, recalled) = counted.share(counted.moves), counted.share(counted.changes)
    return Grade(name, host, counted.all_moves, precision, precise, recall, recalled, None, (0.0, 0.0), 0.0, 0.0)


def _takes_a_place(known: _Host, sender: str, now: float) -> int | None:
    """The place of whoever was heard least, as long as nothing is known of it: anybody may send under many names."""
    nth = min(range(len(known.senders)), key=lambda each: (known.tallies[each].heard, known.tallies[each].since))
    if known.tallies[nth].heard >= ENOUGH or known.senders[nth].lower() in OUR_SENDERS:
        return None
    known.senders[nth], known.tallies[nth], known.before[nth] = sender, Tally(since=now), Told()
    if nth < len(known.said):
        known.said[nth] = Told()
    for window in known.windows:
        window.senders &= ~(1 << nth)
        window.hints = [hint for hint in window.hints if hint.sender != nth]
        window.deaf = tuple(each for each in window.deaf if each[0] != nth)
    quiet, known.quiet = known.quiet, {}
    for listened, expected in quiet.items():
        rest = listened & ~(1 << nth)
        known.quiet[rest] = known.quiet.get(rest, 0.0) + expected
    return nth


def _add(hints: list[Hint], hint: Hint) -> None:
    """One more hint of a window, unless it is said again or there are enough of its sender."""
    own = [each for each in hints if each.sender == hint.sender]
    if any(each.last or each.place == hint.place for each in own):
        return
    hints.append(hint._replace(last=hint.last or len(own) + 1 == MAX_HINTS))


def _deafen(window: Window, sender: int, since: float) -> None:
    """From there on, nothing of a sender would have been noticed. A thread may be looking at the window."""
    others = tuple(each for each in window.deaf if each[0] != sender)
    window.deaf = (*others, (sender, min([since, *(place for each, place in window.deaf if each == sender)])))


def _place(moment: float, begin: float, end: float) -> float:
    return min(max((moment - begin) / (end - begin), 0.0), 1.0)


def _note_delay(tally: Tally, late: float) -> None:
    weight = 1.0 / min(tally.dated + 1.0, 200.0)
    tally.dated += 1.0
    tally.late += (late - tally.late) * weight
    tally.late_square += (late * late - tally.late_square) * weight


def _faded(told: Told, left: float) -> Told:
    """What is left of what was believed: it counts for fewer observations, and for two at least."""
    return Told(*(_less_sure(share, left) for share in (told.precision, told.recall)))


def _less_sure(share: Share, left: float) -> Share:
    more = max(share.weight - UNKNOWN.weight, 0.0)
    if more <= 0:
        return UNKNOWN
    mean = min(max((share.mean * share.weight - UNKNOWN.mean * UNKNOWN.weight) / more, 0.0), 1.0)
    weight = UNKNOWN.weight + more * left
    return Share((1.0 + mean * more * left) / weight, share.low, share.high, weight)


def _as_lists(told: Told) -> list[list[float]]:
    return [[round(each, 5) for each in astuple(share)] for share in (told.precision, told.recall)]


def _share_of(numbers: Sequence[Any]) -> Share:
    mean, low, high, weight = map(_number, numbers)
    if not (0.0 <= mean <= 1.0 and 0.0 <= low <= high <= 1.0 and weight > 0):
        raise ValueError("no share")
    return Share(mean, low, high, weight)


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("no number of hints")
    return number

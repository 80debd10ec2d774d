"""Lanes: what must not be disturbed by two at once, and all that is known of each.

On the web a lane is a host; a mount or a database is one as well. A lane has a number, by which the schedule knows it,
and a name. Here is the only place that says who is in a lane, from when on it may be asked again, and how it fared.
The schedule keeps the two things that it needs to choose, the moment and the budget, and is told them from here.

What only the web has stays with the web: which address a host is at (`addresses`), and what its robots.txt says
(`permission`); the delay that this asks for is told here (`wants`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from afresh.frontier.faults import NEVER_ASKED
from afresh.frontier.politeness import Politeness
from afresh.types import HostState, Order, recently

FAILURES = "failures"  # what asks for the rest of a lane that fails
_NEWEST_REST = 0.2  # what the last rest counts for in the average
_NEWEST_TURN = 0.2  # and the last turn


@dataclass(frozen=True, slots=True)
class Rest:
    """How long a host is left alone after an answer, and what asks for that."""

    seconds: float
    because: str  # a setting, "Crawl-delay" or "failures"


class Schedule(Protocol):
    """What is told of lanes, by their numbers."""

    def host_rests(self, host: int, until: float) -> None:
        """Hand out no page of this lane before `until`."""

    def set_host(self, host: int, *, gap: float | None = ..., budget: float | None = ...) -> None:
        """Give a lane a budget of its own."""

    def host_price(self, host: int) -> float:
        """What a crawl of a lane that is at its cap has to gain; 0: the common price holds."""


@dataclass(slots=True, eq=False)
class Lane:
    """One of them. `Lanes` changes it, and the schedule hears of that; others read it.

    The length of a turn is measured: the seconds from one refresh to the next, without those in which the lane could
    have been asked for something and was not.
    """

    number: int
    name: str
    # Who is in it.
    order: Order | None = None  # that is being carried out
    visited: bool = False  # for the sake of a page elsewhere, which redirects here
    # How it fared: `HostState` says the same.
    ready: float = 0.0
    failures: int = 0
    reason: str = ""
    since: float | None = None
    asked: float = 0.0
    recent_asks: float = 0.0
    recent_seconds: float = 0.0
    # How long it rests.
    delay: float | None = None  # that it asks for; None: nobody has looked yet
    rest: float = -1.0  # the average over its last answers: some take longer than others; below 0: none yet
    because: str = ""
    # How long a turn takes.
    opens: float = 0.0  # when it may be asked again, as far as that was known when it was asked last
    refreshed: float = -math.inf  # when a page of it last was
    idle: float = 0.0  # seconds since then in which it could have been asked, and was not
    turn: float = 0.0  # seconds; 0: nobody knows yet

    @property
    def is_free(self) -> bool:
        """Whether nobody is in it."""
        return self.order is None and not self.visited

    def state(self) -> HostState:
        """What is to be remembered over a restart."""
        recent = self.asked, self.recent_asks, self.recent_seconds
        return HostState(self.name, self.ready, self.failures, self.reason, self.since, *recent)

    def began(self, order: Order, now: float) -> None:
        """An order goes out."""
        self.order = order
        if self.refreshed > -math.inf:
            if now > self.opens:
                self.idle += now - self.opens
            self.opens = now

    def ended(self, now: float, opens: float, *, refreshed: bool) -> None:
        """It was carried out, or was not; the lane may be asked again at `opens`."""
        self.opens = opens
        if refreshed:
            if self.refreshed > -math.inf:
                took = max(now - self.refreshed - self.idle, 0.0)
                self.turn = took if self.turn == 0.0 else self.turn + _NEWEST_TURN * (took - self.turn)
            self.refreshed, self.idle = now, 0.0


class Lanes:
    """A number for every name, and what is known of those that were asked.

    Invariant: what a lane was once told to rest until never comes sooner, whatever is heard of it later.

    >>> lanes = Lanes()
    >>> lanes.answered("a.example", failed=True, now=0.0, took=0.1), lanes.lane("a.example").ready
    (10.0, 10.0)
    """

    def __init__(self, politeness: Politeness | None = None) -> None:
        self.politeness = politeness or Politeness()
        self.schedule: Schedule | None = None  # is told what changes
        self._own: dict[str, Politeness] = {}  # of lanes that are treated in a way of their own
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._lanes: dict[str, Lane] = {}  # of names that were asked; many more may have a number

    def treat(self, name: str, politeness: Politeness) -> None:
        """Let a lane rest in a way of its own: a database of ours needs no rest after each answer."""
        self._own[name] = politeness

    def politeness_of(self, name: str) -> Politeness:
        """How a lane is treated."""
        return self._own.get(name, self.politeness) if self._own else self.politeness

    def number(self, name: str) -> int:
        """The number of a name, the same for the same name."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        return number

    def name(self, number: int) -> str:
        """The name that has a number."""
        return self._names[number]

    def lane(self, name: str) -> Lane:
        """The lane of this name; it is made if there is none yet."""
        lane = self._lanes.get(name)
        if lane is None:
            number = self.number(name)
            lane = self._lanes[name] = Lane(number, self._names[number])
        return lane

    def state(self, name: str) -> HostState:
        """What is to be remembered of a lane over a restart."""
        lane = self._lanes.get(name)
        return HostState(name) if lane is None else lane.state()

    def restore(self, state: HostState, now: float | None = None) -> None:
        """Take over what was known before a restart.

        A clock that was wrong when this was written must not let a lane rest for ever, if it is known what time it is.
        """
        lane = self.lane(state.host)
        latest = math.inf if now is None else now + self.politeness_of(state.host).longest_back_off
        ready = state.ready if state.ready <= latest else latest
        lane.failures, lane.reason, lane.since = state.failures, state.reason, state.since
        lane.asked, lane.recent_asks, lane.recent_seconds = state.asked, state.recent_asks, state.recent_seconds
        self._let_rest(lane, ready)

    def wants(self, name: str, delay: float | None) -> None:
        """The lane asks for this many seconds between requests (Crawl-delay); None: it does not say."""
        asked = 0.0 if delay is None or not delay > 0 else min(delay, self.politeness.longest_gap)
        self.lane(name).delay = asked

    def rest_until(self, name: str, until: float) -> None:
        """Leave a lane alone until then, for reasons of our own."""
        self._let_rest(self.lane(name), until)

    def _let_rest(self, lane: Lane, until: float) -> None:
        lane.ready = max(lane.ready, until)
        if self.schedule is not None:
            self.schedule.host_rests(lane.number, lane.ready)

    def answered(
        self,
        name: str,
        *,
        failed: bool | None,
        now: float,
        took: float,
        ended: float | None = None,
        retry_after: float | None = None,
        at_least: float = 0.0,
        reason: str = "",
    ) -> float:
        """Note whether the lane failed (None: it was not asked anything), and why; how long it must rest from now on.

        `ended`: when its answer did, if that was before now. It has been resting since, while we were reading.
        `at_least`: for reasons of our own.
        """
        lane = self.lane(name)
        gap = self.note(lane, failed, now, took, now if ended is None else ended, retry_after, at_least, reason)
        self._let_rest(lane, lane.ready)
        return gap

    def note(
        self,
        lane: Lane,
        failed: bool | None,
        now: float,
        took: float,
        ended: float,
        retry_after: float | None,
        at_least: float,
        reason: str,
    ) -> float:
        """`answered`, for the order that is out: who calls this tells the schedule that it is over, and of the gap."""
        if failed is not None:
            lane.failures = lane.failures + 1 if failed else 0
        failures, delay = lane.failures, lane.delay or 0.0
        gap = self.politeness_of(lane.name).gap(took, failures=failures, retry_after=retry_after)
        gap = delay if delay > gap else gap
        gap = at_least if at_least > gap else gap
        self._note_rest(lane, gap, delay)
        if now > ended:
            gap = max(gap - (now - ended), at_least)
        if now + gap > lane.ready:
            lane.ready = now + gap
        if failed is not None:
            asks, seconds = recently(lane.recent_asks, lane.recent_seconds, now - lane.asked)
            lane.asked, lane.recent_asks, lane.recent_seconds = now, asks + 1.0, seconds
        if failed or (failed is None and reason in NEVER_ASKED):
            if not lane.reason or lane.since is None:
                lane.since = now
            lane.reason = reason
        elif failed is False:
            lane.reason, lane.since = "", None
        return gap

    def _note_rest(self, lane: Lane, gap: float, delay: float) -> None:
        if lane.failures:
            lane.rest, lane.because = gap, FAILURES
        elif delay and gap == delay:
            lane.rest, lane.because = gap, "Crawl-delay"
        else:
            if lane.rest >= 0.0 and lane.because.startswith("politeness."):
                gap = lane.rest + _NEWEST_REST * (gap - lane.rest)
            shortest = gap <= self.politeness_of(lane.name).shortest_gap
            lane.rest, lane.because = gap, "politeness.shortest_gap" if shortest else "politeness.factor"

    def rest(self, name: str) -> Rest:
        """How long a lane is left alone between two fetches: as of late, or as after a quick first answer."""
        lane = self._lanes.get(name)
        return self._first_rest(name) if lane is None or lane.rest < 0.0 else Rest(lane.rest, lane.because)

    def rests(self) -> Iterator[tuple[str, Rest]]:
        """`rest` of each that something is known of; in any thread, as it is when its turn comes."""
        for lane in list(self._lanes.values()):
            yield lane.name, self._first_rest(lane.name) if lane.rest < 0.0 else Rest(lane.rest, lane.because)
        for name in list(self._own):
            if name in self._numbers and name not in self._lanes:
                yield name, self._first_rest(name)

    def others(self) -> tuple[int, Rest]:
        """How many there are of which nothing is known yet, and `rest` of these: nobody goes through them."""
        own = sum(name in self._numbers and name not in self._lanes for name in list(self._own))
        count = len(self._names) - len(self._lanes) - own
        return count, Rest(self.politeness.gap(0.0), "politeness.shortest_gap")

    def _first_rest(self, name: str) -> Rest:
        return Rest(self.politeness_of(name).gap(0.0), "politeness.shortest_gap")

    def turn(self, name: str) -> float:
        """How long a turn takes, in seconds."""
        lane = self._lanes.get(name)
        return max(self.rest(name).seconds, 0.0 if lane is None else lane.turn)

    def limit(self, name: str, budget: float) -> None:
        """Let a lane have a budget of its own, in crawls a second; infinity: none."""
        if self.schedule is not None:
            self.schedule.set_host(self.number(name), budget=budget)

    def price(self, name: str) -> float:
        """What a crawl of a lane that is at its cap has to gain; 0: the common price holds."""
        return 0.0 if self.schedule is None else self.schedule.host_price(self.number(name))

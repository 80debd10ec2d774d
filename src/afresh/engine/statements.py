"""What the engine says of its pages and copies: what is believed, how fresh each copy is, and all of them together."""

import math
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from afresh.checks import moment, whole
from afresh.engine.tracked import Tracked
from afresh.errors import InputError
from afresh.estimate import Activity, Estimator, Senders
from afresh.types import Beliefs

if TYPE_CHECKING:
    from afresh.estimate import Learner

STATED = 20_000  # pages at most that tell of the whole collection
PIECE = 1_000  # of them that are gathered in one go
_STRIDE = (math.sqrt(5.0) - 1.0) / 2.0  # of all slots, from one that is looked at in turn to the next


@dataclass(frozen=True, slots=True)
class FreshnessParts:
    """Probabilities that a copy is current, each with one more thing taken into account."""

    by_rate: float  # the believed change rate alone
    by_silence: float  # changes that send signals would have been heard of
    by_all_rates: float  # and over all rates that the page may have
    with_signals: float  # and with the signals that were heard
    with_siblings: float  # and with what was found on other pages of its site: what is said in the end


@dataclass(frozen=True, slots=True)
class Stated:
    """How fresh copies are believed to be, all of them at one moment."""

    share: float  # of requests that would find a fresh copy; of pages, if `by_requests` is False
    time: float
    pages: int
    by_requests: bool  # whether pages differ in how much they are wanted; else each counts the same


@dataclass(frozen=True, slots=True)
class Survey:
    """All that `Engine.survey` gathered at a moment: what it states of all copies is worked out elsewhere."""

    time: float
    pages: int
    weights: Sequence[float]  # request rates of all pages,
    copied: Sequence[float]  # and of those with a copy
    fresh: Callable[[float], Sequence[float]]  # how likely these are to be current

    def carry_out(self) -> Stated | None:
        """The statement; None where there are no pages, or nobody wants any."""
        total = math.fsum(self.weights)
        if not total > 0.0:
            return None
        fresh = math.fsum(weight * each for weight, each in zip(self.copied, self.fresh(self.time), strict=True))
        return Stated(fresh / total, self.time, self.pages, min(self.weights) < max(self.weights))


class Statements:
    """Pages by their URLs, and what can be said of each and of all: nothing here changes what is known."""

    def __init__(self, *, estimator: Estimator, activity: Activity | None, senders: Senders | None) -> None:
        self.estimator = estimator
        self.activity = activity  # None: every page changes on its own
        self.senders = senders or Senders()  # what signals are worth
        self._slots: dict[str, int] = {}
        self._tracked: dict[int, Tracked] = {}
        self._hands = {"look": 0, "survey": 0}  # the slots that were looked at last in turn
        self._highest = 0  # slot
        self._siblings: dict[int, deque[int]] = {}  # pages of each branch, the next one to be looked at first

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, url: str) -> bool:
        return url in self._slots

    def _slot(self, url: str) -> int:
        slot = self._slots.get(url) if isinstance(url, str) else None
        if slot is None:
            hint = "Add it first: engine.add(Page(url, host), now)."
            raise InputError(f"{str(url)[:200]!r} is not a page of this engine.", hint=hint)
        return slot

    def beliefs(self, url: str, now: float) -> Beliefs:
        """What is believed of a page."""
        return self.estimator.beliefs(self._slot(url), moment("now", now))

    def fresh_probability(self, url: str, now: float) -> float:
        """How likely the copy of a page is to be current; 0 where there is none."""
        slot = self._slot(url)
        tracked = self._tracked[slot]
        if tracked.current is None or tracked.outdated:
            return 0.0
        now = moment("now", now)
        elapsed, signals = max(now - tracked.current, 0.0), self._count(tracked)
        if self.activity is None:
            return self.estimator.fresh_probability(slot, elapsed, signals)
        by_time = self._stale(slot, elapsed, 0.0)
        told = self._stale(slot, elapsed, signals) - by_time if signals else 0.0
        return self.activity.fresh(tracked.branches, tracked.current, now, by_time) * math.exp(-told)

    def freshness_parts(self, url: str, now: float) -> FreshnessParts:
        """How what `fresh_probability` says comes about, one reason after the other; for a page with a copy."""
        slot, now = self._slot(url), moment("now", now)
        tracked = self._tracked[slot]
        elapsed = max(now - (now if tracked.current is None else tracked.current), 0.0)
        believed = self.estimator.beliefs(slot, now)
        by_time = self.estimator.fresh_probability(slot, elapsed, 0.0)
        with_signals = self.estimator.fresh_probability(slot, elapsed, self._count(tracked))
        return FreshnessParts(
            by_rate=math.exp(-believed.change_rate * elapsed),
            by_silence=math.exp(-believed.silent_rate * elapsed),
            by_all_rates=by_time,
            with_signals=with_signals,
            with_siblings=self.fresh_probability(url, now),
        )

    def survey(self, now: float, most: int = STATED) -> Survey:
        """What is needed to state how fresh all copies are now; of more than `most` pages, that many from all sites."""
        gathering = self.gather_survey(now, most)
        while True:
            try:
                next(gathering)
            except StopIteration as done:
                return cast(Survey, done.value)

    def gather_survey(self, now: float, most: int = STATED) -> Generator[None, None, Survey]:
        """`survey`, in pieces of a few milliseconds, so that others have a turn in between.

        The caller computes what it states, in any thread: it shares nothing with the engine.
        """
        now, most = moment("now", now), whole("most", most)
        slots = self._in_turn("survey", most) if len(self._tracked) > most else list(self._tracked)
        weights: list[float] = []
        copied: list[tuple[int, float, float, float, tuple[int, ...]]] = []  # slot, weight, current, signals, branches
        for nth, slot in enumerate(slots, start=1):
            if (each := self._tracked.get(slot)) is not None:
                weights.append(each.told[0] if each.told else 0.0)
                if each.current is not None and not each.outdated:
                    copied.append((slot, weights[-1], each.current, self._count(each), each.branches))
            if nth % PIECE == 0:
                yield
        copied = [each for each in copied if each[0] in self._tracked]
        fresh: Callable[[float], Sequence[float]]
        if hasattr(self.estimator, "table"):
            from afresh.estimate.survey import snapshot  # compiled code takes a while to load

            fresh = snapshot(
                cast("Learner", self.estimator),
                self.activity,
                slots=[each[0] for each in copied],
                current=[each[2] for each in copied],
                signals=[each[3] for each in copied],
                branches=[each[4] for each in copied],
            ).fresh
        else:  # the plain estimators, which are slow, have few pages
            said = [self.fresh_probability(self._tracked[each[0]].page.url, now) for each in copied]
            fresh = lambda _: said  # noqa: E731
        return Survey(now, len(self._tracked), weights, [each[1] for each in copied], fresh)

    def is_outdated(self, url: str) -> bool:
        """Whether the copy of a page is known to differ from it: there was no room for the new one."""
        tracked = self._tracked[self._slot(url)]
        return tracked.outdated and tracked.current is not None

    def current(self, url: str) -> float | None:
        """The moment that the copy of a page is as of; None if there is none."""
        return self._tracked[self._slot(url)].current

    def failures(self, url: str) -> int:
        """How often the page has failed in a row, up to now."""
        return self._tracked[self._slot(url)].failures

    def signals(self, url: str) -> int:
        """How many signals a page has sent since its copy was current."""
        return self._tracked[self._slot(url)].signals

    def learned(self, url: str) -> bytes:
        """What the estimator remembers of a page, for `add` after a restart."""
        return self.estimator.learned(self._slot(url))

    def _in_turn(self, what: str, most: int) -> list[int]:
        """The next slots in use; in strides, so that any number of them in a row are of all sites alike."""
        count, hand, found = self._highest + 1, self._hands[what], []
        stride = max(1, int(count * _STRIDE))
        while math.gcd(stride, count) > 1:
            stride += 1
        for _ in range(min(most, len(self._tracked))):
            hand = (hand + stride) % count
            while hand not in self._tracked:
                hand = (hand + stride) % count
            found.append(hand)
        self._hands[what] = hand
        return found

    def _stale(self, slot: int, elapsed: float, signals: float) -> float:
        """x of a copy, by the estimator: it is fresh with probability exp(−x)."""
        return -math.log(max(self.estimator.fresh_probability(slot, elapsed, signals), 1e-300))

    def _count(self, tracked: Tracked) -> float:
        """Signals since the copy was current, as a number of good ones."""
        return self.senders.count(tracked.page.host, tracked.heard) if tracked.heard else 0.0

    def _age(self, tracked: Tracked, now: float) -> float:
        """How old a copy is, in seconds as long as what happened in them makes them."""
        if tracked.current is None:
            return math.inf
        if self.activity is None or len(self._siblings) == 1:
            # What happens on the only branch concerns all alike: it counts for what is said, and not for the order.
            return max(now - tracked.current, 0.0)
        return self.activity.stretched(tracked.branches, tracked.current, now)

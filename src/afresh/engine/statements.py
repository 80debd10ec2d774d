"""What the engine says of its pages and copies: what is believed, how fresh each copy is, and all of them together."""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import cast

from afresh.checks import moment, whole
from afresh.engine.columns import OUTDATED
from afresh.engine.hearts import heart_for
from afresh.errors import InputError
from afresh.estimate import Activity, Estimator, Senders
from afresh.schedule import Schedules
from afresh.types import Beliefs, Page

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
    fresh: Callable[[], Sequence[float]]  # how likely these are to be current

    def carry_out(self) -> Stated | None:
        """The statement; None where there are no pages, or nobody wants any."""
        total = math.fsum(self.weights)
        if not total > 0.0:
            return None
        fresh = math.fsum(weight * each for weight, each in zip(self.copied, self.fresh(), strict=True))
        return Stated(fresh / total, self.time, self.pages, min(self.weights) < max(self.weights))


class Statements:
    """Pages by their URLs, and what can be said of each and of all: nothing here changes what is known."""

    def __init__(
        self, *, scheduler: Schedules, estimator: Estimator, activity: Activity | None, senders: Senders | None
    ) -> None:
        self.scheduler = scheduler
        self.estimator = estimator
        self.heart = heart_for(scheduler, estimator, activity, senders)
        self._slots: dict[str, int] = {}
        self._pages: dict[int, Page] = {}
        self._hand = 0  # the slot that was surveyed last
        self._highest = 0  # slot

    @property
    def activity(self) -> Activity | None:
        """What happened on the branches of sites; None: every page changes on its own."""
        return self.heart.activity

    @activity.setter
    def activity(self, activity: Activity | None) -> None:
        self.heart.activity = activity

    @property
    def senders(self) -> Senders:
        """What signals of each sender are worth."""
        return self.heart.senders

    @senders.setter
    def senders(self, senders: Senders) -> None:
        self.heart.senders = senders

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
        return self.heart.fresh_probability(self._slot(url), moment("now", now))

    def freshness_parts(self, url: str, now: float) -> FreshnessParts:
        """How what `fresh_probability` says comes about, one reason after the other; for a page with a copy."""
        slot, now = self._slot(url), moment("now", now)
        current = self.heart.current(slot)
        elapsed = max(now - (now if current is None else current), 0.0)
        believed = self.estimator.beliefs(slot, now)
        by_time = self.estimator.fresh_probability(slot, elapsed, 0.0)
        with_signals = self.estimator.fresh_probability(slot, elapsed, self.heart.count(slot))
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
        slots = self._in_turn(most) if len(self._pages) > most else list(self._pages)
        weights: list[float] = []
        copied: list[tuple[int, float]] = []  # slot, weight
        for nth, slot in enumerate(slots, start=1):
            if slot in self._pages:
                weights.append(float(self.heart.columns.pages[slot]["request_rate"]))
                if self.heart.current(slot) is not None and not self.heart.has(slot, OUTDATED):
                    copied.append((slot, weights[-1]))
            if nth % PIECE == 0:
                yield
        copied = [each for each in copied if each[0] in self._pages]
        fresh = self.heart.snapshot([each[0] for each in copied], now)
        return Survey(now, len(self._pages), weights, [each[1] for each in copied], fresh)

    def is_outdated(self, url: str) -> bool:
        """Whether the copy of a page is known to differ from it: there was no room for the new one."""
        slot = self._slot(url)
        return self.heart.has(slot, OUTDATED) and self.heart.current(slot) is not None

    def current(self, url: str) -> float | None:
        """The moment that the copy of a page is as of; None if there is none."""
        return self.heart.current(self._slot(url))

    def failures(self, url: str) -> int:
        """How often the page has failed in a row, up to now."""
        return int(self.heart.columns.pages[self._slot(url)]["failures"])

    def signals(self, url: str) -> int:
        """How many signals a page has sent since its copy was current."""
        return self.heart.signals(self._slot(url))

    def learned(self, url: str) -> bytes:
        """What the estimator remembers of a page, for `add` after a restart."""
        return self.estimator.learned(self._slot(url))

    def _in_turn(self, most: int) -> list[int]:
        """The next slots in use; in strides, so that any number of them in a row are of all sites alike."""
        count, hand, found = self._highest + 1, self._hand, []
        stride = max(1, int(count * _STRIDE))
        while math.gcd(stride, count) > 1:
            stride += 1
        for _ in range(min(most, len(self._pages))):
            hand = (hand + stride) % count
            while hand not in self._pages:
                hand = (hand + stride) % count
            found.append(hand)
        self._hand = hand
        return found

"""What the engine says of its pages and copies: what is believed, how fresh each copy is, and all of them together."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from afresh.checks import moment, whole
from afresh.engine.columns import GONE, OUTDATED
from afresh.engine.hearts import Rough, heart_for
from afresh.engine.names import Names
from afresh.errors import InputError
from afresh.estimate import Activity, Estimator, Senders
from afresh.estimate.base import ForetellsRequests, HearsDates, LearnsKinds
from afresh.schedule import LearnedRate, Schedules, SeesCosts
from afresh.types import Beliefs

if TYPE_CHECKING:
    from afresh.estimate.kinds_learned import KindsLearned

STATED = 20_000  # pages at most that are looked at closely
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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
    """All that `Engine.survey` gathered at a moment: what it states of all copies is worked out elsewhere.

    Of many pages, some are looked at closely. All are looked at roughly, by what the schedule takes to be true of them,
    and what a close look says of those some corrects that.
    """

    time: float
    pages: int
    weights: Floats  # request rates of those that are looked at closely
    fresh: Callable[[], Floats]  # and how likely their copies are to be current; 0 where there is none, or no page
    rough: Callable[[], Rough] | None = None  # the same of all pages, roughly; None: all are looked at closely

    @property
    def weight(self) -> float:
        """About how much all pages are wanted together."""
        return float(self.weights.sum()) * self.pages / max(len(self.weights), 1)

    def carry_out(self) -> Stated | None:
        """The statement; None where there are no pages, or nobody wants any."""
        total = float(self.weights.sum())
        if not total > 0.0:
            return None
        fresh = self.fresh()
        share = float(self.weights @ fresh) / total
        if self.rough is not None and (rough := self.rough()).weight > 0.0:
            closer = float(self.weights @ (fresh - rough.some)) / total
            share = min(max(rough.fresh / rough.weight + closer, 0.0), 1.0)
        return Stated(share, self.time, self.pages, bool(self.weights.min() < self.weights.max()))


def together(stated: Sequence[tuple[Stated, float]]) -> Stated | None:
    """What is stated of several collections with these weights, of all of them."""
    if len(stated) < 2:
        return stated[0][0] if stated else None
    total = sum(weight for _, weight in stated)
    share = sum(each.share * weight for each, weight in stated) / total
    pages = sum(each.pages for each, _ in stated)
    per_page = {weight / each.pages for each, weight in stated}
    by_requests = len(per_page) > 1 or any(each.by_requests for each, _ in stated)
    return Stated(share, min(each.time for each, _ in stated), pages, by_requests)


class Statements:
    """Pages by their URLs, and what can be said of each and of all: nothing here changes what is known."""

    def __init__(
        self,
        *,
        scheduler: Schedules,
        estimator: Estimator,
        activity: Activity | None,
        senders: Senders | None,
        names: Names | None,
    ) -> None:
        self.scheduler = scheduler
        self.by_costs = scheduler if isinstance(scheduler, SeesCosts) else None  # the same, if it learns from costs
        self.estimator = estimator
        # What the estimator can do besides: found once, since asking a protocol costs as much as learning.
        self.of_kind = estimator if isinstance(estimator, LearnsKinds) else None
        self.foretelling = estimator if isinstance(estimator, ForetellsRequests) else None
        self.dated = estimator if isinstance(estimator, HearsDates) else None
        self.heart = heart_for(scheduler, estimator, activity, senders)
        self.names = Names() if names is None else names
        self._hand = 0  # the slot that was surveyed last

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
        return len(self.names)

    def slots(self, urls: Sequence[str]) -> NDArray[np.int64]:
        """The slots of these pages; −1: not ours."""
        return self.names.slots(self.names.marks(urls))

    def __contains__(self, url: str) -> bool:
        return self.names.slot(url) >= 0

    def _slot(self, url: str) -> int:
        slot = self.names.slot(url) if isinstance(url, str) else -1
        if slot < 0:
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
        """What is needed to state how fresh all copies are now; of more than `most` pages, so many are looked at
        closely, from all sites.

        The caller works out what it states, in any thread.
        """
        now, most = moment("now", now), whole("most", most)
        all_of_them = len(self) <= most
        slots = self.names.in_use() if all_of_them else self._in_turn(most)
        rough = None if all_of_them else self.heart.rough(slots, self.names.used, now)
        pages = self.heart.columns.pages
        weights, gone = pages["request_rate"][slots].astype(np.float64), pages["flags"][slots] & GONE != 0
        said = self.heart.snapshot(slots, now)
        # Roughly, a page that is gone has a copy like others: those that are looked at closely correct that, too.
        return Survey(now, len(self), weights, lambda: np.where(gone, 0.0, said()), rough)

    def is_outdated(self, url: str) -> bool:
        """Whether the copy of a page is known to differ from it: there was no room for the new one."""
        slot = self._slot(url)
        return self.heart.has(slot, OUTDATED) and self.heart.current(slot) is not None

    def is_gone(self, url: str) -> bool:
        """Whether the last crawl of a page found that there is no such page any more."""
        return self.heart.has(self._slot(url), GONE)

    def current(self, url: str) -> float | None:
        """The moment that the copy of a page is as of; None if there is none."""
        return self.heart.current(self._slot(url))

    def failures(self, url: str) -> int:
        """How often the page has failed in a row, up to now."""
        return int(self.heart.columns.pages[self._slot(url)]["failures"])

    def signals(self, url: str) -> int:
        """How many signals a page has sent since its copy was current."""
        return self.heart.signals(self._slot(url))

    def learned_rate(self, url: str) -> LearnedRate | None:
        """What the costs of a page have taught; None if nothing is learned from costs."""
        return None if self.by_costs is None else self.by_costs.learned_rate(self._slot(url))

    def learned(self, url: str) -> bytes:
        """What the estimator remembers of a page, for `add` after a restart."""
        return self.estimator.learned(self._slot(url))

    def believed(self, urls: Sequence[str], now: float) -> Iterator[tuple[str, Beliefs, int, bytes]]:
        """(page, `beliefs`, `signals`, `learned`) of those among these that are ours."""
        now, estimator, signals = moment("now", now), self.estimator, self.heart.columns.pages["signals"]
        for url, slot in zip(urls, self.slots(urls).tolist(), strict=True):
            if slot >= 0:
                yield url, estimator.beliefs(slot, now), int(signals[slot]), estimator.learned(slot)

    def kind(self, url: str) -> int:
        """The kinds of a page, packed; 0: unknown, or the estimator learns nothing of kinds."""
        slot = self._slot(url)
        return 0 if self.of_kind is None else self.of_kind.kind_of(slot)

    def foretold(self, url: str) -> float | None:
        """How much a page that nobody has asked for yet is foretold to be, in times pages alike; None: nothing is."""
        slot = self._slot(url)
        return None if self.foretelling is None else self.foretelling.foretold(slot)

    def of_kinds(self) -> "KindsLearned | None":
        """What is known of kinds; None if the estimator learns nothing of them."""
        return None if self.of_kind is None else self.of_kind.of_kinds()

    def scores_of_kinds(self) -> list[float]:
        """What kinds have proved to be worth, for `recall_kinds`."""
        return [] if self.of_kind is None else self.of_kind.scores_of_kinds()

    def _in_turn(self, most: int) -> Integers:
        """The next slots in use; in strides, so that any number of them in a row are of all sites alike."""
        used = self.names.used
        stride = max(1, int(len(used) * _STRIDE))
        while math.gcd(stride, len(used)) > 1:
            stride += 1
        looks = min(len(used), 2 * most * len(used) // max(len(self), 1))
        places = (self._hand + stride * np.arange(1, looks + 1)) % len(used)
        found = np.flatnonzero(used[places])[:most]
        self._hand = int(places[found[-1]]) if len(found) else 0
        return places[found]

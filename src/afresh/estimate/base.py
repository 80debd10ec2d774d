"""What the engine asks of an estimator."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from afresh.checks import MAX_MOMENT, number, require_kinds
from afresh.types import Beliefs, Importance

if TYPE_CHECKING:
    from afresh.estimate.kinds_learned import KindsLearned

# How what a `Learner` has learned of a page begins; the first byte counts what its sums have meant.
BY_LEARNER = b"\x03afresh"


MAX_RATE = 1e30  # a second, of requests: schedulers take no more
MAX_TYPICAL, MIN_TYPICAL = 1e15, 1e-30  # a second


def checked_rate(rate: Any) -> float:
    """The typical rate, if beliefs on either side of it can be reckoned with."""
    return number("typical_rate", rate, least=MIN_TYPICAL, most=MAX_TYPICAL)


def check_wanted(importance: Importance | None, popularity: float | None) -> None:
    """ConfigError if what an operator says of a page is not a number that can be used."""
    if importance is not None:
        require_kinds((importance, Importance, "importance"))
        number("importance", importance.value, most=MAX_RATE)
    if popularity is not None:
        number("popularity", popularity, most=MAX_RATE)


def amount(name: str, value: Any) -> float:
    """A number of any size that a stranger may have sent, for others to bound; NaN is nothing."""
    if type(value) is float:
        return 0.0 if math.isnan(value) else value
    return number(name, value, least=-math.inf, infinite=True)


def bounded(name: str, moment: Any) -> float:
    """A moment; the last or the first one for those beyond, which strangers may have sent."""
    return min(max(number(name, moment, least=-math.inf), -MAX_MOMENT), MAX_MOMENT)


def typical_rate(budget: float, pages: int) -> float:
    """How often a page is taken to change before there is any evidence: about as often as the budget could visit it.

    That is the only time scale that is known then.

    >>> typical_rate(2.0, 1000)
    0.002
    """
    return max(number("budget", budget, most=MAX_TYPICAL), 1e-12) / max(number("pages", pages, most=1e15), 1)


class Estimator(Protocol):
    """Learns what the engine believes of each page, from crawls, signals and requests.

    Pages are the scheduler's slot numbers. Nothing here reads a clock.
    """

    def add(
        self,
        slot: int,
        *,
        now: float,
        importance: Importance | None = ...,
        popularity: float | None = ...,
        learned: bytes = ...,
        kin: tuple[str, ...] = ...,
    ) -> None:
        """Start to learn about a page, or go on from what `learned` of it before; `kin`: groups of pages like it.

        `importance`: what the operator says it is worth. `popularity`: how often it is asked for by reports of others,
        in times the average page, until requests of its own say more.
        """

    def requests_since(self, moment: float) -> None:
        """Requests are counted since this moment, also those of pages that were added later: logs reach back so far."""

    def told(self, slot: int, *, importance: Importance | None, popularity: float | None) -> None:
        """The operator says something else of the page from now on; see `add`."""

    def crawled(self, slot: int, *, elapsed: float, signals: float, changed: bool) -> None:
        """One checked interval: the copy was `elapsed` old, had heard `signals`, and had or had not changed."""

    def glance(self) -> Sequence[int]:
        """After a crawl: look at a few pages in turn, for the sake of what pages have in common; which they were."""

    def signalled(self, slot: int, count: float = ..., now: float | None = ...) -> None:
        """A hint arrived; one of a poor sender counts as less than one."""

    def requested(self, slot: int, count: float = ..., now: float | None = ...) -> None:
        """Somebody asked for the page."""

    def beliefs(self, slot: int, now: float) -> Beliefs:
        """What is believed of the page now."""

    def fresh_probability(self, slot: int, elapsed: float, signals: float) -> float:
        """How likely a copy that is `elapsed` old and has heard `signals` is to be current."""

    def learned(self, slot: int) -> bytes:
        """All that was learned of the page, for `add` after a restart; at most a few hundred bytes."""

    def remove(self, slot: int) -> None:
        """Forget the page."""


@runtime_checkable
class Weighs(Protocol):
    """An estimator that can be told what stale copies cost, in the place of requests."""

    def weigh(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """What a stale copy costs a second, by slot; whose weights have moved much."""
        ...


@runtime_checkable
class LearnsKinds(Protocol):
    """An estimator that kinds of pages mean something to; a page's kinds are as `kinds.pack` gives them."""

    def told_kind(self, slot: int, kind: int) -> None:
        """A page is of these kinds."""

    def kind_of(self, slot: int) -> int:
        """The kinds of a page; 0: unknown."""
        ...

    def describe_kind(
        self, kind: int, *, rate: float | None = ..., spread: float | None = ..., value: float = ...
    ) -> None:
        """What an operator says of a kind."""

    def of_kinds(self) -> "KindsLearned":
        """What is known of kinds, for people."""
        ...

    def scores_of_kinds(self) -> list[float]:
        """What kinds have proved to be worth, to be kept."""
        ...

    def recall_kinds(self, scores: Sequence[float]) -> None:
        """What was kept."""


@runtime_checkable
class ForetellsRequests(Protocol):
    """An estimator that can be told how much a new page will be asked for, and says what came of it."""

    def told_popularity(self, slot: int, popularity: float) -> None:
        """A page is taken to be asked for so many times as often as pages alike, until requests say more."""

    def foretold(self, slot: int) -> float | None:
        """What it was told so of a page that nobody has asked for yet; None: nothing."""
        ...

    def requests_beside(self, slot: int, now: float) -> tuple[float, float]:
        """The requests that a page has had, and those that a page alike would have had; both fade."""
        ...

    def average_request_rate(self, slot: int, now: float) -> float:
        """How often pages like this one are asked for; 0 while nobody asked for anything."""
        ...


@runtime_checkable
class HearsDates(Protocol):
    """An estimator that takes dates of last changes for evidence."""

    def told_age(self, slot: int, age: float, trust: float) -> None:
        """A new page's content is so old."""

    def told_last_change(self, slot: int, since: float, elapsed: float, trust: float) -> None:
        """A page that was found changed after `elapsed` last changed so long ago."""

    def worth_of_first_said(self) -> list[float]:
        """What has proved to be worth to hear at first crawls, to be kept."""
        ...

    def recall_first_said(self, scores: Sequence[float]) -> None:
        """What was kept."""

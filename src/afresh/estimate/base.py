"""What the engine asks of an estimator."""

from typing import Protocol

from afresh.checks import number
from afresh.types import Beliefs, Importance

# How what a `Learner` has learned of a page begins; the first byte counts what its sums have meant.
BY_LEARNER = b"\x03afresh"


def typical_rate(budget: float, pages: int) -> float:
    """How often a page is taken to change before there is any evidence: about as often as the budget could visit it.

    That is the only time scale that is known then.

    >>> typical_rate(2.0, 1000)
    0.002
    """
    return max(number("budget", budget), 1e-12) / max(number("pages", pages), 1)


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

    def signalled(self, slot: int, count: float = ..., now: float | None = ...) -> None:
        """A hint arrived; one of a poor source counts as less than one."""

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

"""What the engine asks of an estimator."""

from typing import Protocol

from afresh.types import Beliefs


class Estimator(Protocol):
    """Learns what the engine believes of each page, from crawls, signals and requests.

    Pages are the scheduler's slot numbers. Nothing here reads a clock.
    """

    def add(self, slot: int, *, host: int, now: float, importance: float | None = ...) -> Beliefs:
        """Start to learn about a page; what is believed of it before any crawl."""

    def crawled(self, slot: int, *, elapsed: float, signals: int, changed: bool) -> None:
        """One checked interval: the copy was `elapsed` old, had heard `signals`, and had or had not changed."""

    def signalled(self, slot: int, now: float) -> None:
        """A hint arrived."""

    def requested(self, slot: int, now: float, count: float = ...) -> None:
        """Somebody asked for the page."""

    def beliefs(self, slot: int, now: float) -> Beliefs:
        """What is believed of the page now."""

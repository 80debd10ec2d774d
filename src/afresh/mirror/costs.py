"""What it has cost that a copy was not current: a number that a crawl finds out, and rates are learned from.

A cost may be anything that does not fall while the copy gets older, is 0 right after a refresh, and is bounded. One
that needs something to ask (an index, a database) is an object with `__call__`: whatever is not in `COSTS` is called in
a thread of its own, with the kept copy.
"""

from collections.abc import Callable
from dataclasses import dataclass

from afresh.types import Copy, Fetched

MOST_COST = 1e15  # that can be learned from


@dataclass(frozen=True, slots=True)
class Seen:
    """What a crawl found of a copy, just before that is replaced."""

    url: str
    changed: bool
    significance: float  # how much it has changed: 0 not at all … 1 nothing in common
    importance: float  # requests a second
    elapsed: float  # seconds since the copy was current
    stale_for: float | None  # seconds since the page changed, where its server dates that
    fetched: Fetched
    copy: Copy | None = None  # the kept copy, for functions of your own
    query_loss: float | None = None  # how far answers to frequent queries were off by it, where queries are followed


Cost = Callable[[Seen], float | None]


def staleness(seen: Seen) -> float:
    """1 if the copy was stale."""
    return float(seen.changed)


def significance(seen: Seen) -> float:
    """How much the page had changed, times how much it is wanted."""
    return seen.significance * seen.importance if seen.changed else 0.0


def age(seen: Seen) -> float:
    """Seconds for which the copy was stale; where the server dates nothing, half of the time since it was current.

    A server dates its latest change, so an earlier one that was missed too makes this too small.
    """
    if not seen.changed:
        return 0.0
    return 0.5 * seen.elapsed if seen.stale_for is None else seen.stale_for


def query_quality(seen: Seen) -> float | None:
    """How far answers to frequent queries were from those on fresh copies; None where no queries are known yet."""
    return seen.query_loss


COSTS: dict[str, Cost] = {
    "significance": significance,
    "staleness": staleness,
    "age": age,
    "query-quality": query_quality,
}

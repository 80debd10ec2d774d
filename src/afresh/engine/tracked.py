"""What the engine itself remembers of a page."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from afresh.types import Order, Page

Heard = Mapping[tuple[int, int], int]
NOTHING: Heard = {}  # shared by all pages about which nothing was heard
NO_LIMITS = (0.0, math.inf)


@dataclass(slots=True)
class Tracked:
    """What the engine itself remembers of a page."""

    page: Page
    current: float | None  # the copy is as of this moment; None: there is none
    signals: int = 0  # heard since then
    heard: Heard = field(default_factory=lambda: NOTHING)  # the same by sender and how early after a change
    ordered: Heard = field(default_factory=lambda: NOTHING)  # heard when the order was given
    outdated: bool = False  # whether the copy is known to differ from the page: there was no room for the new one
    found: bool = False  # whether the last crawl found a change, for which signals may yet come
    failures: int = 0  # in a row, up to now: all that it is gone, or all others
    gone: bool = False  # whether the last one said that the page is gone
    order: Order | None = None  # the one that is out
    told: tuple[float, ...] | None = None  # what the scheduler was last told to believe
    assumed: float = math.inf  # the scheduler takes the copy to be as of this moment
    limits: tuple[float, float] = NO_LIMITS  # seconds between two crawls, at least and at most
    branches: tuple[int, ...] = ()  # of its site, where pages may change together


def heard_since(heard: Heard, ordered: Heard) -> Heard:
    """What was heard after the order was given."""
    left = {kind: count - ordered.get(kind, 0) for kind, count in heard.items() if count > ordered.get(kind, 0)}
    return left or NOTHING

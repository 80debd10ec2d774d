"""What the daemon tells its listeners: named events, which cannot change the flow."""

from collections.abc import Callable
from dataclasses import dataclass

from afresh.sources import Listed as Listed
from afresh.types import Crawl, Order


@dataclass(frozen=True, slots=True)
class Started:
    """The daemon is up, with this many pages."""

    pages: int


@dataclass(frozen=True, slots=True)
class Ordered:
    """A fetch begins."""

    order: Order


@dataclass(frozen=True, slots=True)
class Finished:
    """A fetch came back and was understood; it is not yet durable."""

    crawl: Crawl
    ordered: bool = True  # False: another process fetched it, and handed it over


@dataclass(frozen=True, slots=True)
class Released:
    """An order was given back unfinished: its lane's turn went to something else, or the daemon stops."""

    order: Order


@dataclass(frozen=True, slots=True)
class Stored:
    """These crawls are durable now."""

    crawls: tuple[Crawl, ...]


@dataclass(frozen=True, slots=True)
class Filled:
    """What the store takes in has changed, because of `store.max_bytes`; see `afresh.store.Space`."""

    used: int
    bound: int
    takes: str


@dataclass(frozen=True, slots=True)
class CostUnknown:
    """What an outdated copy has cost was not found out: told once a minute at most for each kind of reason."""

    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The daemon is down; this many fetches were given back unfinished."""

    released: int


Event = Started | Ordered | Finished | Released | Stored | Listed | Filled | CostUnknown | Stopped
Listener = Callable[[Event], None]

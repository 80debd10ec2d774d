"""What the runners and the faces ask of a store."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from afresh.types import Beliefs, Copy, Crawl, Page, Validators


@dataclass(frozen=True, slots=True)
class PageState:
    """All that a restart needs to know of one page."""

    page: Page
    beliefs: Beliefs | None = None
    validators: Validators = field(default_factory=Validators)
    fetched: float | None = None  # when the kept body was downloaded; None: no copy
    checked: float | None = None  # when the copy was last known to be current
    signals: int = 0  # heard since then
    crawls: int = 0
    changes: int = 0
    failures: int = 0  # in a row, up to now
    learned: bytes = b""  # the estimator's own memory of the page, opaque to the store


@dataclass(frozen=True, slots=True)
class HostState:
    """What must be remembered of a host to stay polite after a restart."""

    host: str
    ready: float = 0.0  # not before this moment
    failures: int = 0  # in a row, up to now


@dataclass(frozen=True, slots=True)
class Record:
    """Everything one finished crawl leaves behind; stored whole or not at all."""

    crawl: Crawl
    state: PageState
    copy: Copy | None = None  # None: the kept copy stays
    host: HostState | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over the whole store."""

    pages: int = 0
    copies: int = 0
    crawls: int = 0
    changes: int = 0
    body_bytes: int = 0  # before compression
    stored_bytes: int = 0  # after


class Store(Protocol):
    """Pages, current copies, crawl history, beliefs, validators and host state.

    One process runs on a store at a time (`claim`); others read, and may add pages, while it does. `write` returns
    when its records are durable: what it acknowledged survives a kill at any moment, and a copy is whole or absent.
    """

    def claim(self) -> None:
        """Become the one process that runs on this store; StoreLocked if there is another."""

    def add(self, pages: Iterable[Page]) -> int:
        """Take pages in that are not there yet; how many were new."""

    def states(self, *, after: int = ...) -> Iterator[tuple[int, PageState]]:
        """Every page with its number, in the order in which they were added, beginning behind number `after`."""

    def state(self, url: str) -> PageState | None:
        """One page, or None if it is not kept."""

    def copy(self, url: str) -> Copy | None:
        """The current copy, or None."""

    def history(self, url: str, limit: int = ...) -> list[Crawl]:
        """The latest crawls of a page, newest first."""

    def write(self, records: Iterable[Record]) -> None:
        """Make a batch of finished crawls durable, all of them or none."""

    def hosts(self) -> Iterator[HostState]:
        """Every host that has a state."""

    def get(self, name: str) -> str | None:
        """A named value of the runner's (its price, its start), or None."""

    def put(self, values: dict[str, str]) -> None:
        """Set named values, durably."""

    def totals(self) -> Totals:
        """Counts over the whole store."""

    def close(self) -> None:
        """Let go of everything; the store may be opened again."""

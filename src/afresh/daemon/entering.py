"""Pages that were found and wait outside of the runner's memory come in when there is room and they are worth it.

A first crawl and a refresh are paid from one budget, so both are measured by one price: a page comes in when its first
crawl is expected to gain what a refresh must gain now, or when there is nothing else to do.
"""

import asyncio
from collections.abc import Callable

from afresh.daemon.keeping import Keeper
from afresh.engine import AnyEngine
from afresh.sources import Sources
from afresh.sources.pieces import PIECE
from afresh.store.messages import packed
from afresh.types import Order, Outcome, Page, Verdict

MAX_UNTRIED = 50_000  # pages in memory that were never crawled, if nothing else is said
MAX_LEAVING = 512  # at a time
HOST_SHARE = 0.25  # of the untried pages, that may be of one host while others wait


class Entering:
    """Keeps the number of pages in memory within bounds.

    Invariant: beyond what is kept at its start, and what operators add, never more than `max_kept` pages are in.
    """

    def __init__(
        self,
        *,
        engine: AnyEngine,
        keeper: Keeper,
        sources: Sources,
        clock: Callable[[], float],
        wake: Callable[[], None],
        max_kept: int | None = None,
        max_untried: int = MAX_UNTRIED,
    ) -> None:
        self.engine, self.keeper, self.clock, self.wake = engine, keeper, clock, wake
        self.backlog = sources.backlog
        self.max_kept, self.max_untried = max_kept, max_untried
        self._leaving: list[str] = []  # pages without a copy, which make room for others
        if self.backlog is not None:
            self.backlog.admits = lambda page: page.url not in engine and sources.wanted(page)

    def look(self) -> None:
        """See how much room there is."""
        if (backlog := self.backlog) is None:
            return
        space = max(self.max_untried - self.keeper.untried, 0) if self.keeper.room.for_new_pages else 0
        if self.max_kept is not None:
            space = min(space, max(self.max_kept - len(self.engine), 0))
        backlog.space = space
        backlog.share = int(self.max_untried * HOST_SHARE)

    async def enter(self) -> int:
        """Let some in; how many."""
        self.look()
        backlog = self.backlog
        if backlog is None or not len(backlog):
            return 0
        part = self.engine.first
        spare = getattr(part.scheduler, "spare", False) or not self.keeper.untried
        pages = backlog.enter(self.clock(), 0.0 if spare else part.scheduler.price)
        for first in range(0, len(pages), PIECE):
            self.keeper.welcome(pages[first : first + PIECE])
            await asyncio.sleep(0)  # others have a turn
        return len(pages)

    def tried(self, order: Order, page: Page, verdict: Verdict) -> None:
        """A page was crawled for the first time."""
        if self.backlog is None:
            return
        self.backlog.tried(page, order.value, copied=verdict.outcome.refreshed)
        may_leave = page.depth > 0 and page.importance is None
        if may_leave and verdict.outcome in (Outcome.GONE, Outcome.MOVED, Outcome.REFUSED) and self._crowded:
            self._leaving.append(page.url)

    @property
    def _crowded(self) -> bool:
        """Whether others wait for the place of a page that has no copy."""
        full = self.max_kept is not None and len(self.engine) >= self.max_kept
        return full and self.backlog is not None and len(self.backlog) > 0

    async def leave(self) -> None:
        """Pages that are nowhere make room, as if an operator had removed them."""
        if self._leaving:
            some, self._leaving = self._leaving[:MAX_LEAVING], self._leaving[MAX_LEAVING:]
            await asyncio.to_thread(self.keeper.store.post, packed("remove", some, self.clock()))
            self.wake()

    @property
    def handed(self) -> int:
        """Pages that are in and perhaps not durable."""
        return 0 if self.backlog is None else self.backlog.handed

    def settle(self, count: int) -> None:
        """So many of them are durable."""
        if self.backlog is not None:
            self.backlog.settle(count)

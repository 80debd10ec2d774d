"""Pages that were found and wait outside of the runner's memory come in when there is room and they are worth it.

A first crawl and a refresh are paid from one budget, so both are measured by one price: a page comes in when its first
crawl is expected to gain what a refresh must gain now, or when there is nothing else to do.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from itertools import islice

from afresh.daemon.keeping import Keeper
from afresh.engine import AnyEngine
from afresh.frontier.faults import FAILURES_IN_TROUBLE
from afresh.sources import Sources
from afresh.sources.pieces import PIECE
from afresh.store import PageState
from afresh.store.messages import packed
from afresh.types import STORE_FULL, Order, Outcome, Page, Verdict

MAX_UNTRIED = 50_000  # pages in memory that were never crawled, if nothing else is said
EXCHANGE_SECONDS = 1.0
SAMPLE = 1_000  # pages that are looked at then
MARGIN = 1.2  # by which what waits must be worth more: an exchange costs a crawl
MIN_UNTRIED = 100
IDLE_TIMES = 4
MAX_LEAVING = 512  # at a time
NOWHERE = (Outcome.GONE, Outcome.MOVED, Outcome.REFUSED)  # what came of pages that need not be tried again soon
HOST_SHARE = 0.25  # of the untried pages that may be in, for one host at most


class Entering:
    """Keeps the number of pages in memory within bounds.

    Invariant: beyond what is kept at its start, and what operators add, never more than `max_kept` pages are in. Where
    more are kept at its start, as the bound was lowered, the least valuable leave until it holds.
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
        if max_kept is not None:  # few at a time, so that their value decides who comes in
            self.max_untried = min(max_untried, max(max_kept // 20, MIN_UNTRIED))
        self._exchange_at, self._sampled = 0.0, 0
        self._leaving: list[str] = []  # pages without a copy, which make room for others
        if self.backlog is not None:
            self.backlog.admits = lambda page: page.url not in engine and sources.wanted(page)
            keeper.untried_of = self.backlog.count_untried

    def look(self) -> None:
        """See how much room there is."""
        if (backlog := self.backlog) is None:
            return
        # Untried pages of hosts that rest must not keep others out while there is nothing else to do.
        untried = min(self.max_untried * (IDLE_TIMES if self._spare else 1), MAX_UNTRIED)
        space = max(untried - self.keeper.untried, 0) if self.keeper.room.for_new_pages else 0
        if self.max_kept is not None:
            space = min(space, max(self.max_kept - self._held, 0))
        backlog.space, backlog.most_held = space, self.max_kept
        backlog.full_at = self.max_kept if self.max_kept is not None and self._held >= self.max_kept else 0
        backlog.share = int(min(self.max_untried, self.max_kept or self.max_untried) * HOST_SHARE)

    async def enter(self) -> int:
        """Let some in; how many."""
        self.look()
        backlog = self.backlog
        if backlog is None or not len(backlog):
            return 0
        if not self._have_left():
            # A page that came in before its removal is heard of would be taken for one that is kept already.
            return 0
        pages = backlog.enter(self.clock(), 0.0 if self._spare else self.engine.first.scheduler.price)
        for first in range(0, len(pages), PIECE):
            self.keeper.welcome(pages[first : first + PIECE])
            await asyncio.sleep(0)  # others have a turn
        return len(pages)

    def _have_left(self) -> bool:
        """Whether all pages that wait again are out."""
        backlog = self.backlog
        if backlog is not None and backlog.leaving:
            backlog.leaving = {url for url in backlog.leaving if url in self.engine}
        return backlog is None or not backlog.leaving

    @property
    def _spare(self) -> bool:
        """Whether there is nothing else to do."""
        return bool(getattr(self.engine.first.scheduler, "spare", False)) or not self.keeper.untried

    def tried(self, order: Order, page: Page, verdict: Verdict) -> None:
        """A page was crawled for the first time."""
        if self.backlog is None:
            return
        self.backlog.tried(page, order.value, copied=verdict.outcome.refreshed)
        may_leave = page.depth > 0 and page.importance is None
        if may_leave and verdict.outcome in NOWHERE and self._crowded:
            self._leaving.append(page.url)

    @property
    def _crowded(self) -> bool:
        """Whether others wait for the place of a page that has no copy."""
        full = self.max_kept is not None and self._held >= self.max_kept
        return full and self.backlog is not None and len(self.backlog) > 0

    async def leave(self) -> None:
        """Pages that are nowhere, or that others are worth more than, make room, as if an operator had removed them."""
        some, self._leaving = self._leaving[:MAX_LEAVING], self._leaving[MAX_LEAVING:]
        if not some and (self._crowded or self._excess) and self.clock() >= self._exchange_at and self._have_left():
            sample = await asyncio.to_thread(self._sample)
            some = await self._without_copy(sample)
            if not some:
                some = self._beyond(sample) if self._excess else self._exchanged(sample)
            self._exchange_at = self.clock() + EXCHANGE_SECONDS
        if some:
            await asyncio.to_thread(self.keeper.store.post, packed("remove", some, self.clock()))
            self.wake()

    @property
    def _held(self) -> int:
        """Pages that are in; not the files and queries of the same store, which no crawl has found."""
        return len(self.engine.first)

    @property
    def _excess(self) -> int:
        """How many pages are in beyond the bound: it was lowered, or operators have added some."""
        return 0 if self.max_kept is None else max(self._held - self.max_kept, 0)

    def _beyond(self, sample: Sequence[PageState]) -> list[str]:
        """Of some pages, the same part of them that leaves of all: those that are worth least wait again."""
        backlog = self.backlog
        if backlog is None:
            return []
        worths = [(self._worth(state), nth) for nth, state in enumerate(sample) if self._may_leave(state)]
        worths.sort()
        count = min(math.ceil(len(sample) * self._excess / self._held), self._excess, MAX_LEAVING)
        return self._put_back([sample[nth].page for _, nth in worths[:count]])

    async def _without_copy(self, sample: Sequence[PageState]) -> list[str]:
        """Pages that hold a place for nothing: those that are nowhere leave, those that fail again and again wait."""
        backlog = self.backlog
        empty = [state.page.url for state in sample if self._has_nothing(state)]
        if backlog is None or not empty:
            return []
        last = await asyncio.to_thread(lambda: [next(iter(self.keeper.store.history(url, 1)), None) for url in empty])
        nowhere: list[str] = []
        failing: list[PageState] = []
        for url, crawl in list(zip(empty, last, strict=True))[: min(len(backlog) + self._excess, MAX_LEAVING)]:
            # The runner may know more of it than the store did.
            if crawl is None or url not in self.engine or not self._has_nothing(state := self.keeper.state(url)):
                continue
            if crawl.outcome in NOWHERE:
                nowhere.append(url)
            elif crawl.outcome is Outcome.FAILED and crawl.reason != STORE_FULL:
                failing.append(state)
        backlog.leaving.update(nowhere)
        return nowhere + self._put_back([state.page for state in failing if state.failures >= FAILURES_IN_TROUBLE])

    def _exchanged(self, sample: Sequence[PageState]) -> list[str]:
        """Of some pages, those that are worth less than what waits: they wait again, behind others of their hosts."""
        backlog = self.backlog
        best = [] if backlog is None else backlog.best(self.max_untried - min(self.keeper.untried, self.max_untried))
        if not best:
            return []
        worths = [
            (worth, nth)
            for nth, state in enumerate(sample)
            if state.crawls and self._may_leave(state) and (worth := self._worth(state)) > 0.0
        ]
        worths.sort()
        return self._put_back(
            [sample[nth].page for (worth, nth), other in zip(worths, best, strict=False) if MARGIN * worth < other]
        )

    def _put_back(self, pages: Sequence[Page]) -> list[str]:
        """Pages that are in wait again; they have still to be removed."""
        if self.backlog is not None and pages:
            self.backlog.put_back(pages)
        return [page.url for page in pages]

    def _sample(self) -> list[PageState]:
        """Pages from some place on. In a thread."""
        sample = [state for _, state in islice(self.keeper.store.states(after=self._sampled), SAMPLE)]
        last = self.keeper.store.numbers([sample[-1].page.url])[0] if sample else 0
        self._sampled = last if len(sample) == SAMPLE else 0
        return sample

    def _may_leave(self, state: PageState) -> bool:
        page = state.page
        return page.depth > 0 and page.importance is None and page.url in self.engine.first

    def _has_nothing(self, state: PageState) -> bool:
        return state.crawls > 0 and state.fetched is None and self._may_leave(state)

    def _worth(self, state: PageState) -> float:
        """What a page is worth by the measure of those that wait."""
        backlog = self.backlog
        worth = 0.0 if backlog is None else backlog.value(state.page) * self._wanted(state.page.url)
        return worth if state.crawls else worth / MARGIN  # no crawl was spent on it yet

    def _wanted(self, url: str) -> float:
        """How much more a page is asked for than others: what is known of it beside what is expected."""
        part, now = self.engine.part_of(url), self.clock()
        average = part.average_request_rate(url, now)
        return part.beliefs(url, now).request_rate / average if average > 0.0 else 1.0

    @property
    def handed(self) -> int:
        """Pages that are in and perhaps not durable."""
        return 0 if self.backlog is None else self.backlog.handed

    def settle(self, count: int) -> None:
        """So many of them are durable."""
        if self.backlog is not None:
            self.backlog.settle(count)

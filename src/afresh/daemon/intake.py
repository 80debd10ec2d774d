"""What others hand to the runner: evidence and wishes out of the store's inbox, each taking effect once.

Evidence changes what the engine believes, and leaves the inbox in the transaction that keeps that. A wish is first made
durable, which takes it out of the inbox, and then told to the engine: after a kill the engine reads it from the store.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from afresh.checks import foreign_sender, moment, number, require_kinds, require_text
from afresh.daemon.keeping import Keeper
from afresh.engine import AnyEngine
from afresh.errors import ConfigError
from afresh.store import Entry, Store
from afresh.store.handed import result_in
from afresh.store.messages import EVIDENCE, HANDED, SEARCHED, Edit, edit_of, evidence, queries_in
from afresh.types import Fetched, Request, Signal

_log = logging.getLogger("afresh.inbox")

MAX_ENTRIES = 32  # taken in one go, before crawls are written again
PIECE = 200  # observations between two chances for others


def require_evidence(each: Signal | Request) -> None:
    """ConfigError if what a caller hands over makes no sense."""
    require_kinds((each, (Signal, Request), "evidence"))
    require_text(each.url, "evidence.url")
    if not each.url or not each.url.isprintable():
        raise ConfigError(f"evidence.url must be the key of a page, not {each.url!r:.80}.", hint="Give its address.")
    moment("evidence.time", each.time)
    if isinstance(each, Signal):
        foreign_sender(each.sender)
    else:
        number("evidence.count", each.count)


class Intake:
    """Takes entries out of the inbox.

    Invariants: entries take effect in their order; no effect is durable while its entry is still there, nor the other
    way round. It runs in the task that writes, so that no batch is written in between.
    """

    def __init__(
        self,
        *,
        store: Store,
        engine: AnyEngine,
        keeper: Keeper,
        clock: Callable[[], float],
        carried_out: Callable[[Edit], None] = lambda _: None,
        receive: Callable[[Fetched], Awaitable[bool]] | None = None,
        searched: Callable[[list[tuple[str, float, float]]], None] = lambda _: None,
        graded: Callable[[Sequence[Signal | Request]], list[Signal | Request]] = list,
    ) -> None:
        self.store = store
        self.engine = engine
        self.keeper = keeper
        self.clock = clock
        self.carried_out = carried_out  # hears of every wish that is durable
        self.receive = receive  # takes in what another process has got; whether it was any news
        self.searched = searched  # hears what was searched for, when, and how often
        self.graded = graded  # hears of all evidence, also of what is no news; and says what is wanted
        self._last = 0  # the number of the last entry that took effect

    async def take(self) -> bool:
        """Let what waits take effect; whether there may be more."""
        entries = await asyncio.to_thread(self.store.inbox, after=self._last, limit=MAX_ENTRIES)
        for entry in entries:
            try:
                await self._take(entry)
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                _log.warning("Entry %d of the inbox makes no sense and was dropped: %s.", entry.number, error)
                self.keeper.heard((), entry.number)
            self._last = entry.number
        return len(entries) == MAX_ENTRIES

    async def _take(self, entry: Entry) -> None:
        if entry.kind == SEARCHED:
            queries, senseless = await asyncio.to_thread(queries_in, entry)
            self._complain(entry, senseless)
            self.searched(queries)
            self.keeper.heard((), entry.number)
        elif entry.kind in EVIDENCE:
            await self._hear(entry)
        elif entry.kind in HANDED and self.receive is not None:
            await self._get(entry, self.receive)
        else:
            await self._carry_out(entry)

    async def _get(self, entry: Entry, receive: Callable[[Fetched], Awaitable[bool]]) -> None:
        """Another process has got something for who was waiting there: learned from, and kept, like a crawl of ours."""
        handed = await asyncio.to_thread(result_in, entry)
        url = handed.page.url
        if not handed.brings_content:
            self.engine.charge(url, handed.fetched.cost, self.clock())
            self.keeper.heard((), entry.number)
            return
        if not self.keeper.enter(url) and self.keeper.room.for_new_pages:
            await asyncio.to_thread(self.store.write, [], pages=[handed.page])
            await self.keeper.take_in()
        if self.keeper.enter(url):
            await receive(handed.fetched)
        else:
            self.engine.charge(url, handed.fetched.cost, self.clock())
        self.keeper.heard((), entry.number)

    async def _hear(self, entry: Entry) -> None:
        heard, senseless = await asyncio.to_thread(evidence, entry)
        self._complain(entry, senseless)
        touched: set[str] = set()
        for first in range(0, len(heard), PIECE):
            piece = self.graded(heard[first : first + PIECE])
            for part, places in self.engine.by_part([each.url for each in piece]):
                some = [piece[nth] for nth in places]
                slots = part.slots([each.url for each in some])
                self.keeper.enter_some(part, slots)
                news = part.news(some, slots)
                part.observe_many(some, self.clock(), news)
                touched.update(each.url for each, slot in zip(some, news.tolist(), strict=True) if slot >= 0)
            await asyncio.sleep(0)
        self.keeper.heard(touched, entry.number)

    @staticmethod
    def _complain(entry: Entry, senseless: int) -> None:
        if senseless:
            _log.warning("%d of the items in entry %d of the inbox make no sense.", senseless, entry.number)

    async def _carry_out(self, entry: Entry) -> None:
        while True:
            edit = await asyncio.to_thread(edit_of, entry, self.store)
            for url in edit.removed:
                self.keeper.remove(url)
            await asyncio.to_thread(edit.write, self.store, entry.number)
            self.keeper.said(edit.pages, edit.urgent)
            await self.keeper.take_in()
            self.carried_out(edit)
            if edit.whole:
                return

"""How much room the store has left, and what is still taken in: `store.max_bytes`, and what happens at it.

From 95 % on there are no new pages and no first copies, so that what is there can be kept fresh. At the bound no body
is written any more: a page that changed keeps the copy that it has, and its crawl says why. All else goes on: checks
that find a copy unchanged, failures, what is learned; in a page's history the oldest crawl makes room for the newest.
"""

import asyncio

from afresh.daemon.events import Filled
from afresh.store import Space, Store
from afresh.store.base import EVERYTHING, NO_NEW_BODIES, NO_NEW_PAGES

AGAIN_SHARE = 0.9  # of the bound: below it, pages that were put off come back even if the bound is the same
ORDER = [EVERYTHING, NO_NEW_PAGES, NO_NEW_BODIES]  # less and less


class Room:
    """Knows how large the store was when it was last written to, and counts what waits to be written."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.waiting = 0  # bytes of bodies that are queued to be written
        self._space = store.space()
        self._refused = EVERYTHING  # the least that was taken in since the last look
        self._told = EVERYTHING
        self._opened_at: int | None = None  # the bound when pages last came back

    @property
    def for_new_pages(self) -> bool:
        """Whether there is room for pages, and copies, that there were not before."""
        return self._takes() == EVERYTHING

    @property
    def for_bodies(self) -> bool:
        """Whether there is room for anything that was fetched."""
        return self._takes() != NO_NEW_BODIES

    def opened(self) -> bool:
        """Whether pages that were put off should come back: after a start, at another bound, or if much is free again.

        A store that is nearly full would let one of them in, and refuse the others at the cost of the budget.
        """
        if not self.for_bodies:
            return False
        before, self._opened_at = self._opened_at, self._space.bound
        return before != self._space.bound or self._space.used + self.waiting < AGAIN_SHARE * self._space.bound

    def _takes(self) -> str:
        """What is taken in once all is written that waits; were it not compressed, to be on the safe side."""
        if not self._space.bound:
            return EVERYTHING
        takes = Space(self._space.used + self.waiting, self._space.bound).takes
        self._refused = max(self._refused, takes, key=ORDER.index)
        return takes

    async def look(self) -> Filled | None:
        """Look again after something was written; what to tell if other things are taken in than before."""
        if not self._space.bound and not self.store.max_bytes:
            return None
        self._space = await asyncio.to_thread(self.store.space)
        takes, self._refused = max(self._refused, self._space.takes, key=ORDER.index), EVERYTHING
        if takes == self._told:
            return None
        self._told = takes
        return Filled(self._space.used, self._space.bound, takes)

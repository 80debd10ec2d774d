"""Bounds of what is kept of a lane: what came only because somebody asked leaves, if it is asked for least."""

import asyncio
from collections.abc import Callable

from afresh.engine import AnyEngine
from afresh.sources import Sources
from afresh.store import Store
from afresh.store.messages import packed

LOOK_EVERY = 10.0  # seconds
ADDED = 0  # the depth of what an operator added: it stays
LEAVE_SHARE = 0.1  # of the bound becomes free at a time


class Evicting:
    """Looks every few seconds whether a lane is beyond its bound. What leaves goes as if an operator had removed it."""

    def __init__(
        self,
        *,
        engine: AnyEngine,
        store: Store,
        sources: Sources,
        clock: Callable[[], float],
        wake: Callable[[], None],
    ) -> None:
        self.engine, self.store, self.sources = engine, store, sources
        self.clock, self.wake = clock, wake

    async def keep(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            await self.look()

    async def look(self) -> int:
        """Let leave what must; how many things that are."""
        leaves: list[str] = []
        for lane, bound in self.sources.bounds.items():
            kept = await asyncio.to_thread(self.store.sizes_of_host, lane)
            leaves += self._least(kept, bound)
        if leaves:
            await asyncio.to_thread(self.store.post, packed("remove", leaves, self.clock()))
            self.wake()
        return len(leaves)

    def _least(self, kept: list[tuple[str, int, int, float]], bound: int) -> list[str]:
        """Those of a lane that leave: the least asked for, for the room that they take."""
        held = sum(size for _, _, size, _ in kept)
        if held <= bound:
            return []
        now, leaves = self.clock(), []
        may_leave = [
            (self._asked(url, rate, now) / max(size, 1), size, url) for url, depth, size, rate in kept if depth > ADDED
        ]
        for _, size, url in sorted(may_leave):
            if held <= (1.0 - LEAVE_SHARE) * bound:
                break
            leaves.append(url)
            held -= size
        return leaves

    def _asked(self, url: str, before: float, now: float) -> float:
        return self.engine.beliefs(url, now).request_rate if url in self.engine else before

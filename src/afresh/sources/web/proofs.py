"""Small files by which hosts prove something: each in a turn of its host, soon, also where pages take every turn."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from afresh.frontier import host_of
from afresh.sources.base import Later
from afresh.sources.web.asking import Asker
from afresh.types import Fetched, Validators

LOOK_SECONDS = 1.0  # between two looks whether the host is idle, if no page of it has a turn
MAX_WANTED = 100  # of one host at once


@dataclass(slots=True, eq=False)
class _Wanted:
    url: str
    taken: bool = False
    done: asyncio.Future[Fetched | None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Proofs:
    """Gets them: of two turns that pages of a host have in a row at most one is taken."""

    def __init__(self, asker: Asker) -> None:
        self.asker = asker
        self._wanted: dict[str, deque[_Wanted]] = {}
        self._took: set[str] = set()  # hosts whose last turn was taken

    async def get(self, url: str) -> Fetched | None:
        """The file, redirects not followed, as soon as its host may be asked; None: too many wait there."""
        host = host_of(url)
        while True:
            got = await self.asker.visit(url, Validators(), follow=False)
            if not isinstance(got, Later):
                return got
            if len(self._wanted.get(host, ())) >= MAX_WANTED:
                return None
            if (turned := await self._in_turn(host, _Wanted(url))) is not None:
                return turned

    async def turn(self, page: str) -> float | None:
        """Use the turn of a page's host for a file that is wanted; the host's rest after that, None if none is."""
        host = host_of(page)
        wanted = self._wanted.get(host)
        if not wanted or host in self._took:
            self._took.discard(host)
            return None
        self._took.add(host)
        mine, got, rest = wanted.popleft(), None, 0.0
        mine.taken = True
        try:
            got, rest = await self.asker.instead(mine.url)
        finally:
            if not mine.done.done():
                mine.done.set_result(got)
        return rest

    async def _in_turn(self, host: str, mine: _Wanted) -> Fetched | None:
        waiting = self._wanted.setdefault(host, deque())
        waiting.append(mine)
        try:
            await asyncio.wait({mine.done}, timeout=LOOK_SECONDS)
            return await mine.done if mine.taken else None
        finally:
            if not mine.taken:
                waiting.remove(mine)
            if not waiting and self._wanted.get(host) is waiting:
                del self._wanted[host]

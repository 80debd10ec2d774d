"""An answer while it arrives: many may read it from its beginning, each at its own pace.

What is kept stays whole in memory, within the bound of one copy. What is not is held only as far as the slowest reader
has not come, and the origin waits meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

from afresh.serve.proxy.entry import Entry
from afresh.serve.proxy.fields import Lines, Named
from afresh.serve.proxy.request import Refusal
from afresh.serve.proxy.vary import Selector

WINDOW = 1 << 18  # bytes that the origin may be ahead of the slowest reader
STALLED = 10.0  # seconds that the slowest reader may hold up a connection to an origin for which others wait


class Broken(Exception):
    """The rest of an answer will not come."""


class Filling:
    """One fetch and what came of it. `head` tells when that is known:

    an `entry` that may be handed out, a `failure`, or an answer that is to be read by `pieces`.
    """

    def __init__(self, url: str, *, joinable: bool, wanted: bool = True) -> None:
        loop = asyncio.get_running_loop()
        self.url = url
        self.joinable = joinable  # whether others may wait for it
        self.wanted = wanted  # whether a reader waits for it, or did: what is fetched ahead gives way until then
        self._known: asyncio.Future[None] = loop.create_future()
        self._changed: asyncio.Future[None] = loop.create_future()
        self._end: asyncio.Future[None] = loop.create_future()
        self._room: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None
        # What came of it.
        self.entry: Entry | None = None
        self.failure: Refusal | None = None
        self.note = ""
        self.status = 0
        self.lines: Lines = []
        self.fields: Named = {}
        self.length: int | None = None
        self.asked = self.answered = 0.0
        self.shared = False  # whether those who joined may read it
        self.names: Selector = ()
        self.selector: Selector = ()
        # The body.
        self.keep = False
        self.stored = False
        self.over = False
        self.broken = False
        self.size = 0
        self.begun = 0  # bytes of it that an earlier fetch had brought
        self._pieces: list[bytes] = []
        self._first = 0  # number of the first piece that is held
        self._held = 0
        self._places: dict[object, int] = {}
        self._joined = False  # whether anybody ever read it
        self._expected = 0  # how many wait for the head: they may read the body, from its beginning

    async def head(self) -> None:
        """Wait until it is known what came of it. Whoever wants the body joins before anything else."""
        self._expected += 1
        try:
            await asyncio.shield(self._known)
        finally:
            self._expected -= 1
            if self._room is not None:
                asyncio.get_running_loop().call_soon(self._trim)  # maybe nobody joins

    def tell(self) -> None:
        """It is known now."""
        if not self._known.done():
            self._known.set_result(None)

    @property
    def known(self) -> bool:
        """Whether it is."""
        return self._known.done()

    async def rather_whole(self, seconds: float) -> None:
        """Wait a moment for the end, so that more can be said of it."""
        if not self.over:
            await asyncio.wait([self._end], timeout=seconds)

    @property
    def readers(self) -> int:
        """How many read it."""
        return len(self._places)

    async def feed(self, piece: bytes, others_wait: Callable[[], bool] = lambda: False) -> None:
        """Some more has come; waits until there is room for the next. Broken, if readers stall while `others_wait`."""
        self._pieces.append(piece)
        self._held += len(piece)
        self.size += len(piece)
        self._wake()
        while not self.keep and self._held > WINDOW:
            if not self._places and not self._expected:
                raise Broken  # nobody reads it
            self._room = asyncio.get_running_loop().create_future()
            while not self._room.done():
                await asyncio.wait([self._room], timeout=STALLED)
                if not self._room.done() and others_wait():
                    raise Broken

    def finish(self, *, broken: bool = False) -> None:
        """All has come, or no more will."""
        self.over, self.broken = True, broken
        if not self._end.done():
            self._end.set_result(None)
        self._wake()

    def body(self) -> bytes:
        """All of it, where it is kept."""
        return b"".join(self._pieces)

    def let_go(self) -> None:
        """It is too large to be kept: from now on only what somebody has not read yet."""
        self.keep = False
        self.joinable = False
        self._trim()

    def join(self) -> object:
        """Read from the beginning; `leave` must follow. What this returns is for `pieces`."""
        reader = object()
        self._joined = True
        self._places[reader] = 0
        return reader

    def leave(self, reader: object) -> None:
        """One reader has done."""
        self._places.pop(reader, None)
        self._trim()
        if not self.keep and not self._places and self.task is not None:
            self.task.cancel()  # it was for its readers alone

    async def pieces(self, reader: object) -> AsyncIterator[bytes]:
        """The body, as it comes; Broken if it does not come to its end."""
        place = 0
        while True:
            while place < self._first + len(self._pieces):
                piece = self._pieces[place - self._first]
                place += 1
                yield piece
                self._places[reader] = place
                if not self.keep:
                    self._trim()
            if self.over:
                if self.broken:
                    raise Broken
                return
            await asyncio.shield(self._changed)

    def _trim(self) -> None:
        """Forget what all have read."""
        if self.keep or self._expected:
            return
        least = min(self._places.values(), default=self._first + len(self._pieces))
        gone = max(least - self._first, 0)
        if gone and self._joined:
            self._held -= sum(map(len, self._pieces[:gone]))
            del self._pieces[:gone]
            self._first += gone
        if self._room is not None and not self._room.done() and (self._held <= WINDOW or not self._places):
            self._room.set_result(None)

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.get_running_loop().create_future()
        changed.set_result(None)

"""Asking origins on behalf of readers: over connections that are kept, a limited number to each.

It is the crawler's own client underneath, with its guard; a reader waits, so there is no host's turn to wait for.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from afresh.fetch.answer import Answer, Unanswered
from afresh.fetch.connect import Dialer
from afresh.fetch.guard import Guard
from afresh.fetch.http1 import Http1
from afresh.fetch.resolve import Lookup, Names, SystemResolver
from afresh.fetch.target import Target

LARGEST_ANSWER = 1 << 40  # bytes; what is kept is bounded elsewhere
KEPT_IDLE = 8  # connections to an origin that wait for the next question
IDLE_SECONDS = 15.0
MOST_ORIGINS = 4096  # that are remembered
SAFE_TO_REPEAT = frozenset({"GET", "HEAD", "OPTIONS"})


class Crowded(Exception):
    """Too many wait for a connection to this origin already."""


class Exchange:
    """One question that is under way: its answer, and `release` when that was read or is not wanted any more."""

    __slots__ = ("_origin", "_sending", "answer", "connection")

    def __init__(
        self, origin: "_Origin", connection: Http1, answer: Answer, sending: "asyncio.Task[None] | None"
    ) -> None:
        self.connection = connection
        self.answer = answer
        self._origin = origin
        self._sending = sending

    def others_wait(self) -> bool:
        """Whether somebody waits for a connection to this origin."""
        return self._origin.wanted

    def release(self) -> None:
        """Let go of the connection; it is used again if nothing of this is left in it."""
        if self._sending is not None and not self._sending.done():
            self._sending.cancel()
            self.connection.close()
        self._origin.put_back(self.connection)


class _Origin:
    """Connections to one origin."""

    def __init__(self, most: int, most_waiting: int) -> None:
        self._free = most
        self._most_waiting = most_waiting
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._idle: list[Http1] = []
        self.open: set[Http1] = set()

    @property
    def quiet(self) -> bool:
        return not self.open and not self._waiting

    @property
    def wanted(self) -> bool:
        return any(not turn.done() for turn in self._waiting)

    async def place(self) -> None:
        """Wait until one more connection may be used."""
        if self._free:
            self._free -= 1
            return
        if len(self._waiting) >= self._most_waiting:
            raise Crowded
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """One less is used."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def idle(self) -> Http1 | None:
        """A connection that stands already, the one used last."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed and now - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.close()
        return None

    def put_back(self, connection: Http1) -> None:
        """A connection has done its work."""
        self.open.discard(connection)
        connection.drop()
        if not connection.closed:
            if len(self._idle) < KEPT_IDLE:
                connection.idle_since = asyncio.get_running_loop().time()
                self._idle.append(connection)
            else:
                connection.close()
        self.leave()

    def close(self) -> None:
        """Let go of all connections."""
        for connection in [*self.open, *self._idle]:
            connection.close()
        self._idle.clear()


class Origins:
    """All origins. One that the operator named may be at any address, with exactly that host and port."""

    def __init__(
        self, guard: Guard, *, connections: int = 32, waiting: int = 1024, seconds: float = 15.0, lookup: float = 10.0
    ) -> None:
        self._connections = connections
        self._waiting = waiting
        self._seconds = seconds
        self._lookup = lookup
        self._public = self._dialer(guard)
        self._named: dict[tuple[str, int], Dialer] = {}
        self._origins: dict[tuple[str, int, bool, bool], _Origin] = {}

    def _dialer(self, guard: Guard) -> Dialer:
        names = Names(Lookup(SystemResolver(), guard, seconds=self._lookup))
        return Dialer(names, guard, {}, seconds=self._seconds, most=LARGEST_ANSWER, tls=None)

    def dialer(self, where: Target, *, named: bool) -> Dialer:
        """What makes connections to a place."""
        if not named:
            return self._public
        key = where.host, where.port
        if key not in self._named:
            self._named[key] = self._dialer(Guard(allow_private=True, ports=[where.port]))
        return self._named[key]

    async def ask(
        self,
        where: Target,
        method: str,
        head: bytes,
        *,
        named: bool,
        body: AsyncIterator[bytes] | None = None,
        interim: Callable[[bytes], None] | None = None,
    ) -> Exchange:
        """Ask, and wait for the head of the answer; what the fetcher raises, if there is none."""
        origin = self._origin(where, named)
        await origin.place()
        kept = origin.idle() if body is None and method in SAFE_TO_REPEAT else None
        try:
            if kept is not None:
                # It may have been closed just now, which says nothing about the page.
                with suppress(Unanswered):
                    return await self._send(origin, kept, method, head, None, interim)
            dialer = self.dialer(where, named=named)
            connection = await dialer.dial(where, verified=True)
            return await self._send(origin, connection, method, head, body, interim)
        except BaseException:
            origin.leave()
            raise

    async def _send(
        self,
        origin: _Origin,
        connection: Http1,
        method: str,
        head: bytes,
        body: AsyncIterator[bytes] | None,
        interim: Callable[[bytes], None] | None,
    ) -> Exchange:
        origin.open.add(connection)
        sending = None
        try:
            answer = connection.send(head, bodiless=method == "HEAD")
            answer.eager, answer.interim = True, interim
            if body is not None:
                sending = asyncio.create_task(_send_body(connection, body))
            await answer.head()
        except BaseException:
            if sending is not None:
                sending.cancel()
            origin.open.discard(connection)
            connection.drop()
            connection.close()
            raise
        return Exchange(origin, connection, answer, sending)

    def _origin(self, where: Target, named: bool) -> _Origin:
        key = where.host, where.port, where.secure, named
        found = self._origins.get(key)
        if found is None:
            if len(self._origins) >= MOST_ORIGINS:
                for other in [other for other, origin in self._origins.items() if origin.quiet]:
                    self._origins.pop(other).close()
            found = self._origins[key] = _Origin(self._connections, self._waiting)
        return found

    async def close(self) -> None:
        """Let go of all connections."""
        for origin in self._origins.values():
            origin.close()
        for dialer in [self._public, *self._named.values()]:
            await dialer.names.close()


async def _send_body(connection: Http1, body: AsyncIterator[bytes]) -> None:
    """Send the body of a request; an origin that does not want it says so in its answer."""
    with suppress(ConnectionError):
        try:
            async for piece in body:
                await connection.write(piece)
        except Cut:
            connection.close()  # what is not whole must not look as if it were


class Cut(Exception):
    """A body ended before its end."""

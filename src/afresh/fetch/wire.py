"""One question and one answer over a pooled connection."""

import asyncio
from collections.abc import Mapping

from afresh.fetch.answer import Answer, Connection, Question, Unanswered
from afresh.fetch.connect import Dialer
from afresh.fetch.target import Target

SECONDS_TO_CLOSE = 1.0

_Key = tuple[str, int, bool, bool]  # host, port, whether it is secure, whether its certificate is checked


class _Site:
    """What there is of one origin: places for questions, and connections, the latest used last."""

    __slots__ = ("connections", "places", "users")

    def __init__(self, places: int) -> None:
        self.places = asyncio.Semaphore(places)
        self.connections: list[Connection] = []
        self.users = 0


class Wire:
    """Asks over connections that are kept for a while, so many at once in all and to one origin.

    A connection with HTTP/2 carries several questions at once; the limits are on questions, so there are never more
    connections in use than these. Idle ones are counted apart.
    """

    def __init__(self, dialer: Dialer, *, most: int, per_host: int, most_idle: int, keep_alive: float) -> None:
        self.dialer = dialer
        self._per_host = per_host
        self._most_idle = most_idle
        self._keep_alive = keep_alive
        self._places = asyncio.Semaphore(most)
        self._sites: dict[_Key, _Site] = {}
        self._idle: dict[Connection, _Key] = {}  # the longest idle first
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses that a connection to a host would be tried at."""
        return [str(each["host"]) for each in await self.dialer.names.find(host, port)]

    async def ask(self, where: Target, headers: Mapping[str, str], *, verified: bool = True) -> Answer:
        """Ask for a page, and wait for the head of its answer. `release` must follow."""
        key = (where.host, where.port, where.secure, verified)
        site = self._sites.get(key)
        if site is None:
            site = self._sites[key] = _Site(self._per_host)
        site.users += 1
        held: list[asyncio.Semaphore] = []
        try:
            for places in (site.places, self._places):
                await places.acquire()
                held.append(places)
            return await self._exchange(site, where, headers, verified)
        except BaseException:
            for places in held:
                places.release()
            self._depart(key, site)
            raise

    def release(self, where: Target, answer: Answer, *, verified: bool = True) -> None:
        """Have done with an answer; its connection is used again if nothing of the answer is left in it."""
        key = (where.host, where.port, where.secure, verified)
        site, connection = self._sites.get(key), answer.connection
        connection.drop(answer)
        if site is None:  # all was closed meanwhile
            return
        if connection.room and not connection.busy:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle[connection] = key
            if len(self._idle) > self._most_idle:
                self._close(next(iter(self._idle)))
            if self._sweeping is None:
                self._sweep()
        self._places.release()
        site.places.release()
        self._depart(key, site)

    async def close(self) -> None:
        """Let go of all connections."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        connections = [connection for site in self._sites.values() for connection in site.connections]
        self._sites, self._idle = {}, {}
        for connection in connections:
            connection.close()
        if connections:
            await asyncio.wait([connection.gone for connection in connections], timeout=SECONDS_TO_CLOSE)
        await self.dialer.names.close()

    async def _exchange(self, site: _Site, where: Target, headers: Mapping[str, str], verified: bool) -> Answer:
        """Ask, and once more if the connection was closed just before it was used. That says nothing about the page."""
        question = Question(where.authority, where.path, headers)
        connection = self._kept(site)
        try:
            return await self._ask(connection or await self._new(site, where, verified), question)
        except Unanswered:
            return await self._ask(await self._new(site, where, verified), question)

    @staticmethod
    async def _ask(connection: Connection, question: Question) -> Answer:
        answer = connection.ask(question)
        try:
            await answer.head()
        except BaseException:
            connection.drop(answer)
            raise
        return answer

    def _kept(self, site: _Site) -> Connection | None:
        """A connection that is there already and has room."""
        site.connections = [connection for connection in site.connections if not connection.closed]
        for connection in reversed(site.connections):
            if connection.room:
                self._idle.pop(connection, None)
                return connection
        return None

    async def _new(self, site: _Site, where: Target, verified: bool) -> Connection:
        connection = await self.dialer.dial(where, verified=verified)
        if self._closed:
            connection.close()
        site.connections.append(connection)
        return connection

    def _depart(self, key: _Key, site: _Site) -> None:
        """One user less; a site without users and connections is forgotten."""
        site.users -= 1
        self._forget(key, site)

    def _forget(self, key: _Key, site: _Site) -> None:
        if not site.users and all(connection.closed for connection in site.connections):
            self._sites.pop(key, None)

    def _close(self, connection: Connection) -> None:
        """End an idle connection."""
        key = self._idle.pop(connection)
        connection.close()
        if (site := self._sites.get(key)) is not None:
            self._forget(key, site)

    def _sweep(self) -> None:
        """Close what has been idle for long, and look again when the next will have been."""
        loop = asyncio.get_running_loop()
        self._sweeping = None
        while self._idle:
            oldest = next(iter(self._idle))
            left = oldest.idle_since + self._keep_alive - loop.time()
            if left > 0 and not oldest.closed:
                self._sweeping = loop.call_later(left, self._sweep)
                return
            self._close(oldest)

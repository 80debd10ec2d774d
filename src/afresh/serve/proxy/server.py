"""Listening, and the limits on time and number: every connection has a moment at which it is closed."""

import asyncio
import logging
import socket
from time import time

from afresh.serve.proxy.protocol import Connection
from afresh.serve.proxy.request import Refusal
from afresh.serve.proxy.service import Service

IDLE = 60.0  # seconds that a connection may wait for its next request
HEAD = 20.0  # seconds that the head of a request may take
BUSY = 120.0  # seconds without any progress
LINGER = 10.0  # seconds for what was written to go out
LOOK_EVERY = 1.0  # seconds
MOST_CONNECTIONS = 20_000
BACKLOG = 4096

_log = logging.getLogger("afresh.serve")


class Server:
    """Accepts readers and lets each be served."""

    def __init__(
        self, service: Service, *, most: int = MOST_CONNECTIONS, idle: float = IDLE, head: float = HEAD
    ) -> None:
        self.service = service
        self.draining = False
        self.refusals = 0
        self._most = most
        self._idle = idle
        self._head = head
        self._connections: set[Connection] = set()
        self._listening: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._now = 0.0
        self._empty = asyncio.Event()

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; where."""
        loop = asyncio.get_running_loop()
        self._now = loop.time()
        self._listening = await loop.create_server(lambda: Connection(self), host, port, backlog=BACKLOG)
        self._timer = loop.call_later(LOOK_EVERY, self._look)
        name = self._listening.sockets[0].getsockname()
        return str(name[0]), int(name[1])

    async def stop(self, grace: float = 10.0) -> None:
        """Accept nobody any more, answer what was asked, and close."""
        self.draining = True
        if self._listening is not None:
            self._listening.close()
        for connection in list(self._connections):
            if connection.idle:
                connection.close()
        if self._connections:
            try:
                async with asyncio.timeout(grace):
                    await self._empty.wait()
            except TimeoutError:
                for connection in list(self._connections):
                    connection.transport.abort()
        if self._timer is not None:
            self._timer.cancel()

    def readers(self) -> list[Connection]:
        """Those who are connected."""
        return list(self._connections)

    # What connections tell and ask.

    def joined(self, connection: Connection) -> None:
        """A new one."""
        self._connections.add(connection)
        self._empty.clear()
        connection.deadline = self._now + self._head
        if len(self._connections) > self._most or self.draining:
            connection.transport.abort()
            return
        made = connection.transport.get_extra_info("socket")
        if made is not None and made.family in (socket.AF_INET, socket.AF_INET6):
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def left(self, connection: Connection) -> None:
        """One is gone."""
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()

    def busy(self, connection: Connection) -> None:
        """Something was done for it."""
        connection.deadline = self._now + BUSY

    def head_deadline(self) -> float:
        """When the head of a request that begins now must be there."""
        return self._now + self._head

    def idle_deadline(self) -> float:
        """When a connection that waits for its next request is closed."""
        return self._now + self._idle

    def linger_deadline(self) -> float:
        """When a connection that is closed must be gone."""
        return self._now + LINGER

    def now(self) -> float:
        """The time of day."""
        return time()

    def refused(self, connection: Connection, refusal: Refusal) -> None:
        """Something that is no request was answered with an error."""
        self.refusals += 1
        self.service.notes.malformed(connection, refusal.status)

    def _look(self) -> None:
        """Close what has taken too long."""
        loop = asyncio.get_running_loop()
        self._now = loop.time()
        for connection in [each for each in self._connections if each.deadline < self._now]:
            connection.too_late()
        self._timer = loop.call_later(LOOK_EVERY, self._look)

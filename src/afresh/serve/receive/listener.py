"""Listens for HTTP on the event loop of whoever runs it (uvicorn), with limits on what a stranger may hold open."""

import asyncio
import logging
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from starlette.types import ASGIApp
from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from afresh.errors import InputError

HEAD_SECONDS = 15.0  # from the first byte, or a new connection, to the end of the head
MAX_HEAD_BYTES = 32 << 10
MAX_HEADERS = 256
MAX_CONNECTIONS = 1_000
IDLE_SECONDS = 15
SLOW_SECONDS, MIN_TAKEN = 30.0, 32 << 10  # who takes fewer bytes of what waits for it in this time is left
MAX_UNSENT_BYTES = (
    128 << 20
)  # that wait for all who read slowly; beyond it the one is left that does so for the longest
_QUIET = logging.getLogger("afresh.receive.http")
_QUIET.propagate = False
_QUIET.addHandler(logging.NullHandler())


class Bounded(HttpToolsProtocol):
    """One connection: its head must come soon and be small, and its answers must be read."""

    _head_bytes = 0
    _line_bytes = 0
    _in_head = True
    _timer: asyncio.TimerHandle | None = None
    _slow: asyncio.TimerHandle | None = None
    _slow_since = 0.0
    _unsent = 0

    def connection_made(self, transport: Any) -> None:
        """The connection stands."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
            return
        self.logger = self.access_logger = _QUIET
        self.access_log = False
        transport.set_write_buffer_limits(high=0)  # whatever cannot be sent at once is waited for
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._in_head and self._timer is None:
            self._wait_for_head()
        super().data_received(data)
        if self._in_head:  # still: what came is head alone
            self._head_bytes += len(data)
            if self._head_bytes > 2 * MAX_HEAD_BYTES:
                self.transport.abort()

    def on_message_begin(self) -> None:
        """A head begins."""
        self._line_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head."""
        self._line_bytes += len(name) + len(value)
        if self._line_bytes > MAX_HEAD_BYTES or len(self.headers) >= MAX_HEADERS:
            raise ValueError("the head is too large")  # the parser makes an error of it, which is answered by 400
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """It was answered: the next head may come."""
        self._in_head, self._head_bytes = True, 0
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Something could not be sent at once."""
        super().pause_writing()
        self._slow_since = self.loop.time()
        self._wait_for_reader()
        slow = [each for each in self.connections if isinstance(each, Bounded) and each._slow is not None]
        slow.sort(key=lambda each: each._slow_since)
        unsent = sum(each._unsent for each in slow)
        while unsent > MAX_UNSENT_BYTES:
            left = slow.pop(0)
            unsent -= left._unsent
            left.transport.abort()

    def resume_writing(self) -> None:
        """All of it was sent."""
        super().resume_writing()
        self._stop_waiting_for_reader()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._stop_waiting()
        self._stop_waiting_for_reader()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait_for_reader(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._slow = self.loop.call_later(SLOW_SECONDS, self._look_at_reader)

    def _look_at_reader(self) -> None:
        if self._unsent - self.transport.get_write_buffer_size() < MIN_TAKEN:
            self.transport.abort()
        else:
            self._wait_for_reader()

    def _stop_waiting_for_reader(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None


class _Quiet(Server):
    """A server that leaves signals to whoever runs the loop."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


class Listener:
    """An application at one address and port."""

    def __init__(self, app: ASGIApp, host: str, port: int, *, option: str = "--receive") -> None:
        self.app, self.host, self.port, self.option = app, host, port, option
        self._server: _Quiet | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> tuple[str, int]:
        """Listen; where. InputError if that cannot be."""
        try:
            kind, _, _, _, where = (
                await asyncio.get_running_loop().getaddrinfo(
                    self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
                )
            )[0]
            listening = socket.socket(kind, socket.SOCK_STREAM)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(where)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno and error.errno > 0 else "there is no such address"
            raise InputError(
                f"Nothing can listen at {self.host}:{self.port}: {why}.", hint=f"Choose another with {self.option}."
            ) from None
        config = Config(
            self.app,
            http=Bounded,
            loop="none",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=5,
        )
        self._server = _Quiet(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[listening]))
        found = listening.getsockname()
        while not self._server.started and not self._task.done():  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.005)
        return str(found[0]), int(found[1])

    async def stop(self) -> None:
        """Answer what was asked, and let go of the port."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task

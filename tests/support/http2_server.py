"""An HTTP/2 server on loopback, by another implementation than ours (h2), whose every answer a test decides."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

Headers = list[tuple[str, str]]


class Talk(asyncio.Protocol):
    """One connection: what was asked on it, and the library's side of it, to answer or to misbehave with."""

    def __init__(self, server: "Http2Server") -> None:
        self.server = server
        settings = h2.config.H2Configuration(
            client_side=False,
            header_encoding="utf-8",
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
        )
        self.h2 = h2.connection.H2Connection(settings)
        self.open = self.most_open = 0
        self.lost = False
        self.room = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.protocol = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        self.server.talks.append(self)
        if self.server.greeting is not None:
            transport.write(self.server.greeting)
            return
        codes = h2.settings.SettingCodes
        wanted = {codes.MAX_CONCURRENT_STREAMS: self.server.most_streams, codes.HEADER_TABLE_SIZE: self.server.table}
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values=wanted)
        self.h2.decoder.max_allowed_table_size = self.server.table
        self.h2.initiate_connection()
        self.flush()

    def data_received(self, data: bytes) -> None:
        if self.server.greeting is not None:
            return
        try:
            events = self.h2.receive_data(data)
        except h2.exceptions.ProtocolError as error:  # our client must never be the reason
            self.server.complaints.append(str(error))
            self.transport.close()
            return
        for event in events:
            if isinstance(event, h2.events.RequestReceived):
                self.server.requests.append([(str(name), str(value)) for name, value in event.headers])
                self.open += 1
                self.most_open = max(self.most_open, self.open)
                task = asyncio.get_running_loop().create_task(self._answer(event.stream_id))
                self._tasks.append(task)
            elif isinstance(event, h2.events.WindowUpdated):
                self.room.set()
            elif isinstance(event, h2.events.StreamReset):
                self.server.resets.append(event.stream_id)
        self.flush()

    async def _answer(self, stream: int) -> None:
        with suppress(h2.exceptions.ProtocolError, ConnectionError):
            await self.server.answer(self, stream, len(self.server.requests))
        self.open -= 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self.room.set()

    def flush(self) -> None:
        """Send what the library wants sent."""
        self.transport.write(self.h2.data_to_send())

    def head(self, stream: int, headers: Headers, *, end: bool = False) -> None:
        """Send a head."""
        self.h2.send_headers(stream, headers, end_stream=end)
        self.flush()

    async def body(self, stream: int, body: bytes, *, end: bool = True, padding: int | None = None) -> None:
        """Send a body, as fast as the client lets."""
        while body and not self.lost:
            size = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size - 300, len(body))
            if size <= 0:
                self.room.clear()
                await self.room.wait()
                continue
            self.h2.send_data(stream, body[:size], pad_length=padding)
            self.flush()
            body = body[size:]
            await asyncio.sleep(0)
        if end and not self.lost:
            self.h2.end_stream(stream)
            self.flush()


@dataclass
class Http2Server:
    """All connections; `answer(talk, stream, number of the request)` decides. A `greeting` replaces all politeness."""

    answer: Callable[[Talk, int, int], Awaitable[None]]
    most_streams: int = 100
    table: int = 4096
    greeting: bytes | None = None
    requests: list[Headers] = field(default_factory=list)
    talks: list[Talk] = field(default_factory=list)
    resets: list[int] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    async def start(self, context: ssl.SSLContext) -> int:
        """Listen; the port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Talk(self), "127.0.0.1", 0, ssl=context)
        return int(self._server.sockets[0].getsockname()[1])

    def stop(self) -> None:
        """Hang up."""
        self._server.close()
        for talk in self.talks:
            talk.transport.abort()

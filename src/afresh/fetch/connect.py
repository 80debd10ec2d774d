"""Making connections: the name looked up, the address passed by the guard, TLS, and the protocol agreed on."""

import asyncio
import socket
import ssl
from collections.abc import Mapping

from aiohappyeyeballs import start_connection

from afresh.fetch.answer import Connection
from afresh.fetch.guard import Guard, Refused
from afresh.fetch.http1 import Http1, lines
from afresh.fetch.http2 import Http2
from afresh.fetch.inflate import Spoiled
from afresh.fetch.resolve import LookupTimeout, Names
from afresh.fetch.target import Target

BUFFER = 1 << 16  # bytes read from the network at once
SECOND_TRY = 0.25  # seconds after which another address of the name is tried too
PROTOCOLS = ["h2", "http/1.1"]


class Dialer:
    """Makes connections that send these headers with every question."""

    def __init__(
        self, names: Names, guard: Guard, headers: Mapping[str, str], *, seconds: float, tls: ssl.SSLContext | None
    ) -> None:
        self.names = names
        self.guard = guard
        self.seconds = seconds
        self._headers = dict(headers)
        self._lines = lines(headers)
        self._buffer = memoryview(bytearray(BUFFER))
        self._tls = tls
        self._contexts: dict[bool, ssl.SSLContext] = {}

    async def dial(self, where: Target, *, verified: bool) -> Connection:
        """A connection to one of the addresses of a host; Spoiled, Refused or what TLS says if there is none."""
        connected = await self._connect(where)
        arrival = _Arrival(self)
        loop = asyncio.get_running_loop()
        try:
            if where.secure:
                await loop.create_connection(
                    lambda: arrival,
                    sock=connected,
                    ssl=self._context(verified),
                    server_hostname=where.host.rstrip("."),
                    ssl_handshake_timeout=self.seconds / 2,
                )
            else:
                await loop.create_connection(lambda: arrival, sock=connected)
        except ssl.SSLError:
            raise
        except OSError as error:
            # asyncio has no type of its own for a handshake that takes too long.
            slow = isinstance(error, ConnectionAbortedError) and "handshake" in str(error)
            raise Spoiled("tls_timeout" if slow else "no_connection") from None
        return arrival.connection

    async def _connect(self, where: Target) -> socket.socket:
        """A socket that is connected to an address which the guard has seen."""
        try:
            found = await self.names.find(where.host, where.port)
        except (Refused, LookupTimeout):
            raise
        except OSError:
            raise Spoiled("dns") from None
        # The guard makes the socket for each address itself, at the moment it is tried.
        infos = [
            (each["family"], socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (each["host"], each["port"])) for each in found
        ]
        try:
            async with asyncio.timeout(self.seconds):
                return await start_connection(
                    infos, happy_eyeballs_delay=SECOND_TRY, interleave=1, socket_factory=self.guard.socket
                )
        except TimeoutError:
            raise Spoiled("connect_timeout") from None
        except Refused:
            raise
        except OSError:
            raise Spoiled("no_connection") from None

    def speak(self, protocol: str | None) -> Http1 | Http2:
        """What talks on a connection, by what both sides agreed on."""
        return Http2(self._headers, self._buffer) if protocol == "h2" else Http1(self._lines, self._buffer)

    def _context(self, verified: bool) -> ssl.SSLContext:
        """How the server's certificate is checked, and what is offered to be spoken."""
        context = self._contexts.get(verified)
        if context is None:
            context = (self._tls if verified else None) or ssl.create_default_context()
            if not verified:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            context.set_alpn_protocols(PROTOCOLS)
            self._contexts[verified] = context
        return context


class _Arrival(asyncio.Protocol):
    """Stands in until the connection does, because only then it is known what is spoken on it."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Hand over to who speaks the protocol, before the first byte comes."""
        tls = transport.get_extra_info("ssl_object")
        self.connection = self._dialer.speak(tls.selected_alpn_protocol() if tls is not None else None)
        transport.set_protocol(self.connection)
        self.connection.connection_made(transport)

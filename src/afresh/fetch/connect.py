"""Making connections: the name looked up, the address passed by the guard, and TLS."""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Mapping

from aiohappyeyeballs import start_connection

from afresh.fetch.guard import Guard, Refused
from afresh.fetch.http1 import Http1, lines
from afresh.fetch.inflate import Spoiled
from afresh.fetch.resolve import LookupTimeout, Names
from afresh.fetch.target import Target

BUFFER = 1 << 16  # bytes read from the network at once
SECOND_TRY = 0.25  # seconds after which another address of the name is tried too
PROTOCOLS = ["http/1.1"]


class Dialer:
    """Makes connections that send these headers with every question."""

    def __init__(
        self,
        names: Names,
        guard: Guard,
        headers: Mapping[str, str],
        *,
        seconds: float,
        most: int,
        tls: ssl.SSLContext | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.names = names
        self.guard = guard
        self.seconds = seconds
        self.most = most  # bytes of a body
        self._lines = lines(headers)
        self._buffer = memoryview(bytearray(BUFFER))
        self._tls = tls
        self._clock = clock
        self._contexts: dict[bool, ssl.SSLContext] = {}

    async def dial(self, where: Target, *, verified: bool) -> Http1:
        """A connection to one of the addresses of a host; Spoiled, Refused or what TLS says if there is none."""
        connected = await self.connect(where)
        connection = Http1(self._lines, self._buffer, self.most, self._clock)
        loop = asyncio.get_running_loop()
        try:
            if where.secure:
                await loop.create_connection(
                    lambda: connection,
                    sock=connected,
                    ssl=self._context(verified),
                    server_hostname=where.host.rstrip("."),
                    ssl_handshake_timeout=self.seconds / 2,
                )
            else:
                await loop.create_connection(lambda: connection, sock=connected)
        except ssl.SSLError:
            raise
        except OSError as error:
            # asyncio has no type of its own for a handshake that takes too long.
            slow = isinstance(error, ConnectionAbortedError) and "handshake" in str(error)
            raise Spoiled("tls_timeout" if slow else "no_connection") from None
        return connection

    async def connect(self, where: Target) -> socket.socket:
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

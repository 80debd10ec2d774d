"""One question and one answer over a pooled connection.

The library's pool, sockets and parser are used as they are; what it does round them for every request (sessions,
cookies, redirects, tracing, bodies to upload) takes longer than all of these together, and none of it is wanted here.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ssl import SSLContext

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDictProxy
from yarl import URL

from afresh.fetch.inflate import Spoiled

LONGEST_LINE = 16 * 1024  # of an answer's head
MOST_HEADERS = 256
MOST_INTERIM = 20  # answers before the answer (100, 103), which may be sent without end
MOST_ORIGINS = 10_000  # remembered


class Answer:
    """The head of an answer, and the body as it arrives."""

    def __init__(self, connection: Connection, message: RawResponseMessage, content: aiohttp.StreamReader) -> None:
        self.connection = connection
        self.status = message.code
        self.reason = message.reason
        self.headers: CIMultiDictProxy[str] = message.headers
        self.raw_headers = message.raw_headers
        self.content = content

    @property
    def content_length(self) -> int:
        """Bytes of body that the head promises; 0 if it does not say."""
        length = self.headers.get("Content-Length", "")
        return int(length) if length.isascii() and length.isdecimal() else 0


class Wire:
    """Asks over the connections of a connector, always with the same headers and at most a few more."""

    def __init__(self, connector: aiohttp.TCPConnector, headers: Mapping[str, str], *, connect: float) -> None:
        self.connector = connector
        self._headers = _lines(headers)
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect)
        self._origins: dict[tuple[URL, SSLContext | bool], ClientRequest] = {}

    async def close(self) -> None:
        """Let go of all connections."""
        await self.connector.close()

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses that a connection to a host would be tried at."""
        return [each["host"] for each in await self.connector._resolve_host(host, port)]

    @asynccontextmanager
    async def get(self, where: URL, headers: Mapping[str, str], trust: SSLContext | bool) -> AsyncIterator[Answer]:
        """Ask for a page; the connection goes back to the pool, or is closed if something is left in it."""
        head = b"GET %b HTTP/1.1\r\nHost: %b\r\n%b%b\r\n" % (
            where.raw_path_qs.encode("ascii"),
            str(where.host_port_subcomponent).encode("ascii"),
            self._headers,
            _lines(headers),
        )
        try:
            answer = await self._exchange(where, head, trust)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            # A pooled connection may have been closed just before it was used. That says nothing about the page.
            if isinstance(error, aiohttp.ClientConnectorError):
                raise
            answer = await self._exchange(where, head, trust)
        try:
            yield answer
        except BaseException:
            answer.connection.close()
            raise
        answer.connection.release()

    async def _exchange(self, where: URL, head: bytes, trust: SSLContext | bool) -> Answer:
        try:
            connection = await self.connector.connect(self._origin(where, trust), [], self._timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError("no connection in time") from error
        try:
            return await self._speak(connection, head)
        except BaseException:
            connection.close()
            raise

    @staticmethod
    async def _speak(connection: Connection, head: bytes) -> Answer:
        protocol, transport = connection.protocol, connection.transport
        if protocol is None or transport is None:
            raise aiohttp.ServerDisconnectedError
        protocol.set_response_params(
            read_until_eof=True,
            auto_decompress=False,  # the library's own limits hold for a piece, not for the whole
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
            max_headers=MOST_HEADERS,
        )
        transport.write(head)
        for _ in range(MOST_INTERIM):
            try:
                message, content = await protocol.read()
            except HttpProcessingError:
                raise Spoiled("bad_protocol") from None
            if not 100 <= message.code < 200 or message.code == 101:
                return Answer(connection, message, content)
        raise Spoiled("bad_protocol")

    def _origin(self, where: URL, trust: SSLContext | bool) -> ClientRequest:
        """What the pool asks of a request: to whom it goes. The same for all of one origin."""
        origin = where.origin()
        request = self._origins.get((origin, trust))
        if request is None:
            if len(self._origins) >= MOST_ORIGINS:
                self._origins.clear()
            request = self._origins[origin, trust] = ClientRequest("GET", origin, ssl=trust)
        return request


def _lines(headers: Mapping[str, str]) -> bytes:
    """Headers as they are sent; ValueError for what would be read as more than one line."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if lines.count("\r") != len(headers) or lines.count("\n") != len(headers) or "\0" in lines:
        raise ValueError("a header may not hold the end of a line")
    return lines.encode("utf-8", "surrogateescape")

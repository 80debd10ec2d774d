"""A connection that speaks HTTP/1.1: one question, one answer, and the next."""

import asyncio
from collections.abc import Mapping
from typing import cast

import httptools

from afresh.fetch.answer import LONGEST_LINE, MOST_HEADERS, MOST_INTERIM, Answer, Lines, Unanswered
from afresh.fetch.inflate import Spoiled


class Http1(asyncio.BufferedProtocol):
    """One connection. The parser (llhttp) is as strict as it comes: what could be read in two ways is an error.

    `headers` go along with every question; `buffer` is where the network is read into, which all connections share.
    """

    def __init__(self, headers: bytes, buffer: memoryview) -> None:
        self.closed = False
        self.used = 0
        self.idle_since = 0.0
        self._headers = headers
        self._buffer = buffer
        self._answer: Answer | None = None
        self._paused = False
        self._loose = 0  # bytes since the parser last had something whole
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._lines: Lines = []
        self._interim = self._count = 0
        self._heard = False  # anything since the question
        self._whole = self._until_close = self._last = False

    # What the pool and the reader ask of it.

    def ask(self, authority: str, path: str, headers: Mapping[str, str]) -> Answer:
        """Ask for a path, with these headers beside those that always go along; the answer will come."""
        answer = Answer(self._resume)
        if self.closed or self._parser is None:
            answer.fail(Unanswered("closed before it was used"))
            return answer
        self._answer = answer
        self.used += 1
        self._interim = self._count = self._loose = 0
        self._heard = False
        self._whole = self._until_close = self._last = False
        self._transport.write(
            b"GET %b HTTP/1.1\r\nHost: %b\r\n%b%b\r\n"
            % (path.encode("ascii"), authority.encode("ascii"), self._headers, lines(headers))
        )
        return answer

    def drop(self) -> None:
        """Nobody waits for the rest of the answer, if there is any: it must not be taken for the next one."""
        if self._answer is not None:
            self._answer = None
            self.close()

    def close(self) -> None:
        """End it, whatever is under way."""
        self.closed = True
        self._transport.abort()

    # What the event loop tells it.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands."""
        self._transport = cast(asyncio.Transport, transport)
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to read to."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came."""
        answer, parser = self._answer, self._parser
        if answer is None or parser is None:
            self.close()  # nobody asked
            return
        self._heard = True
        self._loose += nbytes
        try:
            parser.feed_data(self._buffer[:nbytes])
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if isinstance(error, httptools.HttpParserCallbackError) and not isinstance(error.__context__, Spoiled):
                raise
            self._end(Spoiled("bad_protocol"))
            return
        if self._loose > LONGEST_LINE:
            self._end(Spoiled("bad_protocol"))
        elif self._whole:
            self._end(None)
        elif answer.crowded and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        """The server says that it has no more to say, and the connection will be closed."""
        self.closed = True
        if self._answer is not None and self._answer.status:
            self._end(None if self._until_close else Spoiled("truncated"))
        else:
            self._end(ConnectionResetError("closed before the answer"))

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self.closed = True
        self._end(exc or ConnectionResetError("closed"))
        self._parser = None  # it holds on to this object
        if not self.gone.done():
            self.gone.set_result(None)

    def _resume(self) -> None:
        """What had come was read: more may come."""
        if self._paused and not self.closed:
            self._paused = False
            self._transport.resume_reading()

    def _end(self, error: Exception | None) -> None:
        """The answer is over, well or not."""
        answer, self._answer = self._answer, None
        if answer is None:
            return
        if error is None:
            answer.finish()
        elif isinstance(error, ConnectionError) and self.used > 1 and not self._heard:
            answer.fail(Unanswered("closed while it was idle"))  # that says nothing about the page
        else:
            answer.fail(error)
        if error is not None or self._last:
            self.close()

    # What the parser tells it.

    def on_message_begin(self) -> None:
        """An answer begins."""
        if self._whole:
            raise Spoiled("bad_protocol")  # more than was asked for
        self._lines = []

    def on_status(self, reason: bytes) -> None:
        """The words after the number, maybe in parts."""
        if b"\0" in reason:  # the parser lets it pass here, and only here
            raise Spoiled("bad_protocol")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head, or of what may follow a body in chunks."""
        self._loose = 0
        self._count += 1
        if self._count > MOST_HEADERS or len(name) + len(value) > LONGEST_LINE:
            raise Spoiled("bad_protocol")
        self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        """The head is whole."""
        answer, parser = cast(Answer, self._answer), cast(httptools.HttpResponseParser, self._parser)
        self._loose = 0
        status = parser.get_status_code()
        if 100 <= status < 200:
            self._interim += 1
            if status == 101 or self._interim > MOST_INTERIM:  # nobody asked for another protocol
                raise Spoiled("bad_protocol")
            return
        answer.begin(status, self._lines)
        coding = answer.headers.get("Transfer-Encoding")
        if coding is not None and coding.strip().lower() != "chunked":
            raise Spoiled("bad_protocol")  # nobody said that we understand others
        self._until_close = coding is None and "Content-Length" not in answer.headers
        self._lines = []

    def on_body(self, piece: bytes) -> None:
        """Some of the body."""
        self._loose = 0
        if self._answer is not None:
            self._answer.feed(piece)

    def on_message_complete(self) -> None:
        """The end of an answer, or of one that went before it."""
        if self._answer is not None and self._answer.status:
            self._whole = True
            self._last = self._parser is None or not self._parser.should_keep_alive()


def lines(headers: Mapping[str, str]) -> bytes:
    """Headers as they are sent; ValueError for what would be read as more than one line."""
    text = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if text.count("\r") != len(headers) or text.count("\n") != len(headers) or "\0" in text:
        raise ValueError("a header may not hold the end of a line")
    return text.encode("utf-8", "surrogateescape")

"""A connection that speaks HTTP/1.1: one question, one answer, and the next.

An answer ends where its head says. Whatever comes after that, in the same packet or later, is not looked at and ends
the connection: no rule may depend on how bytes are packed.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from typing import cast

import httptools

from afresh.fetch.answer import (
    CHUNK_COST,
    LARGEST_HEAD,
    LONGEST_LINE,
    MOST_HEADERS,
    MOST_INTERIM,
    Answer,
    Headers,
    Lines,
    Unanswered,
)
from afresh.fetch.inflate import Spoiled

FORM = "application/x-www-form-urlencoded"
POSTED = b"Content-Type: %b\r\nContent-Length: %d\r\n"
_START = b"HTTP/1."
_STATUS_AT = len(b"HTTP/1.1 ")
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_INTERIM = re.compile(
    rb"HTTP/1\.[01] 1[0-9]{2}(?: [^\r\n\0]*)?\r?\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r?\n)*\r?\n"
)


class Http1(asyncio.BufferedProtocol):
    """One connection. The parser (llhttp) is as strict as it comes: what could be read in two ways is an error.

    `headers` go along with every question; `buffer` is where the network is read into, which all connections share;
    `most` is the largest body, as it arrives: chunks' sizes and extensions and what follows the last one included.
    """

    def __init__(
        self, headers: bytes, buffer: memoryview, most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.closed = False
        self.used = 0
        self.idle_since = 0.0
        self._headers = headers
        self._buffer = buffer
        self._most = self._always = most
        self._clock = clock
        self._answer: Answer | None = None
        self._paused = False
        self._loose = 0  # bytes since the parser last had something whole
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._lines: Lines = []
        self._interim = self._count = 0
        self._arrived = 0  # bytes since the question
        self._start: bytes | None = b""  # what has come of the status line; None once the parser has it
        self._whole = self._last = self._bodiless = False
        self._writable: asyncio.Future[None] | None = None  # set while no more should be sent

    # What the pool and the reader ask of it.

    def ask(
        self,
        authority: str,
        path: str,
        headers: Mapping[str, str],
        *,
        form: bytes | None = None,
        kind: str = FORM,
        most: int = 0,
    ) -> Answer:
        """Ask for a path, with these headers beside those that always go along; the answer will come.

        A `form`, or what else its `kind` says, is posted. `most` bytes may come this once, where that is more than
        always.
        """
        method, more = b"GET", lines(headers)
        if form is not None:
            method, more = b"POST", more + POSTED % (kind.encode("ascii"), len(form))
        self._most = max(most, self._always)
        head = b"%b %b HTTP/1.1\r\nHost: %b\r\n%b%b\r\n"
        head %= (method, path.encode("ascii"), authority.encode("ascii"), self._headers, more)
        return self.send(head + (form or b""))

    def send(self, head: bytes, *, bodiless: bool = False) -> Answer:
        """Send the head of any request, which a body may follow by `write`. `bodiless`: its answer has none (HEAD)."""
        answer = Answer(self._resume)
        if self.closed or self._parser is None:
            answer.fail(Unanswered("closed before it was used"))
            return answer
        self._answer = answer
        self.used += 1
        self._interim = self._count = self._loose = self._arrived = 0
        self._start = b""
        self._whole = self._last = False
        self._bodiless = bodiless
        self._transport.write(head)
        return answer

    async def write(self, piece: bytes) -> None:
        """Send some of the body of a request; ConnectionResetError if the connection is gone."""
        if self.closed:
            raise ConnectionResetError("closed")
        self._transport.write(piece)
        if self._writable is not None:
            await self._writable

    def drop(self) -> None:
        """Nobody waits for the rest of the answer, if there is any: it must not be mistaken for the next one."""
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
        self._arrived += nbytes
        try:
            data = self._buffer[:nbytes] if self._start is None else self._begin(bytes(self._buffer[:nbytes]))
            self._loose += len(data)
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, Spoiled) as error:
            if isinstance(error, httptools.HttpParserCallbackError) and not isinstance(error.__context__, Spoiled):
                raise
            if not self._whole:
                large = self._arrived > self._most + LARGEST_HEAD
                self._end(Spoiled("too_large" if large else "bad_protocol"))
                return
            self._last = True  # more than was asked for
        if self._whole:
            self._end(None)
        elif self._loose > LONGEST_LINE or (not answer.status and self._arrived > LARGEST_HEAD):
            self._end(Spoiled("bad_protocol"))
        elif self._arrived > self._most + LARGEST_HEAD:
            self._end(Spoiled("too_large"))
        elif answer.crowded and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _begin(self, data: bytes) -> bytes:
        """What the parser is to have of the beginning: nothing but HTTP/1, and no answers that go before the answer."""
        start = (self._start or b"") + data
        while True:
            if start[: len(_START)] != _START[: len(start)]:  # the parser takes RTSP, too
                raise Spoiled("bad_protocol")
            kind = start[_STATUS_AT : _STATUS_AT + 1]
            if kind and kind != b"1":
                self._start = None
                return start
            end = _BLANK_LINE.search(start) if kind else None
            if end is None:
                if len(start) > LONGEST_LINE:
                    raise Spoiled("bad_protocol")
                self._start = start
                return b""
            interim, start = start[: end.end()], start[end.end() :]
            self._interim += 1
            # Nobody asked for another protocol (101).
            if self._interim > MOST_INTERIM or b" 101" in interim[:12] or not _INTERIM.fullmatch(interim):
                raise Spoiled("bad_protocol")
            if self._answer is not None and self._answer.interim is not None:
                self._answer.interim(interim)

    def eof_received(self) -> None:
        """The server says that it has no more to say, and the connection will be closed."""
        self.closed = True
        if self._answer is not None and self._answer.status:
            self._end(None if self._answer.until_close else Spoiled("truncated"))
        else:
            self._end(ConnectionResetError("closed before the answer"))

    def pause_writing(self) -> None:
        """So much waits to be sent that no more should be."""
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """More may be sent."""
        waiting, self._writable = self._writable, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self.closed = True
        self.resume_writing()
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
        answer.over_at = self._clock()
        if error is None:
            answer.finish()
        elif isinstance(error, ConnectionError) and self.used > 1 and not self._arrived:
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
        if status < 200 or parser.get_http_version() not in ("1.0", "1.1"):
            raise Spoiled("bad_protocol")
        headers, self._lines = Headers(self._lines), []
        codings = headers.all("Transfer-Encoding")
        if codings and [coding.strip().lower() for coding in codings] != ["chunked"]:
            raise Spoiled("bad_protocol")  # nobody said that we understand others, or this one twice
        answer.begin(status, headers, until_close=not codings and "Content-Length" not in headers)
        if self._bodiless:  # the parser waits for a body that will not come, so the connection is not used again
            self._whole = self._last = True

    def on_chunk_header(self) -> None:
        """A chunk begins. What many small ones cost is the time that each of them takes, however they are packed."""
        self._arrived += CHUNK_COST
        if self._arrived > self._most + LARGEST_HEAD:
            raise Spoiled("too_large")

    def on_body(self, piece: bytes) -> None:
        """Some of the body."""
        self._loose = 0
        if self._answer is not None:
            self._answer.feed(piece)

    def on_message_complete(self) -> None:
        """The end of an answer."""
        if self._answer is not None and self._answer.status:
            self._whole = True
            self._last = self._parser is None or not self._parser.should_keep_alive()


def lines(headers: Mapping[str, str]) -> bytes:
    """Headers as they are sent; ValueError for what would be read as more than one line."""
    text = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if text.count("\r") != len(headers) or text.count("\n") != len(headers) or "\0" in text:
        raise ValueError("a header may not hold the end of a line")
    return text.encode("utf-8", "surrogateescape")

"""A reader's connection: requests come in, answers go out in their order.

What is answered from memory is answered at once, within the call that brought the request. Everything else is a task,
one at a time; requests that come meanwhile wait, a few of them, and then nothing more is read.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, cast

import httptools

from afresh.serve.proxy import respond
from afresh.serve.proxy.fields import Lines
from afresh.serve.proxy.origins import Cut
from afresh.serve.proxy.request import LARGEST_HEAD, LONGEST_TARGET, MOST_FIELDS, Refusal, Request, check

if TYPE_CHECKING:
    from afresh.serve.proxy.server import Server

MOST_WAITING = 32  # requests of one connection that wait for their turn
UNREAD_BODY = 1 << 18  # bytes of a request's body that wait to be sent on

_log = logging.getLogger("afresh.serve")


class _Wrong(Exception):
    """A request that is not answered."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.sentence)
        self.refusal = refusal


class Connection(asyncio.Protocol):
    """One reader."""

    __slots__ = (
        *(
            "_between",
            "_current",
            "_drained",
            "_early",
            "_fields_size",
            "_got",
            "_head_size",
            "_hit",
            "_lines",
            "_parser",
            "_paused",
        ),
        *("_place", "_raw", "_reading", "_server", "_target", "_task", "_waiting"),
        *("closing", "deadline", "peer", "started", "transport", "tunnel"),
    )

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._parser: httptools.HttpRequestParser | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting: deque[Request] | None = None
        self._reading: Request | None = None  # the request whose body is coming
        self._got: asyncio.Future[None] | None = None  # set while somebody waits for more of a body
        self._drained: asyncio.Future[None] | None = None  # set while no more should be written
        self._paused = False
        self._early = b""  # came behind a CONNECT
        self._target = b""
        self._lines: Lines = []
        self._raw = b""  # what came since the last request was whole
        self._place = 0  # behind the first line of the request that was read last
        self._current: Request | None = None  # what is being answered, or was last
        self._fields_size = 0
        self._head_size = 0
        self._between = True  # whether the parser is between two requests
        self._hit: Request | None = None  # what was answered from memory, of what came last
        self.closing = False
        self.started = False  # whether some of an answer was sent
        self.deadline = 0.0
        self.peer = ""
        self.tunnel: asyncio.Transport | None = None

    # What the event loop tells it.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A reader has come."""
        self.transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self.peer = str(peer[0]) if isinstance(peer, tuple) and peer else "-"
        self._server.joined(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone, and what was done for it alone is for nobody."""
        self.closing = True
        self._server.left(self)
        self.resume_writing()
        if self._task is not None:
            self._task.cancel()
        self._wake()
        if self.tunnel is not None:
            self.tunnel.close()
        self._parser = None
        self._waiting = None

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self.tunnel is not None:
            self.tunnel.write(data)
            self._server.busy(self)
            return
        if self.closing:
            return
        alone = self._between and self._task is None
        if alone and self._drained is None:
            request = self._server.service.again(self, data)
            if request is not None:
                self._current = request
                self.done(request)
                return
        if self._reading is None and not self._between:
            self._raw, self._place = self._raw[self._place :] + data, 0
        else:
            self._raw, self._place = data, 0
        if self._reading is None:
            if self._between:
                self.deadline = self._server.head_deadline()
            self._head_size += len(data)
        self._hit = None
        refusal = self._parse(data)
        if alone and self._hit is not None and self._between:
            self._server.service.note(data, self._hit)
        elif not self._between and self._reading is None and self._task is None:
            self.deadline = min(self.deadline, self._server.head_deadline())  # behind whole ones another one began
        if refusal is None and self._reading is None and self._head_size > LARGEST_HEAD:
            refusal = Refusal(431, "The head of the request is too large.")
        if refusal is not None:
            self.refuse(refusal)

    def _parse(self, data: bytes) -> Refusal | None:
        """Let the parser have some bytes; what is wrong with them."""
        parser = self._parser
        if parser is None:
            parser = self._parser = httptools.HttpRequestParser(self)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # What follows is meant for the other end of a tunnel, or in another protocol, which is not spoken here.
            self._early = data[upgrade.args[0] :]
            self._pause()
            self._parser = None
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, _Wrong):
                raise
            return error.__context__.refusal
        except httptools.HttpParserInvalidMethodError:
            return Refusal(501, "This method is not known here.")
        except httptools.HttpParserError as error:
            return Refusal(400, f"This is not HTTP/1.1: {str(error).rstrip('.') or 'it breaks off'}.")
        return None

    def eof_received(self) -> bool:
        """It has no more to say; what it asked for is still answered."""
        if self.tunnel is not None:
            self.tunnel.close()
            return False
        if self._reading is not None:
            self.transport.abort()  # half a request
            return False
        self.closing = True
        return self._task is not None

    def pause_writing(self) -> None:
        """So much waits to be sent that no more should be."""
        self._drained = asyncio.get_running_loop().create_future()
        self._server.busy(self)

    def resume_writing(self) -> None:
        """More may be sent."""
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)
        if self.tunnel is not None and not self.tunnel.is_closing():
            self.tunnel.resume_reading()

    # What the parser tells it.

    def on_message_begin(self) -> None:
        """A request begins."""
        self._between = False
        self._target, self._lines, self._fields_size = b"", [], 0

    def on_url(self, part: bytes) -> None:
        """Some of its address."""
        self._target += part
        if len(self._target) > LONGEST_TARGET:
            raise _Wrong(Refusal(414, "The address is too long."))

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of its head, or of the trailer of a body, which is not handed on."""
        if self._reading is not None:
            self._head_size += len(name) + len(value)
            if self._head_size > LARGEST_HEAD:
                raise _Wrong(Refusal(431, "The trailer is too large."))
            return
        self._lines.append((name, value))
        self._fields_size += len(name) + len(value)
        if len(self._lines) > MOST_FIELDS or self._fields_size > LARGEST_HEAD:
            raise _Wrong(Refusal(431, "There are too many fields, or too long ones."))

    def on_headers_complete(self) -> None:
        """The head is whole."""
        parser = cast(httptools.HttpRequestParser, self._parser)
        method = parser.get_method().decode("latin-1")
        request = Request(method, self._target, parser.get_http_version(), self._lines)
        wrong = check(request) or self._first_line(request)
        if wrong is not None:
            raise _Wrong(wrong)
        self._reading = request
        self._head_size = 0
        if request.has_body:
            self._begin(request)

    def _first_line(self, request: Request) -> Refusal | None:
        """The parser takes more than one blank, and other protocols than HTTP: what is meant must stand there."""
        line = b"%b %b HTTP/1." % (request.method.encode("ascii"), request.target)
        place = self._raw.find(line, self._place)
        if place < 0:
            return Refusal(400, "The first line is not a method, an address and HTTP/1.1, with one blank between them.")
        self._place = place + len(line)
        return None

    def on_body(self, piece: bytes) -> None:
        """Some of its body."""
        request = self._reading
        if request is None or request.pieces is None:
            return  # nobody wants it any more
        request.pieces.append(piece)
        request.unread += len(piece)
        self._head_size = 0
        self._wake()
        if request.unread > UNREAD_BODY:
            self._pause()

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._between = True
        request, self._reading = self._reading, None
        if request is None:
            return
        request.whole = True
        self._head_size = 0
        if request.has_body:
            self._wake()
        else:
            self._begin(request)

    # Answering.

    def _begin(self, request: Request) -> None:
        """Answer it now, or when those before it are answered."""
        if self._task is None and not self.closing:
            self._answer(request)
            return
        if self._waiting is None:
            self._waiting = deque()
        self._waiting.append(request)
        if len(self._waiting) >= MOST_WAITING:
            self._pause()

    def _answer(self, request: Request) -> None:
        self.started = False
        self._current = request
        if self._drained is None and self._server.service.at_once(self, request):
            self._hit = request
            self.done(request)
        else:
            self._server.busy(self)
            self._task = asyncio.get_running_loop().create_task(self._serve(request))

    async def _serve(self, request: Request) -> None:
        """Answer what needs time, and then what came meanwhile."""
        try:
            await self._server.service.answer(self, request)
        except asyncio.CancelledError:
            if not self.transport.is_closing():
                self.transport.abort()
            return
        except ConnectionResetError:
            self.transport.abort()  # the reader hung up
            return
        except Exception:
            _log.exception("A request could not be answered")
            if self.started:
                self.transport.abort()
            else:
                self.refuse(Refusal(500, "Something went wrong here."))
            return
        finally:
            self._task = None
        if self.tunnel is None:
            self.done(request)
            self._next()

    def _next(self) -> None:
        """What waits for its turn."""
        while self._waiting and self._task is None and not self.transport.is_closing():
            self._answer(self._waiting.popleft())
        if self._task is None and not self.transport.is_closing():
            self._resume()

    def done(self, request: Request) -> None:
        """An answer is out."""
        if not request.whole or not request.keep_alive or self._server.draining:
            self.close()  # also where some of a body is still to come: it must not pass for the next request
        elif self.closing and not self._waiting:
            self.close()
        else:
            self.deadline = self._server.idle_deadline()

    @property
    def crowded(self) -> bool:
        """Whether so much waits to be sent that no more should be written."""
        return self._drained is not None

    def open_tunnel(self, far: asyncio.Transport) -> None:
        """From now on what comes goes there."""
        self.tunnel = far
        self.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        if self._early:
            far.write(self._early)
            self._early = b""
        self._server.busy(self)
        self._resume()

    def refuse(self, refusal: Refusal) -> None:
        """Say why nothing more is answered, and close."""
        if self.transport.is_closing():
            return
        faulty = self._reading is not None and self._reading is self._current  # the body of what is being answered
        if self._task is not None and faulty and not self.started:
            self._task.cancel()
        elif self._task is not None or self._waiting:
            # Answers before it are still on their way: it must not be taken for one of them.
            self._stop_reading()
            if faulty:
                self.transport.abort()
            return
        self._server.refused(self, refusal)
        self.transport.write(respond.own(refusal.status, refusal.sentence, self._server.now(), keep_alive=False))
        self.close()

    @property
    def idle(self) -> bool:
        """Whether nothing is being done for it and nothing of a request has come."""
        return self._task is None and self._between and not self._head_size and self.tunnel is None

    def too_late(self) -> None:
        """Its time is over: a head or a body did not come, or nobody reads what is sent."""
        if self.idle and not self.closing:
            self.close()
        elif self._task is None and not self.closing and not self.transport.is_closing():
            self.refuse(Refusal(408, "The request did not come in time."))
        else:
            self.transport.abort()

    def close(self) -> None:
        """Close it once what was written is out."""
        self.closing = True
        self.deadline = self._server.linger_deadline()
        self.transport.close()

    def write(self, data: bytes | memoryview) -> None:
        """Send something of an answer."""
        self.started = True
        self.transport.write(data)

    async def drained(self) -> None:
        """Wait until more may be sent."""
        self._server.busy(self)
        while self._drained is not None and not self.transport.is_closing():
            await self._drained
        if self.transport.is_closing():
            raise ConnectionResetError("the reader is gone")

    async def body(self, request: Request, most: int) -> AsyncIterator[bytes]:
        """The body of the request that is being answered; Cut if it does not come to its end."""
        sent = 0
        pieces = request.pieces
        if request.expects and not request.whole:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while pieces is not None:
            while pieces:
                piece = pieces.popleft()
                request.unread -= len(piece)
                sent += len(piece)
                if sent > most:
                    raise Cut
                yield piece
            if request.whole:
                return
            if self.closing:
                raise Cut
            self._resume()
            self._got = asyncio.get_running_loop().create_future()
            self._server.busy(self)
            await self._got

    def _wake(self) -> None:
        if self._got is not None and not self._got.done():
            self._got.set_result(None)

    def _stop_reading(self) -> None:
        self.closing = True
        self._pause()
        if self._task is None and not self._waiting:
            self.close()

    def _pause(self) -> None:
        if not self._paused and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    def _resume(self) -> None:
        if self._paused and not self.transport.is_closing():
            self._paused = False
            self.transport.resume_reading()

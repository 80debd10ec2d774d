"""A connection that speaks HTTP/2: many questions at once, and the answers in any order.

A library for the whole protocol (h2) takes three times as long for a page, and cannot read on after the other side has
announced that it will close, as servers do after some number of questions. What is left to do is little, because only
GET is spoken: nothing is uploaded, and pushes are not allowed.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import cast

from afresh.fetch import frames as f
from afresh.fetch.answer import LONGEST_LINE, MOST_HEADERS, MOST_INTERIM, Answer, Lines, Question, Unanswered
from afresh.fetch.inflate import Spoiled
from afresh.fetch.packed import LARGEST_HEAD, NO_TABLE, Unpacker, fields, question

STREAM_WINDOW = 1 << 20  # bytes of one body that may be under way or unread
WINDOW = 1 << 24  # and of all bodies of a connection
MOST_STREAMS = 100  # at once, if the server does not say
MOST_NOISE = 1000  # frames that bring no answer forward, in a row: a server may send them for ever
MOST_UNSENT = 1 << 16  # bytes that the other side does not take while it asks for more
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+")
_STRAY = re.compile(rb"[\0\r\n]")
_NOT_HERE = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})


class _Stream(Answer):
    """An answer, and how much of it may still come."""

    __slots__ = ("heard", "interim", "promised", "taken", "window")

    def __init__(self, connection: "Http2", number: int, heard: int) -> None:
        super().__init__(connection, number)
        self.heard = heard  # frames on the connection when it was asked
        self.window = STREAM_WINDOW
        self.taken = 0  # and not told yet
        self.interim = 0
        self.promised: int | None = None


class Http2(asyncio.BufferedProtocol):
    """One connection. `headers` go along with every question; `buffer` is where the network is read into."""

    def __init__(self, headers: Mapping[str, str], buffer: memoryview) -> None:
        self.closed = False
        self.used = 0
        self.idle_since = 0.0
        self._headers = fields(headers.items())
        self._buffer = buffer
        self._frames = f.Frames()
        self._unpacker = Unpacker()
        self._streams: dict[int, _Stream] = {}
        self._next = 1
        self._most = 1  # streams at once, until the server says
        self._window, self._taken = WINDOW, 0
        self._head: tuple[int, int, bytes] | None = None  # stream, flags and beginning of a head that goes on
        self._heard = self._noise = 0
        self._settled = False

    # What the pool and the reader ask of it.

    @property
    def busy(self) -> int:
        """How many answers are under way."""
        return len(self._streams)

    @property
    def room(self) -> bool:
        """Whether one more question may be asked now."""
        return not self.closed and len(self._streams) < self._most and self._next < 1 << 30

    def ask(self, asked: Question) -> Answer:
        """Send a question; its answer will come."""
        stream = _Stream(self, self._next, self._heard)
        if not self.room:
            stream.fail(Unanswered("closed before it was used"))
            return stream
        head = question(asked.authority, asked.path) + self._headers + fields(asked.headers.items())
        head = head if self.used else NO_TABLE + head
        self._streams[self._next] = stream
        self._next += 2
        self.used += 1
        pieces = [head[at : at + f.LARGEST_FRAME] for at in range(0, len(head), f.LARGEST_FRAME)]
        kinds = [f.HEADERS] + [f.CONTINUATION] * (len(pieces) - 1)
        for number, (kind, piece) in enumerate(zip(kinds, pieces, strict=True), 1):
            flags = (f.END_STREAM if number == 1 else 0) | (f.END_HEADERS if number == len(pieces) else 0)
            self._transport.write(f.frame(kind, flags, stream.stream, piece))
        return stream

    def taken(self, answer: Answer, size: int) -> None:
        """So many bytes of a body were read: as many more may come."""
        self._make_room(size)
        stream = self._streams.get(answer.stream)
        if stream is not None:
            stream.taken += size
            if stream.taken >= STREAM_WINDOW // 2:
                self._open(stream.stream, stream.taken)
                stream.window, stream.taken = stream.window + stream.taken, 0

    def drop(self, answer: Answer) -> None:
        """Nobody waits for the rest of this answer; what else is under way goes on."""
        if self._streams.pop(answer.stream, None) is not None and not self._transport.is_closing():
            self._transport.write(f.frame(f.RST_STREAM, 0, answer.stream, f.number(f.CANCEL)))
            self.closed = self.closed or answer.missed  # a connection that fell silent is not asked again
        self.taken(answer, answer.unread)
        self._leave()

    def close(self) -> None:
        """End it, whatever is under way."""
        self.closed = True
        self._transport.abort()

    # What the event loop tells it.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection stands: say what we expect."""
        self._transport = cast(asyncio.Transport, transport)
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        wanted = {f.ENABLE_PUSH: 0, f.INITIAL_WINDOW: STREAM_WINDOW, f.HEADER_LIST_SIZE: LARGEST_HEAD}
        self._transport.write(f.PREFACE + f.settings(wanted))
        self._open(0, WINDOW - 65535)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to read to."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came."""
        try:
            for kind, flags, stream, payload in self._frames.feed(bytes(self._buffer[:nbytes])):
                self._take(kind, flags, stream, payload)
                if self._noise > MOST_NOISE or self._transport.get_write_buffer_size() > MOST_UNSENT:
                    raise f.BadFrame("noise")
        except f.BadFrame:
            last = f.number(0) + f.number(f.PROTOCOL_ERROR)
            self._transport.write(f.frame(f.GOAWAY, 0, 0, last))
            self._fail_all(Spoiled("bad_protocol"))
            self.close()
        else:
            self._leave()

    def eof_received(self) -> None:
        """The server says that it has no more to say, and the connection will be closed."""
        self.closed = True
        self._fail_all(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self.closed = True
        self._fail_all(exc)
        if not self.gone.done():
            self.gone.set_result(None)

    # Frames.

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """One frame."""
        self._heard += 1
        self._noise += 1
        if self._head is not None and (kind != f.CONTINUATION or stream != self._head[0]):
            raise f.BadFrame("a head is interrupted")
        if not self._settled and kind != f.SETTINGS:
            raise f.BadFrame("it does not begin with settings")
        if kind in _OF_STREAMS and not self._known(stream):
            raise f.BadFrame("about what was not asked")
        if (handler := _HANDLERS.get(kind)) is not None:  # all others are to be ignored
            handler(self, flags, stream, payload)

    def _known(self, stream: int) -> bool:
        """Whether this stream is or was one of ours."""
        return stream % 2 == 1 and stream < self._next

    def _on_data(self, flags: int, number: int, payload: bytes) -> None:
        self._window -= len(payload)
        if self._window < 0:
            raise f.BadFrame("more than there is room for")
        stream = self._streams.get(number)
        data = f.unpadded(flags & f.PADDED, payload)
        if stream is None:  # nobody waits for it any more
            self._make_room(len(payload))
            return
        stream.window -= len(payload)
        if stream.window < 0 or not stream.status:
            raise f.BadFrame("more than there is room for, or before the head")
        if len(payload) > len(data):
            self.taken(stream, len(payload) - len(data))
        if data:
            self._noise = 0
            stream.feed(data)
        if flags & f.END_STREAM:
            self._end(stream)

    def _on_headers(self, flags: int, stream: int, payload: bytes) -> None:
        self._on_head(stream, flags, f.unpadded(flags, payload))

    def _on_continuation(self, flags: int, stream: int, payload: bytes) -> None:
        if self._head is None:
            raise f.BadFrame("nothing to continue")
        stream, first, start = self._head
        self._on_head(stream, first & ~f.END_HEADERS | flags & f.END_HEADERS, start + payload)

    def _on_head(self, number: int, flags: int, block: bytes) -> None:
        """As much of a head as is there."""
        if len(block) > LARGEST_HEAD:
            raise f.BadFrame("a large head")
        self._head = None if flags & f.END_HEADERS else (number, flags, block)
        if self._head is not None:
            return
        lines = self._unpacker.lines(block)
        if (stream := self._streams.get(number)) is None:
            return
        try:
            self._read_head(stream, lines, last=bool(flags & f.END_STREAM))
        except Spoiled as error:  # this answer is none; the others may be
            stream.fail(error)
            self.drop(stream)

    def _read_head(self, stream: _Stream, lines: Lines, *, last: bool) -> None:
        """A head, one that goes before it, or what may follow a body."""
        if stream.status:
            if not last or any(name.startswith(b":") for name, _ in lines):
                raise Spoiled("bad_protocol")
            self._end(stream)
            return
        status = _status(lines)
        if 100 <= status < 200:
            stream.interim += 1
            if last or status == 101 or stream.interim > MOST_INTERIM:
                raise Spoiled("bad_protocol")
            return
        self._noise = 0
        stream.begin(status, lines[1:])
        stream.promised = _length(stream)
        if last:
            self._end(stream)

    def _end(self, stream: _Stream) -> None:
        """An answer is whole, if it is as long as it said."""
        del self._streams[stream.stream]
        missing = 0 if stream.promised is None else stream.promised - stream.received
        if missing and (stream.status != 304 or stream.received):  # that one tells the length of what it does not send
            stream.fail(Spoiled("truncated" if missing > 0 else "bad_protocol"))
        stream.finish()

    def _on_reset(self, flags: int, number: int, payload: bytes) -> None:
        if len(payload) != 4:
            raise f.BadFrame("a reset without a reason")
        if (stream := self._streams.pop(number, None)) is None:
            return
        refused = int.from_bytes(payload) == f.REFUSED_STREAM
        stream.fail(Unanswered("refused") if refused else ConnectionResetError("reset by the server"))

    def _on_settings(self, flags: int, stream: int, payload: bytes) -> None:
        if stream or (flags & f.ACK and payload):
            raise f.BadFrame("settings of a stream, or a full acknowledgement")
        if flags & f.ACK:
            return
        said = dict(f.read_settings(payload))
        if not self._settled or f.MOST_STREAMS in said:
            self._most = said.get(f.MOST_STREAMS, MOST_STREAMS)
        self._settled = True
        self._transport.write(f.frame(f.SETTINGS, f.ACK, 0))

    def _on_push(self, flags: int, stream: int, payload: bytes) -> None:
        raise f.BadFrame("pushes were not allowed")

    def _on_ping(self, flags: int, stream: int, payload: bytes) -> None:
        if stream or len(payload) != 8:
            raise f.BadFrame("no ping")
        if not flags & f.ACK:
            self._transport.write(f.frame(f.PING, f.ACK, 0, payload))

    def _on_goaway(self, flags: int, stream: int, payload: bytes) -> None:
        """It will close. What it has seen by now is still answered."""
        if stream or len(payload) < 8:
            raise f.BadFrame("no farewell")
        self.closed = True
        last = int.from_bytes(payload[:4]) & 0x7FFFFFFF
        for number in [number for number in self._streams if number > last]:
            self._streams.pop(number).fail(Unanswered("the server is closing"))

    # And what follows.

    def _make_room(self, size: int) -> None:
        """So many bytes more may come on all streams together."""
        self._taken += size
        if self._taken >= WINDOW // 2:
            self._open(0, self._taken)
            self._window, self._taken = self._window + self._taken, 0

    def _open(self, stream: int, size: int) -> None:
        """So many bytes more may come."""
        if not self._transport.is_closing():
            self._transport.write(f.frame(f.WINDOW_UPDATE, 0, stream, f.number(size)))

    def _leave(self) -> None:
        """Hang up, if nothing is under way and nothing will be."""
        if self.closed and not self._streams:
            self._transport.abort()

    def _fail_all(self, error: Exception | None) -> None:
        """Nothing more will come: for a reason, or because the connection has ended."""
        streams, self._streams = list(self._streams.values()), {}
        for stream in streams:
            unheard = self.used > 1 and stream.heard == self._heard
            stream.fail(
                Unanswered("closed while it was idle")
                if unheard
                else error or (Spoiled("truncated") if stream.status else ConnectionResetError("closed"))
            )


_OF_STREAMS = frozenset({f.DATA, f.HEADERS, f.RST_STREAM, f.CONTINUATION})
_HANDLERS: dict[int, Callable[[Http2, int, int, bytes], None]] = {
    f.DATA: Http2._on_data,
    f.HEADERS: Http2._on_headers,
    f.RST_STREAM: Http2._on_reset,
    f.SETTINGS: Http2._on_settings,
    f.PUSH_PROMISE: Http2._on_push,
    f.PING: Http2._on_ping,
    f.GOAWAY: Http2._on_goaway,
    f.CONTINUATION: Http2._on_continuation,
}


def _status(lines: Lines) -> int:
    """The status of a head; Spoiled if it has none, or anything else that is not allowed."""
    if not lines or lines[0][0] != b":status" or len(lines) > MOST_HEADERS:
        raise Spoiled("bad_protocol")
    status = lines[0][1]
    if len(status) != 3 or not status.isdigit() or status < b"100":
        raise Spoiled("bad_protocol")
    for name, value in lines[1:]:
        if not _NAME.fullmatch(name) or name in _NOT_HERE or _STRAY.search(value):
            raise Spoiled("bad_protocol")
        if len(name) + len(value) > LONGEST_LINE:
            raise Spoiled("bad_protocol")
    return int(status)


def _length(answer: Answer) -> int | None:
    """The length that a head promises, if it does."""
    said = answer.headers.all("Content-Length")
    if not said:
        return None
    if len(said) > 1 or not (said[0].isascii() and said[0].isdecimal()) or len(said[0]) > 18:
        raise Spoiled("bad_protocol")
    return int(said[0])

"""HTTP/2 on the wire (RFC 9113): frames taken apart and put together."""

import struct
from collections.abc import Iterator

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
LARGEST_FRAME = 1 << 14  # of what is sent to us: we do not ask for larger ones

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
ACK = END_STREAM = 0x1
END_HEADERS, PADDED, PRIORITIZED = 0x4, 0x8, 0x20
HEADER_TABLE_SIZE, ENABLE_PUSH, MOST_STREAMS, INITIAL_WINDOW, FRAME_SIZE, HEADER_LIST_SIZE = range(1, 7)
PROTOCOL_ERROR, REFUSED_STREAM, CANCEL = 0x1, 0x7, 0x8


class BadFrame(ValueError):
    """The other side breaks the rules."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame.

    >>> frame(PING, ACK, 0, b"12345678").hex()
    '0000080601000000003132333435363738'
    """
    return struct.pack(">I", len(payload) << 8 | kind) + struct.pack(">BI", flags, stream) + payload


def number(value: int) -> bytes:
    """A number of four bytes."""
    return struct.pack(">I", value)


def settings(values: dict[int, int]) -> bytes:
    """A frame of settings."""
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", name, value) for name, value in values.items()))


def read_settings(payload: bytes) -> Iterator[tuple[int, int]]:
    """Settings, one by one; BadFrame for values that there are not."""
    if len(payload) % 6:
        raise BadFrame("half a setting")
    for name, value in struct.iter_unpack(">HI", payload):
        too_large = name == INITIAL_WINDOW and value >= 1 << 31
        if too_large or (name == FRAME_SIZE and not LARGEST_FRAME <= value < 1 << 24):
            raise BadFrame("no such value of a setting")
        yield name, value


class Frames:
    """Frames from bytes that come in any pieces.

    >>> frames = Frames()
    >>> whole = frame(DATA, END_STREAM, 3, b"hello")
    >>> list(frames.feed(whole[:5])), list(frames.feed(whole[5:]))
    ([], [(0, 1, 3, b'hello')])
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
        """Kind, flags, stream and payload of every frame that is whole by now; all must be taken."""
        data, at = self._rest + data, 0
        while len(data) - at >= 9:
            length, kind = int.from_bytes(data[at : at + 3]), data[at + 3]
            if length > LARGEST_FRAME:
                raise BadFrame("a frame larger than agreed")
            start, end = at + 9, at + 9 + length
            if len(data) < end:
                break
            yield kind, data[at + 4], int.from_bytes(data[at + 5 : start]) & 0x7FFFFFFF, data[start:end]
            at = end
        self._rest = data[at:]


def unpadded(flags: int, payload: bytes) -> bytes:
    """What a frame carries, without padding and priority."""
    start, end = 0, len(payload)
    if flags & PADDED:
        if not payload:
            raise BadFrame("no room for padding")
        start, end = 1, end - payload[0]
    if flags & PRIORITIZED:
        start += 5
    if start > end:
        raise BadFrame("more padding than there is")
    return payload[start:end]

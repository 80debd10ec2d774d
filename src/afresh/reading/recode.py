"""Single-byte encodings and UTF-16 to UTF-8, compiled: a codec's error handler would be called for every bad byte."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.reading.inlined import inlined
from afresh.reading.labels import USER_DEFINED
from afresh.value.compiled import compiled

Bytes = NDArray[np.uint8]
REPLACEMENT = 0xFFFD


def single_byte(body: bytes, codec: str) -> bytes:
    """Text in an encoding in which each byte is a character."""
    out = np.empty(3 * len(body), np.uint8)
    return out[: _spread(np.frombuffer(body, np.uint8), _table(codec), out)].tobytes()


def utf16(body: bytes, *, big: bool) -> bytes:
    """Text in UTF-16 of one byte order."""
    out = np.empty(3 * (len(body) // 2) + 3, np.uint8)
    return out[: _join(np.frombuffer(body, np.uint8), big, out)].tobytes()


@cache
def _table(codec: str) -> NDArray[np.int32]:
    """The character that each byte stands for."""
    if codec == USER_DEFINED:
        return np.array([byte if byte < 128 else 0xF700 + byte for byte in range(256)], np.int32)
    found = [bytes((byte,)).decode(codec, "replace") for byte in range(256)]
    # What no character was given to, but is a control character in Unicode, stands for that, as in every browser.
    points = [byte if each == "\ufffd" and 0x80 <= byte < 0xA0 else ord(each) for byte, each in enumerate(found)]
    return np.array(points, np.int32)


@inlined
def put(point: int, out: Bytes, at: int) -> int:
    """Write a character in UTF-8; where the next one goes."""
    if point < 0x80:
        out[at] = point
        return at + 1
    if point < 0x800:
        out[at], out[at + 1] = 0xC0 | (point >> 6), 0x80 | (point & 63)
        return at + 2
    if point < 0x10000:
        out[at], out[at + 1], out[at + 2] = 0xE0 | (point >> 12), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63)
        return at + 3
    out[at], out[at + 1] = 0xF0 | (point >> 18), 0x80 | ((point >> 12) & 63)
    out[at + 2], out[at + 3] = 0x80 | ((point >> 6) & 63), 0x80 | (point & 63)
    return at + 4


@compiled
def _spread(body: Bytes, table: NDArray[np.int32], out: Bytes) -> int:
    at = 0
    for byte in body:
        at = put(table[byte], out, at)
    return at


@compiled
def _join(body: Bytes, big: bool, out: Bytes) -> int:
    at, first, second = 0, 0 if big else 1, 1 if big else 0
    waiting: Any = 0
    for nth in range(body.size // 2):
        unit: Any = (np.int64(body[2 * nth + first]) << 8) | np.int64(body[2 * nth + second])
        if waiting:
            if 0xDC00 <= unit < 0xE000:
                at = put(0x10000 + ((waiting - 0xD800) << 10) + (unit - 0xDC00), out, at)
                waiting = 0
                continue
            at = put(REPLACEMENT, out, at)
            waiting = 0
        if 0xD800 <= unit < 0xDC00:
            waiting = unit
        elif 0xDC00 <= unit < 0xE000:
            at = put(REPLACEMENT, out, at)
        else:
            at = put(unit, out, at)
    if waiting or body.size % 2:
        at = put(REPLACEMENT, out, at)
    return at

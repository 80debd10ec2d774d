"""Undoing content codings, in small steps and never beyond a limit.

A body flows through one stage for each coding. No stage hands on more than a step at once, and none may make more than
the limit in all: a bomb is found while it grows, also one that hides inside another. What one stage hands to the next
is coded itself, hence hardly larger than what has arrived. More than that would be work for nothing: a few hundred
bytes can become megabytes of empty blocks, which take seconds to undo.
"""

import zlib
from collections.abc import Callable, Sequence
from typing import Protocol

import brotli
import zstandard

from afresh.fetch.zstd_frames import ZstdFrames

STEP = 1 << 16
BLOCK = 1 << 20
MOST_STAGES = 4  # honest servers use one
MOST_GROWTH = 2  # of what is handed from one coding to the next, against what has arrived
MOST_MEMBERS = 1000  # gzip members in one body; each costs time even when it is empty
LARGEST_WINDOW = 1 << 23  # what RFC 9659 allows zstd on the web
ACCEPTED = "gzip, deflate, br, zstd"

Out = Callable[[bytes], object]


class Spoiled(Exception):
    """The body cannot be used, for a reason in one word."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Stage(Protocol):
    """One coding being undone."""

    def feed(self, data: bytes) -> None:
        """Take in the next bytes."""

    def finish(self) -> None:
        """Say that no more come; Spoiled if the coding has not ended."""


class _Counted:
    """Hands pieces on, up to a limit in all."""

    def __init__(self, out: Out, limit: int) -> None:
        self._out = out
        self._left = limit

    def write(self, piece: bytes) -> int:
        """Hand a piece on; Spoiled if that is too much."""
        self._left -= len(piece)
        if self._left < 0:
            raise Spoiled("too_large")
        self._out(piece)
        return len(piece)


class _Kept:
    """Pieces, kept in blocks.

    Blocks, because one buffer that grows is copied on the way and takes its memory twice when a bomb is in it; and not
    the pieces themselves, because a million of one byte each take fifty times their size.
    """

    def __init__(self) -> None:
        self.size = 0
        self._blocks = [bytearray()]

    def write(self, piece: bytes) -> None:
        self.size += len(piece)
        if len(self._blocks[-1]) >= BLOCK:
            self._blocks.append(bytearray())
        self._blocks[-1] += piece

    def whole(self) -> bytes:
        return b"".join(self._blocks)


class _Zlib:
    """What gzip and deflate share: one stream of zlib's, or several after each other."""

    def __init__(self, out: Out, limit: int) -> None:
        self._made = _Counted(out, limit)
        self._held = b""  # too little yet to tell what begins
        self._stream: zlib._Decompress | None = None
        self._streams = 0
        self._over = False

    def _begin(self, start: bytes) -> int | None:
        """The window bits to begin a stream with, or None if no more streams come."""
        raise NotImplementedError

    def feed(self, data: bytes) -> None:
        while data and not self._over:
            if self._stream is None:
                data = self._held + data
                if len(data) < 2:
                    self._held = data
                    return
                self._held = b""
                bits = self._begin(data)
                if bits is None:
                    self._over = True
                    return
                self._streams += 1
                self._stream = zlib.decompressobj(bits)
            data = self._inflate(self._stream, data)

    def _inflate(self, stream: "zlib._Decompress", data: bytes) -> bytes:
        """Undo as much as belongs to this stream; what is left after its end."""
        while True:
            try:
                piece = stream.decompress(data, STEP)
            except zlib.error:
                raise Spoiled("bad_coding") from None
            if piece:
                self._made.write(piece)
            if stream.eof:
                self._stream = None
                return stream.unused_data
            data = stream.unconsumed_tail
            if not data and len(piece) < STEP:
                return b""

    def finish(self) -> None:
        if self._stream is not None or not self._streams:
            raise Spoiled("truncated")


class _Gzip(_Zlib):
    """gzip: any number of members; what follows them and is none is padding."""

    def _begin(self, start: bytes) -> int | None:
        if self._streams >= MOST_MEMBERS:
            raise Spoiled("bad_coding")
        return None if self._streams and not start.startswith(b"\x1f\x8b") else 16 + zlib.MAX_WBITS


class _Deflate(_Zlib):
    """deflate: in zlib's wrapping as the standard asks, or bare as many servers send it."""

    def _begin(self, start: bytes) -> int | None:
        if self._streams:
            return None
        wrapped = start[0] & 0x0F == 8 and int.from_bytes(start[:2]) % 31 == 0
        return zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS


class _Brotli:
    """br."""

    def __init__(self, out: Out, limit: int) -> None:
        self._made = _Counted(out, limit)
        self._stream = brotli.Decompressor()

    def feed(self, data: bytes) -> None:
        try:
            piece = self._stream.process(data, output_buffer_limit=STEP)
            while piece:
                self._made.write(piece)
                piece = self._stream.process(b"", output_buffer_limit=STEP)
        except brotli.error:
            raise Spoiled("bad_coding") from None

    def finish(self) -> None:
        if not self._stream.is_finished():
            raise Spoiled("truncated")


class _Zstd:
    """zstd: any number of frames."""

    def __init__(self, out: Out, limit: int) -> None:
        self._made = _Counted(out, limit)
        decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        self._stream = decompressor.stream_writer(self._made, write_size=STEP, closefd=False)  # type: ignore[arg-type]
        self._frames = ZstdFrames()

    def feed(self, data: bytes) -> None:
        self._frames.feed(data)
        if self._frames.too_many:
            raise Spoiled("bad_coding")
        try:
            self._stream.write(data)
        except zstandard.ZstdError:
            raise Spoiled("bad_coding") from None

    def finish(self) -> None:
        if not self._frames.whole:
            raise Spoiled("truncated")


_STAGES: dict[str, Callable[[Out, int], Stage]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _Zstd,
}


class Body:
    """A body as it arrives: undone on the way in, kept in memory once, never larger than the limit.

    >>> body = Body(["gzip"], limit=100)
    >>> body.feed(__import__("gzip").compress(b"hello")), body.finish()
    (None, b'hello')
    """

    def __init__(self, codings: Sequence[str], limit: int) -> None:
        if len(codings) > MOST_STAGES:
            raise Spoiled("bad_coding")
        if any(coding not in _STAGES for coding in codings):
            raise Spoiled("unknown_coding")
        self._kept = _Kept()
        self._arrived = 0
        self._stages: list[Stage] = []
        out: Out = _Counted(self._kept.write, limit).write
        for coding in codings:  # the last one applied is the first to be undone
            if self._stages:
                out = self._handed_on(out)
            self._stages.insert(0, _STAGES[coding](out, limit))
            out = self._stages[0].feed
        self._feed = out

    def _handed_on(self, out: Out) -> Out:
        """What hands coded bytes to the next stage, as many as may have come of those that arrived."""
        handed = 0

        def hand(piece: bytes) -> None:
            nonlocal handed
            handed += len(piece)
            if handed > MOST_GROWTH * self._arrived + STEP:
                raise Spoiled("bad_coding")
            out(piece)

        return hand

    def feed(self, data: bytes) -> None:
        """Take in bytes from the network; Spoiled if they make the body too large or cannot be understood."""
        self._arrived += len(data)
        self._feed(data)

    @property
    def size(self) -> int:
        """How large the body is by now."""
        return self._kept.size

    def finish(self) -> bytes:
        """The whole body; Spoiled if a coding was cut off."""
        for stage in self._stages:
            stage.finish()
        return self._kept.whole()

    def so_far(self) -> bytes:
        """What has come out by now."""
        return self._kept.whole()


def gunzip(data: bytes, limit: int) -> tuple[bytes, str]:
    """What a gzip file holds, up to a limit; and the reason why that is not all, or "".

    >>> packed = __import__("gzip").compress(b"hello" * 100_000)
    >>> [(len(content), reason) for content, reason in (gunzip(packed, 500_000), gunzip(packed, 100_000))]
    [(500000, ''), (65536, 'too_large')]
    """
    body = Body(["gzip"], limit)
    try:
        for start in range(0, len(data), STEP):
            body.feed(data[start : start + STEP])
        return body.finish(), ""
    except Spoiled as spoiled:
        return body.so_far(), spoiled.reason

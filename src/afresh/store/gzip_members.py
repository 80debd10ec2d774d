"""Where the members of a gzip file begin and end: in a WARC file, each is a record of its own.

Readers of WARC files do not say that a file ends within a member, nor go on behind one that is damaged.
"""

import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

MAGIC = b"\x1f\x8b\x08"
PIECE = 256 << 10  # bytes read, or unpacked, at a time,
FIRST = 4 << 10  # and at first: many members are small
MAX_LOOKS = 200_000  # at places that look like the beginning of a member, behind one that is damaged
RECORD = b"WARC/"  # what the content of a member begins with


class Member(NamedTuple):
    """Where a member ends, or that the file ends within it (`cut`), or that it is damaged (neither)."""

    end: int | None = None
    cut: bool = False
    empty: bool = False


def member(file: BinaryIO, at: int) -> Member:
    """How the member that begins at a byte ends; what is in it is unpacked by pieces and let go."""
    file.seek(at)
    unpacking, end, empty = zlib.decompressobj(31), at, True
    while not unpacking.eof:
        packed = unpacking.unconsumed_tail
        if not packed:
            packed = file.read(FIRST if end == at else PIECE)
            end += len(packed)
            if not packed:
                return Member(cut=True)
        try:
            empty = not unpacking.decompress(packed, PIECE) and empty
        except zlib.error:
            return Member()
    return Member(end - len(unpacking.unused_data), empty=empty)


def members(file: BinaryIO, at: int) -> Iterator[tuple[int, Member]]:
    """The members from a byte on, and where they begin; one that is not whole is the last."""
    while True:
        file.seek(at)
        if not file.read(FIRST).strip(b"\0"):  # padding, or the end
            return
        found = member(file, at)
        yield at, found
        if found.end is None:
            return
        at = found.end


def following(file: BinaryIO, at: int) -> int | None:
    """The first member from a byte on that begins as a record does; None if there is none."""
    looks = 0
    while True:
        file.seek(at)
        piece = file.read(PIECE)
        found = piece.find(MAGIC)
        while found >= 0:
            looks += 1
            if looks > MAX_LOOKS:
                return None
            if _begins_record(file, at + found):
                return at + found
            found = piece.find(MAGIC, found + 1)
        if len(piece) < PIECE:
            return None
        at += len(piece) - len(MAGIC) + 1


def _begins_record(file: BinaryIO, at: int) -> bool:
    file.seek(at)
    try:
        return zlib.decompressobj(31).decompress(file.read(4_096), len(RECORD)) == RECORD
    except zlib.error:
        return False

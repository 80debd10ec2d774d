"""Where the members of a gzip file begin and end: in a WARC file, each is a record of its own.

Readers of WARC files do not say that a file ends within a member, nor go on behind one that is damaged.
"""

import zlib
from typing import BinaryIO, NamedTuple

MAGIC = b"\x1f\x8b\x08"
PIECE = 256 << 10  # bytes read, or unpacked, at a time
RECORD = b"WARC/"  # what the content of a member begins with


class Member(NamedTuple):
    """Where a member ends, or that the file ends within it (`cut`), or that it is damaged (neither)."""

    end: int | None = None
    cut: bool = False


def member(file: BinaryIO, at: int) -> Member:
    """How the member that begins at a byte ends; what is in it is unpacked by pieces and let go."""
    file.seek(at)
    unpacking, end = zlib.decompressobj(31), at
    while not unpacking.eof:
        packed = unpacking.unconsumed_tail
        if not packed:
            packed = file.read(PIECE)
            end += len(packed)
            if not packed:
                return Member(cut=True)
        try:
            unpacking.decompress(packed, PIECE)
        except zlib.error:
            return Member()
    return Member(end - len(unpacking.unused_data))


def following(file: BinaryIO, at: int) -> int | None:
    """The first member from a byte on that begins as a record does; None if there is none."""
    while True:
        file.seek(at)
        piece = file.read(PIECE)
        found = piece.find(MAGIC)
        while found >= 0:
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


def cut_at(file: BinaryIO, at: int) -> int | None:
    """Where the member begins within which the file ends, among those from a byte on; None if all are whole."""
    while True:
        file.seek(at)
        begins = file.read(PIECE)
        if not begins.strip(b"\0"):  # padding, or the end
            return None
        found = member(file, at)
        if found.end is None:
            return at if found.cut else None
        at = found.end

"""Fingerprints in the order in which they came: a file that is appended to, and read once, after a restart.

A record holds how many fingerprints follow, their CRC-32, and the fingerprints. What a process that died had begun to
write is cut off; damage anywhere else is said.
"""

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from afresh.errors import StoreError
from afresh.store.seen_run import Keys, sync_folder

SEARCHED = 1 << 20  # bytes at a time
_RECORD = struct.Struct("<II")


class Journal:
    """One file of fingerprints.

    Invariant: what `append` has written is whole, so a death of the process loses nothing of it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        sync_folder(path.parent)

    def append(self, keys: NDArray[np.uint64]) -> None:
        """Write some down; none of them if that fails."""
        body = keys.tobytes()
        append_whole(self._file, _RECORD.pack(keys.size, zlib.crc32(body)) + body)

    def flush(self) -> None:
        """Make what was written survive a power cut."""
        os.fsync(self._file)

    def close(self) -> None:
        """Let go of the file; a second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def append_whole(file: int, record: bytes) -> None:
    """Write a record at the end of a file, or nothing: half a record would hide those after it."""
    end = os.lseek(file, 0, os.SEEK_END)
    try:
        written = os.write(file, record)
        if written != len(record):
            written += os.write(file, record[written:])
        if written != len(record):
            raise OSError("the journal could not be written")
    except OSError:
        os.ftruncate(file, end)
        raise


def replayed(path: Path) -> Iterator[Keys]:
    """The fingerprints of a journal, a record at a time; its unfinished end is cut off."""
    damaged = StoreError(
        f"The journal {path} is damaged in the middle.",
        hint="Put a backup of the folder in its place, or remove the journal to lose its URLs.",
    )
    for _, body in whole_records(path, _RECORD, lambda fields: 8 * fields[0], damaged):
        yield np.frombuffer(body, np.uint64)


def whole_records(
    path: Path, header: struct.Struct, size_of: Callable[[tuple[int, ...]], int], damaged: StoreError
) -> Iterator[tuple[tuple[int, ...], bytes]]:
    """The header's fields and the body of each record of a file; its unfinished end is cut off.

    The last field is the CRC-32 of the body, and `size_of` says how long that is. `damaged` is raised if anything else
    is wrong than an end that was being written when the process or the machine died.
    """
    length, whole = path.stat().st_size, 0
    with path.open("r+b") as file:
        while len(packed := file.read(header.size)) == header.size:
            fields = header.unpack(packed)
            size = size_of(fields)
            if file.tell() + size > length:
                if _ends_whole(file, whole + 1, length, header, size_of):
                    raise damaged  # a length that lies, before records that are whole
                break
            body = file.read(size)
            if zlib.crc32(body) != fields[-1]:
                if file.tell() < length:
                    raise damaged
                break
            yield fields, body
            whole = file.tell()
        file.truncate(whole)


def _ends_whole(
    file: BinaryIO, start: int, end: int, header: struct.Struct, size_of: Callable[[tuple[int, ...]], int]
) -> bool:
    """Whether some record between two places ends exactly with the second: one that was cut short does not."""
    while start + header.size < end:
        file.seek(start)
        piece = file.read(SEARCHED + header.size - 1)
        for at in range(min(SEARCHED, len(piece) - header.size + 1)):
            fields = header.unpack_from(piece, at)
            begins = start + at + header.size
            if 0 < size_of(fields) == end - begins:
                file.seek(begins)
                if zlib.crc32(file.read(end - begins)) == fields[-1]:
                    return True
        start += SEARCHED
    return False

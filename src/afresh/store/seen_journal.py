"""Fingerprints in the order in which they came: a file that is appended to, and read once, after a restart.

A record holds how many fingerprints follow, their CRC-32, and the fingerprints. What a process that died had begun to
write is cut off; damage anywhere else is said.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from afresh.errors import StoreError
from afresh.store.seen_run import Keys, sync_folder

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
    length, whole = path.stat().st_size, 0
    with path.open("r+b") as file:
        while len(header := file.read(_RECORD.size)) == _RECORD.size:
            size, check = _RECORD.unpack(header)
            if file.tell() + 8 * size > length:
                break
            body = file.read(8 * size)
            if zlib.crc32(body) != check:
                if file.tell() < length:
                    raise StoreError(
                        f"The journal {path} is damaged in the middle.",
                        hint="Put a backup of the folder in its place, or remove the journal to lose its URLs.",
                    )
                break
            yield np.frombuffer(body, np.uint64)
            whole = file.tell()
        file.truncate(whole)  # the end of it was being written when the process or the machine died

"""One sorted run of fingerprints in a file, whole or absent.

    header   magic, version, how many fingerprints, how many apart those of the index are
    body     the fingerprints in order, 8 bytes each
    index    every n-th fingerprint of the body
    check    CRC-32 of the body, and of header, index and that; runs of version 1 have none of the body

A run is written beside its place, synced and renamed into it, so a name always means a whole run.
"""

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from afresh.errors import StoreError
from afresh.store.seen_filter import Filter, watched

Keys = NDArray[np.uint64]

_HEADER = struct.Struct("<12sIQQ")
_MAGIC, _VERSION = b"afresh seen\x00", 2
_CRC = 4  # bytes
BLOCK = 512  # fingerprints between two of the index, at least: 4 kB
CHUNK = 1 << 17  # fingerprints that are read or written at once, if nothing else is said: 1 MB
_NEAR = 32 * BLOCK  # what lies closer together is read in one go


class Run:
    """An open run. Lookups read only the blocks that can hold what is looked for."""

    def __init__(self, path: Path, *, chunk: int = CHUNK) -> None:
        self.path, self._chunk = path, chunk
        self.filter: Filter | None = None
        self._check: int | None = None  # CRC-32 of the body
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.size, self._stride, self._index = self._open()
        except BaseException:
            os.close(self._file)
            raise

    def _open(self) -> tuple[int, int, Keys]:
        header = os.pread(self._file, _HEADER.size, 0)
        length = os.fstat(self._file).st_size
        if len(header) == _HEADER.size:
            magic, version, size, stride = _HEADER.unpack(header)
            if magic == _MAGIC and version in (1, _VERSION) and stride:
                entries = -(-size // stride)
                end = _HEADER.size + 8 * size
                rest = 8 * entries + _CRC * version
                tail = os.pread(self._file, rest, end)
                whole = length == end + rest and len(tail) == rest
                if whole and zlib.crc32(header + tail[:-_CRC]) == struct.unpack("<I", tail[-_CRC:])[0]:
                    if version > 1:
                        self._check = struct.unpack_from("<I", tail, 8 * entries)[0]
                    return size, stride, np.frombuffer(tail[: 8 * entries], np.uint64)
        raise self._damaged()

    def _damaged(self) -> StoreError:
        return StoreError(
            f"The run {self.path} is damaged.",
            hint="Put a backup of the folder in its place, or remove the folder to start with nothing seen.",
        )

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._index.nbytes + (0 if self.filter is None else self.filter.nbytes)

    def sift(self, words: int) -> None:
        """Get a filter of this size, by reading everything once; 0: none."""
        if words:
            self.filter = Filter(words)
            for _ in watched(self.chunks(), self.filter):
                pass

    def read(self, first: int, end: int) -> Keys:
        """The fingerprints from one place to another."""
        raw = os.pread(self._file, 8 * (end - first), _HEADER.size + 8 * first)
        if len(raw) != 8 * (end - first):
            raise OSError(f"{self.path.name} ended early")
        return np.frombuffer(raw, np.uint64)

    def contains(self, keys: Keys) -> NDArray[np.bool_]:
        """Which of the sorted keys are here; the disk is asked for those alone that the filter lets pass."""
        if self.filter is None:
            return self._on_disk(keys)
        found = np.zeros(keys.size, np.bool_)
        left = np.flatnonzero(self.filter.passes(keys))
        if left.size:
            found[left] = self._on_disk(keys[left])
        return found

    def _on_disk(self, keys: Keys) -> NDArray[np.bool_]:
        found = np.zeros(keys.size, np.bool_)
        block = np.searchsorted(self._index, keys, side="right") - 1
        for first, end in self._stretches(block):
            low = np.searchsorted(keys, self._index[first])
            high = keys.size if end >= self._index.size else int(np.searchsorted(keys, self._index[end]))
            wanted = keys[low:high]
            body = self.read(first * self._stride, min(end * self._stride, self.size))
            place = np.minimum(np.searchsorted(body, wanted), body.size - 1)
            found[low:high] = body[place] == wanted
        return found

    def _stretches(self, blocks: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """The wanted blocks as stretches to be read, those that lie close together in one."""
        wanted = np.unique(blocks[blocks >= 0])
        if not wanted.size:
            return
        near, most = max(_NEAR // self._stride, 1), max(self._chunk // self._stride, 1)
        first = last = int(wanted[0])
        for block in wanted[1:].tolist():
            if block - last > near or block - first >= most:
                yield first, last + 1
                first = block
            last = block
        yield first, last + 1

    def chunks(self) -> Iterator[Keys]:
        """Everything, in order; StoreError at the end if it is not what was written."""
        check = 0
        for first in range(0, self.size, self._chunk):
            keys = self.read(first, min(first + self._chunk, self.size))
            check = zlib.crc32(keys.data, check)
            yield keys
        if self._check is not None and check != self._check:
            raise self._damaged()


def write_run(path: Path, size: int, chunks: Iterator[Keys], stride: int, *, chunk: int = CHUNK, words: int = 0) -> Run:
    """Write a run of this many sorted keys and put it in its place, safe against power cuts.

    It gets a filter of so many `words`.
    """
    made = Filter(words) if words else None
    new = path.with_suffix(".new")
    header, index, written, check = _HEADER.pack(_MAGIC, _VERSION, size, stride), [], 0, 0
    with new.open("wb") as file:
        file.write(header)
        for keys in watched(chunks, made):
            index.append(keys[(-written) % stride :: stride].copy())  # a view would keep the whole chunk alive
            file.write(keys.data)
            check = zlib.crc32(keys.data, check)
            written += keys.size
        tail = (np.concatenate(index).tobytes() if index else b"") + struct.pack("<I", check)
        file.write(tail + struct.pack("<I", zlib.crc32(header + tail)))
        file.flush()
        os.fsync(file.fileno())
    if written != size:
        raise OSError(f"{written} fingerprints arrived for a run of {size}")
    new.rename(path)
    sync_folder(path.parent)
    run = Run(path, chunk=chunk)
    run.filter = made
    return run


def merged(one: Iterator[Keys], other: Iterator[Keys]) -> Iterator[Keys]:
    """Two sorted sequences without common keys as one, a few chunks in memory at a time."""
    empty = np.empty(0, np.uint64)
    left, right = next(one, empty), next(other, empty)
    while left.size and right.size:
        # All up to the smaller of the two ends is known by now.
        limit = min(left[-1], right[-1])
        cut, other_cut = (int(np.searchsorted(half, limit, side="right")) for half in (left, right))
        both = np.concatenate([left[:cut], right[:other_cut]])
        both.sort(kind="stable")
        yield both
        left, right = left[cut:], right[other_cut:]
        left = left if left.size else next(one, empty)
        right = right if right.size else next(other, empty)
    for rest, more in ((left, one), (right, other)):
        if rest.size:
            yield rest
            yield from more


def sync_folder(folder: Path, sync: Callable[[int], None] = os.fsync) -> None:
    """Make names that were given or taken away last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        sync(handle)
    finally:
        os.close(handle)

"""Addresses that were found and wait, on disk, by host: many more than there is memory for.

A host has a few queues (by how deep an address lies: `band_of`), first in, first out. What comes in is written to a log
and kept in memory until that is full; then every queue's part of it becomes a chunk of a file, and the chunks of a
queue point to each other. In memory are a few numbers for each queue, and they are saved with each such step. A thread
takes it; what comes in meanwhile is written to the next log, and joins the queues after it.

    waiting/state     all numbers, as of the last step
    waiting/log-7     what came in and what was taken since then: done again after a kill; log-8 too, during a step
    waiting/part-0    chunks; a part is removed when all that is in it was taken

Whether what was taken since the last step, or came in only to be handed on, has arrived where it went, others know:
after a kill it is named to them (`out`). Nothing is lost.
"""

import os
import struct
import threading
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from afresh.errors import StoreError
from afresh.store.faults import translated
from afresh.store.seen_journal import append_whole, whole_records
from afresh.store.seen_run import sync_folder

BANDS = 4  # queues of a host
_BAND_OF = (0, 0, 1, 1, 2, 2, 2, 2)  # by depth; deeper ones are in the last
DEEPEST = 90  # as far as is written down
PART_BYTES = 256 << 20
MIN_LOG_BYTES = 8 << 20  # of a log, or as many as there is memory: after a kill what is out of it is in memory
MAX_CHUNK = 1_000  # addresses: what is read at once
OVERHEAD = 80  # bytes of memory for an address besides its text
FRONTS = 4  # of the memory, one part in so many is for what was read of chunks and not taken yet
_CHUNK = struct.Struct("<qIII")  # where the next one of the queue is, addresses, bytes, CRC-32
_RECORD = struct.Struct("<III")  # addresses and what was done with them (`_KIND`), bytes, CRC-32
_KIND = 24  # bits below that; logs of before have none
_PUT, _NOTED, _TAKEN = 1, 2, 3
_TAKE = struct.Struct("<II")  # of which host, how many at most
_HEADER = struct.Struct("<12sIQI")
_MAGIC, _VERSION = b"afresh wait\x00", 1
_NOWHERE = -1

_MOST = (1 << 32) - 1

Integers = NDArray[np.int64]
_Record = tuple[
    int, NDArray[np.uint64], list[str], list[int]
]  # kind, marks, addresses and depths; or whom was taken of


def band_of(url: str, depth: int) -> int:
    """Which queue an address is in: by links from a seed, or by the parts of its path if these are fewer.

    A front page is one whatever led to it.

    >>> [band_of("http://a.example/b/c/d/e", depth) for depth in (0, 1, 2, 4, 9)]
    [0, 0, 1, 2, 2]
    >>> band_of("http://a.example/", 9), band_of("http://a.example/b/", 9), band_of("http://a.example/b/c", 9)
    (0, 0, 1)
    """
    level = min(depth, url.count("/") - 3 + (url[-1] != "/"))
    return _BAND_OF[level] if level < len(_BAND_OF) else BANDS - 1


class Waiting:
    """Addresses by host, each of which comes out once.

    Invariant: what `put` has returned from survives the death of the process, and after `save` that of the machine.
    """

    def __init__(self, folder: Path, *, memory: int = 64 << 20) -> None:
        self.folder, self._memory = folder, memory
        self.names: list[str] = []  # of hosts, by number
        # What the caller wants to be saved with the numbers: taken when a step begins, and made in its thread,
        self.extra: Callable[[], Callable[[], bytes]] = lambda: bytes
        self.kept = b""  # and what that was
        self.handed: Callable[[], tuple[list[str], list[int]]] = lambda: ([], [])  # what is out, and perhaps not safe
        self._saving: threading.Thread | None = None
        self._problem: BaseException | None = None  # of a step
        self._later: list[tuple[Sequence[str], Sequence[str], Sequence[int]]] = []  # what came in during it
        self._logged = 0  # bytes, since the last step
        self._failed = False
        self._numbers: dict[str, int] = {}
        self._head = array("q")  # by queue: where its first chunk is,
        self._tail = array("q")  # and its last one,
        self._taken = array("i")  # and how many of the first were taken
        self._counts = array("i")  # that wait, by queue
        self._live: dict[int, int] = {}  # addresses in each part that wait
        self._end = 0
        self._buffers: dict[int, list[str]] = {}  # by queue, what is not in a chunk yet
        self._fronts: dict[int, list[str]] = {}  # by queue, what is left of its first chunk, the last one first
        self._held = 0  # bytes of memory of the buffers,
        self._held_fronts = 0  # of the fronts,
        self._held_later = 0  # and of what came in during a step
        self._count = 0
        self._files: dict[int, int] = {}
        self._log, self._generation = -1, 0
        self._logs: list[Path] = []  # that are to be done again
        self.was_there = False  # whether anything was in the folder
        self.out: dict[str, int] = {}  # after a kill: what had been handed on since the last step, and how deep it is,
        self.back: set[str] = set()  # and what waited again that had been out before it
        with translated(folder):
            folder.mkdir(exist_ok=True)
            try:
                self._recover()
            except BaseException:
                self._let_go()
                raise

    def __len__(self) -> int:
        return self._count + sum(len(urls) for urls, _, _ in self._later)

    @property
    def nbytes(self) -> int:
        """Bytes of memory, roughly."""
        queues = self._head.itemsize + self._tail.itemsize + self._taken.itemsize + self._counts.itemsize
        held = self._held + self._held_fronts + self._held_later
        return held + queues * len(self._head) + sum(map(len, self.names)) + 180 * len(self.names)

    @property
    def counts(self) -> NDArray[np.int32]:
        """How many wait: a row for each host, a column for each queue. A copy, without what came in during a step."""
        return np.array(self._counts, np.int32).reshape(-1, BANDS)

    def waits(self, host: str) -> bool:
        """Whether anything of a host does."""
        number = self._numbers.get(host)
        return number is not None and any(self._counts[number * BANDS : (number + 1) * BANDS])

    def number(self, host: str) -> int:
        """The number of a host; −1 if none of it was ever put."""
        return self._numbers.get(host, -1)

    def note(self, marks: NDArray[np.uint64], urls: Sequence[str], depths: Sequence[int]) -> None:
        """Write down addresses that do not wait, but are handed on and perhaps not safe there before the next step."""
        if urls:
            with translated(self.folder):
                self._save_if_full()
                self._append(_NOTED, marks, urls, depths)

    def put(self, marks: NDArray[np.uint64], urls: Sequence[str], hosts: Sequence[str], depths: Sequence[int]) -> None:
        """Let addresses wait; `marks` are kept with them until the next step, for the caller; 0: it knows them.

        That step is never taken here after they were written: what else the caller does about them may follow.
        """
        if urls:
            with translated(self.folder):
                self._save_if_full()
                self._append(_PUT, marks, urls, depths)
                if self._saving is None:
                    self._queue(urls, hosts, depths)
                else:
                    self._later.append((urls, hosts, depths))
                    self._held_later += sum(map(len, urls)) + OVERHEAD * len(urls)

    def take(self, number: int, most: int) -> list[tuple[str, int]]:
        """The next addresses of a host with their depths, the least deep first."""
        with translated(self.folder):
            self._finish_step()
            self._check_open()
            self._write_record(_TAKEN, 0, _TAKE.pack(number, min(most, _MOST)))
            return self._taken_of(number, most)

    def replay(self, host_of: Callable[[str], str]) -> Iterator[tuple[NDArray[np.uint64], list[str]]]:
        """Do again what was done after the last step before the process died; what was found then, and its marks. Once.

        When all of it was read, `out` and `back` are complete.
        """
        logs, self._logs = self._logs, []
        for kind, marks, urls, depths in (_unpacked(*record) for log in logs for record in _whole(log)):
            if kind == _TAKEN:
                with translated(self.folder):
                    taken = self._taken_of(*depths)
                self.out.update(taken)
                self.back.difference_update(url for url, _ in taken)
                continue
            if kind == _PUT:
                self._queue(urls, [host_of(url) for url in urls], depths)
                if not marks.any():
                    for url in urls:
                        self.out.pop(url, None)
                    self.back.update(urls)
            else:
                self.out.update(zip(urls, depths, strict=True))
            if marks.any():
                yield marks, urls

    @property
    def stepping(self) -> bool:
        """Whether a step is being taken: who takes addresses now waits for it."""
        return self._saving is not None and self._saving.is_alive()

    def save(self) -> None:
        """Write all that is in memory into chunks, and the numbers; begin a new log."""
        with translated(self.folder):
            self._finish_step()
            self._begin_step()
            self._finish_step()

    def _begin_step(self) -> None:
        """From here on the queues belong to a thread, and what is written belongs to the next log."""
        self._check_open()
        try:
            extra = self.extra()
            self._generation += 1
            old, self._log, self._logged = self._log, self._open_log(), 0
            urls, depths = self.handed()
            if urls:
                self._append(_NOTED, np.zeros(len(urls), np.uint64), urls, depths)  # no marks: they are known
        except BaseException:
            self._failed = True
            raise
        self._saving = threading.Thread(target=self._take_step, args=(old, extra), name="afresh-waiting", daemon=True)
        self._saving.start()

    def _take_step(self, old: int, extra: Callable[[], bytes]) -> None:
        try:
            self._write_chunks()
            self._write_state(extra())
            os.close(old)
            self._remove_logs()
        except BaseException as error:
            self._problem = error

    def settle(self) -> None:
        """Wait for a step that is being taken; all that came in is in its queue then."""
        with translated(self.folder):
            self._finish_step()

    def _finish_step(self) -> None:
        """Wait for the step that is being taken, and go on with all that came in meanwhile."""
        if self._saving is None:
            return
        self._saving.join()
        self._saving = None
        if self._problem is not None:
            problem, self._problem, self._failed = self._problem, None, True
            raise problem  # half done on disk, where the next start goes on from the last whole step
        later, self._later, self._held_later = self._later, [], 0
        for urls, hosts, depths in later:
            self._queue(urls, hosts, depths)
        self._remove_empty_parts()

    def close(self) -> None:
        """Save, and let go of the files; a second call does nothing."""
        if self._log >= 0:
            try:
                if not self._failed:
                    self.save()
            finally:
                self._let_go()

    # In and out ----------------------------------------------------------------------------------------------------

    def _append(self, kind: int, marks: NDArray[np.uint64], urls: Sequence[str], depths: Sequence[int]) -> None:
        self._check_open()
        levels = bytes([min(depth, DEEPEST) for depth in depths])
        body = marks.tobytes() + levels + "\n".join(urls).encode("utf-8", "surrogatepass")
        self._write_record(kind, len(urls), body)

    def _write_record(self, kind: int, count: int, body: bytes) -> None:
        append_whole(self._log, _RECORD.pack(kind << _KIND | count, len(body), zlib.crc32(body)) + body)
        self._logged += _RECORD.size + len(body)

    def _check_open(self) -> None:
        if self._log < 0 or self._failed:
            raise StoreError(
                f"The waiting URLs in {self.folder} are closed{' after a failure' if self._failed else ''}.",
                hint="Start again: what was found before is safe.",
            )

    def _save_if_full(self) -> None:
        if self._saving is not None and (not self._saving.is_alive() or self._held_later > self._memory // 2):
            self._finish_step()
        if self._saving is None and (self._held > self._memory or self._logged > max(self._memory, MIN_LOG_BYTES)):
            self._begin_step()

    def _queue(self, urls: Sequence[str], hosts: Sequence[str], depths: Sequence[int]) -> None:
        buffers, counts, numbers, held = self._buffers, self._counts, self._numbers, 0
        for url, host, depth in zip(urls, hosts, depths, strict=True):
            number = numbers.get(host)
            if number is None:
                number = self._new_host(host)
            queue = number * BANDS + band_of(url, depth)
            entry = chr(33 + (depth if depth < DEEPEST else DEEPEST)) + url
            if (buffer := buffers.get(queue)) is None:
                buffers[queue] = [entry]
                held += 3 * OVERHEAD
            else:
                buffer.append(entry)
            counts[queue] += 1
            held += len(url) + OVERHEAD
        self._held += held
        self._count += len(urls)

    def _new_host(self, host: str) -> int:
        number = self._numbers[host] = len(self.names)
        self.names.append(host)
        self._head.extend([_NOWHERE] * BANDS)
        self._tail.extend([_NOWHERE] * BANDS)
        self._taken.extend([0] * BANDS)
        self._counts.extend([0] * BANDS)
        return number

    def _taken_of(self, number: int, most: int) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        for queue in range(number * BANDS, (number + 1) * BANDS):
            while len(found) < most and self._counts[queue]:
                found += self._take(queue, most - len(found))
        return found

    def _take(self, queue: int, most: int) -> list[tuple[str, int]]:
        """Some of what is first in a queue that is not empty."""
        if self._head[queue] != _NOWHERE:
            front = self._fronts.get(queue)
            if front is None:
                front = self._fronts[queue] = self._read(queue)
                self._held_fronts += _room_of(front)
                self._forget_fronts()
            entries = front[: -most - 1 : -1]
            del front[-most:]
            self._taken[queue] += len(entries)
            self._held_fronts -= _room_of(entries)
            part = self._head[queue] // PART_BYTES
            self._live[part] -= len(entries)
            if not front:
                self._step(queue)
        else:
            buffer = self._buffers[queue]
            entries = buffer[:most]
            del buffer[:most]
            self._held = max(self._held - _room_of(entries), 0)
            if not buffer:
                del self._buffers[queue]
        self._counts[queue] -= len(entries)
        self._count -= len(entries)
        return [(entry[1:], ord(entry[0]) - 33) for entry in entries]

    def _forget_fronts(self) -> None:
        """Let go of what was read of chunks first, if that is too much; it is read again when its queue has a turn."""
        while self._held_fronts > self._memory // FRONTS and len(self._fronts) > 1:
            self._held_fronts -= _room_of(self._fronts.pop(next(iter(self._fronts))))

    def _step(self, queue: int) -> None:
        """The first chunk of a queue is used up."""
        del self._fronts[queue]
        self._taken[queue] = 0
        if self._head[queue] == self._tail[queue]:
            # What the chunk says of a next one may be of before a kill.
            self._head[queue] = self._tail[queue] = _NOWHERE
        else:
            self._head[queue] = self._chunk(self._head[queue])[0]

    def _read(self, queue: int) -> list[str]:
        _, count, body = self._chunk(self._head[queue])
        entries = body.decode("utf-8", "surrogatepass").split("\n")
        if len(entries) != count:
            raise self._damaged(self._head[queue])
        return entries[self._taken[queue] :][::-1]

    def _chunk(self, at: int) -> tuple[int, int, bytes]:
        part, offset = divmod(at, PART_BYTES)
        file = self._part(part)
        header = os.pread(file, _CHUNK.size, offset)
        if len(header) == _CHUNK.size:
            following, count, size, check = _CHUNK.unpack(header)
            if size <= PART_BYTES:
                body = os.pread(file, size, offset + _CHUNK.size)
                if zlib.crc32(body) == check:
                    return following, count, body
        raise self._damaged(at)

    def _damaged(self, at: int) -> StoreError:
        return StoreError(
            f"The waiting URLs in {self.folder / f'part-{at // PART_BYTES}'} are damaged.",
            hint="Put a backup of the folder in its place, or remove it: pages are read for links again.",
        )

    # Chunks and numbers --------------------------------------------------------------------------------------------

    def _write_chunks(self) -> None:
        pending: list[tuple[int, bytes]] = []
        touched: set[int] = set()
        size, start = 0, self._end

        def write() -> None:
            nonlocal size, start
            if pending:
                part, offset = divmod(start, PART_BYTES)
                _write_at(self._part(part), b"".join(body for _, body in pending), offset)
                touched.add(part)
            pending.clear()
            start, size = self._end, 0

        for queue in sorted(self._buffers):
            buffer = self._buffers[queue]
            for first in range(0, len(buffer), MAX_CHUNK):
                some = buffer[first : first + MAX_CHUNK]
                body = "\n".join(some).encode("utf-8", "surrogatepass")
                record = _CHUNK.pack(_NOWHERE, len(some), len(body), zlib.crc32(body)) + body
                at = self._end
                if at % PART_BYTES + len(record) > PART_BYTES:
                    at = (at // PART_BYTES + 1) * PART_BYTES
                if at // PART_BYTES != start // PART_BYTES:  # also where the last one ended exactly with its part
                    write()
                    start = at
                self._end = at
                pending.append((at, record))
                self._end += len(record)
                size += len(record)
                if self._head[queue] == _NOWHERE:
                    self._head[queue] = at
                    self._taken[queue] = 0
                else:
                    if self._tail[queue] >= start:
                        write()
                    part, offset = divmod(self._tail[queue], PART_BYTES)
                    os.pwrite(self._part(part), at.to_bytes(8, "little"), offset)
                    touched.add(part)
                self._tail[queue] = at
                part = at // PART_BYTES
                self._live[part] = self._live.get(part, 0) + len(some)
                if size > 8 << 20:
                    write()
        write()
        for part in touched:
            os.fdatasync(self._part(part))
        self._buffers.clear()
        self._held = 0

    def _write_state(self, extra: bytes) -> None:
        file = BytesIO()
        names = "\n".join(self.names).encode()
        parts = np.array(sorted(self._live.items()), np.int64).reshape(-1, 2)
        for block in (
            names,
            self._head.tobytes(),
            self._tail.tobytes(),
            self._taken.tobytes(),
            self._counts.tobytes(),
            parts.tobytes(),
            np.array([self._end, self._count], np.int64).tobytes(),
            extra,
        ):
            file.write(len(block).to_bytes(8, "little"))
            file.write(block)
        body = file.getbuffer()
        new = self.folder / "state.new"
        with new.open("wb") as out:
            out.write(_HEADER.pack(_MAGIC, _VERSION, self._generation, zlib.crc32(body)))
            out.write(body)
            out.flush()
            os.fsync(out.fileno())
        new.rename(self.folder / "state")
        sync_folder(self.folder)

    def _recover(self) -> None:
        path, parts, logs = self.folder / "state", self._numbered("part"), self._numbered("log")
        if path.exists():
            self._read_state(path)
        # The first log is there before any part and before the numbers, and each further one before its numbers.
        if self._generation not in logs and (path.exists() or parts or logs):
            missing = f"log-{self._generation}" if path.exists() else "state"
            raise StoreError(
                f"The file {self.folder / missing} of the waiting URLs is missing.",
                hint="Put a backup of the folder in its place, or remove it: pages are read for links again.",
            )
        self.was_there = bool(logs)
        for nth in parts:
            if nth not in self._live:
                (self.folder / f"part-{nth}").unlink()
        last = self._end // PART_BYTES
        if self._end % PART_BYTES and last in self._live:
            os.ftruncate(self._part(last), self._end % PART_BYTES)
        self._remove_logs()
        newest = self._generation
        while (log := self.folder / f"log-{newest}").exists():  # the second is of a step that was not finished
            for _ in _whole(log):  # cuts its end off, or says that it is damaged
                pass
            self._logs.append(log)
            newest += 1
        self._generation = max(newest - 1, self._generation)
        self._log = self._open_log()

    def _read_state(self, path: Path) -> None:
        whole = path.read_bytes()
        wrong = StoreError(
            f"The waiting URLs in {path} are damaged.",
            hint="Put a backup of the folder in its place, or remove it: pages are read for links again.",
        )
        if len(whole) < _HEADER.size:
            raise wrong
        magic, version, self._generation, check = _HEADER.unpack_from(whole)
        body = memoryview(whole)[_HEADER.size :]
        if magic != _MAGIC or version != _VERSION or zlib.crc32(body) != check:
            raise wrong
        blocks, at = [], 0
        while at < len(body):
            size = int.from_bytes(body[at : at + 8], "little")
            blocks.append(body[at + 8 : at + 8 + size])
            at += 8 + size
        names, head, tail, taken, counts, parts, rest, extra = blocks
        self.names = bytes(names).decode().split("\n") if len(names) else []
        self._numbers = {name: number for number, name in enumerate(self.names)}
        for column, block in ((self._head, head), (self._tail, tail), (self._taken, taken), (self._counts, counts)):
            column.frombytes(block)
        self._live = {int(part): int(count) for part, count in np.frombuffer(parts, np.int64).reshape(-1, 2)}
        self._end, self._count = (int(number) for number in np.frombuffer(rest, np.int64))
        self.kept = bytes(extra)

    def queue_again(self, urls: Sequence[str], hosts: Sequence[str], depths: Sequence[int]) -> None:
        """Let what was `out` wait. No log tells of it: until `save` has returned it is still out."""
        with translated(self.folder):
            self._queue(urls, hosts, depths)

    def _numbered(self, name: str) -> list[int]:
        """The numbers of the files of one kind that are there."""
        found = (each.name.removeprefix(f"{name}-") for each in self.folder.glob(f"{name}-*"))
        return [int(number) for number in found if number.isascii() and number.isdigit()]

    def _remove_logs(self) -> None:
        for nth in self._numbered("log"):
            if nth < self._generation:
                (self.folder / f"log-{nth}").unlink()

    def _remove_empty_parts(self) -> None:
        for part in [part for part, live in self._live.items() if not live and part != self._end // PART_BYTES]:
            del self._live[part]
            if (file := self._files.pop(part, None)) is not None:
                os.close(file)
            (self.folder / f"part-{part}").unlink(missing_ok=True)

    def _part(self, part: int) -> int:
        file = self._files.get(part)
        if file is None:
            path = self.folder / f"part-{part}"
            file = self._files[part] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        return file

    def _open_log(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self.folder / f"log-{self._generation}", flags, 0o644)

    def _let_go(self) -> None:
        if self._saving is not None:
            self._saving.join()
        for file in [*self._files.values(), *([self._log] if self._log >= 0 else [])]:
            os.close(file)
        self._files.clear()
        self._log = -1


def _room_of(entries: Sequence[str]) -> int:
    """Bytes of memory."""
    return sum(map(len, entries)) + OVERHEAD * len(entries)


def _write_at(file: int, body: bytes, offset: int) -> None:
    view = memoryview(body)
    while view:
        written = os.pwrite(file, view, offset)
        view, offset = view[written:], offset + written


def _whole(path: Path) -> Iterator[tuple[tuple[int, ...], bytes]]:
    """The records of a log; its unfinished end is cut off."""
    damaged = StoreError(
        f"The log {path} of waiting URLs is damaged in the middle.",
        hint="Put a backup of the folder in its place, or remove it: pages are read for links again.",
    )
    return whole_records(path, _RECORD, lambda fields: fields[1], damaged)


def _unpacked(fields: tuple[int, ...], body: bytes) -> _Record:
    kind, count = fields[0] >> _KIND, fields[0] & ((1 << _KIND) - 1)
    if kind == _TAKEN:
        return kind, np.zeros(0, np.uint64), [], list(_TAKE.unpack(body))
    urls = body[9 * count :].decode("utf-8", "surrogatepass").split("\n")
    return kind, np.frombuffer(body[: 8 * count], np.uint64), urls, list(body[8 * count : 9 * count])

"""Which URLs were seen before, on disk: exact on 64-bit fingerprints, in as much memory as is allowed.

New fingerprints are written to a journal and kept in memory, sorted. When the memory's share is used up they become a
sorted run in a file of its own, and runs of similar size are merged, so that there are never many. What `add_many` has
answered survives the death of the process, and after `flush` or a new run also that of the machine. (It survives even
if the caller dies before doing anything with the answer: write new URLs down in the same breath.)

    seen/journal-7     what came after run 6
    seen/run-1-4.seen  the merged runs 1 to 4: once it has its name, runs inside 1 … 4 count no more
    seen/run-5-6.seen
"""

import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.errors import ConfigError, StoreError
from afresh.store.faults import translated
from afresh.store.files import Claim
from afresh.store.seen_run import BLOCK, CHUNK, Keys, Run, merged, sync_folder, write_run

SMALLEST_MEMORY = 1 << 20
_RECORD = struct.Struct("<II")  # how many fingerprints follow, and their CRC-32
_RUN = re.compile(r"run-([0-9]+)-([0-9]+)\.seen")
_JOURNAL = re.compile(r"journal-([0-9]+)")


class SeenOnDisk:
    """Every fingerprint that was ever added, in a folder that belongs to one process at a time.

    Invariant: each is in exactly one run or, sorted, in one of the arrays in memory, and then also in the journal.
    """

    def __init__(self, folder: str | Path, *, memory: int = 64 << 20) -> None:
        if memory < SMALLEST_MEMORY:
            raise ConfigError(f"{memory} bytes are too little memory for the seen URLs.", hint="Allow at least 1MiB.")
        self.folder, self.memory = Path(folder), memory
        # A quarter each for what waits (merging it holds it twice), for a batch at work, and for the runs' indexes.
        self._most_waiting = memory // 4 // 16
        self._slice = memory // 4 // 64
        self._chunk = min(CHUNK, memory // 8 // 64)
        self._waiting: list[Keys] = []  # sorted arrays, each at most half as long as the one before
        self._runs: list[tuple[int, int, Run]] = []  # first and last generation; the oldest first
        self._failed, self._journal = False, -1
        with translated(self.folder):
            if not self.folder.parent.is_dir():
                raise StoreError(
                    f"The folder {self.folder.parent} does not exist.",
                    hint=f"Create it: mkdir -p '{self.folder.parent}'",
                )
            self.folder.mkdir(exist_ok=True)
            self._claim = Claim(self.folder / "seen")
            try:
                self._generation = self._recover()
            except BaseException:
                self._let_go()
                raise
            self._journal = self._open_journal()

    def add_many(self, fingerprints: ArrayLike) -> NDArray[np.bool_]:
        """Which of these were never shown before; a repetition within the batch is not new."""
        if self._failed or self._journal < 0:
            raise StoreError(
                f"The seen URLs in {self.folder} are closed{' after a failure' if self._failed else ''}.",
                hint="Open them again; everything acknowledged before is safe.",
            )
        keys = np.ascontiguousarray(fingerprints, np.uint64).ravel()
        new = np.zeros(keys.size, np.bool_)
        with translated(self.folder):
            for start in range(0, keys.size, self._slice):
                unique, first = np.unique(keys[start : start + self._slice], return_index=True)
                fresh = ~self._known(unique)
                if fresh.any():
                    self._keep(unique[fresh])
                    new[start + first[fresh]] = True
        return new

    def __len__(self) -> int:
        return sum(run.size for _, _, run in self._runs) + sum(keys.size for keys in self._waiting)

    @property
    def nbytes(self) -> int:
        """Bytes of memory between batches."""
        return sum(keys.nbytes for keys in self._waiting) + sum(run.nbytes for _, _, run in self._runs)

    def flush(self) -> None:
        """Make all that was added survive a power cut."""
        with translated(self.folder):
            os.fsync(self._journal)

    def close(self) -> None:
        """Flush, and let another process have the folder."""
        if self._journal >= 0:
            self.flush()
            os.close(self._journal)
            self._journal = -1
            self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _let_go(self) -> None:
        for _, _, run in self._runs:
            run.close()
        self._runs = []
        self._claim.release()

    # Looking up and keeping ----------------------------------------------------------------------------------------

    def _known(self, keys: Keys) -> NDArray[np.bool_]:
        known = np.zeros(keys.size, np.bool_)
        for held in self._waiting:
            place = np.minimum(np.searchsorted(held, keys), held.size - 1)
            known |= held[place] == keys
        for _, _, run in self._runs:
            left = np.flatnonzero(~known)
            if left.size:
                known[left] = run.contains(keys[left])
        return known

    def _keep(self, keys: Keys) -> None:
        body = keys.tobytes()
        record = _RECORD.pack(keys.size, zlib.crc32(body)) + body
        end = os.lseek(self._journal, 0, os.SEEK_END)
        try:
            written = os.write(self._journal, record)
            if written != len(record):
                written += os.write(self._journal, record[written:])
            if written != len(record):
                raise OSError("the journal could not be written")
        except OSError:
            os.ftruncate(self._journal, end)  # half a record would hide those after it
            raise
        self._add_waiting(keys)
        if sum(held.size for held in self._waiting) >= self._most_waiting:
            try:
                self._spill()
            except BaseException:
                # Half done on disk, where the next start puts it right; here it is not safe to go on.
                self._failed = True
                raise

    def _add_waiting(self, keys: Keys) -> None:
        self._waiting.append(keys)
        while len(self._waiting) > 1 and self._waiting[-2].size < 2 * self._waiting[-1].size:
            last = self._waiting.pop()
            self._waiting[-1] = np.sort(np.concatenate([self._waiting[-1], last]), kind="stable")

    # Runs ----------------------------------------------------------------------------------------------------------

    def _spill(self) -> None:
        """Turn what waits in memory into a run, and begin a new journal."""
        keys = np.sort(np.concatenate(self._waiting), kind="stable")
        generation = self._generation
        self._add_run(generation, generation, keys.size, iter([keys]))
        self._waiting = []
        old, self._generation = self._journal, generation + 1
        self._journal = self._open_journal()
        os.close(old)
        (self.folder / f"journal-{generation}").unlink()
        self._merge_runs()

    def _merge_runs(self) -> None:
        """Merge the newest runs while they are not much smaller than those before."""
        while len(self._runs) > 1 and self._runs[-2][2].size < 4 * self._runs[-1][2].size:
            (first, _, one), (_, last, other) = self._runs[-2:]
            self._add_run(first, last, one.size + other.size, merged(one.chunks(), other.chunks()))
            del self._runs[-3:-1]
            for run in (one, other):
                run.close()
                run.path.unlink()

    def _add_run(self, first: int, last: int, size: int, chunks: Iterator[Keys]) -> None:
        # The index grows with the run, until it has to be coarser.
        total = max(size, sum(run.size for _, _, run in self._runs))
        stride = max(BLOCK, -(-8 * total // (self.memory // 4)))
        path = self.folder / f"run-{first}-{last}.seen"
        self._runs.append((first, last, write_run(path, size, chunks, stride, chunk=self._chunk)))

    # Opening -------------------------------------------------------------------------------------------------------

    def _recover(self) -> int:
        """Take over what is in the folder; the generation to go on with."""
        names = [path.name for path in self.folder.iterdir()]
        runs = sorted((int(match[1]), int(match[2])) for match in map(_RUN.fullmatch, names) if match)
        kept = _outermost(runs)
        for first, last in runs:
            path = self.folder / f"run-{first}-{last}.seen"
            if (first, last) in kept:
                self._runs.append((first, last, Run(path, chunk=self._chunk)))
            else:
                path.unlink()  # it was merged into another, and its removal was cut short
        done = max((last for _, last in kept), default=0)
        generation = done + 1
        for nth in sorted(int(match[1]) for match in map(_JOURNAL.fullmatch, names) if match):
            if nth <= done:
                (self.folder / f"journal-{nth}").unlink()
            else:
                self._replay(self.folder / f"journal-{nth}")
                generation = max(generation, nth)
        for left in self.folder.glob("*.new"):
            left.unlink()
        return generation

    def _replay(self, path: Path) -> None:
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
                self._add_waiting(np.frombuffer(body, np.uint64))
                whole = file.tell()
            file.truncate(whole)  # the end of it was being written when the process or the machine died

    def _open_journal(self) -> int:
        path = self.folder / f"journal-{self._generation}"
        journal = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        sync_folder(self.folder)
        return journal


def _outermost(runs: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those runs that no other one contains."""
    every = list(runs)
    return {
        (first, last)
        for first, last in every
        if not any((a, b) != (first, last) and a <= first and last <= b for a, b in every)
    }

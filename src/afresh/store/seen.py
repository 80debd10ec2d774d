"""Which URLs were seen before, on disk: exact on 64-bit fingerprints, in as much memory as is allowed.

New fingerprints are written to a journal and kept in memory, sorted. When the memory's share is used up they become a
sorted run in a file of its own, and runs of similar size are merged, so that there are never many. Both is done by a
thread beside the caller, which waits for it only where two shares are full. Each run has a filter, so that a
fingerprint that is nowhere costs no look at the disk. What `add_many` has
answered survives the death of the process, and after `flush` or a new run also that of the machine. (It survives even
if the caller dies before doing anything with the answer: write new URLs down in the same breath.)

    seen/journal-7     what came after run 6
    seen/run-1-4.seen  the merged runs 1 to 4: once it has its name, runs inside 1 … 4 count no more
    seen/run-5-6.seen
"""

import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.errors import ConfigError, StoreError
from afresh.store.faults import translated
from afresh.store.files import Claim
from afresh.store.seen_filter import words_for
from afresh.store.seen_journal import Journal, replayed
from afresh.store.seen_run import BLOCK, CHUNK, Keys, Run, merged, write_run

SMALLEST_MEMORY = 1 << 20
_RUN = re.compile(r"run-([0-9]+)-([0-9]+)\.seen")
_JOURNAL = re.compile(r"journal-([0-9]+)")


class SeenOnDisk:
    """Every fingerprint that was ever added, in a folder that belongs to one process at a time.

    Invariant: each is in exactly one run or, sorted, in one of the arrays in memory, and then also in a journal.
    """

    def __init__(self, folder: str | Path, *, memory: int = 64 << 20) -> None:
        if memory < SMALLEST_MEMORY:
            raise ConfigError(f"{memory} bytes are too little memory for the seen URLs.", hint="Allow at least 1MiB.")
        self.folder, self.memory = Path(folder), memory
        # A quarter for the filters (merging holds them twice); a sixteenth each for what waits, what is being written
        # (sorting it holds it twice) and the runs' indexes; the rest for a batch and a merge at work.
        self._most_waiting = memory // 16 // 8
        self._slice = memory // 4 // 64
        self._chunk = min(CHUNK, memory // 16 // 64)
        self._waiting: list[Keys] = []  # sorted arrays, each at most half as long as the one before
        self._spilling: list[Keys] = []  # the same, of earlier generations, which become a run
        self._runs: list[tuple[int, int, Run]] = []  # first and last generation; the oldest first
        self._jobs: dict[str, tuple[Future[Run], Callable[[Run], None]]] = {}  # under way, and what follows from each
        self._threads = ThreadPoolExecutor(2, "seen")  # a merge must not keep what waits in memory
        self._failed = False
        self._journal: Journal | None = None
        with translated(self.folder):
            if not self.folder.parent.is_dir():
                raise StoreError(
                    f"The folder {self.folder.parent} does not exist.",
                    hint=f"Create it: mkdir -p '{self.folder.parent}'",
                )
            self.folder.mkdir(exist_ok=True)
            self._claim = Claim(self.folder / "seen")
            try:
                self._first, self._generation = self._recover()
            except BaseException:
                self._let_go()
                raise
            self._journal = self._open_journal()
            self._begin_merge()

    def add_many(self, fingerprints: ArrayLike) -> NDArray[np.bool_]:
        """Which of these were never shown before; a repetition within the batch is not new."""
        keys = np.ascontiguousarray(fingerprints, np.uint64).ravel()
        new = np.zeros(keys.size, np.bool_)
        for start in range(0, keys.size, self._slice) or [0]:
            some = keys[start : start + self._slice]
            fresh = new[start : start + self._slice] = self.look(some)
            self.keep(some[fresh])
        return new

    def look(self, fingerprints: ArrayLike) -> NDArray[np.bool_]:
        """Which of these would be new, were they added now; a repetition is not. Nothing changes."""
        self._check_open()
        keys = np.ascontiguousarray(fingerprints, np.uint64).ravel()
        new = np.zeros(keys.size, np.bool_)
        with translated(self.folder):
            self._settle()
            unique, first = np.unique(keys, return_index=True)
            new[first[~self._known(unique)]] = True
        return new

    def keep(self, fingerprints: NDArray[np.uint64]) -> None:
        """Add fingerprints that `look` has just called new."""
        self._check_open()
        if not fingerprints.size:
            return
        with translated(self.folder):
            keys = np.sort(fingerprints)
            self._open.append(keys)
            self._add_waiting(keys)
            if sum(held.size for held in self._waiting) >= self._most_waiting:
                self._spill()

    def _check_open(self) -> None:
        if self._failed or self._journal is None:
            raise StoreError(
                f"The seen URLs in {self.folder} are closed{' after a failure' if self._failed else ''}.",
                hint="Open them again; everything acknowledged before is safe.",
            )

    @property
    def _open(self) -> Journal:
        if self._journal is None:
            raise StoreError(f"The seen URLs in {self.folder} are closed.", hint="Open them again.")
        return self._journal

    def __len__(self) -> int:
        return sum(run.size for _, _, run in self._runs) + sum(keys.size for keys in self._in_memory)

    @property
    def nbytes(self) -> int:
        """Bytes of memory between batches."""
        return sum(keys.nbytes for keys in self._in_memory) + sum(run.nbytes for _, _, run in self._runs)

    @property
    def _in_memory(self) -> list[Keys]:
        return self._waiting + self._spilling

    def flush(self) -> None:
        """Make all that was added survive a power cut."""
        with translated(self.folder):
            if self._spilling:
                self._settle(until=lambda: not self._spilling)
            self._open.flush()

    def close(self) -> None:
        """Finish what is under way, flush, and let another process have the folder."""
        if self._journal is None:
            return
        try:
            if not self._failed:
                with translated(self.folder):
                    self._settle(until=lambda: not self._jobs)
                self.flush()
        finally:
            self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _let_go(self) -> None:
        self._threads.shutdown(wait=True)
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        for _, _, run in self._runs:
            run.close()
        self._runs = []
        self._claim.release()

    # Looking up and keeping ----------------------------------------------------------------------------------------

    def _known(self, keys: Keys) -> NDArray[np.bool_]:
        known = np.zeros(keys.size, np.bool_)
        for held in self._in_memory:
            place = np.minimum(np.searchsorted(held, keys), held.size - 1)
            known |= held[place] == keys
        for _, _, run in self._runs:
            left = np.flatnonzero(~known)
            if left.size:
                known[left] = run.contains(keys[left])
        return known

    def _add_waiting(self, keys: Keys) -> None:
        self._waiting.append(keys)
        while len(self._waiting) > 1 and self._waiting[-2].size < 2 * self._waiting[-1].size:
            last = self._waiting.pop()
            self._waiting[-1] = np.sort(np.concatenate([self._waiting[-1], last]), kind="stable")

    # Runs, beside the caller ---------------------------------------------------------------------------------------

    def _settle(self, until: Callable[[], bool] = lambda: True) -> None:
        """Take over what the threads have done; wait for them until this holds."""
        while True:
            for name, (job, follows) in list(self._jobs.items()):
                if job.done():
                    del self._jobs[name]
                    try:
                        follows(job.result())
                    except BaseException:
                        # Half done on disk, where the next start puts it right; here it is not safe to go on.
                        self._failed = True
                        raise
            if until() or not self._jobs:
                return
            wait([job for job, _ in self._jobs.values()], return_when="FIRST_COMPLETED")

    def _spill(self) -> None:
        """Let what waits in memory become a run, and begin a new journal."""
        self._settle(until=lambda: not self._spilling)
        self._spilling, self._waiting = self._waiting, []
        arrays, first, last = self._spilling, self._first, self._generation
        size = sum(keys.size for keys in arrays)
        old, self._generation = self._open, last + 1
        self._journal, self._first = self._open_journal(), last + 1
        old.close()

        def write() -> Run:
            keys = np.sort(np.concatenate(arrays), kind="stable")
            return self._written(first, last, size, (keys[at : at + self._chunk] for at in range(0, size, self._chunk)))

        def follows(run: Run) -> None:
            self._runs.append((first, last, run))
            self._spilling = []
            for nth in range(first, last + 1):
                (self.folder / f"journal-{nth}").unlink(missing_ok=True)
            self._begin_merge()

        self._jobs["spill"] = self._threads.submit(write), follows

    def _begin_merge(self) -> None:
        """Merge the newest two runs of which the older is not much larger."""
        if "merge" in self._jobs:
            return
        for nth in range(len(self._runs) - 2, -1, -1):
            (first, _, one), (_, last, other) = self._runs[nth : nth + 2]
            if one.size < 4 * other.size:
                break
        else:
            return

        def write() -> Run:
            return self._written(first, last, one.size + other.size, merged(one.chunks(), other.chunks()))

        def follows(run: Run) -> None:
            at = next(nth for nth, each in enumerate(self._runs) if each[2] is one)
            self._runs[at : at + 2] = [(first, last, run)]
            for each in (one, other):
                each.close()
                each.path.unlink()
            self._begin_merge()

        self._jobs["merge"] = self._threads.submit(write), follows

    def _written(self, first: int, last: int, size: int, chunks: Iterator[Keys]) -> Run:
        # The index grows with the run, until it has to be coarser; so does the filter.
        total = max(size, sum(run.size for _, _, run in self._runs))
        stride = max(BLOCK, -(-8 * total // (self.memory // 16)))
        path = self.folder / f"run-{first}-{last}.seen"
        return write_run(path, size, chunks, stride, chunk=self._chunk, words=self._words(size, total))

    def _words(self, size: int, total: int) -> int:
        return words_for(size, self.memory // 4 * size // max(total, 1))

    # Opening -------------------------------------------------------------------------------------------------------

    def _recover(self) -> tuple[int, int]:
        """Take over what is in the folder; the first generation that is in no run, and the one to go on with."""
        names = [path.name for path in self.folder.iterdir()]
        runs = sorted((int(match[1]), int(match[2])) for match in map(_RUN.fullmatch, names) if match)
        kept = _outermost(runs)
        for first, last in runs:
            path = self.folder / f"run-{first}-{last}.seen"
            if (first, last) in kept:
                self._runs.append((first, last, Run(path, chunk=self._chunk)))
            else:
                path.unlink()  # it was merged into another, and its removal was cut short
        total = sum(run.size for _, _, run in self._runs)
        for _, _, run in self._runs:
            run.sift(self._words(run.size, total))
        done = max((last for _, last in kept), default=0)
        generation = done + 1
        for nth in sorted(int(match[1]) for match in map(_JOURNAL.fullmatch, names) if match):
            if nth <= done:
                (self.folder / f"journal-{nth}").unlink()
            else:
                for keys in replayed(self.folder / f"journal-{nth}"):
                    self._add_waiting(np.sort(keys))
                generation = max(generation, nth)
        for left in self.folder.glob("*.new"):
            left.unlink()
        return done + 1, generation

    def _open_journal(self) -> Journal:
        return Journal(self.folder / f"journal-{self._generation}")


def _outermost(runs: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those runs that no other one contains."""
    every = list(runs)
    return {
        (first, last)
        for first, last in every
        if not any((a, b) != (first, last) and a <= first and last <= b for a, b in every)
    }

"""Which URLs a crawl knows: in memory while they are few, on disk beyond that, and over restarts.

The first ones stay in memory for good, five bytes each: what is found early is what most links lead to. When their
share of the memory is used up, the others go to sorted runs on disk (`store.SeenOnDisk`). Whoever asks sees no
difference.
"""

import os
import zlib
from pathlib import Path
from secrets import token_bytes
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.errors import ConfigError, StoreError
from afresh.frontier import Seen
from afresh.store import SeenOnDisk
from afresh.store.faults import translated
from afresh.store.files import Claim
from afresh.store.seen_journal import Journal, replayed
from afresh.store.seen_run import sync_folder

LEAST_MEMORY = 4 << 20
NEAR_BYTES = 6  # of memory, for each that is kept there; a little less when they are many
SECRET_BYTES = 16


class Known:
    """Every fingerprint that was ever added, in a folder that belongs to one process at a time; none: in memory alone.

    Invariants: each is in memory or on disk, never in both; what was added survives the death of the process.
    """

    def __init__(self, folder: Path | None = None, *, memory: int = 256 << 20, near: int | None = None) -> None:
        """`near`: how many stay in memory, if not as many as it has room for."""
        if memory < LEAST_MEMORY:
            raise ConfigError(f"{memory} bytes are too little memory for known URLs.", hint="Allow at least 4MiB.")
        self.folder = folder
        self._near = Seen()
        self._far: SeenOnDisk | None = None
        self._far_memory = memory // 4
        self._most_near = (memory - self._far_memory) // NEAR_BYTES if near is None else near
        self._journal: Journal | None = None
        self._claim: Claim | None = None
        if folder is None:
            self.secret = token_bytes(SECRET_BYTES)
            return
        with translated(folder):
            folder.mkdir(exist_ok=True, parents=True)
            self._claim = Claim(folder / "known")
            try:
                self.secret = _secret(folder / "secret")
                path = folder / "known"
                if path.exists():
                    for keys in replayed(path):
                        self._near.add_many(keys)
                if (folder / "more").is_dir():
                    self._far = SeenOnDisk(folder / "more", memory=self._far_memory)
                self._journal = Journal(path)
            except BaseException:
                self._let_go()
                raise

    def add_many(self, fingerprints: ArrayLike) -> NDArray[np.bool_]:
        """Which of these were never shown before; a repetition within the batch is not new."""
        new = self.look(keys := np.ascontiguousarray(fingerprints, np.uint64).ravel())
        self.keep(keys[new])
        return new

    def look(self, fingerprints: ArrayLike) -> NDArray[np.bool_]:
        """Which of these would be new, were they added now; a repetition is not. Nothing changes."""
        keys = np.ascontiguousarray(fingerprints, np.uint64).ravel()
        new = self._near.look(keys)
        if self._far is not None and new.any():
            left = np.flatnonzero(new)
            new[left] = self._far.look(keys[left])
        return new

    def keep(self, fingerprints: NDArray[np.uint64]) -> None:
        """Add fingerprints that `look` has just called new."""
        if not fingerprints.size:
            return
        if self.folder is None:
            self._near.add_many(fingerprints)
            return
        if self._journal is None:
            raise StoreError(f"The known URLs in {self.folder} are closed.", hint="Open them again.")
        room = max(self._most_near - len(self._near), 0)
        near, rest = fingerprints[:room], fingerprints[room:]
        if near.size:
            with translated(self.folder):
                self._journal.append(near)
            self._near.add_many(near)
        if rest.size:
            if self._far is None:
                self._far = SeenOnDisk(self.folder / "more", memory=self._far_memory)
            self._far.keep(rest)

    def __len__(self) -> int:
        return len(self._near) + (0 if self._far is None else len(self._far))

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._near.nbytes + (0 if self._far is None else self._far.nbytes)

    @property
    def on_disk(self) -> int:
        """How many are on disk and not in memory."""
        return 0 if self._far is None else len(self._far)

    def flush(self) -> None:
        """Make all that was added survive a power cut."""
        if self._journal is not None and self.folder is not None:
            with translated(self.folder):
                self._journal.flush()
            if self._far is not None:
                self._far.flush()

    def close(self) -> None:
        """Let another process have the folder; a second call does nothing."""
        if self._journal is not None:
            try:
                self.flush()
                if self._far is not None:
                    self._far.close()
            finally:
                self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _let_go(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        if self._claim is not None:
            self._claim.release()
            self._claim = None


def _secret(path: Path) -> bytes:
    """What fingerprints are keyed with: made once for a crawl, and readable by its owner alone.

    Its CRC-32 follows it (not in files of before): with another one, all that is known would be new.
    """
    kept = path.read_bytes() if path.exists() else b""
    if len(kept) == SECRET_BYTES or (len(kept) == SECRET_BYTES + len(_check(b"")) and kept.endswith(_check(kept))):
        return kept[:SECRET_BYTES]
    if (path.parent / "known").exists():
        raise StoreError(
            f"The secret {path} of the known URLs is damaged or missing.",
            hint="Put a backup of the folder in its place, or remove the folder: what the store keeps is known again.",
        )
    made, new = token_bytes(SECRET_BYTES), path.with_suffix(".new")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, made + _check(made))
        os.fsync(file)
    finally:
        os.close(file)
    new.rename(path)
    sync_folder(path.parent)
    return made


def _check(secret: bytes) -> bytes:
    return zlib.crc32(secret[:SECRET_BYTES]).to_bytes(4, "little")

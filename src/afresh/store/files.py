"""The files of a store: finding, creating and claiming it, without ever starting empty by mistake."""

import fcntl
import os
import struct
import time
from collections.abc import Callable
from glob import escape
from pathlib import Path

import apsw

from afresh.errors import StoreError, StoreLocked
from afresh.store.faults import damaged, not_a_store, read_only
from afresh.store.schema import APPLICATION_ID

MAGIC = b"SQLite format 3\x00"
HEADER_BYTES = 100
APPLICATION_ID_AT = 68  # in the header, four bytes, big end first
BRIEF = " briefly"  # behind the number of a process that holds a claim for a moment only
UNNAMED_SECONDS = 0.2  # that a process may take, after it has claimed the store, to write its name
RETRY_SECONDS = 0.01
PAGE_SIZE_AT = 16  # two bytes; 1 stands for 65536


def ensure(path: Path, build: Callable[[Path], None], *, create: bool) -> None:
    """Make sure that a store is there: find it, or have `build` make a new one beside it and move that into place.

    A store is thus absent or whole, and an empty file in its place can only be damage.
    """
    if not path.parent.is_dir():
        raise StoreError(f"The folder {path.parent} does not exist.", hint=f"Create it: mkdir -p '{path.parent}'")
    if not path.exists():
        if not create:
            raise StoreError(
                f"There is no store at {path}.", hint="Check the path, or add a first page: afresh add URL"
            )
        _refuse_orphan(path)
        _create(path, build)
    require_store(path)


def require_store(path: Path) -> None:
    """Look at the header before SQLite does: SQLite would leave traces beside a file that is not ours."""
    if not path.is_file():
        raise not_a_store(path, "it is not a file")
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.parent, os.W_OK | os.X_OK):
        raise read_only(path)
    # Through SQLite's own file layer: closing any other handle on the file would drop the locks that this process
    # holds on it (POSIX), those of a store already open here included.
    file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    try:
        size = file.xFileSize()
        header = file.xRead(HEADER_BYTES, 0) if size >= HEADER_BYTES else b""
    finally:
        file.xClose()
    if size == 0:
        raise damaged(path, "the file is empty")
    if not header.startswith(MAGIC):
        raise not_a_store(path)
    if struct.unpack_from(">I", header, APPLICATION_ID_AT)[0] != APPLICATION_ID:
        raise not_a_store(path, "it is a SQLite database of another program")
    # SQLite reads a page that is cut short as if zeros followed. While there is a journal that may still be put right.
    page_size = struct.unpack_from(">H", header, PAGE_SIZE_AT)[0]
    if size % (65536 if page_size == 1 else page_size or 1) and not _has_journal(path):
        raise damaged(path, "the file is cut short")


def _has_journal(path: Path) -> bool:
    journal = Path(f"{path}-wal")
    return journal.exists() and journal.stat().st_size > 0


def _refuse_orphan(path: Path) -> None:
    """Refuse to start beside the journal of a store that is gone: SQLite would play it into the new file."""
    journal = Path(f"{path}-wal")
    if journal.exists() and not path.exists():  # asked again: another process may just have created it
        raise StoreError(
            f"The store {path} is missing, but its journal {journal.name} is there.",
            hint="Put the store back beside it, or move the journal away to start with an empty store.",
        )


def _create(path: Path, build: Callable[[Path], None]) -> None:
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise read_only(path)
    _sweep(path)
    new = Path(f"{path}.new-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        build(new)
        _put_in_place(new, path)
    finally:
        new.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _put_in_place(new: Path, path: Path) -> None:
    """Give the new file its name, unless another process was faster: its store is as good."""
    try:
        os.link(new, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        if not path.exists():
            new.rename(path)


def _sweep(path: Path) -> None:
    """Remove what processes that were killed while creating the store have left."""
    for left in path.parent.glob(f"{escape(path.name)}.new-*"):
        pid = left.name.removeprefix(f"{path.name}.new-").split("-")[0]
        if pid.isdigit() and not is_alive(int(pid)):
            left.unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it lives, and belongs to somebody else
        pass
    return True


class Claim:
    """The right to run on a store, held by at most one process.

    An flock on a file beside the store, never removed: the kernel lets go of it however the process ends. The pid
    inside serves the message alone.
    """

    def __init__(self, path: Path, *, brief: bool = False, patience: float = 0.0) -> None:
        """Claim the store; one who holds it for a `brief` moment only is waited for, for `patience` seconds."""
        handle = os.open(f"{path}-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        began = time.monotonic()
        while (holder := _locked_by(handle)) is not None:
            waited = time.monotonic() - began
            unnamed = 0.0 if holder else min(patience, UNNAMED_SECONDS)
            if waited >= (patience if holder.endswith(BRIEF) else unnamed):
                os.close(handle)
                raise _taken(path, holder.removesuffix(BRIEF))
            time.sleep(RETRY_SECONDS)
        self.handle: int | None = handle
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}{BRIEF if brief else ''}\n".encode(), 0)

    def release(self) -> None:
        """Let another process have it."""
        if self.handle is not None:
            os.ftruncate(self.handle, 0)
            fcntl.flock(self.handle, fcntl.LOCK_UN)
            os.close(self.handle)
            self.handle = None


def is_run(path: Path) -> bool:
    """Whether a process runs on the store at this moment: one that holds the claim for longer than a command takes."""
    try:
        handle = os.open(f"{path.expanduser().resolve()}-lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: others who only ask are no runners
    except BlockingIOError:
        return not os.pread(handle, 32, 0).decode(errors="replace").strip().endswith(BRIEF)
    finally:
        os.close(handle)
    return False


def _locked_by(handle: int) -> str | None:
    """None if the lock is ours now; who has it otherwise, "" if he has not said so yet."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(handle, 32, 0).decode(errors="replace").strip()
    return None


def _taken(path: Path, pid: str) -> StoreLocked:
    return StoreLocked(
        f"Another afresh (process {pid or 'unknown'}) runs on {path}.",
        hint=f"Stop it first (kill {pid}), or give this one a store of its own." if pid else "Try again in a moment.",
    )

"""Looking after a store: a whole copy of it while it is in use, and giving back the space that it does not need."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

import apsw

from afresh.errors import StoreError
from afresh.store.faults import damaged, explain, translated
from afresh.store.files import Claim, is_alive, require_store

STEP_PAGES = 2_000  # copied before progress is told
Told = Callable[[int, int], object]  # how many pages of the file are done, of how many


def _unheard(done: int, of: int) -> None:
    """Nobody wants to know."""


def back_up(path: Path, target: Path, told: Told = _unheard) -> int:
    """Copy a store as it is at this moment to a new file, while others use it; how many bytes that took.

    The copy is made under another name, proven sound, and given its own at the end: a file with the name of the
    backup is a whole one. What a killed process left is removed by the next.
    """
    require_store(path)
    target = target.expanduser().absolute()
    if not target.parent.is_dir():
        raise StoreError(f"The folder {target.parent} does not exist.", hint=f"Create it: mkdir -p '{target.parent}'")
    _require_new(target)
    _sweep(target)
    unfinished = Path(f"{target}.new-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        with _at(target, f"the backup {target} was not made"):
            # Made here, so that nobody else can read it: what it holds may be more private than its folder.
            os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, path.stat().st_mode & 0o777))
            _copy(path, unfinished, told)
            _put_in_place(unfinished, target)
            return target.stat().st_size
    finally:
        for left in _files_of(unfinished):
            left.unlink(missing_ok=True)


@contextmanager
def _at(path: Path, not_done: str) -> Iterator[None]:
    """Translate what goes wrong; where the disk is full, say what was not done, and that the store is as it was."""
    try:
        with translated(path):
            yield
    except StoreError as error:
        cause = error.__cause__
        if isinstance(cause, apsw.FullError) or (isinstance(cause, OSError) and cause.errno == errno.ENOSPC):
            hint = "Free some space; the store is as it was."
            raise StoreError(f"The disk is full: {not_done}.", hint=hint) from None
        raise


def _copy(path: Path, unfinished: Path, told: Told) -> None:
    """Page by page, all in one read transaction: it sees one moment, and the runner goes on writing beside it."""
    source = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    copy = apsw.Connection(str(unfinished), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        source.set_busy_timeout(10_000)
        source.execute("BEGIN; SELECT count(*) FROM totals")
        with copy.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(STEP_PAGES)
                told(backup.page_count - backup.remaining, backup.page_count)
        source.execute("COMMIT")
        found = copy.execute("PRAGMA quick_check(1)").fetchall()
        if found != [("ok",)]:
            raise damaged(path, str(found[0][0]).replace("\n", " "))
        # Nobody runs on the copy; and its journal must not be needed to read it.
        copy.execute("DELETE FROM named WHERE name = 'alive'")
        copy.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except (apsw.CorruptError, apsw.FormatError, apsw.NotADBError) as error:
        raise explain(path, error) from error  # the copy is new, so what is damaged is the store
    finally:
        copy.close()
        source.close()
    handle = os.open(unfinished, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _require_new(target: Path) -> None:
    if target.exists() or target.is_symlink():
        raise StoreError(f"{target} is there already, and was left as it is.", hint="Choose another name.")
    journal = Path(f"{target}-wal")
    if journal.exists():  # SQLite would play it into the backup when that is opened
        raise StoreError(f"The journal {journal} of another store is there.", hint="Choose another name.")


def _put_in_place(unfinished: Path, target: Path) -> None:
    """Give the backup its name, unless something has that by now."""
    try:
        os.link(unfinished, target)
    except FileExistsError:
        _require_new(target)
    except OSError:  # a file system without hard links
        _require_new(target)
        unfinished.rename(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _files_of(path: Path) -> list[Path]:
    return [Path(f"{path}{end}") for end in ("", "-wal", "-shm", "-journal")]


def _sweep(target: Path) -> None:
    """Remove what processes that were killed while they made this backup have left."""
    for left in target.parent.glob(f"{escape(target.name)}.new-*"):
        pid = left.name.removeprefix(f"{target.name}.new-").split("-")[0]
        if pid.isdigit() and not is_alive(int(pid)):
            left.unlink(missing_ok=True)


def compact(path: Path) -> tuple[int, int]:
    """Write a store anew without the space that it does not use; its bytes before and after.

    Nobody else may run on it meanwhile (StoreLocked). It is one transaction: a kill at any moment leaves the store as
    it was, or compact.
    """
    require_store(path)
    # SQLite builds the new file elsewhere first; the disk of the store is more likely to have room than any other.
    os.environ.setdefault("SQLITE_TMPDIR", str(path.parent))
    with _at(path, f"the store {path} was not compacted"):
        claim = Claim(path)
        try:
            connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                connection.set_busy_timeout(10_000)
                connection.pragma("synchronous", "FULL")
                before = sum(file.stat().st_size for file in _files_of(path)[:2] if file.exists())
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                after = sum(file.stat().st_size for file in _files_of(path)[:2] if file.exists())
            finally:
                connection.close()
        finally:
            claim.release()
    return before, after

"""SQLite's and the system's errors, translated in one place; and the transaction that undoes itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from afresh.errors import BodyDamaged, StoreError, StoreLocked


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what goes wrong inside into a StoreError with a sentence and a hint."""
    try:
        yield
    except (apsw.Error, OSError, UnicodeDecodeError) as error:  # text that cannot be written is the caller's
        raise explain(path, error) from error


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """All of it or nothing; takes the writer's place at once, since a reader that turns writer may find it stale."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk or a failed write may have rolled back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def moment(connection: apsw.Connection) -> Iterator[None]:
    """Several reads that see the store at one moment."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")


def explain(path: Path, error: Exception) -> StoreError:
    """The sentence and the hint for one error."""
    match error:
        case apsw.BusyError() | apsw.LockedError() | apsw.ProtocolError():
            return StoreLocked(
                f"Another process is writing to the store {path} and did not finish in time.",
                hint="Wait until it ends and try again; nothing was lost.",
            )
        case apsw.NotADBError():
            return not_a_store(path)
        case apsw.CorruptError() | apsw.FormatError():
            return damaged(path, str(error))
        case UnicodeDecodeError():
            return damaged(path, "it holds text that is no text")
        case apsw.FullError():
            return StoreError(
                f"The disk is full: the last batch could not be written to the store {path}.",
                hint="Free some space and start again; everything acknowledged before is safe.",
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError() | PermissionError():
            return read_only(path)
        case apsw.ConnectionClosedError():
            return StoreError(f"The store {path} is closed.", hint="Open it again before using it.")
        case apsw.CantOpenError():
            return StoreError(
                f"The store {path} cannot be opened ({error}).",
                hint="Check that the path is right and that you may read and write the file and its folder.",
            )
        case apsw.IOError() | OSError():
            return StoreError(
                f"The disk refused to read or write the store {path} ({error}).",
                hint="Check the disk and the free space; everything acknowledged before is safe.",
            )
        case _:
            return StoreError(f"The store {path} failed ({error}).", hint="Nothing of the last batch was kept.")


def not_a_store(path: Path, what: str = "it is not a database") -> StoreError:
    """A file that is something else."""
    return StoreError(f"{path} is not an afresh store: {what}.", hint="Check the path; the file was left as it is.")


def damaged(path: object, what: str) -> StoreError:
    """A store whose file is not what was written."""
    return StoreError(
        f"The store {path} is damaged ({what}).",
        hint=f"Put a backup in its place, or save what is readable with: sqlite3 '{path}' .recover",
    )


def damaged_body(path: object, what: str) -> BodyDamaged:
    """A copy whose body is not what was stored, in a store that may be sound otherwise."""
    return BodyDamaged(
        f"The store {path} is damaged ({what}).", hint="The next fetch of the page replaces it: start afresh run."
    )


def read_only(path: Path) -> StoreError:
    """A file or a folder that may not be written."""
    return StoreError(
        f"The store {path} cannot be written: the file or its folder is read-only.",
        hint=f"Give yourself the right to write to both, for example with: chmod u+w '{path}' '{path.parent}'",
    )

"""SQLite, through apsw: a file of this machine.

Its authorizer tells which tables a query reads and which functions it calls, while it is prepared: so we know what it
depends on without asking for a plan, and whether it can change by itself.
"""

import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import apsw

from afresh.sources.sql.drivers.base import Counter, Driver, Found, Limits, QueryFailed
from afresh.sources.sql.statement import Statement
from afresh.types import Blame

LOOK_EVERY = 2_000  # steps of SQLite's machine between two looks at the clock
BUSY_SECONDS = 5.0
# Functions whose answers change although the database does not.
_UNSTEADY = frozenset(
    {"random", "randomblob", "date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"}
    | {"current_date", "current_time", "current_timestamp", "changes", "total_changes", "last_insert_rowid"}
)
_HARMLESS = (apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE)


class SqliteConnection:
    """One connection to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened = self._identity()
        self._token = uuid4().hex[:12]
        self._tables: set[str] = set()
        self._calls: set[str] = set()
        self._deadline = 0.0
        self._stopped = False
        try:
            self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
            self._connection.set_busy_timeout(round(BUSY_SECONDS * 1000))
            self._connection.execute("PRAGMA query_only = 1")
            self._connection.execute("PRAGMA data_version").fetchone()
        except apsw.Error as error:
            raise failure(error) from None
        self._connection.authorizer = self._permit
        self._connection.set_progress_handler(self._is_over, LOOK_EVERY)

    def _identity(self) -> tuple[int, int]:
        try:
            found = self.path.stat()
        except OSError as error:
            raise QueryFailed("no_such_file", error.strerror or "", Blame.LANE) from None
        return found.st_dev, found.st_ino

    def usable(self) -> bool:
        """Whether the file is still the one that was opened."""
        try:
            return self._identity() == self._opened
        except QueryFailed:
            return False

    def _permit(self, code: int, first: str | None, second: str | None, _base: str | None, _by: str | None) -> int:
        if code == apsw.SQLITE_READ and first:
            self._tables.add(first)
        elif code == apsw.SQLITE_FUNCTION and second:
            self._calls.add(second.lower())
        return int(apsw.SQLITE_OK if code in _HARMLESS else apsw.SQLITE_DENY)

    def _is_over(self) -> bool:
        return self._stopped or time.monotonic() > self._deadline

    def run(self, statement: Statement, values: dict[str, object], limits: Limits) -> Found:
        """Run it: one statement of SQLite sees one state of the file."""
        self._tables, self._calls, self._stopped = set(), set(), False
        self._deadline = time.monotonic() + limits.seconds
        counter, columns = Counter(limits), list[tuple[str, str]]()
        try:
            cursor = self._connection.cursor()
            arguments: Any = statement.arguments("named", values)
            for row in cursor.execute(statement.text("named"), arguments, can_cache=False):
                if not columns:
                    columns = _columns(cursor)
                counter.take(tuple(row))
            columns = columns or self._columns_of(statement, arguments)
        except apsw.InterruptError:
            raise self._ended(limits) from None
        except apsw.Error as error:
            raise failure(error) from None
        finally:
            self._deadline = time.monotonic() + BUSY_SECONDS
        tables = frozenset(name for name in self._tables if not name.startswith("sqlite_"))
        return Found(columns, counter.rows, tables, steady=not self._calls & _UNSTEADY)

    def _columns_of(self, statement: Statement, arguments: Any) -> list[tuple[str, str]]:
        """The columns of a query that has no rows."""
        found: list[tuple[str, str]] = []

        def trace(cursor: Any, _sql: str, _bindings: Any) -> bool:
            found.extend(_columns(cursor))
            return True

        cursor = self._connection.cursor()
        cursor.exec_trace = trace
        for _ in cursor.execute(statement.text("named"), arguments, can_cache=False):
            break
        return found

    def _ended(self, limits: Limits) -> QueryFailed:
        if self._stopped:
            return QueryFailed("cancelled", blame=Blame.NOBODY)
        return QueryFailed("timeout", f"it took longer than {limits.seconds:g} s")

    def check(self, statement: Statement) -> None:
        """QueryFailed if it could not be run; it is prepared and not run."""
        self._stopped, self._deadline = False, time.monotonic() + BUSY_SECONDS
        arguments: Any = statement.arguments("named", dict.fromkeys(statement.parameters))
        try:
            self._connection.execute(f"EXPLAIN {statement.text('named')}", arguments).fetchone()
        except apsw.Error as error:
            raise failure(error) from None

    def tables(self, statement: Statement, values: dict[str, object]) -> frozenset[str] | None:
        """Known from every run."""
        return None

    def version(self) -> str:
        """Which connection this is, and SQLite's number of the last change by any other."""
        self._connection.authorizer = None
        try:
            found: Any = self._connection.execute("PRAGMA data_version").fetchone()
        except apsw.Error as error:
            raise failure(error) from None
        finally:
            self._connection.authorizer = self._permit
        return f"{self._token}.{found[0]}"

    def cancel(self) -> None:
        """The next look at the clock ends it."""
        self._stopped = True

    def close(self) -> None:
        """Close the file."""
        self._connection.close(force=True)


def _columns(cursor: Any) -> list[tuple[str, str]]:
    return [(str(name), str(kind or "").lower()) for name, kind in cursor.get_description()]


def failure(error: apsw.Error) -> QueryFailed:
    """What went wrong, in our words."""
    message = str(error)[:300]
    if isinstance(error, apsw.CantOpenError | apsw.IOError | apsw.NotADBError | apsw.CorruptError):
        word = {"CantOpenError": "unreachable", "IOError": "io"}.get(type(error).__name__, "damaged")
        return QueryFailed(word, message, Blame.LANE)
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return QueryFailed("locked", message, Blame.LANE)
    if isinstance(error, apsw.AuthError | apsw.PermissionsError | apsw.ReadOnlyError):
        return QueryFailed("not_read_only", message)
    if isinstance(error, apsw.InterruptError):
        return QueryFailed("cancelled", message, Blame.NOBODY)
    return QueryFailed("undefined" if "no such" in message else "query_error", message)


def connect(url: str, limits: Limits) -> SqliteConnection:
    """Open a file: sqlite:PATH, or sqlite:///PATH."""
    path = url.removeprefix("sqlite:")
    if path.startswith("///"):
        path = path[2:]
    return SqliteConnection(Path(path).expanduser())


DRIVER = Driver(connect, versions=True)

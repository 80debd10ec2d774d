"""PostgreSQL, through psycopg 3 (the optional extra `afresh[postgres]`)."""

from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import errors

from afresh.sources.sql.drivers.base import Counter, Driver, Found, Limits, QueryFailed
from afresh.sources.sql.statement import Statement
from afresh.types import Blame

PLAN_SECONDS = 5.0
IDLE_SECONDS = 60  # until the server ends a transaction that we forgot
_UNDEFINED = (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction, errors.InvalidSchemaName)
_DENIED = (errors.InsufficientPrivilege, errors.InvalidPassword, errors.InvalidAuthorizationSpecification)
_BUSY = (errors.TooManyConnections, errors.CannotConnectNow, errors.AdminShutdown, errors.CrashShutdown)
_DENIED_WORDS = ("password authentication", "no password supplied", "does not exist")


class PostgresConnection:
    """One connection to a server."""

    def __init__(self, url: str, limits: Limits) -> None:
        settings = {
            "default_transaction_read_only": "on",
            "statement_timeout": str(round(limits.seconds * 1000)),
            "lock_timeout": str(round(limits.seconds * 500)),
            "idle_in_transaction_session_timeout": str(IDLE_SECONDS * 1000),
        }
        self._limits = limits
        try:
            self._connection = psycopg.connect(
                url,
                connect_timeout=max(1, round(limits.connect)),
                application_name="afresh",
                options=" ".join(f"-c {name}={value}" for name, value in settings.items()),
                keepalives_idle=30,
                tcp_user_timeout=round((limits.seconds + limits.connect) * 1000),
                cursor_factory=psycopg.RawCursor,
                prepare_threshold=None,
                autocommit=False,
            )
            self._connection.read_only = True
        except psycopg.Error as error:
            raise failure(error) from None

    def usable(self) -> bool:
        """Whether nobody has ended it."""
        return not self._connection.closed and not self._connection.broken

    def run(self, statement: Statement, values: dict[str, object], limits: Limits) -> Found:
        """Run it in a transaction of its own; rows come a hundred at a time, so that what is too much is not held."""
        counter = Counter(limits)
        try:
            with self._connection.cursor() as cursor:
                try:
                    for row in self._stream(cursor, statement, values):
                        counter.take(row)
                    columns = _columns(cursor)
                finally:
                    self._end()
        except psycopg.Error as error:
            raise failure(error) from None
        return Found(columns, counter.rows)

    @staticmethod
    def _stream(cursor: Any, statement: Statement, values: dict[str, object]) -> Iterator[tuple[Any, ...]]:
        rows: Iterator[tuple[Any, ...]] = cursor.stream(statement.text("dollar"), statement.arguments("dollar", values))
        return rows

    def _end(self) -> None:
        if not self._connection.closed:
            self._connection.rollback()

    def tables(self, statement: Statement, values: dict[str, object]) -> frozenset[str] | None:
        """The tables in its plan, as schema.name."""
        text = f"EXPLAIN (VERBOSE, FORMAT JSON) {statement.text('dollar')}".encode()
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = {round(PLAN_SECONDS * 1000)}".encode())
                cursor.execute(text, statement.arguments("dollar", values))
                row: Any = cursor.fetchone()
            found = row[0] if row else []
            return frozenset(_relations(found))
        except psycopg.Error as error:
            raise failure(error) from None
        finally:
            self._end()

    def version(self) -> str:
        """PostgreSQL has none that is sure."""
        return ""

    def cancel(self) -> None:
        """Ask the server to end what runs."""
        try:
            self._connection.cancel_safe(timeout=5.0)
        except psycopg.Error:
            self._connection.close()

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


def _columns(cursor: Any) -> list[tuple[str, str]]:
    columns = []
    for each in cursor.description or ():
        known = psycopg.adapters.types.get(each.type_code)
        name = "unknown" if known is None else known.name + ("[]" if each.type_code == known.array_oid else "")
        columns.append((str(each.name), name))
    return columns


def _relations(plan: Any) -> Iterator[str]:
    if isinstance(plan, list):
        for each in plan:
            yield from _relations(each)
    elif isinstance(plan, dict):
        if "Relation Name" in plan:
            yield f"{plan.get('Schema', 'public')}.{plan['Relation Name']}"
        for each in plan.values():
            if isinstance(each, dict | list):
                yield from _relations(each)


def failure(error: psycopg.Error) -> QueryFailed:
    """What went wrong, in our words; whose message never shows how the database was reached."""
    message = (error.diag.message_primary or type(error).__name__)[:300]
    if isinstance(error, errors.QueryCanceled):
        timed_out = "timeout" in message
        return QueryFailed("timeout" if timed_out else "cancelled", message, Blame.KEY if timed_out else Blame.NOBODY)
    if isinstance(error, errors.LockNotAvailable):
        return QueryFailed("locked", message)
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return QueryFailed("not_read_only", message)
    if isinstance(error, _UNDEFINED):
        return QueryFailed("undefined", message)
    if isinstance(error, _DENIED):
        at_start = error.diag.severity is None or error.diag.severity_nonlocalized == "FATAL"
        return QueryFailed("denied", message, Blame.LANE if at_start else Blame.KEY)
    if isinstance(error, _BUSY) or (isinstance(error, psycopg.OperationalError) and error.sqlstate is None):
        denied = any(
            word in str(error) for word in ("password authentication", "no password supplied", "does not exist")
        )
        word = "denied" if denied else "unreachable"
        return QueryFailed(word, type(error).__name__ if error.sqlstate is None else message, Blame.LANE)
    if isinstance(error, psycopg.OperationalError):
        return QueryFailed("database_error", message, Blame.LANE)
    return QueryFailed("query_error", message)


def connect(url: str, limits: Limits) -> PostgresConnection:
    """Reach a server: postgresql://… ."""
    return PostgresConnection(url, limits)


DRIVER = Driver(connect)

"""Any driver that keeps to PEP 249, by its import path: `duckdb:/srv/shop.duckdb`, `pymysql:{"host": "db", …}`.

What follows the module's name goes to its `connect`: as it is, or as named arguments where it is a JSON object. Such a
driver cannot be told to stop, so the time limit is kept by leaving its connection behind.
"""

import contextlib
import json
from importlib import import_module
from typing import Any

from afresh.sources.sql.drivers.base import Counter, Driver, Found, Limits, QueryFailed
from afresh.sources.sql.statement import Statement
from afresh.types import Blame

AT_ONCE = 100  # rows asked for in one go


class Pep249Connection:
    """One connection of somebody's driver."""

    def __init__(self, module: Any, argument: str) -> None:
        self._module = module
        self._broken = False
        try:
            named = json.loads(argument) if argument.startswith("{") else None
            self._connection = module.connect(argument) if named is None else module.connect(**named)
        except Exception as error:  # whatever a driver may raise; its text may show how the database is reached
            raise QueryFailed("unreachable", type(error).__name__, Blame.LANE) from None

    def usable(self) -> bool:
        """Whether no query has failed in it."""
        return not self._broken

    def run(self, statement: Statement, values: dict[str, object], limits: Limits) -> Found:
        """Run it, and roll back whatever it may have begun."""
        style, counter = self._module.paramstyle, Counter(limits)
        try:
            cursor = self._connection.cursor()
            try:
                arguments = statement.arguments(style, values)
                cursor.execute(statement.text(style), *([arguments] if arguments or "format" in style else []))
                while rows := cursor.fetchmany(AT_ONCE):
                    for row in rows:
                        counter.take(tuple(row))
                columns = [(str(each[0]), _type_name(each[1])) for each in cursor.description or ()]
            finally:
                cursor.close()
        except QueryFailed:
            raise
        except Exception as error:
            self._broken = True
            raise self._failure(error) from None
        finally:
            with contextlib.suppress(Exception):
                self._connection.rollback()
        return Found(columns, counter.rows)

    def _failure(self, error: Exception) -> QueryFailed:
        for name, word, blame in (
            ("ProgrammingError", "query_error", Blame.KEY),
            ("DataError", "query_error", Blame.KEY),
            ("NotSupportedError", "query_error", Blame.KEY),
            ("InterfaceError", "unreachable", Blame.LANE),
            ("OperationalError", "database_error", Blame.LANE),
        ):
            kind = getattr(self._module, name, None)
            if isinstance(kind, type) and isinstance(error, kind):
                return QueryFailed(word, type(error).__name__, blame)
        return QueryFailed("query_error", type(error).__name__)

    def tables(self, statement: Statement, values: dict[str, object]) -> frozenset[str] | None:
        """PEP 249 knows no plans."""
        return None

    def version(self) -> str:
        """Nor versions."""
        return ""

    def cancel(self) -> None:
        """Nor a way to stop, but many drivers have one of these."""
        self._broken = True
        for name in ("interrupt", "cancel"):
            stop = getattr(self._connection, name, None)
            if callable(stop):
                with contextlib.suppress(Exception):
                    stop()
                return

    def close(self) -> None:
        """End the connection."""
        with contextlib.suppress(Exception):
            self._connection.close()


def _type_name(kind: object) -> str:
    return "" if kind is None else str(getattr(kind, "__name__", kind))[:40].lower()


def connect(url: str, limits: Limits) -> Pep249Connection:
    """MODULE:ARGUMENT."""
    name, _, argument = url.partition(":")
    try:
        module = import_module(name)
    except Exception as error:  # whatever a stranger's module may raise
        raise QueryFailed("no_driver", f"{name[:80]}: {type(error).__name__}", Blame.LANE) from None
    if not callable(getattr(module, "connect", None)) or not isinstance(getattr(module, "paramstyle", None), str):
        raise QueryFailed("no_driver", f"{name[:80]} is no driver after PEP 249", Blame.LANE)
    return Pep249Connection(module, argument)


DRIVER = Driver(connect)

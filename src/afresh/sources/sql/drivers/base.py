"""What a driver of a kind of database does for us, and what can go wrong with a query."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from afresh.sources.sql.statement import Statement
from afresh.types import Blame


@dataclass(frozen=True, slots=True)
class Limits:
    """What one query may take."""

    seconds: float = 30.0
    rows: int = 100_000
    bytes: int = 16 << 20
    connect: float = 10.0


class QueryFailed(Exception):
    """A query that brought nothing: a word that says why, and whose fault that is. It never holds a secret."""

    def __init__(self, reason: str, message: str = "", blame: Blame = Blame.KEY) -> None:
        super().__init__(reason, message)
        self.reason, self.message, self.blame = reason, message, blame


@dataclass(slots=True)
class Found:
    """What a query brought: name and type of each column, and the rows."""

    columns: list[tuple[str, str]]
    rows: list[tuple[Any, ...]]
    tables: frozenset[str] | None = None  # that it read; None: this driver learns that by `tables`
    steady: bool = False  # whether it can only change if the database does: no clock and no dice in it


class Connection(Protocol):
    """One connection that only reads. One thread at a time uses it; `cancel` may be called from another."""

    def usable(self) -> bool:
        """Whether it still leads to the database."""

    def run(self, statement: Statement, values: dict[str, object], limits: Limits) -> Found:
        """Run a query in a transaction that only reads; QueryFailed if it brings nothing, or more than it may."""

    def tables(self, statement: Statement, values: dict[str, object]) -> frozenset[str] | None:
        """The tables that it reads, by the database's plan; None: the database does not say."""

    def version(self) -> str:
        """What is another text whenever anything in the database is; "": it does not say."""

    def cancel(self) -> None:
        """Let the query that runs end soon."""

    def close(self) -> None:
        """Let go."""


@dataclass(frozen=True, slots=True)
class Driver:
    """How to reach a kind of database."""

    connect: Callable[[str, Limits], Connection] = field(repr=False)
    versions: bool = False  # whether its connections say what `version` the database has


class Counter:
    """Counts the rows of a result as they come, and stops at the limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.rows: list[tuple[Any, ...]] = []
        self._size = 0

    def take(self, row: tuple[Any, ...]) -> None:
        """One more row; QueryFailed if that is too much."""
        self.rows.append(row)
        self._size += 2 + sum(len(value) + 3 if isinstance(value, str | bytes) else 6 for value in row)
        if len(self.rows) > self.limits.rows:
            raise QueryFailed("too_many_rows", f"it has more than {self.limits.rows:,} rows")
        if self._size > self.limits.bytes:
            raise QueryFailed("result_too_large", f"its rows have more than {self.limits.bytes:,} bytes")

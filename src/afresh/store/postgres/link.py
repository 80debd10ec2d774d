"""Connections to the server: a few that read, one that writes, and what is made of what goes wrong with them."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import psycopg_pool
from psycopg import errors

from afresh.errors import StoreError, StoreLocked
from afresh.store.postgres.schema import NAME
from afresh.store.postgres.text import register
from afresh.types import Address

# What goes wrong is told by those who asked; the pool would say it at every try.
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)

Connection = psycopg.Connection[Any]
READERS = 4
FORGOTTEN_SECONDS = 10  # until the server ends a transaction of a process that it hears nothing of
AGAIN_SECONDS = 0.2  # between two tries to reach a server that was lost
PREPARED_AFTER = 2  # times that a statement is carried out


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone, or the server: another try may go well."""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | psycopg_pool.PoolTimeout) and not (
        isinstance(error, errors.DiskFull | errors.LockNotAvailable | errors.QueryCanceled | errors.InvalidPassword)
    )


class Link:
    """How a store reaches its server."""

    def __init__(self, address: Address, *, patience: float) -> None:
        self.address = address
        self.patience = patience
        self.closed = False
        self.settings: dict[str, Any] = {
            "connect_timeout": max(2, round(patience)),
            "application_name": "afresh",
            "client_encoding": "UTF8",  # else a database without an encoding (SQL_ASCII) gives bytes for text
            "keepalives_idle": 5,
            "keepalives_interval": 2,
            "keepalives_count": 3,
            "tcp_user_timeout": round(1000 * max(patience, 2.0)),
            "options": f"-c search_path={NAME} -c synchronous_commit=on "
            f"-c idle_in_transaction_session_timeout={FORGOTTEN_SECONDS}s",
        }
        self._pool = psycopg_pool.ConnectionPool(
            self.address.secret,
            min_size=0,
            max_size=READERS,
            open=True,
            timeout=patience,
            reconnect_timeout=patience,
            kwargs={**self.settings, "autocommit": True, "prepare_threshold": PREPARED_AFTER},
            configure=register,
        )

    def connect(self) -> Connection:
        """One more connection; the caller closes it."""
        connection = psycopg.connect(
            self.address.secret, autocommit=True, prepare_threshold=PREPARED_AFTER, **self.settings
        )
        register(connection)
        return connection

    def read(self, statement: str, values: Any = ()) -> list[tuple[Any, ...]]:
        """All rows of one statement; asked again where the connection was lost, until patience ends."""
        deadline = time.monotonic() + self.patience
        with self.translated():
            while True:
                try:
                    with self._pool.connection(timeout=self.patience) as connection:
                        return connection.cursor(binary=True).execute(statement.encode(), values).fetchall()
                except (psycopg.Error, psycopg_pool.PoolTimeout) as error:
                    if not is_lost(error) or self.closed or time.monotonic() > deadline:
                        raise
                time.sleep(AGAIN_SECONDS)

    def read_together(self, *asked: tuple[str, Any]) -> list[list[tuple[Any, ...]]]:
        """The rows of several statements, all as of one moment."""
        with self.translated(), self._pool.connection(timeout=self.patience) as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor = connection.cursor(binary=True)
            return [cursor.execute(statement.encode(), values).fetchall() for statement, values in asked]

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn what goes wrong inside into a StoreError with a sentence and a hint, and no password."""
        if self.closed:
            raise StoreError(f"The store {self.address} is closed.", hint="Open it again before using it.")
        try:
            yield
        except (psycopg.Error, psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed) as error:
            raise explain(self.address, error) from None

    def close(self) -> None:
        """Let go of all that reads."""
        self.closed = True
        with suppress(psycopg.Error):
            self._pool.close(timeout=1.0)


def explain(address: Address, error: Exception) -> StoreError:
    """The sentence and the hint for one error."""
    diag = getattr(error, "diag", None)
    said = (getattr(diag, "message_primary", None) or _without_secrets(address, str(error))).strip().rstrip(".")
    match error:
        case errors.DiskFull():
            return StoreError(
                f"The disk of {address} is full: the last batch could not be written.",
                hint="Free some space and start again; everything acknowledged before is safe.",
            )
        case errors.LockNotAvailable() | errors.QueryCanceled() | errors.DeadlockDetected():
            return StoreLocked(
                f"Another process is writing to the store {address} and did not finish in time.",
                hint="Wait until it ends and try again; nothing was lost.",
            )
        case errors.InsufficientPrivilege() | errors.ReadOnlySqlTransaction():
            return StoreError(f"The store {address} may not be written ({said}).", hint="Ask for the right to do so.")
        case errors.UndefinedTable():
            return StoreError(f"There is no store in {address}.", hint="Add a first page: afresh add URL --store …")
        case errors.UndefinedColumn():
            return StoreError(
                f"The schema of {address} is not the one that this afresh knows ({said}).",
                hint="An older one is brought up to date by afresh status; of a newer one, upgrade afresh.",
            )
        case errors.InvalidCatalogName():
            return StoreError(f"There is no such database: {address}.", hint="Create it: createdb NAME")
        case psycopg.OperationalError() | psycopg.InterfaceError() | psycopg_pool.PoolTimeout():
            return StoreError(
                f"The server of the store {address} cannot be reached ({said[:300]}).",
                hint="Is it running, and are address, user and password right? All that was acknowledged is safe.",
            )
        case _:
            return StoreError(f"The store {address} failed ({said[:300]}).", hint="Nothing of the last batch was kept.")


def _without_secrets(address: Address, text: str) -> str:
    """What the library says, on one line, without what only it may know."""
    shown = text.replace(address.secret, str(address))
    with suppress(psycopg.Error):
        for name, value in psycopg.conninfo.conninfo_to_dict(address.secret).items():
            if "password" in name and value:
                shown = shown.replace(str(value), "***")
    return " ".join(shown.split())


def check_address(address: Address) -> None:
    """StoreError if the address cannot be understood."""
    try:
        psycopg.conninfo.conninfo_to_dict(address.secret)
    except psycopg.Error:
        raise StoreError(
            f"{address} is not the address of a database.",
            hint="Write it like postgresql://user@host:5432/database.",
        ) from None


def columns(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Rows as columns, for statements that take arrays."""
    return [list(each) for each in zip(*rows, strict=True)]

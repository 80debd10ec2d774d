"""The outbox of a store in PostgreSQL: its tables are those that a file has (`afresh.store.outbox`)."""

from typing import Any

from afresh.store.outbox import Rows, Step
from afresh.store.postgres.link import Connection
from afresh.store.postgres.store import Postgres


class InServer:
    """Statements with `?` for values, carried out in the database."""

    written = "serials"

    def __init__(self, store: Postgres) -> None:
        self._store = store

    def rows(self, *questions: tuple[str, tuple[Any, ...]]) -> list[Rows]:
        """What each of some questions gives, all of one moment."""
        return self._store.read_together(*((_there(statement), values) for statement, values in questions))

    def carry_out(self, *steps: Step) -> list[int]:
        """Take steps, all of them or none, durably; how many rows each changed.

        Where the connection breaks at the end it may have happened: who calls reads anew where it stands.
        """

        def work(connection: Connection) -> list[int]:
            changed = []
            with connection.cursor() as cursor:
                for statement, rows in steps:
                    cursor.executemany(_there(statement).encode(), rows)
                    changed.append(max(cursor.rowcount, 0) if rows else 0)
            return changed

        return self._store.by_anybody(work)


def _there(statement: str) -> str:
    return statement.replace("?", "%s")

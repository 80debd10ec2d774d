"""The schema's versions: one numbered SQL file leads from each version to the next."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import apsw

from afresh.errors import StoreError
from afresh.store.faults import damaged, transaction

APPLICATION_ID = 0x61667265  # "afre": what tells an afresh store from any other SQLite file

# Columns that a version got only after stores of it had been made: since which version, table, column, statement.
LATER_COLUMNS = [(2, "pages", "depth", "ALTER TABLE pages ADD COLUMN depth INTEGER NOT NULL DEFAULT 0")]


def steps() -> list[str]:
    """The SQL scripts in order; the n-th one makes version n out of version n − 1."""
    found = sorted(file.name for file in files(__package__).iterdir() if file.name.endswith(".sql"))
    return [files(__package__).joinpath(name).read_text(encoding="utf-8") for name in found]


def version(connection: apsw.Connection) -> int:
    """The version that a database has."""
    return int(connection.pragma("user_version"))


def require_known(connection: apsw.Connection, path: Path, newest: int) -> int:
    """The database's version, which must not be newer than this program."""
    have = version(connection)
    if have < 0:
        raise damaged(path, f"it says that its schema is version {have}")
    if have > newest:
        raise StoreError(
            f"The store {path} was written by a newer afresh (schema {have}, this one knows {newest}).",
            hint="Upgrade afresh; the store was left as it is.",
        )
    return have


def behind(connection: apsw.Connection, path: Path, scripts: Sequence[str]) -> bool:
    """Whether a database is not of the newest version, or of an early form of a version."""
    return require_known(connection, path, len(scripts)) < len(scripts) or bool(_missing(connection))


def _missing(connection: apsw.Connection) -> list[str]:
    """What a database lacks of the version that it says it has."""
    have = version(connection)
    return [
        statement
        for since, table, column, statement in LATER_COLUMNS
        if have >= since and column not in {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    ]


def migrate(connection: apsw.Connection, path: Path, scripts: Sequence[str]) -> None:
    """Bring a database up to the newest version, each step whole or not at all."""
    require_known(connection, path, len(scripts))
    if _missing(connection):
        with transaction(connection):
            for statement in _missing(connection):  # again, inside: see below
                connection.execute(statement)
    while require_known(connection, path, len(scripts)) < len(scripts):
        with transaction(connection):
            # Read again inside the transaction: another process may have taken the step while this one waited.
            have = version(connection)
            if have < len(scripts):
                connection.execute(scripts[have])
                connection.pragma("user_version", have + 1)
                connection.pragma("application_id", APPLICATION_ID)

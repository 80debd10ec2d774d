"""The schema's versions in PostgreSQL: one numbered SQL file leads from each version to the next."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import psycopg

from afresh.errors import StoreError

NAME = "afresh"  # of the schema that holds all tables: the database may have others
ENCODINGS = ("UTF8", "SQL_ASCII")  # of a database that takes any text; the latter keeps what it is sent
MIGRATING = 0x61667265_00000001  # the lock that one process holds while it takes a step


def steps() -> list[str]:
    """The SQL scripts in order; the n-th one makes version n out of version n − 1."""
    found = sorted(file.name for file in files(__package__).iterdir() if file.name.endswith(".sql"))
    return [files(__package__).joinpath(name).read_text(encoding="utf-8") for name in found]


def version(connection: psycopg.Connection[Any]) -> int:
    """The version that a database has; 0: there is no store in it."""
    found = connection.execute("SELECT to_regclass('afresh.versions')").fetchone()
    if found is None or found[0] is None:
        return 0
    row = connection.execute("SELECT coalesce(max(version), 0) FROM afresh.versions").fetchone()
    return int(row[0]) if row else 0


def migrate(connection: psycopg.Connection[Any], where: str, scripts: Sequence[str], *, create: bool) -> None:
    """Bring a database up to the newest version, each step whole or not at all; many processes may try at once."""
    if (have := version(connection)) == len(scripts):
        return
    if have > len(scripts):
        raise StoreError(
            f"The store {where} was written by a newer afresh (schema {have}, this one knows {len(scripts)}).",
            hint="Upgrade afresh; the store was left as it is.",
        )
    if not have and not create:
        raise StoreError(
            f"There is no store in {where}.", hint="Check the address, or add a first page: afresh add URL"
        )
    if not have:
        _require_any_text(connection, where)
    for nth in range(have + 1, len(scripts) + 1):
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATING,))
            # Asked again, inside: another process may have taken the step while this one waited.
            if version(connection) == nth - 1:
                connection.execute(scripts[nth - 1].encode())
                connection.execute("INSERT INTO afresh.versions (version) VALUES (%s)", (nth,))


def _require_any_text(connection: psycopg.Connection[Any], where: str) -> None:
    row = connection.execute("SHOW server_encoding").fetchone()
    if row is not None and row[0] not in ENCODINGS:
        raise StoreError(
            f"The database {where} cannot hold every text: its encoding is {row[0]}.",
            hint="Make another: createdb --encoding UTF8 --template template0 NAME",
        )

"""A whole store from a file into PostgreSQL, or back: with all numbers, in one transaction, and compared."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Protocol

import apsw

from afresh.errors import InputError, StoreError
from afresh.store import rows
from afresh.store.faults import transaction
from afresh.store.postgres import Postgres
from afresh.store.postgres import statements as sql
from afresh.store.postgres.link import Connection
from afresh.store.postgres.writing import key_of
from afresh.store.slices import slice_of, slice_of_host
from afresh.store.sqlite import Sqlite

Row = tuple[Any, ...]
Told = Callable[[int, int], object]  # how many rows are done, of about how many
CHUNK = 500

PAGE_COLUMNS = (
    "number url host added depth importance importance_factor shortest longest hours paused popularity request_rate "
    "change_rate recall false_rate observations etag last_modified fingerprint fetched checked signals crawls changes "
    "failures learned noise urgent cost_same cost_new shape gone trouble title version written body_bytes stored_bytes"
)
COPY_COLUMNS = "page content_type fetched etag last_modified fingerprint size checksum meta body"
CRAWL_COLUMNS = (
    "page nth time outcome elapsed signals took status size significance reason fresh_probability trouble "
    "serial"  # as written
)
VERSION_COLUMNS = "page id number replaced_by replaced fetched content_type size checksum stored body"


@dataclass(frozen=True)
class Table:
    """A table that both kinds of store have."""

    name: str
    columns: tuple[str, ...]
    order: str
    of_page: bool = False  # its first column is the number of a page
    in_server: str = ""  # its name there, if another

    @property
    def selected(self) -> str:
        """The columns in SQL."""
        return ", ".join(self.columns)


TABLES = [
    Table("pages", tuple(PAGE_COLUMNS.split()), "number"),
    Table("copies", tuple(COPY_COLUMNS.split()), "page", of_page=True),
    Table("versions", tuple(VERSION_COLUMNS.split()), "id", of_page=True, in_server="versions_of_pages"),
    Table("crawls", tuple(CRAWL_COLUMNS.split()), "page, nth", of_page=True),
    Table("hosts", tuple(rows.HOST_COLUMNS.split(", ")), "host"),
    Table("named", ("name", "value"), "name"),
    Table("inbox", ("number", "received", "kind", "body"), "number"),
    Table("inbox_keys", ("key", "number"), "number, key"),
    Table("notifiers", ("name", "position", "delivered", "failures", "problem", "since", "last"), "name"),
    Table("outbox", ("number", "rule", "state", "id", "made", "due", "tries", "problem", "body"), "number"),
]


# What the tables in a server have before those columns.
BEFORE = {
    "pages": ("slice", "key"),
    **dict.fromkeys(("copies", "versions", "crawls", "hosts"), ("slice",)),
    **dict.fromkeys(("named", "inbox"), ("part",)),
}


class _End(Protocol):
    """A store as tables of rows; text is text, whatever it holds."""

    def rows(self, table: Table) -> Iterator[Row]:
        """All rows, in the table's order."""

    def load(self, found: Callable[[Table], Iterable[Row]], changes: int, removed: int, identity: str) -> None:
        """Take all rows of all tables in, in one transaction."""

    def counts(self) -> tuple[int, int, str]:
        """Changes ever found, crawls of pages that were removed, and the store's identity."""


def carry_over(source: Sqlite | Postgres, target: Sqlite | Postgres, told: Told) -> int:
    """Carry everything over, and compare it; how many rows there are.

    The target must be empty, or hold what was carried over before and not yet compared. Nobody may run on either.
    """
    where = target.address if isinstance(target, Postgres) else target.path
    if source.path == target.path:
        raise InputError(f"The store {where} would be carried over to itself.", hint="Name another one behind --to.")
    for store in (source, target):
        store.claim(brief=True)
    ends = _end(source), _end(target)
    # Once to carry, once to compare; crawls are the most.
    of = 2 * (source.totals().pages * 2 + source.totals().copies)
    done = 0

    def counted(found: Iterable[Row]) -> Iterator[Row]:
        nonlocal done
        for row in found:
            done += 1
            if done % CHUNK == 0:
                told(done, max(of, done))
            yield row

    totals = target.totals()
    is_empty = not (totals.pages or totals.inbox_entries or totals.crawls)
    if is_empty:
        ends[1].load(lambda table: counted(ends[0].rows(table)), *ends[0].counts())
    compared = 0
    for table in TABLES:
        for before, after in zip_longest(counted(ends[0].rows(table)), ends[1].rows(table)):
            compared += 1
            if before == after:
                continue
            if not is_empty:
                raise InputError(
                    f"The store {where} is not empty, and holds something else.",
                    hint="Name one that does not exist yet.",
                )
            raise StoreError(
                f"The row {str(before)[:120]} of {table.name} was not carried over as it is.",
                hint="Keep the first store; this is a fault of afresh.",
            )
    return compared


def _end(store: Sqlite | Postgres) -> _End:
    return _InFile(store) if isinstance(store, Sqlite) else _InServer(store)


class _InFile:
    def __init__(self, store: Sqlite) -> None:
        self.store = store

    def rows(self, table: Table) -> Iterator[Row]:
        reader = self.store.reader()
        try:
            texts = _texts(table)
            for row in reader.execute(f"SELECT {table.selected} FROM {table.name} ORDER BY {table.order}"):  # noqa: S608
                yield tuple(rows.untext(value) if at in texts else value for at, value in enumerate(row))
        finally:
            reader.close()

    def load(self, found: Callable[[Table], Iterable[Row]], changes: int, removed: int, identity: str) -> None:
        with self.store.writing() as connection, transaction(connection):
            for table in TABLES:
                texts = _texts(table)
                statement = (
                    f"INSERT INTO {table.name} ({table.selected}) VALUES ({', '.join('?' * len(table.columns))})"  # noqa: S608
                )
                made = (
                    tuple(rows.text(value) if at in texts else value for at, value in enumerate(row))
                    for row in found(table)
                )
                connection.executemany(statement, made)
            self._count(connection, changes, removed)
            connection.execute(rows.SET_IDENTITY, (identity,))

    @staticmethod
    def _count(connection: apsw.Connection, changes: int, removed: int) -> None:
        connection.execute(
            """UPDATE totals SET pages = (SELECT count(*) FROM pages), copies = (SELECT count(*) FROM copies),
              crawls = (SELECT coalesce(sum(written), 0) FROM pages) + ?2, changes = ?1, removed_crawls = ?2,
              body_bytes = (SELECT coalesce(sum(body_bytes), 0) FROM pages),
              stored_bytes = (SELECT coalesce(sum(stored_bytes), 0) FROM pages),
              inbox_entries = (SELECT count(*) FROM inbox),
              inbox_bytes = (SELECT coalesce(sum(length(body) + 100), 0) FROM inbox)""",
            (changes, removed),
        )

    def counts(self) -> tuple[int, int, str]:
        with self.store.writing() as connection:
            found: Any = connection.execute("SELECT changes, removed_crawls FROM totals").fetchone()
        return int(found[0]), int(found[1]), self.store.identity()


def _texts(table: Table) -> set[int]:
    """The places of columns that hold text from the network: in a file they may be blobs."""
    odd = {"etag", "last_modified", "content_type", "reason", "value", "problem"}
    return {at for at, name in enumerate(table.columns) if name in odd}


class _InServer:
    def __init__(self, store: Postgres) -> None:
        self.store = store

    def rows(self, table: Table) -> Iterator[Row]:
        with self.store.session() as connection, connection.transaction():
            where = " WHERE part = -1" if table.name == "named" else ""
            with connection.cursor(name=f"all_{table.name}", binary=True) as cursor:
                cursor.itersize = CHUNK
                there = table.in_server or table.name
                statement = f"SELECT {table.selected} FROM {there}{where} ORDER BY {table.order}"  # noqa: S608
                cursor.execute(statement.encode())
                yield from cursor

    def load(self, found: Callable[[Table], Iterable[Row]], changes: int, removed: int, identity: str) -> None:
        self.store.at_once(lambda connection: self._load(connection, found, changes, removed, identity))

    def _load(
        self,
        connection: Connection,
        found: Callable[[Table], Iterable[Row]],
        changes: int,
        removed: int,
        identity: str,
    ) -> None:
        slices: dict[int, int] = {}
        for table in TABLES:
            before = BEFORE.get(table.name, ())
            columns = ", ".join((*before, *table.columns))
            there = table.in_server or table.name
            types = [self._type(connection, there, name) for name in (*before, *table.columns)]
            with (
                connection.cursor() as cursor,
                cursor.copy(f"COPY {there} ({columns}) FROM STDIN (FORMAT binary)".encode()) as copy,
            ):
                copy.set_types(types)
                for row in found(table):
                    copy.write_row((*self._before(table, row, slices), *row))
        connection.execute("SELECT setval('page_numbers', (SELECT coalesce(max(number), 0) + 1 FROM pages), false)")
        connection.execute(
            """SELECT setval(pg_get_serial_sequence('versions_of_pages', 'id'),
              (SELECT coalesce(max(id), 0) + 1 FROM versions_of_pages), false)"""
        )
        connection.execute(
            """SELECT setval(pg_get_serial_sequence('inbox', 'number'),
              greatest((SELECT max(number) FROM inbox), (SELECT max(number) FROM inbox_keys), 0) + 1, false)"""
        )
        connection.execute(
            """SELECT setval(pg_get_serial_sequence('outbox', 'number'),
              (SELECT coalesce(max(number), 0) + 1 FROM outbox), false)"""
        )
        connection.execute(
            """UPDATE totals SET pages = c.pages, copies = c.copies, crawls = c.crawls, changes = c.changes,
                body_bytes = c.body_bytes, stored_bytes = c.stored_bytes
              FROM (SELECT slice, count(*) AS pages, count(fetched) AS copies, sum(written) AS crawls,
                sum(changes) AS changes, sum(body_bytes) AS body_bytes, sum(stored_bytes) AS stored_bytes
                FROM pages GROUP BY slice) AS c WHERE totals.slice = c.slice"""
        )
        # What pages that are gone had counted stands with the first slice.
        connection.execute(
            """UPDATE totals SET crawls = crawls + %(removed)s, removed_crawls = %(removed)s,
              changes = changes + %(changes)s - (SELECT sum(changes) FROM totals)::bigint WHERE slice = 0""",
            {"removed": removed, "changes": changes},
        )
        connection.execute(sql.SET_IDENTITY, (identity,))
        connection.execute("UPDATE serials SET crawls = (SELECT sum(crawls) FROM totals)")

    @staticmethod
    def _type(connection: Connection, table: str, column: str) -> str:
        found = connection.execute(
            "SELECT atttypid::regtype::text FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s",
            (table, column),
        ).fetchone()
        assert found is not None  # noqa: S101 - the schema has it
        return str(found[0])

    @staticmethod
    def _before(table: Table, row: Row, slices: dict[int, int]) -> Sequence[Any]:
        if table.name == "pages":
            slices[row[0]] = slice_of(row[1])
            return key_of(row[1])
        if table.of_page:
            return (slices[row[0]],)
        if table.name == "hosts":
            return (slice_of_host(row[0]),)
        return (-1,) if table.name in BEFORE else ()

    def counts(self) -> tuple[int, int, str]:
        with self.store.session() as connection:
            found: Any = connection.execute("SELECT sum(changes), sum(removed_crawls) FROM totals").fetchone()
        return int(found[0]), int(found[1]), self.store.identity()

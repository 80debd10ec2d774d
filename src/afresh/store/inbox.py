"""The inbox in SQL: entries go in, are read in order, and leave in the transaction that makes their effect durable."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import apsw

from afresh.errors import InboxFull
from afresh.store.base import ENTRY_BYTES, KEPT_KEYS, Entry

NOTE_KEY = "INSERT INTO inbox_keys (key, number) VALUES (?, ?) ON CONFLICT (key) DO NOTHING"
NEXT_NUMBER = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'inbox'), 0) + 1"
ADD_ENTRY = "INSERT INTO inbox (received, kind, body) VALUES (?, ?, ?)"
FORGET_KEYS = "DELETE FROM inbox_keys WHERE number <= ?"
ENTRIES_AFTER = "SELECT number, received, kind, body FROM inbox WHERE number > ? ORDER BY number LIMIT ?"
SIZE_OF = "SELECT length(body) FROM inbox WHERE number = ?"
TAKE_ENTRY = "DELETE FROM inbox WHERE number = ?"
ADD_TOTALS = "UPDATE totals SET inbox_entries = inbox_entries + ?, inbox_bytes = inbox_bytes + ?"
HELD = "SELECT inbox_bytes FROM totals"


def post(connection: apsw.Connection, entries: Iterable[Entry], *, bound: int, path: Path) -> int:
    """Add entries inside a transaction, but for those that were sent before; how many were new."""
    execute, new, size = connection.execute, 0, 0
    held = _number(connection, HELD)
    for entry in entries:
        if entry.key:
            before = connection.total_changes()
            execute(NOTE_KEY, (entry.key, _number(connection, NEXT_NUMBER)))
            if connection.total_changes() == before:
                continue
        execute(ADD_ENTRY, (entry.received, entry.kind, entry.body))
        new, size = new + 1, size + len(entry.body) + ENTRY_BYTES
        if held + size > bound:
            raise full(str(path), held, bound)
    if new:
        execute(ADD_TOTALS, (new, size))
        execute(FORGET_KEYS, (connection.last_insert_rowid() - KEPT_KEYS,))
    return new


def _number(connection: apsw.Connection, statement: str) -> int:
    found: Any = connection.execute(statement).fetchone()
    return int(found[0])


def full(where: str, held: int, bound: int) -> InboxFull:
    """What is said at the bound."""
    return InboxFull(
        f"The inbox of the store {where} has no room: {held:,} of {bound:,} bytes wait for a runner.",
        hint="Start `afresh run`, which empties it, and send this again; or allow more with store.max_inbox.",
    )


def take(connection: apsw.Connection, numbers: Sequence[int]) -> None:
    """Remove entries inside the transaction that makes their effect durable."""
    gone = size = 0
    for number in numbers:
        found = connection.execute(SIZE_OF, (number,)).fetchone()
        if found is not None:
            connection.execute(TAKE_ENTRY, (number,))
            gone, size = gone + 1, size + found[0] + ENTRY_BYTES
    if gone:
        connection.execute(ADD_TOTALS, (-gone, -size))


def entry_from(row: tuple[int, float, str, str]) -> Entry:
    """An entry from a row of `ENTRIES_AFTER`."""
    number, received, kind, body = row
    return Entry(kind, body, received, number=number)

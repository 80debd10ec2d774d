"""The inbox in PostgreSQL. In a cluster every item finds the worker that owns its page, once."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from afresh.store.base import ENTRY_BYTES, KEPT_KEYS, Entry
from afresh.store.inbox import full
from afresh.store.messages import SEARCHED
from afresh.store.postgres import statements as sql
from afresh.store.postgres.link import Connection
from afresh.store.slices import SLICES, slice_of

ALL = -1
OF_PAGES = {"signals", "requests", "popularity"}  # items are lists that begin with an address
OF_KEYS = {"remove", "pause", "resume", "refresh"}  # items are addresses
OF_OBJECTS = {"add", "got"}  # items are objects with a "url"


def post(connection: Connection, entries: Iterable[Entry], *, bound: int, where: object) -> int:
    """Add entries inside a transaction, but for those that were sent before; how many were new."""
    batch = list(entries)
    if not batch:
        return 0
    connection.execute(sql.INBOX_LOCK)
    held = int(_row(connection, sql.INBOX_TOTALS, {"part": ALL})[1])
    owners = owners_of(connection)
    new = size = 0
    number = 0
    for entry in batch:
        if entry.key and not connection.execute(sql.NOTE_KEY, (entry.key,)).rowcount:
            continue
        for part, piece in divided(entry, owners):
            number = int(_row(connection, sql.ADD_ENTRY, (part, piece.received, piece.kind, piece.body))[0])
            size += len(piece.body) + ENTRY_BYTES
        new += 1
        if held + size > bound:
            raise full(str(where), held, bound)
    if number:
        connection.execute(sql.NUMBER_KEYS, (number,))
        connection.execute(sql.FORGET_KEYS, (number - KEPT_KEYS,))
    return new


def owners_of(connection: Connection) -> Mapping[int, int] | None:
    """Which worker each slice is for; None: there is no cluster."""
    found = connection.execute("SELECT slice, wanted FROM slices WHERE wanted IS NOT NULL").fetchall()
    return dict(found) if found else None


def divided(entry: Entry, owners: Mapping[int, int] | None) -> list[tuple[int, Entry]]:
    """What of an entry is for which worker; what concerns no page alone is for each of them."""
    if owners is None:
        return [(ALL, entry)]
    by_part: dict[int, list[Any]] = {}
    try:
        items = json.loads(entry.body)
        for item in items:
            if entry.kind in OF_PAGES:
                url = item[0]
            elif entry.kind in OF_KEYS:
                url = item
            elif entry.kind in OF_OBJECTS:
                url = item["url"]
            elif entry.kind == SEARCHED:
                return [(0, entry)]
            else:
                return [(part, entry) for part in sorted(set(owners.values()))]
            by_part.setdefault(owners[slice_of(str(url))], []).append(item)
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return [(0, entry)]  # who takes it out says that it makes no sense
    if len(by_part) <= 1:
        return [(part, entry) for part in by_part] or [(0, entry)]
    return [(part, replace(entry, body=json.dumps(items))) for part, items in sorted(by_part.items())]


def strays(entries: Sequence[Entry], slices: frozenset[int]) -> list[Entry]:
    """Entries about pages that were handed over to another worker after the entries had come."""
    mine = dict.fromkeys(range(SLICES), 1) | dict.fromkeys(slices, 0)
    about = OF_PAGES | OF_KEYS | OF_OBJECTS
    return [each for each in entries if each.kind in about and any(part for part, _ in divided(each, mine))]


def forward(connection: Connection, entries: Sequence[Entry]) -> None:
    """Give entries to those that they are for by now, in one transaction."""
    connection.execute(sql.INBOX_LOCK)
    owners = owners_of(connection)
    gone = connection.execute(sql.TAKE_ENTRIES + " RETURNING number", ([each.number for each in entries],)).fetchall()
    left = {row[0] for row in gone}
    for entry in entries:
        if entry.number in left:
            for part, piece in divided(entry, owners):
                connection.execute(sql.ADD_ENTRY, (part, piece.received, piece.kind, piece.body))


def entry_from(row: tuple[int, float, str, str]) -> Entry:
    """An entry from a row of `ENTRIES_AFTER`."""
    number, received, kind, body = row
    return Entry(kind, body, received, number=number)


def _row(connection: Connection, statement: str, values: Any) -> tuple[Any, ...]:
    found = connection.execute(statement.encode(), values).fetchone()
    assert found is not None  # noqa: S101 - each of these statements gives a row
    return tuple(found)

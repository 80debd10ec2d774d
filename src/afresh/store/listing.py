"""Pages in an order, a part at a time: what people look through, however many pages there are.

Every order is that of an index, and a part begins right behind the last one. What no index finds is looked for in at
most `MAX_LOOKED_AT` pages, and whoever asked may go on from there.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from afresh.errors import InputError
from afresh.store import rows
from afresh.store.base import PageState, Store

MAX_LOOKED_AT = 20_000
CHUNK = 500
MAX_LIMIT = 200
ORDERS = ("url", "added", "checked", "failures")
STATES = ("copy", "without", "failing", "paused")
LAST_CHARACTER = "\U0010ffff"  # no address has a later one
KINDS = ("http:", "https:", "file:", "sql:")  # how the address of a thing may begin

Read = Callable[[str, rows.Row], list[rows.Row]]

_ALL = f"SELECT {rows.STATE_COLUMNS} FROM pages"  # noqa: S608
BY_URL = f"{_ALL} WHERE url >= ? AND url < ? ORDER BY url LIMIT ?"
BY_NUMBER = f"{_ALL} WHERE number > ? ORDER BY number LIMIT ?"
BY_CHECKED = f"""{_ALL} INDEXED BY pages_by_checked
  WHERE checked IS NOT NULL AND (checked, number) > (?, ?) ORDER BY checked, number LIMIT ?"""
BY_FAILURES = f"""{_ALL} INDEXED BY pages_that_fail
  WHERE failures > 0 AND (failures, number) < (?, ?) ORDER BY failures DESC, number DESC LIMIT ?"""
PAUSED = f"{_ALL} INDEXED BY pages_paused WHERE paused AND number > ? ORDER BY number LIMIT ?"
WITHOUT_COPY = f"{_ALL} INDEXED BY pages_without_copy WHERE fetched IS NULL AND number > ? ORDER BY number LIMIT ?"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which pages to list, and from where on."""

    order: str = "url"
    state: str = ""  # of `STATES`; "": any
    host: str = ""
    text: str = ""  # in the address, or how it begins
    after: str = ""  # where the part before ended, as it said
    limit: int = 50

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise InputError(f"Pages have no order {self.order[:40]!r}.", hint=f"Known are {', '.join(ORDERS)}.")
        if self.state and self.state not in STATES:
            raise InputError(f"Pages have no state {self.state[:40]!r}.", hint=f"Known are {', '.join(STATES)}.")
        if not 1 <= self.limit <= MAX_LIMIT:
            raise InputError(f"A part has 1 to {MAX_LIMIT} pages.", hint="Ask for the next part after it.")

    @property
    def driver(self) -> str:
        """What leads through the pages: a name of `_DRIVERS`, or "url"."""
        if self.host or self.text.startswith(KINDS):
            return "url"
        return _BY_STATE.get(self.state, self.order)


@dataclass(frozen=True, slots=True)
class Listing:
    """A part of the list."""

    pages: list[PageState]
    after: str  # where the next part begins; "": this was the last one
    looked_at: int  # pages, the listed ones included


_COLUMNS = [each.strip() for each in rows.STATE_COLUMNS.split(",")]
_NUMBER, _URL, _HOST = (_COLUMNS.index(name) for name in ("number", "url", "host"))
_CHECKED, _FAILURES = (_COLUMNS.index(name) for name in ("checked", "failures"))

# Statement, what stands before the first row, and the columns that mark the place of a row.
_DRIVERS: dict[str, tuple[str, list[Any], tuple[int, ...]]] = {
    "added": (BY_NUMBER, [0], (_NUMBER,)),
    "checked": (BY_CHECKED, [-1e300, 0], (_CHECKED, _NUMBER)),
    "failures": (BY_FAILURES, [1 << 62, 0], (_FAILURES, _NUMBER)),
    "paused": (PAUSED, [0], (_NUMBER,)),
    "without": (WITHOUT_COPY, [0], (_NUMBER,)),
}
_BY_STATE = {"failing": "failures", "paused": "paused", "without": "without"}
_HAS: dict[str, Callable[[PageState], bool]] = {
    "": lambda state: True,
    "copy": lambda state: state.fetched is not None,
    "without": lambda state: state.fetched is None,
    "failing": lambda state: state.failures > 0,
    "paused": lambda state: state.page.paused,
}


def list_pages(read: Read, wanted: Wanted) -> Listing:
    """The next part of the pages that somebody wants to see."""
    driver, has, text = wanted.driver, _HAS[wanted.state], wanted.text
    place = _place(wanted.after, driver)
    found: list[PageState] = []
    looked_at = 0
    walk = _along_urls(read, wanted, place) if driver == "url" else _along(read, driver, place)
    for mark, row in walk:
        looked_at += 1
        # Most rows are left out by their address: no object is made of them.
        if text in row[_URL] and (not wanted.host or row[_HOST] == wanted.host):
            state = rows.state_from(row)[1]
            if has(state):
                found.append(state)
        if len(found) == wanted.limit or looked_at == MAX_LOOKED_AT:
            return Listing(found, _cursor(driver, mark), looked_at)
    return Listing(found, "", looked_at)


def list_by_number(store: Store, wanted: Wanted) -> Listing:
    """The same for a store without these indexes: in the order in which pages were added, whatever is wanted."""
    place = _place(wanted.after, "added")
    has, found, looked_at = _HAS[wanted.state], list[PageState](), 0
    for number, state in store.states(after=0 if place is None else place[0]):
        looked_at += 1
        if has(state) and (not wanted.host or state.page.host == wanted.host) and wanted.text in state.page.url:
            found.append(state)
        if len(found) == wanted.limit or looked_at == MAX_LOOKED_AT:
            return Listing(found, _cursor("added", [number]), looked_at)
    return Listing(found, "", looked_at)


def _along(read: Read, driver: str, place: list[Any] | None) -> Iterator[tuple[list[Any], rows.Row]]:
    statement, first, marks = _DRIVERS[driver]
    place = first if place is None else place
    while part := read(statement, (*place, CHUNK)):
        for row in part:
            place = [row[column] for column in marks]
            yield place, row


def _along_urls(read: Read, wanted: Wanted, place: list[Any] | None) -> Iterator[tuple[list[Any], rows.Row]]:
    first = "" if place is None else f"{place[0]}\0"  # the very next address that there could be
    for low, high in _ranges(wanted):
        first = max(first, low)
        while part := read(BY_URL, (first, high, CHUNK)):
            for row in part:
                first = f"{row[_URL]}\0"
                yield [row[_URL]], row


def _ranges(wanted: Wanted) -> list[tuple[str, str]]:
    """Between which addresses the pages are, in their order."""
    if wanted.host.startswith("sql:"):
        return [(f"{wanted.host}/", f"{wanted.host}/{LAST_CHARACTER}")]
    if wanted.host.startswith("file:"):
        return [("file:", f"file:{LAST_CHARACTER}")]
    if wanted.host:
        starts = [f"http://{wanted.host}/", f"https://{wanted.host}/"]
    elif wanted.text.startswith(KINDS):
        starts = [wanted.text]
    else:
        return [("", LAST_CHARACTER)]
    return [(start, f"{start}{LAST_CHARACTER}") for start in starts]


def _cursor(driver: str, mark: list[Any]) -> str:
    return urlsafe_b64encode(json.dumps([driver, *mark]).encode()).decode().rstrip("=")


def _place(after: str, driver: str) -> list[Any] | None:
    """Where a part ended; InputError if nobody said that, or it was of another list."""
    if not after:
        return None
    try:
        said: list[Any] = json.loads(urlsafe_b64decode(after.encode("ascii") + b"=" * (-len(after) % 4)))
        was, place = said[0], said[1:]
        if was != driver or len(place) != (1 if driver == "url" else len(_DRIVERS[driver][1])):
            raise ValueError(after)
        for each in place:
            if isinstance(each, str) is not (driver == "url"):
                raise TypeError(after)
            if isinstance(each, str):
                each.encode()  # the store takes valid Unicode alone
            elif not -(1 << 62) <= each <= 1 << 62:
                raise ValueError(after)
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        raise InputError("There is no such place in this list.", hint="Begin without `after`.") from None
    return place

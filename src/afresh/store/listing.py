"""Pages in an order, a part at a time: what people look through, however many pages there are.

Every order is that of an index, and a part begins right behind the last one. What no index finds is looked for in at
most `MAX_LOOKED_AT` pages, and whoever asked may go on from there. A store that lacks the index of an order goes
through its pages in the order in which they were added.
"""

import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from afresh.errors import InputError
from afresh.store import rows
from afresh.store.base import PageState

MAX_LOOKED_AT = 20_000
CHUNK = 500
MAX_LIMIT = 200
ORDERS = ("url", "added", "checked", "failures")
STATES = ("copy", "without", "fresh", "stale", "failing", "gone", "paused")
LIKELY = 0.5  # a copy that is fresh with at least this probability counts as fresh
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
FAILING = f"""{_ALL} INDEXED BY pages_failing
  WHERE failures > 0 AND gone IS NULL AND (failures, number) < (?, ?) ORDER BY failures DESC, number DESC LIMIT ?"""
GONE = f"""{_ALL} INDEXED BY pages_gone
  WHERE gone IS NOT NULL AND (gone, number) < (?, ?) ORDER BY gone DESC, number DESC LIMIT ?"""
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
        """What leads through the pages: a name of `STATEMENTS`."""
        if self.host or self.text.startswith(KINDS):
            return "url"
        return self.state if self.state in _DRIVERS else self.order


@dataclass(frozen=True, slots=True)
class Listing:
    """A part of the list."""

    pages: list[PageState]
    after: str  # where the next part begins; "": this was the last one
    looked_at: int  # pages, the listed ones included


_COLUMNS = [each.strip() for each in rows.STATE_COLUMNS.split(",")]
_NUMBER, _URL, _HOST = (_COLUMNS.index(name) for name in ("number", "url", "host"))
_CHECKED, _FAILURES, _GONE = (_COLUMNS.index(name) for name in ("checked", "failures", "gone"))

# What stands before the first row, and the columns that mark the place of a row.
_DRIVERS: dict[str, tuple[list[Any], tuple[int, ...]]] = {
    "added": ([0], (_NUMBER,)),
    "checked": ([-1e300, 0], (_CHECKED, _NUMBER)),
    "failures": ([1 << 62, 0], (_FAILURES, _NUMBER)),
    "failing": ([1 << 62, 0], (_FAILURES, _NUMBER)),
    "gone": ([1e300, 0], (_GONE, _NUMBER)),
    "paused": ([0], (_NUMBER,)),
    "without": ([0], (_NUMBER,)),
}
# How a file goes by them; other stores have their own, of all or of some. "added" is always there.
STATEMENTS = {
    "url": BY_URL,
    "added": BY_NUMBER,
    "checked": BY_CHECKED,
    "failures": BY_FAILURES,
    "failing": FAILING,
    "gone": GONE,
    "paused": PAUSED,
    "without": WITHOUT_COPY,
}
Has = Callable[[PageState, float], bool]  # at a moment
_HAS: dict[str, Has] = {
    "": lambda state, now: True,
    "copy": lambda state, now: state.fetched is not None,
    "without": lambda state, now: state.fetched is None,
    "fresh": lambda state, now: state.fetched is not None and _is_fresh(state, now),
    "stale": lambda state, now: state.fetched is not None and not _is_fresh(state, now),
    "failing": lambda state, now: state.failures > 0 and state.gone is None,
    "gone": lambda state, now: state.gone is not None,
    "paused": lambda state, now: state.page.paused,
}


def fresh_probability(state: PageState, now: float) -> float | None:
    """With which probability a copy is fresh, as far as the store knows; None: nothing is believed of it."""
    if state.gone is not None:
        return 0.0
    if state.checked is None or state.beliefs is None:
        return None
    return state.beliefs.freshness(max(now - state.checked, 0.0), state.signals)


def _is_fresh(state: PageState, now: float) -> bool:
    return (fresh_probability(state, now) or 0.0) >= LIKELY


def list_pages(read: Read, wanted: Wanted, statements: Mapping[str, str] = STATEMENTS) -> Listing:
    """The next part of the pages that somebody wants to see, by the statements that a store has."""
    driver, has, text = wanted.driver, _HAS[wanted.state], wanted.text
    driver = driver if driver in statements else "added"
    statement = statements[driver]
    place = _place(wanted.after, driver)
    found: list[PageState] = []
    looked_at, now = 0, time.time()
    walk = _along_urls(read, statement, wanted, place) if driver == "url" else _along(read, statement, driver, place)
    for mark, row in walk:
        looked_at += 1
        # Most rows are left out by their address: no object is made of them.
        if text in row[_URL] and (not wanted.host or row[_HOST] == wanted.host):
            state = rows.state_from(row)[1]
            if has(state, now):
                found.append(state)
        if len(found) == wanted.limit or looked_at == MAX_LOOKED_AT:
            return Listing(found, _cursor(driver, mark), looked_at)
    return Listing(found, "", looked_at)


def _along(read: Read, statement: str, driver: str, place: list[Any] | None) -> Iterator[tuple[list[Any], rows.Row]]:
    first, marks = _DRIVERS[driver]
    place = first if place is None else place
    while part := read(statement, (*place, CHUNK)):
        for row in part:
            place = [row[column] for column in marks]
            yield place, row


def _along_urls(
    read: Read, statement: str, wanted: Wanted, place: list[Any] | None
) -> Iterator[tuple[list[Any], rows.Row]]:
    last = None if place is None else place[0]  # the page that the part before ended with comes first: it is left out
    for low, high in _ranges(wanted):
        while True:
            part = read(statement, (low if last is None else max(last, low), high, CHUNK))
            if part and part[0][_URL] == last:
                del part[0]
            if not part:
                break
            for row in part:
                last = row[_URL]
                yield [last], row


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
        if was != driver or len(place) != (1 if driver == "url" else len(_DRIVERS[driver][0])):
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

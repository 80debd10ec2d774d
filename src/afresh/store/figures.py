"""How a collection was, minute by minute: the rows that a runner leaves behind, for who looks back.

The rows of an hour are one named value, so that keeping them costs a small write a minute, and forgetting an old hour
is one deletion.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from afresh.store.base import Store

NAME = "figures "  # before the number of the hour, since 1970
HOUR = 3600.0
KEPT_HOURS = 7 * 24


@dataclass(frozen=True, slots=True)
class Figures:
    """What was true at a moment, and what was counted in the minute before it."""

    time: float
    freshness: float | None = None  # share of requests, or of pages, that would find a fresh copy, as believed
    found: float | None = None  # of the copies checked in that time, the share that was found fresh
    said: float | None = None  # and what had been said of these, on average
    budget: float = 0.0
    price: float = 0.0
    pages: int = 0
    crawls: int = 0
    changes: int = 0
    failures: int = 0
    seconds: float = 60.0  # that the counts are of


_FIELDS = [field.name for field in fields(Figures)]


def name_of(time: float) -> str:
    """Under which name the store has the rows of an hour."""
    return f"{NAME}{int(time // HOUR)}"


def to_text(rows: Iterable[Figures]) -> str:
    """To be kept."""
    return json.dumps({"fields": _FIELDS, "rows": [list(asdict(row).values()) for row in rows]})


def from_text(text: str | None) -> list[Figures]:
    """The rows that were kept; none where they make no sense."""
    try:
        kept = json.loads(text or "{}")
        return [_row(dict(zip(kept["fields"], row, strict=True))) for row in kept["rows"]]
    except (ValueError, TypeError, KeyError):
        return []


def _row(said: dict[str, Any]) -> Figures:
    known = {name: said[name] for name in _FIELDS if name in said}
    for value in known.values():
        if value is not None:
            float(value)
    return Figures(**known)


def figures_kept(store: Store, since: float) -> list[Figures]:
    """All rows from a moment on, the oldest first."""
    hours = sorted(int(name.removeprefix(NAME)) for name, _ in store.names(NAME) if name.removeprefix(NAME).isdecimal())
    rows = [row for hour in hours if (hour + 1) * HOUR > since for row in from_text(store.get(f"{NAME}{hour}"))]
    return sorted((row for row in rows if row.time >= since), key=lambda row: row.time)


def outdated(store: Store, now: float) -> dict[str, str | None]:
    """The names of hours that are not kept any longer, to be forgotten."""
    oldest = int(now // HOUR) - KEPT_HOURS
    names = [name for name, _ in store.names(NAME)]
    return {name: None for name in names if (hour := name.removeprefix(NAME)).isdecimal() and int(hour) < oldest}

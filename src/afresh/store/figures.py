"""How a collection was, minute by minute: the rows that a runner leaves behind, for who looks back.

The rows of an hour are one named value, so that keeping them costs a small write a minute, and forgetting an old hour
is one deletion. The minute that is not over is a value of its own, written every second: an end in between loses none
of it. The next runner puts it among the rows of its hour.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from afresh.store.base import Store

NAME = "figures "  # before the number of the hour, since 1970
UNFINISHED = f"{NAME}unfinished"  # the row of the minute that is not over
HOUR = 3600.0
MINUTE = 60.0
KEPT_HOURS = 7 * 24
COUNTS = "crawls", "changes", "failures"  # of the time before a row


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
    except (ValueError, TypeError, KeyError, OverflowError):
        return []


def _row(said: dict[str, Any]) -> Figures:
    known = {name: said[name] for name in _FIELDS if name in said}
    float(known["time"])
    for value in known.values():
        if value is not None and not math.isfinite(value):
            raise ValueError(value)
    return Figures(**known)


def with_left(rows: Sequence[Figures], left: Figures) -> list[Figures]:
    """The rows of an hour with the one that an end left unfinished. It keeps its time, by which `together` knows it.

    Within a minute it goes on with the row before it, so that a runner that ends again and again leaves few rows.

    >>> hour = [Figures(100.0, crawls=2, seconds=10.0)]
    >>> [(row.time, row.crawls, row.seconds) for row in with_left(hour, Figures(130.0, crawls=3, seconds=20.0))]
    [(130.0, 5, 30.0)]
    >>> [(row.time, row.crawls) for row in with_left(hour, Figures(200.0, crawls=3))]
    [(100.0, 2), (200.0, 3)]
    """
    if any(row.time == left.time for row in rows):
        return list(rows)
    last = rows[-1] if rows else None
    if last is None or not 0.0 <= left.time - (last.time - last.seconds) <= MINUTE:
        return [*rows, left]
    sums = {name: getattr(last, name) + getattr(left, name) for name in (*COUNTS, "seconds")}
    found, said = (_mean((getattr(row, name), row.crawls) for row in (last, left)) for name in ("found", "said"))
    return [*rows[:-1], replace(left, found=found, said=said, **sums)]


def together(parts: Sequence[Sequence[Figures]]) -> list[Figures]:
    """The rows of several workers as those of one, minute by minute.

    >>> one = [Figures(61.0, 0.4, pages=1, crawls=2, price=3.0), Figures(71.0, 0.5, pages=1, crawls=1, price=3.0)]
    >>> other = [one[0], Figures(100.0, 0.9, pages=3, price=4.0)]
    >>> [(row.time, row.freshness, row.pages, row.crawls, row.price) for row in together([one, other])]
    [(100.0, 0.8, 4, 3, 4.0)]
    """
    if len(parts) <= 1:
        return [row for rows in parts for row in rows]
    minutes: dict[int, list[Figures]] = {}
    met = set[float]()  # a worker goes on with the rows that it finds, so several may have the same ones
    for rows in parts:
        own: dict[int, list[Figures]] = {}
        new = [row for row in rows if row.time not in met]
        met.update(row.time for row in new)
        for row in new:
            own.setdefault(int(row.time // 60.0), []).append(row)
        for minute, some in own.items():
            counts = {name: sum(getattr(row, name) for row in some) for name in (*COUNTS, "seconds")}
            minutes.setdefault(minute, []).append(replace(some[-1], **counts))
    return [_sum(rows) for _, rows in sorted(minutes.items())]


def _sum(rows: list[Figures]) -> Figures:
    return Figures(
        time=max(row.time for row in rows),
        freshness=_mean((row.freshness, row.pages) for row in rows),
        found=_mean((row.found, row.crawls) for row in rows),
        said=_mean((row.said, row.crawls) for row in rows),
        price=max(row.price for row in rows),
        seconds=max(row.seconds for row in rows),
        **{name: sum(getattr(row, name) for row in rows) for name in ("budget", "pages", *COUNTS)},
    )


def _mean(values: Iterable[tuple[float | None, int]]) -> float | None:
    known = [(value, weight) for value, weight in values if value is not None and weight > 0]
    return sum(value * weight for value, weight in known) / sum(weight for _, weight in known) if known else None


def figures_kept(store: Store, since: float) -> list[Figures]:
    """All rows from a moment on, the oldest first."""
    names = [name for name, _ in store.names(NAME) if _ends_after(name, since) or name == UNFINISHED]
    return figures_in({name: store.get(name) for name in names}, since)


def figures_in(values: Mapping[str, str | None], since: float) -> list[Figures]:
    """The same from named values."""
    rows = [row for name, text in values.items() if _ends_after(name, since) for row in from_text(text)]
    met = {row.time for row in rows}
    rows += [row for row in from_text(values.get(UNFINISHED)) if row.time not in met]
    return sorted((row for row in rows if row.time >= since), key=lambda row: row.time)


def _ends_after(name: str, since: float) -> bool:
    hour = name.removeprefix(NAME)
    return hour.isdecimal() and (int(hour) + 1) * HOUR > since


def outdated(store: Store, now: float) -> dict[str, str | None]:
    """The names of hours that are not kept any longer, to be forgotten."""
    oldest = int(now // HOUR) - KEPT_HOURS
    names = [name for name, _ in store.names(NAME)]
    return {name: None for name in names if (hour := name.removeprefix(NAME)).isdecimal() and int(hour) < oldest}

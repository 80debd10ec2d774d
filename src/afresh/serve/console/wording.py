"""How the console's pages put numbers, moments and reasons: filters of its templates."""

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from afresh.units import show_count, show_duration, show_rate, show_size

MINUTE = 60.0
_NOTHING = "–"
OUTCOMES = {
    "new": "first copy",
    "changed": "changed",
    "unchanged": "unchanged",
    "probed": "probed",
    "gone": "gone",
    "moved": "moved",
    "refused": "refused",
    "busy": "busy",
    "failed": "failed",
}


def percent(share: float | None, digits: int = 1) -> str:
    """A share.

    >>> percent(0.9432), percent(None), percent(1.0, 0)
    ('94.3 %', '–', '100 %')
    """
    return _NOTHING if share is None else f"{100 * share:.{digits}f} %"


def moment(seconds: float | None) -> Markup:
    """A point in time: how long ago or ahead, with the moment itself for who points at it, and for programs."""
    if seconds is None or not math.isfinite(seconds):
        return escape(_NOTHING)
    try:
        exact = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return escape(_NOTHING)
    away = seconds - time.time()
    length = show_duration(float(round(abs(away)))) if abs(away) < MINUTE else show_duration(abs(away))
    near = "now" if abs(away) < 1 else f"in {length}" if away > 0 else f"{length} ago"
    machine, person = exact.strftime("%Y-%m-%dT%H:%M:%SZ"), exact.strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(machine, person, near)


def exact(seconds: float) -> str:
    """A point in time in full."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def paired(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a difference side by side: blocks that were taken away stand beside those that were put in there.

    >>> rows = [{"kind": "removed", "pieces": [("old", "a")]}, {"kind": "added", "pieces": [("new", "b")]}]
    >>> paired(rows)
    [{'kind': 'changed', 'pieces': [('old', 'a'), ('new', 'b')]}]
    """
    made: list[dict[str, Any]] = []
    gone: list[dict[str, Any]] = []  # that nothing stands beside yet
    for row in rows:
        if row["kind"] == "added" and gone:
            old = gone.pop(0)
            old["kind"], old["pieces"] = "changed", [*old["pieces"], *row["pieces"]]
            continue
        if row["kind"] == "removed":
            row = {**row}
            gone.append(row)
        elif row["kind"] != "added":
            gone = []
        made.append(row)
    return made


def block(text: str, longest: int = 4_000) -> str:
    """Some text of a page: without what steers how text runs, and not without end.

    >>> ascii(block("a\\u202eb"))
    "'a\\\\ufffdb'"
    """
    cut = text[:longest] + ("…" if len(text) > longest else "")
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in cut)


def clock(seconds: float) -> str:
    """A moment of a chart's axis."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M" if seconds % 86400 else "%d %b")


def breakable(url: str) -> Markup:
    """An address that may go on in the next line behind its slashes and signs."""
    text = str(url)
    safe = "".join(each if each.isprintable() else "\ufffd" for each in text[:2_100])
    pieces, last = [], 0
    for nth, each in enumerate(safe):
        if each in "/?&=#" and nth + 1 < len(safe):
            pieces.append(escape(safe[last : nth + 1]))
            last = nth + 1
    return Markup("<wbr>").join([*pieces, escape(safe[last:])])


def _or_nothing(show: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: _NOTHING if value is None else show(value)


def number(value: float | None) -> str:
    """A number with separators.

    >>> number(12345), number(0.123456), number(None)
    ('12,345', '0.1235', '–')
    """
    if value is None:
        return _NOTHING
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"


FILTERS: dict[str, Callable[..., Any]] = {
    "percent": percent,
    "moment": moment,
    "clock": clock,
    "exact": exact,
    "block": block,
    "paired": paired,
    "breakable": breakable,
    "duration": _or_nothing(show_duration),
    "rate": _or_nothing(show_rate),
    "size": _or_nothing(show_size),
    "number": number,
    "counted": show_count,
    "outcome": lambda word: OUTCOMES.get(str(word), str(word)),
}

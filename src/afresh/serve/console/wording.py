"""How the console's pages put numbers, moments and reasons: filters of its templates."""

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from afresh.units import SECONDS, show_count, show_duration, show_rate, show_size

COARSE = 10  # fewer of a unit need a smaller one besides
SHORT, LONG = 600.0, 86_401.0  # seconds: an axis that is shorter shows seconds, a longer one days
_UNITS = (("y", "d"), ("d", "h"), ("h", "min"), ("min", "s"))
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
        when = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return escape(_NOTHING)
    machine, person = when.strftime("%Y-%m-%dT%H:%M:%SZ"), when.strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(machine, person, away(seconds - time.time()))


def away(seconds: float) -> str:
    """How far ahead something is, or how long ago.

    >>> away(-295.0), away(7_260.0), away(-0.4), away(-20 * 60.0)
    ('4 min 55 s ago', 'in 2 h 1 min', 'now', '20 min ago')
    """
    length = lasting(abs(seconds))
    return "now" if abs(seconds) < 1 else f"in {length}" if seconds > 0 else f"{length} ago"


def lasting(seconds: float) -> str:
    """A length of time as people say it: whole numbers, and a second unit where the first one is coarse.

    >>> lasting(12.3), lasting(61), lasting(3 * 3600 + 59), lasting(86_400 * 45), lasting(3 * 365.25 * 86_400)
    ('12 s', '1 min 1 s', '3 h', '45 d', '3 y')
    """
    for name, smaller in _UNITS:
        if seconds >= SECONDS[name]:
            count, rest = divmod(seconds, SECONDS[name])
            less = int(rest / SECONDS[smaller]) if smaller and count < COARSE else 0
            return f"{count:.0f} {name}" + (f" {less} {smaller}" if less else "")
    return f"{int(seconds)} s"


def dated(seconds: float) -> Markup:
    """A point in time in full, as lists have it that stay on the screen while time goes on."""
    said = Markup('<time datetime="{}" title="{}">{}</time>')
    machine = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return said.format(machine, away(seconds - time.time()), exact(seconds))


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


def clock(seconds: float, span: float) -> str:
    """A moment of the axis of a chart that shows so many seconds.

    >>> clock(60.0, 90.0), clock(60.0, 3600.0), clock(60.0, 7 * 86_400.0)
    ('00:01:00', '00:01', '01 Jan 00:01')
    """
    form = "%H:%M:%S" if span < SHORT else "%H:%M" if span < LONG else "%d %b %H:%M"
    return datetime.fromtimestamp(seconds, UTC).strftime(form)


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
    "dated": dated,
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

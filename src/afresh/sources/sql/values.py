"""Parameters as text in a key, and rows as JSON: one form for one content, from which the same values come back."""

import datetime
import decimal
import json
import math
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import quote, unquote

MAX_VALUE = 1000  # characters of one parameter
_WORDS: dict[str, object] = {"null": None, "true": True, "false": False}
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,24})?(?:e[+-]?\d{1,3})?")


def written(value: object) -> str | None:
    """A parameter as text, in one form for each value; None if it is nothing that can be one.

    Text that would read as a number or a word begins with an apostrophe.

    >>> [written(value) for value in (5, "5", 0.5, None, True, "a b", datetime.date(2026, 11, 17))]
    ['5', "'5", '0.5', 'null', 'true', 'a b', '2026-11-17']
    """
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        text = repr(value)
        return text if _NUMBER.fullmatch(text) else None
    if isinstance(value, int):
        return str(value) if abs(value) < 10**18 else None
    if isinstance(value, datetime.date | datetime.time):
        value = value.isoformat()
    elif isinstance(value, decimal.Decimal | uuid.UUID):
        value = str(value)
    if not isinstance(value, str) or len(value) > MAX_VALUE or "\0" in value:
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return f"'{value}" if value in _WORDS or value[:1] == "'" or _NUMBER.fullmatch(value) else value


def read(text: str) -> object:
    """The parameter that a text stands for.

    >>> [read(text) for text in ("5", "'5", "0.5", "null", "true", "a b")]
    [5, '5', 0.5, None, True, 'a b']
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[:1] == "'":
        return text[1:]
    if _NUMBER.fullmatch(text):
        return int(text) if text.lstrip("-").isdigit() else float(text)
    return text


def to_query(values: dict[str, object]) -> str | None:
    """Parameters as the end of a key: sorted by name; None if one of them cannot be written."""
    parts = []
    for name in sorted(values):
        text = written(values[name])
        if text is None:
            return None
        parts.append(f"{name}={quote(text, safe=_SAFE)}")
    return "&".join(parts)


_SAFE = "-_.~:,'@/ !".replace(" ", "")


def from_query(query: str) -> dict[str, object] | None:
    """The parameters at the end of a key, in whatever order; None if it is none."""
    values: dict[str, object] = {}
    for part in query.split("&") if query else ():
        name, equals, text = part.partition("=")
        if not equals or not name.isidentifier() or not name.isascii() or name in values:
            return None
        try:
            values[name] = read(unquote(text, errors="strict"))
        except UnicodeDecodeError:
            return None
    return values


# --- rows ---

Row = tuple[Any, ...]

_AS: dict[type, tuple[str, Callable[[Any], str]]] = {
    bytes: ("bytes", lambda value: value.hex()),
    decimal.Decimal: ("decimal", str),
    datetime.datetime: ("datetime", datetime.datetime.isoformat),
    datetime.date: ("date", datetime.date.isoformat),
    datetime.time: ("time", datetime.time.isoformat),
    datetime.timedelta: ("seconds", lambda value: repr(value.total_seconds())),
    uuid.UUID: ("uuid", str),
}
_BACK: dict[str, Callable[[str], Any]] = {
    "bytes": bytes.fromhex,
    "decimal": decimal.Decimal,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "seconds": lambda text: datetime.timedelta(seconds=float(text)),
    "uuid": uuid.UUID,
    "float": float,
}


def _cell(value: Any) -> tuple[str, Any]:
    """A value as JSON has it, and what it stands for: "" as it is."""
    if value is None or isinstance(value, str | int):
        return "", value
    if isinstance(value, float):
        return ("", value) if math.isfinite(value) else ("float", repr(value))
    if isinstance(value, bytearray | memoryview):
        value = bytes(value)
    known = _AS.get(type(value))
    if known is not None:
        return known[0], known[1](value)
    if isinstance(value, list | tuple):
        return "json", [_inside(each) for each in value]
    if isinstance(value, dict):
        return "json", {str(name): _inside(each) for name, each in value.items()}
    return "text", str(value)  # a type that only its database knows


def _inside(value: Any) -> Any:
    """A value within an array or an object."""
    return _cell(value)[1]


def to_json(columns: Sequence[tuple[str, str]], rows: Iterable[Row], *, ordered: bool) -> bytes:
    """A result as bytes, the same bytes for the same content; rows are sorted where the query leaves their order open.

    >>> to_json([("n", "int4"), ("at", "date")], [(2, None), (1, datetime.date(2026, 11, 17))], ordered=False).decode()
    '{"columns":[{"name":"n","type":"int4"},{"name":"at","type":"date","as":"date"}],"rows":[[1,"2026-11-17"],[2,null]]}'
    """
    cells = [[_cell(value) for value in row] for row in rows]
    kinds = [{kind for kind, value in column if value is not None} for column in zip(*cells, strict=True)]
    kinds = kinds or [set() for _ in columns]
    described, mixed = [], []
    for (name, kind), found in zip(columns, kinds, strict=True):
        mixed.append(len(found) > 1)
        shown = "mixed" if mixed[-1] else next(iter(found), "")
        described.append({"name": name, "type": kind} | ({"as": shown} if shown else {}))
    dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False).encode
    texts = [
        dump([[kind, value] if many else value for (kind, value), many in zip(row, mixed, strict=True)])
        for row in cells
    ]
    if not ordered:
        texts.sort()
    head = json.dumps(described, ensure_ascii=False, separators=(",", ":"))
    return f'{{"columns":{head},"rows":[{",".join(texts)}]}}'.encode("utf-8", "surrogatepass")


def from_json(body: bytes) -> tuple[list[tuple[str, str]], list[Row]]:
    """(name and type of each column, the rows) of a result that was kept; ValueError if it is none."""
    kept = json.loads(body.decode("utf-8", "surrogatepass"))
    try:
        columns = [(str(each["name"]), str(each["type"])) for each in kept["columns"]]
        backs = [_back(each.get("as", "")) for each in kept["columns"]]
        plain = not any(backs)
        rows = [
            tuple(row) if plain else tuple(
                value if value is None or back is None else back(value)
                for value, back in zip(row, backs, strict=True)
            )
            for row in kept["rows"]
        ]  # fmt: skip
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("this is no result of a query") from error
    return columns, rows


def _back(kind: str) -> Callable[[Any], Any] | None:
    if kind == "mixed":
        return _unmixed
    return _BACK.get(kind)


def _unmixed(cell: Any) -> Any:
    kind, value = cell
    back = _BACK.get(kind)
    return value if value is None or back is None else back(value)

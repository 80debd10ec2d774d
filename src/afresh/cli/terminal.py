"""What is printed for people: safe text, times, and the JSON of every command."""

import dataclasses
import json
import math
import time
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

# Long lines are left to the terminal: a line of ours must stay one line in a pipe.
console = Console(highlight=False, markup=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def plain(text: str, longest: int = 300) -> str:
    """Text from anywhere, without what could steer a terminal, and of bounded length.

    >>> plain("a\\x1b[31mred\\u202e")
    'a?[31mred?'
    """
    safe = "".join(character if character.isprintable() else "?" for character in text)
    return safe if len(safe) <= longest else safe[: longest - 1] + "…"


def moment(seconds: float | None) -> str:
    """A point in time for people, in UTC; "never" for none."""
    if seconds is None or not math.isfinite(seconds):
        return "never"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "never"


def as_json(value: Any) -> str:
    """One line of strict JSON; infinities become null."""
    return json.dumps(_strict(value), ensure_ascii=True, allow_nan=False)


def _strict(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: _strict(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _strict(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def now() -> float:
    """The time, for commands that look at a store once."""
    return time.time()

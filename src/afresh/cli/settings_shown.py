"""All settings as they are in force, for people and programs: what may hold a secret shows only where it leads."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from functools import partial
from typing import Any

from afresh.cli.terminal import show_address
from afresh.config import Config
from afresh.errors import ConfigError
from afresh.hours import Hours
from afresh.types import Importance
from afresh.units import (
    Budget,
    budget,
    show_cost,
    show_importance,
    write_budget,
    write_duration,
    write_rate,
    write_size,
)

Object = dict[str, Any]
_END = re.compile(r"(?<=:\d\d)-\d+:\d\d")


def settings_in(config: Config) -> list[Object]:
    """Every setting with its table, value, default and help; tables that may appear often, in turn."""
    found: list[Object] = []
    for table in fields(config):
        value = getattr(config, table.name)
        several = isinstance(value, tuple)
        for nth, part in enumerate(value if several else (value,)):
            name = f"[[{table.name}]] {nth + 1}" if several else f"[{table.name}]"
            found += map(partial(_setting, name, part), fields(part))
    return found


def _setting(table: str, part: Any, each: Any) -> Object:
    value, said = getattr(part, each.name), each.metadata
    if (table.partition(" ")[0], each.name) == ("[[notify]]", "to"):  # the path of a webhook may be a secret
        from afresh.notify.channels.opening import shown

        value = shown(value)
    changed = value != each.metadata["read"](said["written"])
    return {
        "table": table,
        "name": each.name,
        "value": _shown(value, said["read"]) if changed else _written(said["written"]),
        "default": _written(said["written"]),
        "changed": changed,
        "help": said["help"],
    }


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _shown(value: Any, read: Callable[[Any], Any]) -> str:
    """A value as it would be written; what may hold a password shows only where it leads."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Budget | int | float):
        return _number(value, read)
    if isinstance(value, Hours):
        return _hours(value, read)
    if isinstance(value, Importance):
        return show_importance(value)
    if isinstance(value, frozenset):
        return ", ".join(map(str, sorted(value)))
    if isinstance(value, tuple) and value and all(isinstance(each, tuple) for each in value):  # hours and their budgets
        return ", ".join(f"{when.text} = {write_budget(budget(much))}" for when, much in value)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], float):  # what a refresh costs
        amount, unit = value
        exact = {"bytes": write_size(round(amount)), "seconds": write_duration(amount)}
        return exact.get(unit) or show_cost(amount, unit)
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], int):
        return show_address(value)
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    text = "" if value is None else str(value)
    scheme, separator, rest = text.partition("://")
    if separator:
        place, query, _ = rest.partition("?")
        user, at, host = place.rpartition("@")
        return f"{scheme}://{'…' if user else ''}{at}{host}{'?…' if query else ''}"[:300]
    return text[:300]


def _hours(value: Hours, read: Callable[[Any], Any]) -> str:
    """Hours; where times of day are wanted, which are kept as hours that begin then, without their ends."""
    short = _END.sub("", value.text)
    with suppress(ConfigError):
        if read(short) == value:
            return short
    return value.text


def _number(value: float, read: Callable[[Any], Any]) -> str:
    """A number in the unit that its setting reads: whichever text is read as this number is right."""
    if isinstance(value, Budget):
        return write_budget(value)
    for text in (write_duration(value), write_rate(value), write_size(int(value))):
        with suppress(ConfigError):
            if abs(float(read(text)) - value) <= 1e-9 * abs(value):
                return text
    return f"{value:.12g}"

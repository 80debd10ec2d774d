"""All settings as they are in force, for people and programs: what may hold a secret shows only where it leads."""

from dataclasses import fields
from functools import partial
from typing import Any

from afresh.cli.terminal import show_address
from afresh.config import Config

Object = dict[str, Any]


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
        "value": _shown(value) if changed else _written(said["written"]),
        "default": _written(said["written"]),
        "changed": changed,
        "help": said["help"],
    }


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _shown(value: Any) -> str:
    """A value for people; what may hold a password shows only where it leads."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], int):
        return show_address(value)
    if isinstance(value, tuple | frozenset) and all(isinstance(each, str | int) for each in value):
        return ", ".join(map(str, value))
    text = str(value)
    scheme, separator, rest = text.partition("://")
    if separator:
        place, query, _ = rest.partition("?")
        user, at, host = place.rpartition("@")
        return f"{scheme}://{'…' if user else ''}{at}{host}{'?…' if query else ''}"[:300]
    return text[:300]

"""Any text in PostgreSQL, which refuses NUL and what is not valid Unicode: both are escaped."""

import re
from typing import Any

from psycopg.abc import AdaptContext
from psycopg.types.string import StrBinaryDumper, StrDumper, TextBinaryLoader, TextLoader

MARK = "\ue000"  # of the private use area: hardly ever met, and escaped itself
_ODD = re.compile(f"[\0\ud800-\udfff{MARK}]")
_ESCAPED = re.compile(f"{MARK}([0-9a-f]{{4}})")


def escaped(text: str) -> str:
    """Text that PostgreSQL takes.

    >>> escaped("plain"), unescaped(escaped("a\\0b\\udc80")) == "a\\0b\\udc80"
    ('plain', True)
    """
    return _ODD.sub(lambda found: f"{MARK}{ord(found[0]):04x}", text)


def unescaped(text: str) -> str:
    """The text again."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if MARK in text else text


def _plain(text: str) -> bool:
    return text.isascii() and "\0" not in text


class _Dumper(StrDumper):
    def dump(self, obj: str) -> Any:
        return super().dump(obj if _plain(obj) else escaped(obj))


class _BinaryDumper(StrBinaryDumper):
    def dump(self, obj: str) -> Any:
        return super().dump(obj if _plain(obj) else escaped(obj))


class _Loader(TextLoader):
    def load(self, data: Any) -> str | bytes:
        text = super().load(data)
        return unescaped(text) if isinstance(text, str) else text


class _BinaryLoader(TextBinaryLoader):
    def load(self, data: Any) -> str | bytes:
        text = super().load(data)
        return unescaped(text) if isinstance(text, str) else text


def register(context: AdaptContext) -> None:
    """Let a connection take and give any text."""
    adapters = context.adapters
    if adapters is not None:
        adapters.register_dumper(str, _Dumper)
        adapters.register_dumper(str, _BinaryDumper)
        adapters.register_loader("text", _Loader)
        adapters.register_loader("text", _BinaryLoader)

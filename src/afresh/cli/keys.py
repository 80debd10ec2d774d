"""What people write for a thing that is kept: an address, a path, or the key of a query's result."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from afresh.errors import InputError

if TYPE_CHECKING:
    from afresh.store import Store

SQL = "sql:"


def is_path(text: str) -> bool:
    """Whether a text is meant as a path of a file: it begins as one.

    >>> [is_path(text) for text in ("/srv/docs", "./a", "../a", "~/a", "file:///srv", "docs", "https://a.example/")]
    [True, True, True, True, True, False, False]
    """
    return text.startswith(("/", "./", "../", "~", "file:")) or text in (".", "..")


def key_of(text: str) -> tuple[str, str]:
    """(key, lane) of what somebody writes; InputError if it is nothing that can be kept."""
    from afresh.frontier import canonical, host_of

    text = text.strip()
    if is_path(text):
        return file_key(text)
    if text.startswith(SQL):
        from afresh.sources.sql.definitions import canonical as canonical_query

        key = canonical_query(text)
        if key is None:
            raise InputError(
                f"{text[:300]} is no key of a query.", hint="Write it like sql:shop/top?day=2026-11-17&n=5"
            )
        return key, key.partition("/")[0]
    url = canonical(text)
    return url, host_of(url)


def kept_key(text: str, kept: "Store") -> str:
    """The key of what somebody writes for a thing that is kept already: a path as it is written goes before what its
    links lead to, and what is no address may be a path without ./ before it."""
    from afresh.frontier import canonical_or_none
    from afresh.sources.files import key_of as file_key_of

    text = text.strip()
    path = is_path(text) or (canonical_or_none(text) is None and Path(text).exists())
    maybe = path or (canonical_or_none(text) is None and not text.startswith(SQL))  # it may be there no more
    if maybe and not text.startswith("file:"):
        literal = os.fsencode(os.path.abspath(Path(text).expanduser()))  # noqa: PTH100 - follows no link
        for folder in (False, True):
            key = file_key_of(literal, folder=folder)
            if key is not None and kept.state(key) is not None:
                return key
    if text.startswith("file:") and kept.state(text) is not None:
        return text
    return file_key(text)[0] if path else key_of(text)[0]


def file_key(text: str, *, folder: bool | None = None) -> tuple[str, str]:
    """(key, lane) of a path: of what it leads to through links. Whether a folder is meant, the disk says."""
    from afresh.sources.files import key_of as file_key_of
    from afresh.sources.files import path_of
    from afresh.sources.files.names import canonical
    from afresh.sources.files.source import Files

    if text.startswith("file:"):
        made = canonical(text)
        if made is None:
            raise InputError(f"{text[:300]} is no path of a file.", hint="Write it like /srv/docs or file:///srv/docs")
        path = os.fsdecode(path_of(made)[0])
    else:
        path = text
    real = os.path.realpath(Path(path).expanduser())
    key = file_key_of(os.fsencode(real), folder=Path(real).is_dir() if folder is None else folder)
    if key is None:
        raise InputError(f"{text[:300]} is no path that can be kept.", hint="Its name may be too long.")
    return key, Files().lane(key)

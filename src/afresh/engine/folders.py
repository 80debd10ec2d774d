"""Folders of many URLs at once, compiled: pages with the same key are on the same branch, and of the same kin.

What a branch and kin are is said in `afresh.estimate.kin`; here URLs are only told apart as finely as that needs, so
that each folder is looked at once and not each page.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.value.compiled import compiled

MOST_FOLDERS = 4  # as many as `branches_of` looks at: kin look at fewer
LONGEST_ENDING = 5  # of a file's name, as in `kin_of`; a letter may have four bytes
_SLASH, _DOT, _HASH, _QUESTION = (ord(each) for each in "/.#?")
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@compiled
def _mixed(key: Any, value: Any) -> Any:
    key = (key ^ np.uint64(value)) * _FACTOR
    return key ^ (key >> _SHIFT)


@compiled
def _path(text: NDArray[np.uint8], begin: int, end: int) -> tuple[int, int]:
    """Where the path begins and ends: a query or a fragment says nothing about folders, and the host has a number."""
    for at in range(begin, end):
        if text[at] == _QUESTION or text[at] == _HASH:
            end = at
            break
    for at in range(begin, end - 1):
        if text[at] == _SLASH and text[at + 1] == _SLASH:
            begin = at + 2
            break
    while begin < end and text[begin] != _SLASH:
        begin += 1
    return begin + 1, end


@compiled
def _last(text: NDArray[np.uint8], begin: int, end: int, sign: int) -> int:
    """Where a sign stands last; −1: nowhere."""
    for at in range(end - 1, begin - 1, -1):
        if text[at] == sign:
            return at
    return -1


@compiled
def _key(text: NDArray[np.uint8], begin: int, end: int, key: Any) -> Any:
    begin, end = _path(text, begin, end)
    name = max(_last(text, begin, end, _SLASH) + 1, begin)
    folders = 0
    for at in range(begin, name):
        key = _mixed(key, text[at])
        folders += text[at] == _SLASH
        if folders == MOST_FOLDERS:
            break
    key = _mixed(key, 256)
    dot = _last(text, name, end, _DOT)
    if dot >= 0 and end - dot <= 4 * LONGEST_ENDING + 1:
        for at in range(dot, end):
            key = _mixed(key, text[at])
    return key


@compiled
def _keys(text: NDArray[np.uint8], ends: NDArray[np.int64], hosts: NDArray[np.int64], secret: Any, keys: Any) -> None:
    begin = 0
    for k in range(ends.size):
        keys[k] = _key(text, begin, ends[k], _mixed(_mixed(np.uint64(secret), hosts[k]), 257))
        begin = ends[k]


def folder_keys(urls: Sequence[str], hosts: NDArray[np.int64], secret: int = 0) -> NDArray[np.uint64]:
    """A key of each URL on the host with this number."""
    encoded = [url.encode("utf-8", "surrogatepass") for url in urls]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
    keys = np.empty(len(encoded), np.uint64)
    _keys(np.frombuffer(b"".join(encoded), np.uint8), ends, hosts, np.uint64(secret), keys)
    return keys

"""The scheduler's state in a file: a few small arrays, then all page records as one block."""

import json
from typing import Any, BinaryIO

import numpy as np

from afresh.errors import StoreError
from afresh.schedule.pace import Pace
from afresh.schedule.wheel.table import PAGE, State, aligned_records

_MAGIC = b"afresh-schedule-6\n"
_SMALL = ("control", "wheel", "shelves", "hosts", "heap", "extra", "leases")


def write_state(path: str | BinaryIO, state: State, more: dict[str, Any], pace: Pace) -> None:
    """Write a state, a few values beside it and the pace."""
    if isinstance(path, str):
        with open(path, "wb") as file:  # noqa: PTH123 - pathlib belongs to the edges
            write_state(file, state, more, pace)
        return
    path.write(_MAGIC)
    head = json.dumps(more | {"pace": pace.state()}).encode()
    path.write(len(head).to_bytes(8, "little") + head)
    state = state._replace(control=state.control.copy())
    for name in state.control.dtype.names or ():
        if name.endswith("_at"):
            state.control[name] = 0  # addresses, which would make equal states differ
    for name in _SMALL:
        np.save(path, getattr(state, name), allow_pickle=False)
    used = int(state.control[0]["used"])
    path.write(used.to_bytes(8, "little"))
    path.write(state.pages[:used].view(np.uint8).data)


def read_state(path: str | BinaryIO) -> tuple[State, dict[str, Any], Pace]:
    """What `write_state` wrote."""
    if isinstance(path, str):
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib belongs to the edges
            return read_state(file)
    if path.read(len(_MAGIC)) != _MAGIC:
        raise StoreError("The file is not a saved scheduler.", hint="Give a file that Scheduler.save has written.")
    more = json.loads(path.read(int.from_bytes(path.read(8), "little")))
    small = {name: np.load(path, allow_pickle=False) for name in _SMALL}
    used = int.from_bytes(path.read(8), "little")
    pages = aligned_records(used)
    got = path.readinto(pages.view(np.uint8).data)  # type: ignore[attr-defined]
    if got != used * PAGE.itemsize:
        raise StoreError("The saved scheduler is cut short.", hint="Use an older file, or add the pages again.")
    return State(pages=pages, **small), more, Pace.restore(more.pop("pace"))

"""A table of 64-bit fingerprints, compiled: which slot belongs to each. Four bytes a place, linear probing.

The table holds slots; the fingerprints themselves stand in a column by slot. So a page takes 8 bytes there, and 6 to 12
here. Fingerprints are spread evenly, so their upper bits say where to look.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.value.compiled import compiled

Marks = NDArray[np.uint64]
Places = NDArray[np.int32]  # a slot each; −1: free. Their number is a power of two


@compiled
def place_of(table: Places, mark: Any) -> int:
    """Where to begin to look for a fingerprint."""
    return int(np.uint64(mark) >> np.uint64(32)) & (table.size - 1)


@compiled
def find(table: Places, marks: Marks, mark: Any) -> int:
    """The slot of a fingerprint; −1 if there is none."""
    at = place_of(table, mark)
    while table[at] >= 0:
        if marks[table[at]] == mark:
            return int(table[at])
        at = (at + 1) & (table.size - 1)
    return -1


@compiled
def find_all(table: Places, marks: Marks, wanted: Marks, slots: NDArray[np.int64]) -> None:
    """The slots of fingerprints."""
    for k in range(wanted.size):
        slots[k] = find(table, marks, wanted[k])


@compiled
def put_all(table: Places, marks: Marks, slots: NDArray[np.int64]) -> None:
    """Enter slots whose fingerprints are not in the table, which must have room."""
    for k in range(slots.size):
        at = place_of(table, marks[slots[k]])
        while table[at] >= 0:
            at = (at + 1) & (table.size - 1)
        table[at] = slots[k]


@compiled
def move_all(table: Places, marks: Marks, larger: Places) -> None:
    """Enter all that one table holds into another, which is empty and has room."""
    for k in range(table.size):
        if table[k] >= 0:
            at = place_of(larger, marks[table[k]])
            while larger[at] >= 0:
                at = (at + 1) & (larger.size - 1)
            larger[at] = table[k]


@compiled
def take_out(table: Places, marks: Marks, slot: int) -> None:
    """Take a slot out; those behind it move up, so that no search ends before them."""
    mask = table.size - 1
    at = place_of(table, marks[slot])
    while table[at] != slot:
        if table[at] < 0:
            return
        at = (at + 1) & mask
    table[at] = -1
    behind = (at + 1) & mask
    while table[behind] >= 0:
        wanted = place_of(table, marks[table[behind]])
        if (behind - wanted) & mask >= (behind - at) & mask:
            table[at] = table[behind]
            table[behind] = -1
            at = behind
        behind = (behind + 1) & mask

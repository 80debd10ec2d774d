"""Drawing from many unequal things in constant time (the alias method)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]


@compiled
def alias_table(weights: Floats) -> tuple[Floats, Integers]:
    """(keep, other): a cell drawn evenly is kept with probability `keep`, else its `other` is taken."""
    count = weights.size
    keep = weights * (count / weights.sum())
    other = np.arange(count).astype(np.int32)
    small, large = np.empty(count, np.int32), np.empty(count, np.int32)
    smalls, larges = 0, 0
    for i in range(count):
        if keep[i] < 1.0:
            small[smalls] = i
            smalls += 1
        else:
            large[larges] = i
            larges += 1
    while smalls > 0 and larges > 0:
        smalls -= 1
        poor, rich = small[smalls], large[larges - 1]
        other[poor] = rich
        keep[rich] -= 1.0 - keep[poor]
        if keep[rich] < 1.0:
            larges -= 1
            small[smalls] = rich
            smalls += 1
    # What is left over differs from 1 by rounding alone.
    for k in range(smalls):
        keep[small[k]] = 1.0
    for k in range(larges):
        keep[large[k]] = 1.0
    return keep, other


@compiled
def draw(rng: Any, keep: Floats, other: Integers) -> int:
    """A cell, by its weight."""
    u = rng.random() * keep.size
    cell = int(u)
    return cell if u - cell < keep[cell] else int(other[cell])

"""Whole sessions at once, compiled: learn from them, and at which place each model had the page that came next."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.paths.layout import Tables
from afresh.estimate.paths.mixing import arrive, forecast, leave, move
from afresh.value.compiled import compiled

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@compiled
def learn_sessions(tables: Tables, pages: Integers, offsets: Integers, dwells: Floats) -> None:
    """Let one reader after another go through a session; `dwells` are seconds before each page, below 0 if unknown."""
    for session in range(offsets.size - 1):
        leave(tables, 0)
        for at in range(offsets[session], offsets[session + 1]):
            move(tables, 0, pages[at], dwells[at])


@compiled
def foretell_sessions(
    tables: Tables, pages: Integers, offsets: Integers, model: int, waits: Floats, sizes: Floats, sums: Any
) -> int:
    """Add up, by place of the forecast from 0: moves whose page was foretold there, the waits that these would have
    saved, and the bytes of all pages foretold there. How many moves there were.

    `waits` and `sizes` are by page; `sums` has three rows. `model` is one alone, or -1 for all together. Nothing is
    learned.
    """
    most = sums.shape[1]
    chosen, probable, moves = np.empty(most, np.int32), np.empty(most), 0
    for session in range(offsets.size - 1):
        leave(tables, 0)
        for at in range(offsets[session], offsets[session + 1]):
            if at > offsets[session]:
                moves += 1
                for place in range(forecast(tables, 0, model, chosen, probable)):
                    sums[2, place] += sizes[chosen[place]]
                    if chosen[place] == pages[at]:
                        sums[0, place] += 1.0
                        sums[1, place] += waits[pages[at]]
            arrive(tables, 0, pages[at])
    return moves

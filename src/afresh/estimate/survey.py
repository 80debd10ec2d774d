"""How fresh all copies are at one moment: one compiled pass over a snapshot, for a thread that holds no lock.

The snapshot is copied from the columns of a `Learner` and an `Activity` where these are changed; what is done with it
later may take its time. It states of each copy what `Learner.fresh_probability` and `Activity.fresh` state.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.activity import Activity
from afresh.estimate.activity_online import Slices, fresh, slices_of
from afresh.estimate.learner import Learner
from afresh.estimate.online import TYPICAL_RATE, Table, weigh_page
from afresh.estimate.points import PAIRS, RATES, WEIGHTS, fresh_of
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LEAST = 1e-300  # a chance whose logarithm is finite


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Copies and what is believed of them, in lists of equal length; shared with nobody."""

    table: Table  # with one page for each copy
    slices: Slices
    together: bool  # whether what happened to siblings counts
    current: Sequence[float]  # as of when each copy is
    signals: Sequence[float]  # heard since, as a number of good ones
    branches: Sequence[tuple[int, ...]]

    def fresh(self, now: float) -> list[float]:
        """How likely each copy is to be current."""
        places: dict[tuple[int, ...], int] = {}
        flat: list[int] = []
        for each in dict.fromkeys(self.branches):
            places[each] = len(flat)
            flat += each
        first = np.array([places[each] for each in self.branches], np.int64)
        lengths = np.array([len(each) for each in self.branches], np.int64)
        found = _fresh(
            self.table,
            self.slices,
            self.together,
            np.array(self.current, np.float64),
            np.array(self.signals, np.float64),
            np.array(flat or [0], np.int64),  # one list of numbers after the other
            first,  # where that of each copy begins,
            first + lengths,  # and ends
            float(now),
        )
        return [float(each) for each in found]


def snapshot(
    learner: Learner,
    activity: Activity | None,
    *,
    slots: Sequence[int],
    current: Sequence[float],
    signals: Sequence[float],
    branches: Sequence[tuple[int, ...]],
) -> Snapshot:
    """Copy what is believed of the pages at these slots, in their order."""
    table = learner.table
    copied = Table(
        table.pages[np.array(slots, np.int64)],
        table.groups.copy(),
        table.control.copy(),
        np.zeros(RATES + WEIGHTS.size),
        np.zeros(PAIRS),
    )
    shared = slices_of(activity or Activity(width=1.0))
    slices = shared._replace(**{name: getattr(shared, name).copy() for name in shared._fields[1:]})
    return Snapshot(copied, slices, activity is not None, current, signals, branches)


@compiled
def _fresh(
    table: Table,
    slices: Slices,
    together: bool,
    current: Floats,
    signals: Floats,
    branches: Integers,
    first: Integers,
    last: Integers,
    now: float,
) -> Floats:
    found = np.zeros(current.size)
    typical_rate = table.control[TYPICAL_RATE]
    for k in range(current.size):
        elapsed = max(now - current[k], 0.0)
        weigh_page(table, k)
        by_time = fresh_of(table.chance, typical_rate, elapsed, 0.0)
        all_told = fresh_of(table.chance, typical_rate, elapsed, signals[k]) if signals[k] > 0.0 else by_time
        if not together:
            found[k] = all_told
            continue
        expected = -math.log(max(by_time, _LEAST))
        told = -math.log(max(all_told, _LEAST)) - expected
        own = branches[first[k] : last[k]]
        found[k] = fresh(slices, own, current[k], now, expected) * math.exp(-told)
    return found


def compile_ahead() -> None:
    """Compile the pass, so that no statement waits for it."""
    learner, activity = Learner(), Activity(width=1.0)
    learner.add(0, now=0.0)
    own = activity.branches(("host", "host/"))
    snapshot(learner, activity, slots=[0], current=[0.0], signals=[1.0], branches=[own]).fresh(1.0)

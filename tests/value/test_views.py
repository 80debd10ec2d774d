"""A view reads what the tuple holds, and compiled code that writes through it writes into the arrays."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from afresh.value.compiled import compiled
from afresh.value.views import reader, view_of, written

RECORD = np.dtype([("at", "f8"), ("number", "i4"), ("small", "u2"), ("unused", "u2")])


class Inner(NamedTuple):
    rows: Any
    factor: float


class Outer(NamedTuple):
    count: int
    records: Any
    inner: Inner


def outer(count: int, records: int, rows: tuple[int, int]) -> Outer:
    return Outer(count, np.zeros(records, RECORD), Inner(np.arange(float(rows[0] * rows[1])).reshape(rows), 0.5))


seen: Any = reader(view_of(outer(0, 0, (0, 0))))


@compiled
def of_inner(inner: Inner, row: int, place: int) -> float:
    return float(inner.rows[row, place] * inner.factor)


@compiled
def change(at: int, row: int, place: int) -> float:
    view = seen(at)
    last = view.records[view.records.size - 1]
    last.number += view.count
    last.at = of_inner(view.inner, row, place)
    view.inner.rows[row, place] = -1.0
    return float(view.inner.rows.shape[0])


@pytest.mark.parametrize("rows", [(3, 4), (1, 7), (50, 2)])
def test_compiled_code_reads_and_writes_the_arrays_of_the_tuple(rows: tuple[int, int]) -> None:
    value = outer(7, 5, rows)
    words = written(value)
    row, place = rows[0] - 1, rows[1] - 1
    assert change(words.ctypes.data, row, place) == rows[0]
    assert value.records["number"].tolist() == [0, 0, 0, 0, 7]
    assert value.records["at"][-1] == 0.5 * (rows[0] * rows[1] - 1)
    assert value.inner.rows[row, place] == -1.0


def test_an_array_with_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        written(outer(0, 4, (2, 2))._replace(records=np.zeros(8, RECORD)[::2]))

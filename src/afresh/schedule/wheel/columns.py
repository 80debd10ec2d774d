"""Arguments of the batch operations: numbers or arrays, as contiguous columns, checked."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def _flat(name: str, given: ArrayLike, dtype: type) -> NDArray[Any]:
    try:
        values: NDArray[Any] = np.ascontiguousarray(np.atleast_1d(np.asarray(given, dtype=dtype)))
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be numbers, not {given!r:.40}") from None
    if values.ndim != 1:
        raise ValueError(f"{name} must be a number or a one-dimensional array")
    # Compiled functions are compiled once more for arrays that may not be written to.
    return values if values.flags.writeable else values.copy()


def column(
    name: str, given: ArrayLike, *, least: float = 0.0, most: float = math.inf, infinite: bool = False
) -> NDArray[np.float64]:
    """Numbers of at least `least` and at most `most`, finite unless `infinite`."""
    if type(given) is float:  # one page at a time: its number needs no array to be checked
        values, low, high = np.array([given]), given, given
    else:
        values = _flat(name, given, float)
        if not values.size:
            return values
        low, high = float(values.min()), float(values.max())
    if not low >= least or not high <= most or (high == math.inf and not infinite):
        bound = f" and at most {most:g}" if most < math.inf else "" if infinite else " and finite"
        raise ValueError(f"{name} must be at least {least:g}{bound}")
    return values


def counts(name: str, given: ArrayLike, *, least: int = 0, most: int = 1 << 62) -> NDArray[np.int64]:
    """Whole numbers from `least` to `most`."""
    if type(given) is int and least <= given <= most:
        return np.array([given])
    try:
        values = np.asarray(given)
    except ValueError:  # rows of different lengths
        values = np.array([""])
    if values.dtype.kind not in "iu" and values.size:
        raise ValueError(f"{name} must be whole numbers")
    numbers = _flat(name, values, np.int64)
    if numbers.size and not (int(numbers.min()) >= least and int(numbers.max()) <= most):
        raise ValueError(f"{name} must be at least {least}{f' and at most {most:,}' if most < 1 << 62 else ''}")
    return numbers


def slot_numbers(given: ArrayLike) -> NDArray[np.int64]:
    """Slots as a column."""
    return counts("slot", given, least=0)


def by_slot(slots: NDArray[np.int64], *columns: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """All columns in the order of slots, so that of pages that become equal here the lower slot goes first."""
    if np.all(slots[1:] >= slots[:-1]):
        return slots, *columns
    order = np.argsort(slots, kind="stable")  # of what is said twice of a page, the later counts
    return slots[order], *[values[order] if len(values) > 1 else values for values in columns]

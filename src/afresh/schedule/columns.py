"""Arguments of the batch operations: numbers or arrays, as contiguous columns, checked."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def _flat(name: str, given: ArrayLike, dtype: type) -> NDArray[Any]:
    values: NDArray[Any] = np.ascontiguousarray(np.atleast_1d(np.asarray(given, dtype=dtype)))
    if values.ndim != 1:
        raise ValueError(f"{name} must be a number or a one-dimensional array")
    # Compiled functions are compiled once more for arrays that may not be written to.
    return values if values.flags.writeable else values.copy()


def column(
    name: str, given: ArrayLike, *, most: float | None = None, positive: bool = False, infinite: bool = False
) -> NDArray[np.float64]:
    """Numbers of at least 0 (more than 0 if `positive`), finite unless `infinite`, and at most `most`."""
    if type(given) is float or type(given) is int:  # one page at a time: its number needs no array to be checked
        values, low, high = np.array([float(given)]), float(given), float(given)
    else:
        values = _flat(name, given, float)
        if not values.size:
            return values
        low, high = float(values.min()), float(values.max())
    good = low > 0 if positive else low >= 0
    limit = math.inf if most is None else most
    if not good or not (high <= limit) or (high == math.inf and not infinite):
        wanted = ("more than 0" if positive else "at least 0") + (f" and at most {most:g}" if most is not None else "")
        raise ValueError(f"{name} must be {wanted}{'' if infinite or most is not None else ' and finite'}")
    return values


def counts(name: str, given: ArrayLike, *, least: int = 0) -> NDArray[np.int64]:
    """Whole numbers of at least `least`."""
    if type(given) is int and -(1 << 62) < given < 1 << 62:
        numbers = np.array([given])
        if given < least:
            raise ValueError(f"{name} must be at least {least}")
        return numbers
    values = np.asarray(given)
    if values.dtype.kind not in "iu" and values.size:
        raise ValueError(f"{name} must be whole numbers")
    numbers = _flat(name, values, np.int64)
    if numbers.size and int(numbers.min()) < least:
        raise ValueError(f"{name} must be at least {least}")
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

"""Named values of a store, read by the code that wrote them: one sentence if a damaged file makes them invalid."""

import struct
from collections.abc import Callable
from typing import TypeVar

from afresh.errors import StoreError
from afresh.store.base import Store

Value = TypeVar("Value")

NONSENSE = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, struct.error)


def understood(name: str, read: Callable[[], Value]) -> Value:
    """What `read` makes of a named value; StoreError if it makes nothing of it.

    >>> understood("price", lambda: float("0.5"))
    0.5
    """
    try:
        return read()
    except NONSENSE as error:
        raise StoreError(
            f"The store is damaged: what it holds under {name!r} cannot be understood.",
            hint="Put a backup in its place, or add its pages to a new one.",
        ) from error


def number_kept(store: Store, name: str) -> float | None:
    """A named value of the store that is a number; None: there is none."""
    text = store.get(name)
    return None if text is None else understood(name, lambda: float(text))

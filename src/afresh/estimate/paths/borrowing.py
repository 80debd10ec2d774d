"""How what is called for every candidate is compiled: without counting who holds the arrays that it is lent."""

from collections.abc import Callable
from typing import Any, TypeVar

from afresh.value.compiled import compiled

Function = TypeVar("Function", bound=Callable[..., Any])


def borrowing(function: Function) -> Function:
    """Compile a function that makes no arrays: those that it is given are its caller's, and are not counted.

    Counting is an atomic operation for each of the tables, with every call; it took most of the time of a forecast.
    """
    return compiled(function, _nrt=False)

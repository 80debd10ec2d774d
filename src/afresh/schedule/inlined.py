"""How the small functions of the hot path are compiled: into their callers.

A call that hands the whole `State` on copies and counts references to all its arrays, which costs more than most of
these functions do.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def inlined(function: Function) -> Function:
    """Compile as `afresh.value.compiled.compiled` does, and always into the caller."""
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function))

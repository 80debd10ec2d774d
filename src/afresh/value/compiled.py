"""How the maths is compiled: on first use, kept on disk, free of the interpreter lock, and without loose arithmetic."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit, vectorize

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function of numbers or arrays.

    The numpy error model gives 1/0 = inf instead of an exception; no fastmath, because inf and NaN mean something.
    """
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy")(function))


def elementwise(function: Callable[..., float]) -> Callable[..., Any]:
    """Compile a function of numbers into one of arrays, which broadcast."""
    return cast(Callable[..., Any], vectorize(nopython=True, cache=True)(function))  # type: ignore[no-untyped-call]

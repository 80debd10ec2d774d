"""How the parts of the pass are compiled: into the pass, for each tag and text takes many, and a call costs more."""

from collections.abc import Callable
from typing import Any, TypeVar

from afresh.value.compiled import compiled

Function = TypeVar("Function", bound=Callable[..., Any])


def inlined(function: Function) -> Function:
    """Compile as `afresh.value.compiled.compiled` does, and always into the caller."""
    return borrowing(function, forceinline=True)


def borrowing(function: Function, **options: Any) -> Function:
    """Compile a function that makes no arrays: those that it is given are its caller's, and are not counted.

    Counting who holds an array is an atomic operation. Most of the time of a pass over many small tags went there.
    """
    return compiled(function, _nrt=False, **options)

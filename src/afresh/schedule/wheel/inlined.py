"""How the small functions of the hot path are compiled: into their callers, for a call costs more than they do."""

from collections.abc import Callable
from typing import Any, TypeVar

from afresh.value.compiled import compiled

Function = TypeVar("Function", bound=Callable[..., Any])


def inlined(function: Function) -> Function:
    """Compile as `afresh.value.compiled.compiled` does, and always into the caller."""
    return compiled(function, forceinline=True)

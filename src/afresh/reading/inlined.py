"""How the parts of the pass are compiled: into the pass, for each tag and text takes many, and a call costs more."""

from collections.abc import Callable
from typing import Any, TypeVar

from afresh.value.compiled import compiled

Function = TypeVar("Function", bound=Callable[..., Any])


def inlined(function: Function) -> Function:
    """Compile as `afresh.value.compiled.compiled` does, and always into the caller."""
    return compiled(function, forceinline=True)

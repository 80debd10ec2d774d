"""Functions that the interpreter calls and that have much in common, compiled as one; see `parts`."""

import inspect
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, get_args, get_origin

import numba
import numpy as np
from numba import from_dtype, types
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

from afresh.value.kept import VERSION, Kept
from afresh.value.parts import Whole, gathering


class Bundle:
    """Functions that the interpreter calls, compiled together when the first of them is called.

    So what several of them call is optimised once, and is kept on disk once. Each is compiled for the types that its
    annotations say; if it is called with others, it is compiled for these alone.
    """

    def __init__(self, name: str, functions: Sequence[Callable[..., Any]], folder: Callable[[], str]) -> None:
        self.name, self.folder = name, folder
        self.members: list[Any] = list(functions)
        self._compiled = False
        for each in self.members:
            if each.bundle is not None:
                raise ValueError(f"{each.py_func.__name__} is in a bundle already")
            each.bundle = self

    def compile(self) -> None:
        """Compile all members that are not yet, or read what was kept."""
        with global_compiler_lock:
            if self._compiled:
                return
            self._compiled = True  # compiling one of them asks again
            context = self.members[0].targetctx
            wanted = [_signature(each.py_func) for each in self.members]
            kept = self._kept(context, wanted)
            results = kept.read(context) if kept else None
            if results is None:
                results = self._compile_all(context, wanted)
                if kept:
                    kept.write(results)
            for member, result in zip(self.members, results, strict=True):
                if result.signature.args not in member.overloads:
                    member.add_overload(result)

    def _compile_all(self, context: Any, wanted: Sequence[tuple[Any, ...]]) -> list[Any]:
        library = Whole(context.codegen(), f"bundle-{self.name}")
        library.enable_object_caching()
        gathering.append(library)
        try:
            results = []
            for member, arguments in zip(self.members, wanted, strict=True):
                data = {"dispatcher": member, "args": arguments, "return_type": None}
                with event.trigger_event("numba:compile", data=data):
                    results.append(member._compiler.compile(arguments, None))
        finally:
            gathering.pop()
        library._ensure_finalized()
        for nth, result in enumerate(results):
            way_in = context.get_executable(library, result.fndesc, result.environment)
            results[nth] = result._replace(entry_point=way_in)
        return results

    def _kept(self, context: Any, wanted: Sequence[tuple[Any, ...]]) -> "Kept | None":
        folder = self.folder()
        if not folder:
            return None
        names = [f"{each.py_func.__module__}.{each.py_func.__qualname__}" for each in self.members]
        machine = (numba.__version__, VERSION, context.codegen().magic_tuple(), names, wanted)
        mark = blake2b(repr(machine).encode(), digest_size=8).hexdigest()
        return Kept(f"{folder}/{self.name}-{mark}.bundle")


_OF_ANNOTATION = {int: types.int64, float: types.float64, bool: types.boolean}


def _signature(python: Callable[..., Any]) -> tuple[Any, ...]:
    """The types of arguments that annotations say: numbers, and arrays of numbers in one row."""
    return tuple(_type(python.__annotations__[name]) for name in inspect.signature(python).parameters)


def _type(said: Any) -> Any:
    if said in _OF_ANNOTATION:
        return _OF_ANNOTATION[said]
    if get_origin(said) is tuple:
        return types.BaseTuple.from_types([_type(each) for each in get_args(said)])
    (number,) = get_args(get_args(said)[1])  # of NDArray[number]
    return types.Array(from_dtype(np.dtype(number)), 1, "C")

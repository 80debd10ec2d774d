"""Compiles what the interpreter calls, and the functions that this calls only as parts of it.

numba makes a whole of every function: optimised, turned into machine code, with a way in from the interpreter, and
with a copy of all that it calls. So a function that ten others lead to is worked on eleven times, and most of the time
before the first crawl went there. Here a function that compiled code calls is a `Part`: typed and translated once, and
optimised only within each `Whole`, which is made for a function when the interpreter calls it. Functions that have
much in common are best made one `Bundle`.

What is left is mostly numba's work before LLVM's. So passes that our functions have no use for are left out, and numba
is asked once what `+` of two numbers is, and not once for every `+`.

All this relies on how numba goes about it inside, so the version of numba is pinned to one that the tests have passed
with.
"""

import gc
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import CodeType
from typing import Any

from numba import _dynfunc, types  # type: ignore[attr-defined]
from numba.core import caching, codegen, compiler, typed_passes, untyped_passes
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

_numbers = itertools.count()


class Part(codegen.JITCodeLibrary):
    """The code of one function, without what it calls; nobody runs it as it is."""

    _merged: Any = None

    def _optimize_functions(self, module: Any) -> None:
        """What follows once all parts are together does this too."""
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Nothing is optimised, and no machine code is made."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True

    def needed(self) -> list[Any]:
        """This and all that it calls, directly or not."""
        found: dict[Any, None] = {}
        left = [self]
        while left:
            library = left.pop()
            if library not in found:
                found[library] = None
                left.extend(library._linking_libraries if isinstance(library, Part) else ())
        return list(found)

    def own_module(self) -> Any:
        """The code of this function alone."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """For a library that is not a `Whole`, and knows only of what it calls itself."""
        if self._merged is None:
            merged = self.own_module().clone()
            for library in self.needed()[1:]:
                merged.link_in(_module_of(library), preserve=True)
            self._merged = merged
        return self._merged


class Whole(codegen.JITCodeLibrary):
    """The code of a function that the interpreter calls, and of all that it calls."""

    def add_linking_library(self, library: Any) -> None:
        """Take in a library, and all that it needs."""
        for each in library.needed() if isinstance(library, Part) else (library,):
            each._ensure_finalized()
            self._linking_libraries.append(_Alone(each))


class _Alone:
    """A library as a `Whole` links it: without the parts that it is given separately. Equal for equal libraries."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._reload_init = library._reload_init

    def __hash__(self) -> int:
        return hash(self._library)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Alone) and self._library is other._library

    def _get_module_for_linking(self) -> Any:
        return _module_of(self._library)


def _module_of(library: Any) -> Any:
    return library.own_module() if isinstance(library, Part) else library._get_module_for_linking()


_FOR_CLOSURES = frozenset(
    (untyped_passes.InlineClosureLikes, untyped_passes.MakeFunctionToJitFunction, untyped_passes.WithLifting)
)
# For functions that numba writes into their callers, that treat a constant in a way of their own, or run in parallel.
_FOR_OTHERS = frozenset(
    (
        untyped_passes.InlineInlinables,
        untyped_passes.FindLiterallyCalls,
        untyped_passes.LiteralUnroll,
        untyped_passes.LiteralPropagationSubPipelinePass,
        typed_passes.InlineOverloads,
        typed_passes.DumpParforDiagnostics,
    )
)


class _Lean(compiler.Compiler):
    """numba's compiler, without the passes that our functions have no use for."""

    def define_pipelines(self) -> Any:
        """The usual passes; those that look for a function within the function only where there is one."""
        (usual,) = super().define_pipelines()
        within = any(isinstance(each, CodeType) for each in self.state.func_id.func.__code__.co_consts)
        needless = _FOR_OTHERS if within else _FOR_OTHERS | _FOR_CLOSURES
        usual.passes = [each for each in usual.passes if each[0] not in needless]
        return [usual]


class _IntoPart(_Lean):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        context = self.state.targetctx  # this function's own
        self.state.library = Part(context.codegen(), f"part-{next(_numbers)}")
        context.get_executable = _no_way_in


class _IntoWhole(_Lean):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        context = self.state.targetctx
        if gathering:
            self.state.library = gathering[-1]
            context.get_executable = _not_yet
        else:
            self.state.library = Whole(context.codegen(), f"whole-{next(_numbers)}")
            self.state.library.enable_object_caching()


gathering: list[Whole] = []  # the library of the bundle that is being compiled, under numba's lock


def _no_way_in(library: Any, described: Any, environment: Any) -> Any:
    """What stands for a part among numba's functions: an object with no machine code behind it."""
    library._ensure_finalized()
    return _not_yet(library, described, environment)


def _not_yet(library: Any, described: Any, environment: Any) -> Any:
    name = described.qualname.split(".")[-1]
    return _dynfunc.make_function(described.lookup_module(), name, "", 0, environment, (library,))


class _AsPart(CPUDispatcher):
    """A function as compiled code sees it: with one form for all numbers of a kind, constants or not."""

    def get_call_template(self, arguments: Any, named: Any) -> Any:
        """The form that serves these arguments."""
        named = {name: _usual(kind) for name, kind in named.items()}
        return super().get_call_template(tuple(_usual(kind) for kind in arguments), named)


_SHORTER = frozenset((types.int8, types.int16, types.int32, types.uint8, types.uint16, types.uint32))


def _usual(kind: Any) -> Any:
    """What a number of this type is handed on as: numba would compile a form for a 7, and one for each width."""
    kind = types.unliteral(kind)
    if kind in _SHORTER:
        return types.int64
    return types.float64 if kind == types.float32 else kind


class _Cache(caching.FunctionCache):
    """Keeps compiled code where there is room for it."""

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep what was compiled for these types, if that is possible."""
        with suppress(OSError):
            super().save_overload(signature, data)


class Compiled(CPUDispatcher):
    """A function that is compiled when the interpreter calls it, and as a part when compiled code does."""

    _part: Any = None
    bundle: Any = None  # the `bundles.Bundle` that it is in

    @property
    def _numba_type_(self) -> Any:
        """What compiled code sees."""
        if self._part is None:
            options = {**self.targetoptions, "no_cpython_wrapper": True}
            self._part = _AsPart(self.py_func, targetoptions=options, pipeline_class=_IntoPart)
        return types.Dispatcher(self._part)

    def enable_caching(self) -> None:
        """Keep what is compiled on disk."""
        self._cache = _Cache(self.py_func)

    def compile(self, signature: Any) -> Any:
        """Compile for these types, or read what was kept."""
        with global_compiler_lock, _no_garbage(), _remembering(self.typingctx):
            if self.bundle is not None:
                self.bundle.compile()
            return super().compile(signature)


def function(python: Callable[..., Any], *, cache: bool, **options: Any) -> Any:
    """What numba's `njit` does, in parts."""
    options = {"nopython": True, "no_cfunc_wrapper": True, **options}
    dispatcher = Compiled(python, targetoptions=options, pipeline_class=_IntoWhole)
    if cache:
        dispatcher.enable_caching()
    return dispatcher


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Compiling makes millions of small objects: looking through them again and again takes a twentieth of it."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


_resolved: dict[Any, Any] = {}  # what numba's own functions are for arguments of these types


@contextmanager
def _remembering(typing_context: Any) -> Iterator[None]:
    """Ask each of numba's own functions once what it does with arguments of some types.

    It tries all forms of it that it knows, for every call and every time that it looks at the call again: a sixth of
    all that compiling took.
    """
    if "_resolve_user_function_type" in vars(typing_context):
        yield
        return
    usual = typing_context._resolve_user_function_type

    def resolve(called: Any, arguments: Any, named: Any, literals: Any = None) -> Any:
        known = typing_context._lookup_global(called) or called
        if named or not isinstance(known, types.Function):
            return usual(called, arguments, named, literals)
        key = known, tuple(arguments)
        found = _resolved.get(key)
        if found is None:
            found = usual(called, arguments, named, literals)
            if found is not None:
                _resolved[key] = found
        return found

    typing_context._resolve_user_function_type = resolve
    try:
        yield
    finally:
        del typing_context._resolve_user_function_type

"""How the maths is compiled: on first use, kept on disk, free of the interpreter lock, and without loose arithmetic.

What is kept on disk belongs to the sources it was made from. numba looks only at the file that a function stands in,
and would go on using code compiled from an older version of what that function calls; so every state of the sources
gets a folder of its own, beside the sources if that can be written to, and else in the user's cache folder.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import config as _config
from numba import vectorize

from afresh.value import bundles, parts

config = cast(Any, _config)  # its settings are made at run time
Function = TypeVar("Function", bound=Callable[..., Any])

# Whose compiled functions a package calls, besides its own.
_HEART = ("afresh.value", "afresh.schedule", "afresh.estimate")
_CALLED = {"afresh.value": (), "afresh.engine": _HEART, "afresh.sim": (*_HEART, "afresh.engine")}


def compiled(function: Function, **options: Any) -> Function:
    """Compile a function of numbers or arrays; `options` are numba's.

    The numpy error model gives 1/0 = inf instead of an exception; no fastmath, because inf and NaN mean something.
    Whether a function is forced into its callers is always stated: else numba takes it from the first caller, and what
    an inlined function calls would be copied, and optimised, in every place that this one is. A function that compiled
    code calls is part of its callers; see `afresh.value.parts`.
    """
    stated = {"nogil": True, "error_model": "numpy", "forceinline": False, **options}
    with _kept_apart(function.__module__):
        return cast(Function, parts.function(function, cache=_can_keep(), **stated))


def elementwise(function: Callable[..., float]) -> Callable[..., Any]:
    """Compile a function of numbers into one of arrays, which broadcast."""
    with _kept_apart(function.__module__):
        return cast(Callable[..., Any], vectorize(nopython=True, cache=_can_keep())(function))  # type: ignore[no-untyped-call]


def bundle(name: str, *functions: Callable[..., Any]) -> bundles.Bundle:
    """Let these functions of one package be compiled together, when the first of them is called."""
    package = _package_of(functions[0].__module__)
    return bundles.Bundle(name, functions, lambda: _folder_of(package))


@contextmanager
def _kept_apart(module: str) -> Iterator[None]:
    """Let what is decorated meanwhile be kept in the folder that belongs to the present sources."""
    before, package = config.CACHE_DIR, _package_of(module)
    if package.startswith("afresh."):
        config.CACHE_DIR = _folder_of(package)
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _package_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


def _folder_of(package: str) -> str:
    """The folder for what is compiled of this package, from the present sources; "" if there is none."""
    home = config.CACHE_DIR or kept_in()
    digest = blake2b(digest_size=8)
    for each in sorted({package, *_CALLED.get(package, ("afresh.value",))}):
        digest.update(_digest(each))
    return f"{home}/{digest.hexdigest()}" if home else ""


def _can_keep() -> bool:
    return bool(config.CACHE_DIR or kept_in())


@cache
def kept_in() -> str:
    """The folder that compiled code is kept in; "" if there is none that can be written to."""
    own = Path(str(files("afresh") / "__pycache__" / "compiled"))
    of_user = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "afresh" / "compiled"
    for folder in (own, of_user):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return str(folder)
        except (OSError, RuntimeError):  # read-only, or a user without a home
            continue
    return ""


@contextmanager
def heard(on_function: Callable[[str], None]) -> Iterator[None]:
    """Call `on_function` with the name of every function that is really compiled meanwhile, when that begins."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            on_function(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event: Any) -> None:
            """Nothing to say."""

    listener = Listener()
    event.register("numba:compile", listener)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)  # type: ignore[no-untyped-call]


@cache
def _digest(package: str) -> bytes:
    """A digest of all sources of a package and the packages in it; empty for a module that is not one."""
    digest = blake2b(digest_size=8)
    try:
        sources = sorted(_sources(files(package), ""))
    except (TypeError, ModuleNotFoundError, NotADirectoryError):
        return b""
    for name, text in sources:
        digest.update(name.encode() + text)
    return digest.digest()


def _sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        if each.name.endswith(".py"):
            yield prefix + each.name, each.read_bytes()
        elif each.is_dir() and each.name != "__pycache__":
            yield from _sources(each, f"{prefix}{each.name}/")

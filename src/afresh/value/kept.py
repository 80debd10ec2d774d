"""A compiled bundle on disk."""

import contextlib
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from numba.core import compiler, serialize

DIGEST_BYTES = 16
VERSION = sys.version  # of the interpreter whose code is kept


class Kept:
    """Where a bundle is kept."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def write(self, results: Sequence[Any]) -> None:
        """Keep it, if that is possible."""
        library, environments = results[0].library, results[0]._find_referenced_environments()
        each = [_reduced(result) for result in results]
        data = serialize.dumps((library.serialize_using_object_code(), each, environments))
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = Path(f"{self.path}.{os.getpid()}")
            try:
                file.write_bytes(_digest(data) + data)
                file.replace(self.path)
            finally:
                file.unlink(missing_ok=True)

    def read(self, context: Any) -> list[Any] | None:
        """What was kept; None if there is nothing that can be used."""
        try:
            kept = self.path.read_bytes()
        except OSError:
            return None
        if kept[:DIGEST_BYTES] != _digest(kept[DIGEST_BYTES:]):
            return None  # damaged machine code would do anything
        library, each, environments = pickle.loads(kept[DIGEST_BYTES:])  # noqa: S301 (as numba keeps its own here)
        context.refresh()  # else what numba itself provides is missing when the code runs
        library = context.codegen().unserialize_library(library)
        results = [_rebuilt(context, library, environments, *reduced) for reduced in each]
        for environment in environments:
            library.codegen.set_env(environment.env_name, environment)
        return results


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def _reduced(result: Any) -> tuple[Any, ...]:
    """What is kept of a function, besides the library that all share."""
    described = result.fndesc
    described.typemap = described.calltypes = None  # nobody needs them, and they may not bear it
    annotation = str(result.type_annotation)
    return described, result.environment, result.signature, annotation, result.reload_init


def _rebuilt(
    context: Any,
    library: Any,
    environments: Sequence[Any],
    described: Any,
    environment: Any,
    signature: Any,
    annotation: str,
    reload_init: Sequence[Callable[[], None]],
) -> Any:
    """A function as it was compiled: what numba does for one that it has kept, with a library that is read already."""
    for initialise in reload_init:
        initialise()
    make: Any = compiler.CompileResult
    return make(
        typing_context=context.typing_context,
        target_context=context,
        entry_point=context.get_executable(library, described, environment),
        typing_error=None,
        type_annotation=annotation,
        signature=signature,
        objectmode=False,
        lifted=(),
        fndesc=described,
        library=library,
        call_helper=None,
        environment=environment,
        metadata=None,
        reload_init=reload_init,
        referenced_envs=environments,
    )

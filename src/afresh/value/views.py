"""Many arrays under one address, for compiled code.

A tuple of arrays costs a compiled function seven words for each array, in every call, and costs the compiler a
hundred lines for each. A view is one number: the address of words that say where each array is and how long. Compiled
code reads it like the tuple, `heart.table.pages[slot]`. Nothing is counted, so the words and the arrays must outlive
the call.

What is in the tuple is given by example: an instance that has the right types, lengths do not matter.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.extending import infer_getattr, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import intrinsic, register_model
from numba.np.arrayobj import make_array, populate_array
from numpy.typing import NDArray

_WORD = 8


class _Field(NamedTuple):
    type: Any
    word: int  # where it is, or where its first word is


class _View(types.Type):
    """The type of a view; two of one name have the same fields."""

    def __init__(self, name: str, fields: dict[str, _Field], words: int) -> None:
        super().__init__(f"View({name})")
        self.fields, self.words = fields, words


@register_model(_View)
class _Model(PrimitiveModel):
    def __init__(self, manager: Any, view: Any) -> None:
        super().__init__(manager, view, ir.IntType(64))


@infer_getattr
class _Attributes(AttributeTemplate):
    key = _View

    def generic_resolve(self, view: Any, name: str) -> Any:  # type: ignore[override]
        field = view.fields.get(name)
        return None if field is None else field.type


@lower_getattr_generic(_View)
def _read(context: Any, builder: Any, view: Any, address: Any, name: str) -> Any:
    field = view.fields[name]
    if isinstance(field.type, _View):
        return builder.add(address, address.type(field.word * _WORD))
    if not isinstance(field.type, types.Array):
        return _load(builder, address, field.word, context.get_value_type(field.type))
    array, size = field.type, context.get_abi_sizeof(context.get_data_type(field.type.dtype))
    data = _load(builder, address, field.word, ir.IntType(64))
    shape = [_load(builder, address, field.word + 1 + nth, ir.IntType(64)) for nth in range(array.ndim)]
    strides = [ir.Constant(ir.IntType(64), size)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    made = make_array(array)(context, builder)
    data = builder.inttoptr(data, context.get_data_type(array.dtype).as_pointer())
    itemsize = context.get_constant(types.intp, size)
    populate_array(made, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return made._getvalue()


def _load(builder: Any, address: Any, word: int, as_type: Any) -> Any:
    at = builder.inttoptr(builder.add(address, address.type(word * _WORD)), as_type.as_pointer())
    loaded = builder.load(at)
    # No function changes the words while it runs, whatever else it writes.
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


def view_of(example: Any) -> Any:
    """The type of views of tuples like this one, whose fields are arrays, numbers and such tuples."""
    fields: dict[str, _Field] = {}
    word = 0
    for name, value in zip(example._fields, example, strict=True):
        if isinstance(value, np.ndarray):
            fields[name] = _Field(types.Array(from_dtype(value.dtype), value.ndim, "C"), word)
            word += 1 + value.ndim
        elif isinstance(value, tuple):
            inner = view_of(value)
            fields[name] = _Field(inner, word)
            word += inner.words
        else:
            fields[name] = _Field(types.float64 if isinstance(value, float) else types.int64, word)
            word += 1
    return _View(type(example).__name__, fields, word)


def reader(view: Any) -> Any:
    """A compiled function from an address to the view of what is written there."""

    def see(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return arguments[0]

        return view(types.int64), generate

    return intrinsic(see)


def written(value: Any) -> NDArray[np.int64]:
    """The words for a tuple: a view reads them at the address of this. The arrays must be kept as long."""
    return np.array(list(_words(value)), np.int64)


def _words(value: Any) -> Iterator[int]:
    for each in value:
        if isinstance(each, np.ndarray):
            if not each.flags.c_contiguous:
                raise ValueError("a view holds contiguous arrays only")
            yield each.ctypes.data
            yield from each.shape
        elif isinstance(each, tuple):
            yield from _words(each)
        elif isinstance(each, float):
            yield int(np.float64(each).view(np.int64))
        else:
            yield int(each)

"""The records of the machine by address, for compiled code.

Compiled functions get one number: the address of the control record, which holds the addresses of all arrays. Handing
on the arrays themselves would cost more than most of these functions do: numba passes seven words for each array and
counts references to it. An address counts nothing, so the arrays must outlive the call: `Machine` owns them, and writes
their addresses into the control record whenever it replaces one.
"""

from typing import Any

import numpy as np
from numba import from_dtype, types
from numba.extending import intrinsic

from afresh.schedule.wheel.inlined import inlined
from afresh.schedule.wheel.table import CONTROL, EXTRA, HOST, LEASE, PAGE, QUEUE, WAKING


def _records(dtype: np.dtype[Any]) -> Any:
    """A compiled function (address, index) → that record, of an array without bounds."""
    record = from_dtype(dtype)
    size = dtype.itemsize

    def at(typing_context: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = context.cast(builder, arguments[1], signature.args[1], types.int64)
            offset = builder.mul(number, context.get_constant(types.int64, size))
            return builder.inttoptr(builder.add(arguments[0], offset), context.get_value_type(record))

        return record(types.int64, index), generate

    return intrinsic(at)


_control, _page, _queue = _records(CONTROL), _records(PAGE), _records(QUEUE)
_host, _waking, _extra, _lease = _records(HOST), _records(WAKING), _records(EXTRA), _records(LEASE)


@inlined
def control_at(core: int) -> Any:
    """The control record."""
    return _control(core, 0)


@inlined
def page_at(core: int, slot: int) -> Any:
    """The record of a page."""
    return _page(_control(core, 0).pages_at, slot)


@inlined
def bucket_at(core: int, bucket: int) -> Any:
    """A bucket of the wheel."""
    return _queue(_control(core, 0).wheel_at, bucket)


@inlined
def shelf_at(core: int, shelf: int) -> Any:
    """A shelf of pages that are up."""
    return _queue(_control(core, 0).shelves_at, shelf)


@inlined
def host_at(core: int, number: int) -> Any:
    """The record of a host."""
    return _host(_control(core, 0).hosts_at, number)


@inlined
def waking_at(core: int, position: int) -> Any:
    """A place in the heap of hosts to be woken."""
    return _waking(_control(core, 0).heap_at, position)


@inlined
def extra_index(page: Any) -> int:
    """Where the special settings of a page that has them are."""
    return int(np.float32(page.anchor).view(np.int32))


@inlined
def extra_of(core: int, page: Any) -> Any:
    """Special settings of a page that has them."""
    return extra_at(core, extra_index(page))


@inlined
def extra_at(core: int, index: int) -> Any:
    """Special settings by their place in the table."""
    return _extra(_control(core, 0).extra_at, index)


@inlined
def lease_at(core: int, position: int) -> Any:
    """A place in the ring of leases."""
    return _lease(_control(core, 0).leases_at, position)

"""Arrays without reference counts, for compiled loops.

Every time compiled code takes an array out of a `State` it counts a reference up and down again, which costs more than
most of what it does with the array. A loop over many pages or ticks therefore works on a bare copy of the tuple: the
same memory, not counted. It must not outlive the arrays of the `State` it was made from.
"""

from typing import Any

from numba.core import cgutils
from numba.extending import intrinsic

from afresh.schedule.table import State
from afresh.value.compiled import compiled


def _without_owner(typing_context: Any, array: Any) -> Any:
    """The same array, of which nobody is the owner."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        counted = context.make_array(array)(context, builder, arguments[0])
        bare = context.make_array(array)(context, builder)
        cgutils.copy_struct(bare, counted)  # type: ignore[no-untyped-call]
        bare.meminfo = cgutils.get_null_value(counted.meminfo.type)  # type: ignore[no-untyped-call]
        bare.parent = cgutils.get_null_value(counted.parent.type)  # type: ignore[no-untyped-call]
        return bare._getvalue()

    return array(array), generate


_uncounted: Any = intrinsic(_without_owner)


@compiled
def bare(state: State) -> State:
    """The state for use within one compiled function."""
    return State(
        _uncounted(state.control),
        _uncounted(state.pages),
        _uncounted(state.wheel),
        _uncounted(state.shelf_first),
        _uncounted(state.shelf_last),
        _uncounted(state.hosts),
        _uncounted(state.heap),
        _uncounted(state.extra),
        _uncounted(state.lease_slot),
        _uncounted(state.lease_end),
    )

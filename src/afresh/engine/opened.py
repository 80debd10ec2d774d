"""The heart by one address, for calls about one page.

Handing a `Heart` to a compiled function unpacks some twenty arrays, which takes longer than most of these functions
run. So the addresses and lengths of the arrays are written down once (`written`), whenever one was replaced, and the
functions here get the address of that. An address counts no references, so the arrays must outlive the call:
`CompiledHeart` keeps them.
"""

from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from afresh.engine import heart as does
from afresh.engine.columns import HEARD, TRACKED
from afresh.engine.heart import Heart
from afresh.estimate.activity_online import Slices
from afresh.estimate.online import GROUP, PAGE, Table
from afresh.estimate.requests import Memory
from afresh.estimate.wanted import WANTED, Asking
from afresh.schedule.wheel.turn import hand_in
from afresh.value.compiled import compiled

carray: Any = numba.carray  # type: ignore[attr-defined]
_LENGTHS = 40  # addresses come first, then lengths, then second lengths, then numbers
_SECONDS = 80
_NUMBERS = 120
_SIZE = 128


def _as_pointer(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate


_pointer: Any = intrinsic(_as_pointer)


def _arrays(heart: Heart) -> list[NDArray[Any]]:
    table, asking, slices = heart.table, heart.asking, heart.slices
    return [
        *(table.pages, table.groups, table.control, table.chance, table.pairs),
        *(asking.wanted, asking.groups, asking.group_of, asking.counted_since),
        *slices[1:],
        *(heart.wider, heart.line, heart.pages, heart.heard, heart.turn, heart.control),
        *(heart.credit, heart.due, heart.checked),
    ]


def written(heart: Heart) -> NDArray[np.int64]:
    """Where everything is; what `opened` reads at the address of this."""
    table = np.zeros(_SIZE, np.int64)
    for nth, array in enumerate(_arrays(heart)):
        assert array.flags.c_contiguous  # noqa: S101 (else its address and length do not say where its items are)
        table[nth], table[_LENGTHS + nth] = array.ctypes.data, array.shape[0]
        table[_SECONDS + nth] = array.shape[1] if array.ndim > 1 else 0
    table[_NUMBERS] = heart.core
    table.view(np.float64)[_NUMBERS + 1 : _NUMBERS + 4] = (heart.slices.width, *heart.asking.memory)
    return table


@compiled
def opened(at: int) -> Heart:
    """The heart that was written down at an address."""
    where = carray(_pointer(at), (_SIZE,), np.int64)
    numbers = carray(_pointer(at), (_SIZE,), np.float64)
    table = Table(
        carray(_pointer(where[0]), (where[_LENGTHS],), PAGE),
        carray(_pointer(where[1]), (where[_LENGTHS + 1],), GROUP),
        carray(_pointer(where[2]), (where[_LENGTHS + 2],), np.float64),
        carray(_pointer(where[3]), (where[_LENGTHS + 3],), np.float64),
        carray(_pointer(where[4]), (where[_LENGTHS + 4],), np.float64),
    )
    asking = Asking(
        carray(_pointer(where[5]), (where[_LENGTHS + 5],), WANTED),
        carray(_pointer(where[6]), (where[_LENGTHS + 6], where[_SECONDS + 6]), np.float64),
        carray(_pointer(where[7]), (where[_LENGTHS + 7],), np.int64),
        Memory(numbers[_NUMBERS + 2], numbers[_NUMBERS + 3]),
        carray(_pointer(where[8]), (where[_LENGTHS + 8],), np.float64),
    )
    slices = Slices(
        numbers[_NUMBERS + 1],
        carray(_pointer(where[9]), (where[_LENGTHS + 9], where[_SECONDS + 9]), np.float64),
        carray(_pointer(where[10]), (where[_LENGTHS + 10], where[_SECONDS + 10]), np.float64),
        carray(_pointer(where[11]), (where[_LENGTHS + 11],), np.int64),
        carray(_pointer(where[12]), (where[_LENGTHS + 12],), np.float64),
        carray(_pointer(where[13]), (where[_LENGTHS + 13],), np.float64),
        carray(_pointer(where[14]), (where[_LENGTHS + 14],), np.float64),
        carray(_pointer(where[15]), (where[_LENGTHS + 15],), np.float64),
        carray(_pointer(where[16]), (where[_LENGTHS + 16],), np.float64),
    )
    return Heart(
        where[_NUMBERS],
        table,
        asking,
        slices,
        carray(_pointer(where[17]), (where[_LENGTHS + 17],), np.int64),
        carray(_pointer(where[18]), (where[_LENGTHS + 18],), np.int64),
        carray(_pointer(where[19]), (where[_LENGTHS + 19],), TRACKED),
        carray(_pointer(where[20]), (where[_LENGTHS + 20],), HEARD),
        carray(_pointer(where[21]), (where[_LENGTHS + 21],), np.int64),
        carray(_pointer(where[22]), (where[_LENGTHS + 22],), np.int64),
        carray(_pointer(where[23]), (where[_LENGTHS + 23],), np.float64),
        carray(_pointer(where[24]), (where[_LENGTHS + 24],), np.float64),
        carray(_pointer(where[25]), (where[_LENGTHS + 25],), np.float64),
    )


@compiled
def hear(at: int, slot: int, sender: int, pair: int, time: float) -> None:
    """`heart.hear`."""
    does.hear(opened(at), slot, sender, pair, time)


@compiled
def heard(at: int, slot: int, now: float) -> None:
    """`heart.heard`."""
    does.heard(opened(at), slot, now)


@compiled
def believe(at: int, slot: int, now: float) -> None:
    """`heart.believe`."""
    does.believe(opened(at), slot, now)


@compiled
def fresh_probability(at: int, slot: int, now: float) -> float:
    """`heart.fresh_probability`."""
    return does.fresh_probability(opened(at), slot, now)


@compiled
def count_heard(at: int, slot: int) -> float:
    """`heart.count_heard`."""
    return does.count_heard(opened(at), slot, False)


@compiled
def age_of(at: int, slot: int, now: float) -> float:
    """`heart.age_of`."""
    return does.age_of(opened(at), slot, now)


@compiled
def forget(at: int, slot: int) -> None:
    """`heart.forget`."""
    does.forget(opened(at), slot)


@compiled
def close(at: int, slot: int, started: float, now: float, learns: bool, changed: bool, found: bool, gap: float) -> None:
    """A crawl has confirmed or replaced the copy: learn from it, let the schedule have the page back, look round."""
    heart = opened(at)
    does.check(heart, slot, started, now, learns, changed, found)
    hand_in(heart.core, slot, now, started, gap)
    does.look_round(heart, slot, now, changed)

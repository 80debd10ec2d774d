"""What a small cache of fingerprints forgets, by one rule each; the compiled half of `cache`.

Every rule works on slots. `keys` says which fingerprint a slot holds, and `index` finds the slot of a fingerprint: a
table with open addressing, of slots or -1. Rules that keep an order link the slots both ways in `links`, as rings. Each
ring begins at a slot of its own beyond the others. `control` holds the few numbers that a rule remembers.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from afresh.frontier.packed import mixed

Keys = NDArray[np.uint64]
Hits = NDArray[np.bool_]
Index = NDArray[np.int32]
Links = NDArray[np.int32]  # two rows: who is before, who is behind
Control = NDArray[np.int64]
Marks = NDArray[np.uint8]
Slot = Any  # a 64-bit integer
Function = TypeVar("Function", bound=Callable[..., Any])

USED, HAND, DRAWS = 0, 1, 2  # in `control`
SMALL, MAIN, GHOST, FREE = 0, 1, 2, 3  # rings of `s3_fifo`; their sizes are in `control` from COUNTS on
COUNTS = 3
MOST_MARKS = 3  # S3-FIFO counts no further
GHOSTLY = 4  # in `where`: nothing


def _compiled(function: Function) -> Function:
    return cast(Function, njit(cache=True, nogil=True)(function))


@_compiled
def _home(key: np.uint64, mask: int) -> Slot:
    return np.int64(mixed(key, np.uint64(0)) & np.uint64(mask))


@_compiled
def find(key: np.uint64, keys: Keys, index: Index) -> Slot:
    """The slot of a fingerprint, or -1."""
    mask = index.size - 1
    at = _home(key, mask)
    while index[at] >= 0:
        if keys[index[at]] == key:
            return index[at]
        at = (at + 1) & mask
    return -1


@_compiled
def put(key: np.uint64, slot: Slot, keys: Keys, index: Index) -> None:
    """Let a slot that holds nothing hold a fingerprint that no slot holds."""
    mask = index.size - 1
    at = _home(key, mask)
    while index[at] >= 0:
        at = (at + 1) & mask
    keys[slot], index[at] = key, slot


@_compiled
def _drop(slot: Slot, keys: Keys, index: Index) -> None:
    """Let a slot hold nothing; what was put behind it because its place was taken moves up."""
    mask = index.size - 1
    at = _home(np.uint64(keys[slot]), mask)
    while index[at] != slot:
        at = (at + 1) & mask
    after = (at + 1) & mask
    while index[after] >= 0:
        home = _home(keys[index[after]], mask)
        if ((after - home) & mask) >= ((after - at) & mask):
            index[at] = index[after]
            at = after
        after = (after + 1) & mask
    index[at] = -1


@_compiled
def _unlink(slot: Slot, links: Links) -> None:
    before, behind = links[0, slot], links[1, slot]
    links[1, before], links[0, behind] = behind, before


@_compiled
def _link(slot: Slot, ring: int, links: Links) -> None:
    """Make a slot the newest of a ring."""
    newest = links[1, ring]
    links[0, slot], links[1, slot] = ring, newest
    links[1, ring], links[0, newest] = slot, slot


@_compiled
def lru(requests: Keys, hits: Hits, keys: Keys, index: Index, links: Links, control: Control) -> None:
    """The least recently used one goes."""
    ring = keys.size
    for k in range(requests.size):
        key = requests[k]
        slot = find(key, keys, index)
        hits[k] = slot >= 0
        if slot >= 0:
            _unlink(slot, links)
        else:
            if control[USED] < keys.size:
                slot = control[USED]
                control[USED] += 1
            else:
                slot = links[0, ring]
                _unlink(slot, links)
                _drop(slot, keys, index)
            put(key, slot, keys, index)
        _link(slot, ring, links)


@_compiled
def clock(requests: Keys, hits: Hits, keys: Keys, index: Index, marks: Marks, control: Control) -> None:
    """A hand goes round; one that was asked for since it last came by gets another round."""
    for k in range(requests.size):
        key = requests[k]
        slot = find(key, keys, index)
        hits[k] = slot >= 0
        if slot >= 0:
            marks[slot] = 1
            continue
        if control[USED] < keys.size:
            slot = control[USED]
            control[USED] += 1
        else:
            while marks[control[HAND]]:
                marks[control[HAND]] = 0
                control[HAND] = (control[HAND] + 1) % keys.size
            slot = control[HAND]
            control[HAND] = (slot + 1) % keys.size
            _drop(slot, keys, index)
        put(key, slot, keys, index)


@_compiled
def random(requests: Keys, hits: Hits, keys: Keys, index: Index, control: Control) -> None:
    """Any one goes."""
    for k in range(requests.size):
        key = requests[k]
        hits[k] = find(key, keys, index) >= 0
        if hits[k]:
            continue
        if control[USED] < keys.size:
            slot = control[USED]
            control[USED] += 1
        else:
            control[DRAWS] += 1
            slot = np.int64(mixed(np.uint64(control[DRAWS]), np.uint64(1)) % np.uint64(keys.size))
            _drop(slot, keys, index)
        put(key, slot, keys, index)


@_compiled
def sieve(requests: Keys, hits: Hits, keys: Keys, index: Index, links: Links, marks: Marks, control: Control) -> None:
    """They stand in the order in which they came. A hand goes from old to new, and takes the first without a mark.

    A hit only sets the mark, which the hand takes away as it goes by; unlike the clock's, new ones come at the far end,
    so that one which is not asked for again goes soon.
    """
    ring = keys.size
    for k in range(requests.size):
        key = requests[k]
        slot = find(key, keys, index)
        hits[k] = slot >= 0
        if slot >= 0:
            marks[slot] = 1
            continue
        if control[USED] < keys.size:
            slot = control[USED]
            control[USED] += 1
        else:
            slot = control[HAND] if control[HAND] < ring else links[0, ring]
            while marks[slot]:
                marks[slot] = 0
                slot = links[0, slot]
                if slot == ring:
                    slot = links[0, ring]
            control[HAND] = links[0, slot]
            _unlink(slot, links)
            _drop(slot, keys, index)
        put(key, slot, keys, index)
        _link(slot, ring, links)


@_compiled
def _move(slot: Slot, ring: int, where: Marks, links: Links, control: Control, slots: int) -> None:
    """From the ring that a slot is in to another."""
    _unlink(slot, links)
    control[COUNTS + where[slot]] -= 1
    where[slot] = ring
    control[COUNTS + ring] += 1
    _link(slot, slots + ring, links)


@_compiled
def _make_room(where: Marks, keys: Keys, index: Index, links: Links, marks: Marks, control: Control, size: int) -> None:
    """Forget one: of the small ring if that has its tenth, else of the main one."""
    slots = keys.size
    while control[COUNTS + SMALL] >= max(1, size // 10) or (
        control[COUNTS + MAIN] == 0 and control[COUNTS + SMALL] > 0
    ):
        slot = links[0, slots + SMALL]
        if marks[slot] > 1:
            marks[slot] = 0
            _move(slot, MAIN, where, links, control, slots)
            continue
        if control[COUNTS + GHOST] >= slots - size:  # the oldest ghost goes for good
            ghost = links[0, slots + GHOST]
            _drop(ghost, keys, index)
            _move(ghost, FREE, where, links, control, slots)
        _move(slot, GHOST, where, links, control, slots)
        return
    while True:
        slot = links[0, slots + MAIN]
        if marks[slot] == 0:
            _drop(slot, keys, index)
            _move(slot, FREE, where, links, control, slots)
            return
        marks[slot] -= 1
        _move(slot, MAIN, where, links, control, slots)


@_compiled
def s3_fifo(
    requests: Keys,
    hits: Hits,
    keys: Keys,
    index: Index,
    links: Links,
    marks: Marks,
    where: Marks,
    control: Control,
    size: int,
) -> None:
    """A tenth is a queue for newcomers, the rest one for those asked for twice more, or again after they left.

    Those that leave the first queue are remembered by name for a while, as ghosts: in the slots beyond `size`.
    """
    slots = keys.size
    for k in range(requests.size):
        key = requests[k]
        slot = find(key, keys, index)
        hits[k] = slot >= 0 and where[slot] != GHOST
        if hits[k]:
            if marks[slot] < MOST_MARKS:
                marks[slot] += 1
            continue
        ring = SMALL
        if slot >= 0:  # a ghost: it must not be the one that goes for good now
            ring = MAIN
            _drop(slot, keys, index)
            _move(slot, FREE, where, links, control, slots)
        if control[COUNTS + SMALL] + control[COUNTS + MAIN] >= size:
            _make_room(where, keys, index, links, marks, control, size)
        slot = links[0, slots + FREE]
        marks[slot] = 0
        put(key, slot, keys, index)
        _move(slot, ring, where, links, control, slots)


@_compiled
def static(requests: Keys, hits: Hits, keys: Keys, index: Index) -> None:
    """Those that were put there at the beginning stay."""
    for k in range(requests.size):
        hits[k] = find(requests[k], keys, index) >= 0


@_compiled
def clairvoyant(next_use: NDArray[np.int64], item: NDArray[np.int64], items: int, size: int) -> int:
    """How many requests miss if the one that will be asked for latest goes; `next_use` is the place in the list.

    A heap holds (next use, item), latest first; what it holds of an item that was asked for since is passed over.
    """
    upcoming = np.full(items, np.int64(-1))  # of those in the cache
    uses, whose = np.empty(item.size + 1, np.int64), np.empty(item.size + 1, np.int64)
    held, inside, misses = 0, 0, 0
    for k in range(item.size):
        each, use = item[k], next_use[k]
        if upcoming[each] < 0:
            misses += 1
            if inside == size:
                while True:
                    top, gone = uses[0], whose[0]
                    held -= 1
                    last_use, last = uses[held], whose[held]
                    at = 0
                    while True:
                        child = 2 * at + 1
                        if child >= held:
                            break
                        if child + 1 < held and uses[child + 1] > uses[child]:
                            child += 1
                        if uses[child] <= last_use:
                            break
                        uses[at], whose[at] = uses[child], whose[child]
                        at = child
                    uses[at], whose[at] = last_use, last
                    if upcoming[gone] == top:
                        break
                upcoming[gone] = -1
            else:
                inside += 1
        upcoming[each] = use
        at = held
        held += 1
        while at > 0 and uses[(at - 1) // 2] < use:
            uses[at], whose[at] = uses[(at - 1) // 2], whose[(at - 1) // 2]
            at = (at - 1) // 2
        uses[at], whose[at] = use, each
    return misses

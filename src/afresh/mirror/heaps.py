"""A heap of pages for each host: the page that is due first is at the top, and any other can be taken out.

Pairing heaps, in one array for all hosts: a page is in one heap or in none, and takes up 20 bytes. Of pages that are
due at the same moment, the lower slot goes first.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.value.compiled import compiled

Slots = NDArray[np.int64]

NODE = np.dtype(
    [
        ("key", "f8"),  # when the page is due
        ("child", "i4"),  # the first of its children; −1: none
        ("after", "i4"),  # its next sibling; −1: none
        ("before", "i4"),  # its sibling before, or its parent if it is the first child; −1: it is the top
    ]
)


@compiled
def _meld(nodes: Any, one: int, other: int) -> int:
    """The top of two heaps in one; −1 is an empty heap."""
    if one < 0:
        return other
    if other < 0:
        return one
    mine, its = nodes[one]["key"], nodes[other]["key"]
    if its < mine or (its == mine and other < one):
        one, other = other, one
    first = nodes[one]["child"]
    nodes[other]["after"], nodes[other]["before"] = first, one
    if first >= 0:
        nodes[first]["before"] = other
    nodes[one]["child"] = other
    return one


@compiled
def _gather(nodes: Any, first: int) -> int:
    """The top of a heap of all siblings from `first` on: in pairs, and then the pairs from last to first."""
    pairs = -1
    while first >= 0:
        second = nodes[first]["after"]
        rest = nodes[second]["after"] if second >= 0 else -1
        nodes[first]["after"] = nodes[first]["before"] = -1
        if second >= 0:
            nodes[second]["after"] = nodes[second]["before"] = -1
        pair = _meld(nodes, first, second)
        nodes[pair]["after"] = pairs
        pairs, first = pair, rest
    top = -1
    while pairs >= 0:
        rest = nodes[pairs]["after"]
        nodes[pairs]["after"] = -1
        top = _meld(nodes, top, pairs)
        pairs = rest
    return top


@compiled
def put(nodes: Any, tops: Slots, host: int, slot: int, key: float) -> None:
    """A page that is in no heap comes into that of its host."""
    nodes[slot]["key"] = key
    nodes[slot]["child"] = nodes[slot]["after"] = nodes[slot]["before"] = -1
    tops[host] = _meld(nodes, tops[host], slot)


@compiled
def take(nodes: Any, tops: Slots, host: int, slot: int) -> None:
    """A page leaves the heap of its host."""
    below = _gather(nodes, nodes[slot]["child"])
    if slot == tops[host]:
        tops[host] = below
    else:
        before, after = nodes[slot]["before"], nodes[slot]["after"]
        if nodes[before]["child"] == slot:
            nodes[before]["child"] = after
        else:
            nodes[before]["after"] = after
        if after >= 0:
            nodes[after]["before"] = before
        tops[host] = _meld(nodes, tops[host], below)
    nodes[slot]["child"] = nodes[slot]["after"] = nodes[slot]["before"] = -1


@compiled
def put_all(nodes: Any, tops: Slots, hosts: Any, slots: Slots, keys: NDArray[np.float64]) -> None:
    """All heaps anew, of these pages."""
    tops[:] = -1
    for nth in range(slots.size):
        put(nodes, tops, hosts[nth], slots[nth], keys[nth])

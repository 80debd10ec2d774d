"""A heap of pages by time, compiled: which is due first."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.value.compiled import compiled


class Queue(NamedTuple):
    """Pages, the one with the least key first; of equals, the lower page number."""

    key: NDArray[np.float64]
    page: NDArray[np.int64]
    size: NDArray[np.int64]  # one number


def new_queue(pages: int) -> Queue:
    """An empty queue with room for all pages."""
    return Queue(np.zeros(pages), np.zeros(pages, np.int64), np.zeros(1, np.int64))


@compiled
def _less(queue: Queue, a: int, b: int) -> bool:
    if queue.key[a] != queue.key[b]:
        return bool(queue.key[a] < queue.key[b])
    return bool(queue.page[a] < queue.page[b])


@compiled
def _swap(queue: Queue, a: int, b: int) -> None:
    queue.key[a], queue.key[b] = queue.key[b], queue.key[a]
    queue.page[a], queue.page[b] = queue.page[b], queue.page[a]


@compiled
def push(queue: Queue, page: int, key: float) -> None:
    """Put a page in."""
    at = queue.size[0]
    queue.key[at], queue.page[at] = key, page
    queue.size[0] += 1
    while at > 0:
        above = (at - 1) // 2
        if not _less(queue, at, above):
            return
        _swap(queue, at, above)
        at = above


@compiled
def pop(queue: Queue) -> int:
    """Take the first page out; −1: there is none."""
    if queue.size[0] == 0:
        return -1
    page = queue.page[0]
    queue.size[0] -= 1
    last = queue.size[0]
    queue.key[0], queue.page[0] = queue.key[last], queue.page[last]
    at = 0
    while True:
        least = at
        for below in (2 * at + 1, 2 * at + 2):
            if below < last and _less(queue, below, least):
                least = below
        if least == at:
            return int(page)
        _swap(queue, at, least)
        at = least

"""Doubly linked lists through the page records: the wheel's buckets, the shelves, the queues of the hosts.

A list has a number: shelves come first, then hosts, and the buckets of the wheel from `BUCKETS` on. The first page of a
list keeps −1 − number as its previous one and the last page as its next one, so that a page can be taken out of a list
without knowing which it is in. Buckets know their first page only; shelves and hosts also their last.
"""

from afresh.schedule.inlined import inlined
from afresh.schedule.table import SHELVES, State

BUCKETS = 1 << 30


@inlined
def _set_first(state: State, number: int, slot: int) -> None:
    if number >= BUCKETS:
        state.wheel[number - BUCKETS] = slot
    elif number < SHELVES:
        state.shelf_first[number] = slot
    else:
        state.hosts[number - SHELVES].first = slot


@inlined
def _set_last(state: State, number: int, slot: int) -> None:
    if number >= BUCKETS:
        return
    if number < SHELVES:
        state.shelf_last[number] = slot
    else:
        state.hosts[number - SHELVES].last = slot


@inlined
def put_first(state: State, bucket: int, slot: int) -> None:
    """Put a page at the front of a bucket of the wheel."""
    pages = state.pages
    end = -1 - (BUCKETS + bucket)
    old = state.wheel[bucket]
    page = pages[slot]
    page.previous = end
    if old >= 0:
        page.next = old
        pages[old].previous = slot
    else:
        page.next = end
    state.wheel[bucket] = slot


@inlined
def put_last(state: State, number: int, slot: int) -> None:
    """Put a page at the back of a shelf or a host's queue."""
    pages = state.pages
    end = -1 - number
    last = state.shelf_last[number] if number < SHELVES else state.hosts[number - SHELVES].last
    page = pages[slot]
    page.next = end
    if last >= 0:
        page.previous = last
        pages[last].next = slot
    else:
        page.previous = end
        _set_first(state, number, slot)
    _set_last(state, number, slot)


@inlined
def take_out(state: State, slot: int) -> int:
    """Take a page out of the list it is in; the number of that list if the page was one of its ends, else −1."""
    pages = state.pages
    page = pages[slot]
    following, before = page.next, page.previous
    number = -1
    if before >= 0:
        pages[before].next = following
    else:
        number = -1 - before
        _set_first(state, number, following if following >= 0 else -1)
    if following >= 0:
        pages[following].previous = before
    else:
        number = -1 - following
        _set_last(state, number, before if before >= 0 else -1)
    return number

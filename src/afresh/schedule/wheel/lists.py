"""Doubly linked lists through the page records: the wheel's buckets, the shelves, the queues of the hosts.

A list has a number: shelves come first, then hosts, and the buckets of the wheel from `BUCKETS` on. The first page of a
list keeps −1 − number as its previous one and the last page as its next one, so that a page can be taken out of a list
without knowing which it is in. All lists are queues: of two pages that are equal, the one that was placed first goes
first.
"""

from afresh.schedule.wheel.inlined import inlined
from afresh.schedule.wheel.memory import bucket_at, host_at, page_at, shelf_at
from afresh.schedule.wheel.table import SHELVES

BUCKETS = 1 << 30


@inlined
def _set_first(core: int, number: int, slot: int) -> None:
    if number >= BUCKETS:
        bucket_at(core, number - BUCKETS).first = slot
    elif number < SHELVES:
        shelf_at(core, number).first = slot
    else:
        host_at(core, number - SHELVES).first = slot


@inlined
def _set_last(core: int, number: int, slot: int) -> None:
    if number >= BUCKETS:
        bucket_at(core, number - BUCKETS).last = slot
    elif number < SHELVES:
        shelf_at(core, number).last = slot
    else:
        host_at(core, number - SHELVES).last = slot


@inlined
def _last_of(core: int, number: int) -> int:
    if number >= BUCKETS:
        return int(bucket_at(core, number - BUCKETS).last)
    if number < SHELVES:
        return int(shelf_at(core, number).last)
    return int(host_at(core, number - SHELVES).last)


@inlined
def _first_of(core: int, number: int) -> int:
    if number >= BUCKETS:
        return int(bucket_at(core, number - BUCKETS).first)
    if number < SHELVES:
        return int(shelf_at(core, number).first)
    return int(host_at(core, number - SHELVES).first)


@inlined
def put_first(core: int, number: int, slot: int) -> None:
    """Put a page at the front of a list."""
    end = -1 - number
    first = _first_of(core, number)
    page = page_at(core, slot)
    page.previous = end
    if first >= 0:
        page.next = first
        page_at(core, first).previous = slot
    else:
        page.next = end
        _set_last(core, number, slot)
    _set_first(core, number, slot)


@inlined
def put_last(core: int, number: int, slot: int) -> None:
    """Put a page at the back of a list."""
    end = -1 - number
    last = _last_of(core, number)
    page = page_at(core, slot)
    page.next = end
    if last >= 0:
        page.previous = last
        page_at(core, last).next = slot
    else:
        page.previous = end
        _set_first(core, number, slot)
    _set_last(core, number, slot)


@inlined
def take_out(core: int, slot: int) -> int:
    """Take a page out of the list it is in; the number of that list if the page was one of its ends, else −1."""
    page = page_at(core, slot)
    following, before = page.next, page.previous
    number = -1
    if before >= 0:
        page_at(core, before).next = following
    else:
        number = -1 - before
        _set_first(core, number, following if following >= 0 else -1)
    if following >= 0:
        page_at(core, following).previous = before
    else:
        number = -1 - following
        _set_last(core, number, before if before >= 0 else -1)
    return number

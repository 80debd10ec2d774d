"""Doubly linked lists through the page records: the wheel's buckets, the shelves, the queues of the hosts.

A list has a number: shelves come first, then hosts, and the buckets of the wheel from `BUCKETS` on. The first page of a
list keeps −1 − number as its previous one and the last page as its next one, so that a page can be taken out of a list
without knowing which it is in. Buckets know their first page only; shelves and hosts also their last.
"""

from afresh.schedule.inlined import inlined
from afresh.schedule.memory import bucket_at, host_at, page_at, shelf_at
from afresh.schedule.table import SHELVES

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
        return
    if number < SHELVES:
        shelf_at(core, number).last = slot
    else:
        host_at(core, number - SHELVES).last = slot


@inlined
def put_first(core: int, bucket: int, slot: int) -> None:
    """Put a page at the front of a bucket of the wheel."""
    end = -1 - (BUCKETS + bucket)
    old = bucket_at(core, bucket).first
    page = page_at(core, slot)
    page.previous = end
    if old >= 0:
        page.next = old
        page_at(core, old).previous = slot
    else:
        page.next = end
    bucket_at(core, bucket).first = slot


@inlined
def put_last(core: int, number: int, slot: int) -> None:
    """Put a page at the back of a shelf or a host's queue."""
    end = -1 - number
    last = shelf_at(core, number).last if number < SHELVES else host_at(core, number - SHELVES).last
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

"""Walks through all lists of a scheduler and checks that every page is where it says it is."""

import math

import numpy as np

from afresh.schedule import Scheduler
from afresh.schedule.wheel.lists import BUCKETS
from afresh.schedule.wheel.table import EMPTY, FREE, LEASED, LOOSE, PARKED, PAUSED, READY, SHELVES, WHEEL


def walk(machine: Scheduler, number: int, first: int) -> list[int]:
    pages, found, slot, before = machine.state.pages, [], first, -1 - number
    while slot >= 0:
        assert pages[slot]["previous"] == before
        found.append(int(slot))
        before, slot = slot, int(pages[slot]["next"])
        assert len(found) <= len(pages)
    if found:
        assert slot == -1 - number
    return found


def check(machine: Scheduler) -> None:
    """No page lost, none in two lists, all sums right."""
    state, control = machine.state, machine.state.control[0]
    used = int(control["used"])
    pages = state.pages[:used]
    place = pages["place"]
    lists: dict[int, list[int]] = {WHEEL: [], READY: [], PARKED: []}
    for bucket in np.flatnonzero((state.wheel["first"] >= 0) | (state.wheel["last"] >= 0)):
        found = walk(machine, BUCKETS + int(bucket), int(state.wheel[bucket]["first"]))
        assert found[-1] == state.wheel[bucket]["last"]
        lists[WHEEL] += found
    for shelf in range(SHELVES):
        found = walk(machine, shelf, int(state.shelves[shelf]["first"]))
        assert state.shelves[shelf]["last"] == (found[-1] if found else -1)
        assert not found or shelf <= control["top"]
        lists[READY] += found
    for number, host in enumerate(state.hosts):
        found = walk(machine, SHELVES + number, int(host["first"]))
        assert host["parked"] == len(found)
        assert host["empty"] == (pages["marks"][found] & EMPTY > 0).sum()
        assert all(pages[slot]["host"] == number for slot in found)
        if found:
            on_shelf = [slot for slot in lists[READY] if pages[slot]["host"] == number]
            leased = [slot for slot in range(used) if place[slot] == LEASED and pages[slot]["host"] == number]
            assert host["in_heap"] > 0 or on_shelf or leased, "nobody would wake these pages"
        lists[PARKED] += found
    for kind, slots in lists.items():
        assert sorted(slots) == np.flatnonzero(place == kind).tolist()
    in_lists = {LOOSE} if control["exact"] else set(lists)
    assert set(np.unique(place)) <= {FREE, LEASED, PAUSED} | in_lists
    assert control["pages"] == (place != FREE).sum()
    assert control["ready"] == len(lists[READY])
    assert control["empty"] == (pages["marks"][lists[READY]] & EMPTY > 0).sum()
    up = (place == READY) | (place == PARKED)
    assert not (pages["marks"][~up] & EMPTY).any()
    assert control["active"] == (pages["rate"] > 0).sum()
    assert math.isclose(control["demand"], pages["rate"].astype(float).sum(), rel_tol=1e-6, abs_tol=1e-9)
    heap = state.heap[: control["heap_size"]]
    hosts = state.hosts
    keys = [max(float(hosts[number][name]) for name in ("busy_until", "rests_until", "spent_until")) for number in heap]
    assert all(keys[(i - 1) // 2] <= keys[i] for i in range(1, len(keys)))
    assert [int(state.hosts[number]["in_heap"]) for number in heap] == list(range(1, len(heap) + 1))

"""Counted transitions in bounded memory, compiled: for each context the pages that came next, the frequent ones first.

A context is a site, a page, or two pages in a row; its pages are a list of cells. A list that is full, or a table that
is, lets a new page in only after the least of the list has been outvoted. Fading halves all counts and drops what has
become small, so that room comes back and old habits are forgotten.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.paths.borrowing import borrowing
from afresh.estimate.paths.layout import (
    ABOUT,
    CLICKS,
    CONTEXTS_USED,
    FREE_CELL,
    FULL,
    LOSSES,
    MAX_LINKS,
    MAX_SUCCESSORS,
    NEXT_ABOUT,
    PAGES,
    REQUESTS,
    RING_AT,
    TRAIL,
    Tables,
)
from afresh.value.compiled import compiled

Integers = NDArray[np.int64]

MAX_LOAD = 0.7  # of the table of contexts


@borrowing
def site_key(site: int) -> int:
    """The context of a site: nothing is known of where a reader is."""
    return -(site + 1)


@borrowing
def page_key(page: int) -> int:
    """The context of a page."""
    return page + 1


@borrowing
def pair_key(before: int, page: int) -> int:
    """The context of two pages in a row."""
    return ((before + 1) << 32) | (page + 1)


@borrowing
def _slot(key: int, size: int) -> int:
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(size - 1))  # type: ignore[return-value]


@borrowing
def found(contexts: Any, key: int) -> int:
    """Where a context is; -1: nowhere."""
    at = _slot(key, contexts.size)
    while contexts[at].key != 0:
        if contexts[at].key == key:
            return at
        at = (at + 1) & (contexts.size - 1)
    return -1


@borrowing
def made(contexts: Any, state: Integers, key: int) -> int:
    """Where a context is, or is from now on; -1: there is no room."""
    at = _slot(key, contexts.size)
    while contexts[at].key != 0:
        if contexts[at].key == key:
            return at
        at = (at + 1) & (contexts.size - 1)
    if state[CONTEXTS_USED] >= MAX_LOAD * contexts.size:
        state[FULL] += 1
        return -1
    state[CONTEXTS_USED] += 1
    contexts[at].key = key
    contexts[at].head = -1
    contexts[at].distinct = 0
    contexts[at].total = 0.0
    return at


@borrowing
def counted(contexts: Any, cells: Any, at: int, page: int) -> float:
    """How often a page came next."""
    cell = contexts[at].head
    while cell >= 0:
        if cells[cell].page == page:
            return float(cells[cell].count)
        cell = cells[cell].next
    return 0.0


@borrowing
def count(tables: Tables, key: int, page: int, amount: float) -> None:
    """A page came next in this context."""
    contexts, cells, state = tables.contexts, tables.cells, tables.state
    at = made(contexts, state, key)
    if at < 0:
        return
    contexts[at].total += amount
    before, cell = -1, contexts[at].head
    while cell >= 0:
        if cells[cell].page == page:
            cells[cell].count += amount
            if before >= 0 and cells[cell].count > cells[before].count:
                number, counts = cells[before].page, cells[before].count
                cells[before].page, cells[before].count = page, cells[cell].count
                cells[cell].page, cells[cell].count = number, counts
            return
        if cells[cell].next < 0:
            break
        before, cell = cell, cells[cell].next
    free = state[FREE_CELL]
    if free >= 0 and contexts[at].distinct < MAX_SUCCESSORS:
        state[FREE_CELL] = cells[free].next
        cells[free].page, cells[free].count, cells[free].next = page, amount, -1
        contexts[at].distinct += 1
        if cell < 0:
            contexts[at].head = free
        else:
            cells[cell].next = free
        return
    if free < 0:
        state[FULL] += 1
    if cell >= 0:  # the last one has to give way, once it is outvoted
        cells[cell].count -= amount
        if cells[cell].count <= 0.0:
            cells[cell].page, cells[cell].count = page, amount


@borrowing
def links_of(tables: Tables, page: int) -> tuple[int, int]:
    """Where in the ring the links of a page are, and how many: 0, if nobody has told, or they were written over."""
    links, first = tables.pages[page].links, tables.pages[page].first
    if links == 0 or first < tables.state[RING_AT] - tables.ring.size:
        return 0, 0
    return first % tables.ring.size, links


@borrowing
def link(tables: Tables, page: int, targets: NDArray[np.int32]) -> None:
    """The links of a page, in their order."""
    size, start = tables.ring.size, tables.state[RING_AT]
    count = min(targets.size, MAX_LINKS)
    if start % size + count > size:
        start += size - start % size
    tables.pages[page].first, tables.pages[page].links = start, count
    for at in range(count):
        tables.ring[start % size + at] = targets[at]
    tables.state[RING_AT] = start + count


@borrowing
def _is_gone(pages: Any, key: int) -> bool:
    """Whether a context is of a page that is not kept."""
    if key < 0:
        return False
    high, low = (key >> 32) - 1, (key & 0xFFFFFFFF) - 1
    return pages[low].site < 0 or (high >= 0 and pages[high].site < 0)


@compiled
def faded(tables: Tables, factor: float, least: float, gone: Integers) -> int:
    """Let all counts fade, and drop those that are small by now. How many pages went; their numbers are in `gone`."""
    contexts, cells, pages, state = tables.contexts, tables.cells, tables.pages, tables.state
    left = _fade_pages(tables, factor, least, gone)
    before = contexts.copy()
    for at in range(contexts.size):
        contexts[at].key = 0
    state[CONTEXTS_USED], state[FULL] = 0, 0
    for old in before:
        if old.key == 0:
            continue
        first, last, distinct, cell = -1, -1, 0, old.head
        whole = not _is_gone(pages, old.key)
        while cell >= 0:
            following = cells[cell].next
            cells[cell].count *= factor
            if whole and cells[cell].count >= least and pages[cells[cell].page].site >= 0:
                if last >= 0:
                    cells[last].next = cell
                else:
                    first = cell
                cells[cell].next = -1
                last = cell
                distinct += 1
            else:
                cells[cell].next = state[FREE_CELL]
                state[FREE_CELL] = cell
            cell = following
        if first >= 0:
            at = made(contexts, state, old.key)
            contexts[at].head, contexts[at].distinct, contexts[at].total = first, distinct, old.total * factor
    return left


@compiled
def _fade_pages(tables: Tables, factor: float, least: float, gone: Integers) -> int:
    pages, sites = tables.pages, tables.sites
    left = 0
    sites[:, REQUESTS] *= factor
    for number in range(pages.size):
        if pages[number].site >= 0:
            pages[number].count *= factor
            if pages[number].count < least and left < gone.size:
                sites[pages[number].site, PAGES] -= 1
                pages[number].site = -1
                pages[number].links = 0
                gone[left] = number
                left += 1
    for number in range(pages.size):
        start, links = links_of(tables, number)
        for at in range(start, start + links):
            if pages[tables.ring[at]].site < 0:
                pages[number].links = 0  # what is left would be taken for all
    _forget_where(tables)
    for site in range(sites.shape[0]):
        for column in range(CLICKS, LOSSES):
            if not NEXT_ABOUT <= column < NEXT_ABOUT + ABOUT * ABOUT:
                sites[site, column] = max(sites[site, column] * factor, min(sites[site, column], 0.25))
    return left


@compiled
def _forget_where(tables: Tables) -> None:
    """Cut what readers have seen off where it leads to pages that are gone."""
    trails = tables.trails
    for reader in range(trails.shape[0]):
        for at in range(TRAIL):
            if trails[reader, at] >= 0 and tables.pages[trails[reader, at]].site < 0:
                trails[reader, at:] = -1
                if at == 0:
                    tables.abouts[reader, :] = 1.0 / ABOUT
                break

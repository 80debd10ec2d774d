"""The network of what readers are about, compiled: foretells as `user_model` does, and learns from every move.

What a reader is about (visiting results, browsing, on a topic) is hidden. It leads to how long a page is looked at, to
how the reader moves on, and to which link is taken. Each move says how probably the reader was about what; that much of
the move is counted for each, which is one step of expectation and maximisation.
"""

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.paths.borrowing import borrowing
from afresh.estimate.paths.counts import links_of
from afresh.estimate.paths.layout import (
    ABOUT,
    AGAIN,
    BACK,
    CELLS,
    CHOSEN,
    DWELL_CLASSES,
    DWELLS,
    ELSEWHERE,
    FAMES,
    LINK,
    MOVED,
    MOVES,
    NEXT_ABOUT,
    OFFERED,
    PAGES,
    PLACES,
    REQUESTS,
    STAYED,
    TRAIL,
    UNKNOWN_DWELL,
    Tables,
)
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]

WAYS = len(MOVES)
# What is worked out for a place: the belief, what each move has as its share, and what the links weigh together.
BELIEF, SHARES, TOGETHER, IN_CELL = 0, ABOUT, ABOUT + ABOUT * WAYS, 2 * ABOUT + ABOUT * WAYS
PLACE_SIZE = IN_CELL + CELLS


@borrowing
def note_fame(tables: Tables, page: int) -> None:
    """Write down the class of how often a page is asked for beside the others of its site, as it is now."""
    site = tables.pages[page].site
    beside = tables.pages[page].count * tables.sites[site, PAGES] / max(tables.sites[site, REQUESTS], 1.0)
    border, at = 0.25, 0
    while at < FAMES - 1 and beside >= border:
        border *= 4.0
        at += 1
    tables.pages[page].fame = at


@borrowing
def cell_of(tables: Tables, page: int, place: int) -> int:
    """The class of a link: its place on the page, and the fame of its target."""
    at = (place >= PLACES[0]) + (place >= PLACES[1]) + (place >= PLACES[2])
    return int(at * FAMES + tables.pages[page].fame)


@borrowing
def dwell_class(seconds: float) -> int:
    """The class of how long a page was looked at; below 0: nobody knows."""
    if not seconds >= 0.0:
        return UNKNOWN_DWELL
    at = 0
    while at < len(DWELLS) and seconds >= DWELLS[at]:
        at += 1
    return at


@borrowing
def attraction(row: Floats, about: int, cell: int) -> float:
    """How often a link of this class is taken, beside how often it is there to be taken."""
    return float(row[CHOSEN + about * CELLS + cell] / row[OFFERED + about * CELLS + cell])


@borrowing
def times_seen(trail: Numbers, page: int) -> int:
    """How often a page is among those seen before the one before this: what `again` leads to."""
    times = 0
    for at in range(2, TRAIL):
        if trail[at] == page:
            times += 1
    return times


@borrowing
def seen_before(trail: Numbers) -> int:
    """How many pages those are."""
    number = 0
    while 2 + number < TRAIL and trail[2 + number] >= 0:
        number += 1
    return number


@borrowing
def look(tables: Tables, trail: Numbers, about: Floats, place: Floats) -> None:
    """Work out what holds for all moves from where a reader is."""
    row = tables.sites[tables.pages[trail[0]].site]
    start, links = links_of(tables, trail[0])
    place[:] = 0.0
    for at in range(links):
        page = tables.ring[start + at]
        place[IN_CELL + cell_of(tables, page, at)] += 1.0
    for was in range(ABOUT):
        total = 0.0
        for now in range(ABOUT):
            total += row[NEXT_ABOUT + was * ABOUT + now]
        for now in range(ABOUT):
            place[BELIEF + now] += about[was] * row[NEXT_ABOUT + was * ABOUT + now] / total
    for now in range(ABOUT):
        shares = SHARES + now * WAYS
        place[shares + BACK] = row[MOVED + now * WAYS + BACK] if trail[1] >= 0 else 0.0
        place[shares + AGAIN] = row[MOVED + now * WAYS + AGAIN] if trail[2] >= 0 else 0.0
        place[shares + LINK] = row[MOVED + now * WAYS + LINK] if links else 0.0
        place[shares + ELSEWHERE] = row[MOVED + now * WAYS + ELSEWHERE]
        total = place[shares] + place[shares + 1] + place[shares + 2] + place[shares + 3]
        for way in range(WAYS):
            place[shares + way] /= total
        for cell in range(CELLS):
            if place[IN_CELL + cell] > 0.0:
                place[TOGETHER + now] += place[IN_CELL + cell] * attraction(row, now, cell)


@borrowing
def chances(tables: Tables, trail: Numbers, place: Floats, page: int, often: float, each: Floats) -> float:
    """How probable each way to a page is, for each of what a reader may be about; and the page altogether.

    `often`: how probable the page is without knowing anything but its site.
    """
    row = tables.sites[tables.pages[trail[0]].site]
    start, links = links_of(tables, trail[0])
    seen, times = seen_before(trail), times_seen(trail, page)
    total = 0.0
    each[:] = 0.0
    for now in range(ABOUT):
        shares, own = SHARES + now * WAYS, now * WAYS
        if trail[1] == page:
            each[own + BACK] = place[shares + BACK]
        if times:
            each[own + AGAIN] = place[shares + AGAIN] * times / seen
        each[own + ELSEWHERE] = place[shares + ELSEWHERE] * often
    for at in range(links):
        if tables.ring[start + at] == page:
            cell = cell_of(tables, page, at)
            for now in range(ABOUT):
                share = place[SHARES + now * WAYS + LINK] / place[TOGETHER + now]
                each[now * WAYS + LINK] += share * attraction(row, now, cell)
    for now in range(ABOUT):
        for way in range(WAYS):
            each[now * WAYS + way] *= place[BELIEF + now]
            total += each[now * WAYS + way]
    return total


@borrowing
def _stayed(row: Floats, about: int, looked: int) -> float:
    """How probable it is to look at a page for so long."""
    if looked == UNKNOWN_DWELL:
        return 1.0
    total = 0.0
    for kind in range(DWELL_CLASSES):
        total += row[STAYED + about * DWELL_CLASSES + kind]
    return float(row[STAYED + about * DWELL_CLASSES + looked] / total)


@borrowing
def _learn_link(tables: Tables, trail: Numbers, place: Floats, page: int, about: int, by_link: float) -> None:
    """A link was taken with this probability: what it is like, and what the others were like that were there."""
    row = tables.sites[tables.pages[trail[0]].site]
    start, links = links_of(tables, trail[0])
    for cell in range(CELLS):
        if place[IN_CELL + cell] > 0.0:
            row[OFFERED + about * CELLS + cell] += place[IN_CELL + cell] * by_link / place[TOGETHER + about]
    for at in range(links):
        if tables.ring[start + at] == page:
            row[CHOSEN + about * CELLS + cell_of(tables, page, at)] += by_link


@borrowing
def _learn_changes(row: Floats, about: Floats, came: Floats, place: Floats) -> None:
    """What readers were about before, and what they turned out to be about now."""
    for was in range(ABOUT):
        total = 0.0
        for now in range(ABOUT):
            total += row[NEXT_ABOUT + was * ABOUT + now]
        for now in range(ABOUT):
            moved = about[was] * row[NEXT_ABOUT + was * ABOUT + now] / total
            row[NEXT_ABOUT + was * ABOUT + now] += came[now] * moved / place[BELIEF + now]


@compiled
def learn(
    tables: Tables, trail: Numbers, about: Floats, place: Floats, page: int, each: Floats, dwell: float, first: bool
) -> None:
    """Count a move for each of what the reader may have been about; from then on that is what is believed.

    `each` is what `chances` found for it, `place` what `look` did. `first`: nothing was known of the reader before.
    """
    row = tables.sites[tables.pages[trail[0]].site]
    looked = dwell_class(dwell)
    came, total = np.zeros(ABOUT), 0.0
    for now in range(ABOUT):
        likely = _stayed(row, now, looked)
        for way in range(WAYS):
            each[now * WAYS + way] *= likely
            came[now] += each[now * WAYS + way]
        total += came[now]
    if not total > 0.0:
        return
    for now in range(ABOUT):
        came[now] /= total
        for way in range(WAYS):
            each[now * WAYS + way] /= total
            row[MOVED + now * WAYS + way] += each[now * WAYS + way]
        if looked != UNKNOWN_DWELL:
            row[STAYED + now * DWELL_CLASSES + looked] += came[now]
        if each[now * WAYS + LINK] > 0.0:
            _learn_link(tables, trail, place, page, now, each[now * WAYS + LINK])
    if not first:
        _learn_changes(row, about, came, place)
    for now in range(ABOUT):
        about[now] = came[now]

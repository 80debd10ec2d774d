"""The records of readers' paths: what is kept of pages, transitions, readers and sites, in arrays of fixed size."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# The models, in the order of their weights.
MODELS = ("markov-1", "markov-2", "links", "network", "uniform")
ORDER_1, ORDER_2, LINKS, NETWORK, UNIFORM = range(len(MODELS))

TRAIL = 8  # pages of a session that are remembered, the newest first
MAX_SUCCESSORS = 128  # of a page, or of two in a row
MAX_LINKS = 256  # of a page
MAX_SITES = 256  # that are told apart; all others are one
MAX_CANDIDATES = 3 * MAX_SUCCESSORS + MAX_LINKS + TRAIL

# What a reader is about: the hidden node of the network.
ABOUTS = ("visiting results", "browsing", "on a topic")
ABOUT = len(ABOUTS)
# How a reader comes to the next page.
MOVES = ("back", "again", "link", "elsewhere")
BACK, AGAIN, LINK, ELSEWHERE = range(len(MOVES))
DWELLS = (5.0, 15.0, 60.0, 300.0)  # seconds: borders of the classes of dwell; one class more is "longer", one "unknown"
DWELL_CLASSES = len(DWELLS) + 2
UNKNOWN_DWELL = DWELL_CLASSES - 1
PLACES = (4, 12, 32)  # numbers of links on the page: borders of the network's classes of place
FAMES = 6  # classes of how often a link's target is asked for, beside the site's mean
CELLS = (len(PLACES) + 1) * FAMES
PLACE_CLASSES = 10  # of the model of link places: by powers of two

# Columns of what is learned of a site: counts all.
BUCKETS = 16  # by how much is known of the page, and of the last two
WEIGHTS = 0  # [BUCKETS, models]
CLICKS = WEIGHTS + BUCKETS * len(MODELS)  # [PLACE_CLASSES]
SHOWN = CLICKS + PLACE_CLASSES
ON, OFF = SHOWN + PLACE_CLASSES, SHOWN + PLACE_CLASSES + 1  # moves by a link, and others
NEXT_ABOUT = OFF + 1  # [ABOUT, ABOUT]
STAYED = NEXT_ABOUT + ABOUT * ABOUT  # [ABOUT, DWELL_CLASSES]
MOVED = STAYED + ABOUT * DWELL_CLASSES  # [ABOUT, moves]
CHOSEN = MOVED + ABOUT * len(MOVES)  # [ABOUT, CELLS]
OFFERED = CHOSEN + ABOUT * CELLS
LOSSES = OFFERED + ABOUT * CELLS  # [models + 1]: nats, the mixture's last
FORETOLD = LOSSES + len(MODELS) + 1  # moves that were
REQUESTS, PAGES = FORETOLD + 1, FORETOLD + 2
COLUMNS = PAGES + 1

# Places in `Tables.state`.
FREE_CELL, CONTEXTS_USED, RING_AT, FULL = range(4)

CONTEXT = np.dtype([("key", "i8"), ("head", "i4"), ("distinct", "i4"), ("total", "f8")], align=True)
CELL = np.dtype([("page", "i4"), ("next", "i4"), ("count", "f4")], align=True)
PAGE = np.dtype([("first", "i8"), ("site", "i4"), ("links", "i4"), ("count", "f4"), ("fame", "i4")], align=True)

# What is believed before anything was seen.
_FIRST_MOVES = ((3.0, 2.0, 4.0, 1.0), (0.5, 0.5, 8.0, 1.0), (1.0, 2.0, 6.0, 1.0))
_FIRST_DWELLS = ((4, 3, 2, 0.5, 0.5, 1), (2, 3, 3, 1, 1, 1), (0.5, 1, 3, 3, 2, 1))
_STAYS = 8.0  # of ten moves, those after which a reader is still about the same


class Tables(NamedTuple):
    """All arrays; how they hang together is said where each is changed."""

    contexts: NDArray[Any]  # CONTEXT, by a hash of its key
    cells: NDArray[Any]  # CELL, in a list for each context
    pages: NDArray[Any]  # PAGE, by number
    ring: NDArray[np.int32]  # links of pages, the oldest written over
    trails: NDArray[np.int32]  # [readers, TRAIL], -1: none
    abouts: NDArray[np.float64]  # [readers, ABOUT]
    sites: NDArray[np.float64]  # [MAX_SITES, COLUMNS]
    scores: NDArray[np.float64]  # [pages]: 0 but during a forecast
    state: NDArray[np.int64]


class Room(NamedTuple):
    """How many of each there is room for."""

    pages: int
    contexts: int
    cells: int
    links: int
    readers: int


NAME_BYTES = 300  # a page's name, and what finds it,
NAME_LETTERS = 150  # and how many letters of that are the name, on average: longer ones leave less room for others
READER_BYTES = 700  # a reader's, with the moment of the last request
_PAGES, _CONTEXTS, _CELLS, _LINKS, _READERS = 0.5, 0.2, 0.2, 0.07, 0.03  # shares of the memory


def room_in(memory: int) -> Room:
    """How many of each fit into so many bytes.

    >>> room_in(64 << 20).pages > 90_000, room_in(64 << 20).readers > 2000
    (True, True)
    """
    each = NAME_BYTES + PAGE.itemsize + 8
    contexts = 1 << max(int(_CONTEXTS * memory / (2 * CONTEXT.itemsize)).bit_length() - 1, 8)  # twice: see `faded`
    return Room(
        max(int(_PAGES * memory / each), 64),
        contexts,
        max(int(_CELLS * memory / CELL.itemsize), 256),
        max(int(_LINKS * memory / 4), 4 * MAX_LINKS),
        max(int(_READERS * memory / (READER_BYTES + 4 * TRAIL + 8 * ABOUT)), 16),
    )


def tables_for(room: Room) -> Tables:
    """Empty tables."""
    cells = np.zeros(room.cells, CELL)
    cells["next"] = np.arange(1, room.cells + 1)  # the free ones, in a row
    cells["next"][-1] = -1
    pages = np.zeros(room.pages, PAGE)
    pages["site"] = -1
    return Tables(
        np.zeros(room.contexts, CONTEXT),
        cells,
        pages,
        np.full(room.links, -1, np.int32),
        np.full((room.readers, TRAIL), -1, np.int32),
        np.full((room.readers, ABOUT), 1.0 / ABOUT),
        np.tile(first_beliefs(), (MAX_SITES, 1)),
        np.zeros(room.pages),
        np.zeros(4, np.int64),
    )


def first_beliefs() -> NDArray[np.float64]:
    """What is believed of a site of which nothing was seen."""
    row = np.zeros(COLUMNS)
    row[WEIGHTS:CLICKS] = 0.5
    row[CLICKS:ON] = 1.0
    row[ON], row[OFF] = 2.0, 1.0
    row[NEXT_ABOUT:STAYED] = (10.0 - _STAYS) / (ABOUT - 1)
    row[NEXT_ABOUT : STAYED : ABOUT + 1] = _STAYS
    row[STAYED:MOVED] = np.ravel(_FIRST_DWELLS)
    row[MOVED:CHOSEN] = np.ravel(_FIRST_MOVES)
    row[CHOSEN:LOSSES] = 1.0
    return row

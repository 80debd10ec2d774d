"""The way in to who comes next: pages by name, readers by what they are known by, all within a bound on memory."""

from collections.abc import Sequence

import numpy as np

from afresh.errors import ConfigError
from afresh.estimate.paths import counts, mixing
from afresh.estimate.paths.layout import (
    BUCKETS,
    FORETOLD,
    FULL,
    LOSSES,
    MAX_LINKS,
    MAX_SITES,
    MODELS,
    NAME_LETTERS,
    PAGES,
    WEIGHTS,
    room_in,
    tables_for,
)

WINDOW = 1800.0  # seconds without a request after which a session is over
HALF_LIFE = 14 * 86400.0  # seconds after which a move counts half
SMALLEST = 1 << 20  # bytes of memory
MOST_WANTED = 64  # pages that are foretold at once
LEAST = 0.4  # a count below this is dropped when counts fade
OTHERS = MAX_SITES - 1  # the site of all that come when there are too many


class Paths:
    """Learns from every request where readers go next.

    >>> paths = Paths()
    >>> for reader in range(20):
    ...     _ = paths.request(f"r{reader}", "http://e.org/a", 0.0), paths.request(f"r{reader}", "http://e.org/b", 9.0)
    >>> [page for page, _ in paths.request("somebody", "http://e.org/a", 20.0, most=1)]
    ['http://e.org/b']
    """

    def __init__(self, memory: int = 16 << 20, *, window: float = WINDOW, half_life: float = HALF_LIFE) -> None:
        if memory < SMALLEST:
            raise ConfigError(f"{memory} bytes are too few for the paths of readers.", hint="Give 1 MiB or more.")
        self.room = room_in(memory)
        self.tables = tables_for(self.room)
        self.window, self.half_life = window, half_life
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._unused: list[int] = []
        self._letters = 0  # of all names
        self._sites: dict[str, int] = {}
        self._readers: dict[str, tuple[int, float]] = {}  # (number, last request), the longest silent first
        self._faded: float | None = None
        self._asked = 0  # requests since counts faded
        self._chosen = np.empty(MOST_WANTED, np.int32)
        self._probable = np.empty(MOST_WANTED)

    @property
    def pages(self) -> int:
        """How many are known."""
        return len(self._numbers)

    @property
    def nbytes(self) -> int:
        """What the arrays take; names and readers take the rest of the memory."""
        return sum(array.nbytes for array in self.tables)

    def request(self, reader: str, url: str, now: float, *, most: int = 0) -> list[tuple[str, float]]:
        """A reader asked for a page: learn from it, and say how probably which other pages come next, in that order.

        A reader has a session on each site.
        """
        name = site_of(url)
        page = self._page(url, name, now)
        if page is None:
            return []
        number, dwell = self._reader(f"{name} {reader}", now)
        mixing.move(self.tables, number, page, dwell)
        self._asked += 1
        return self._forecast(number, url, most) if most else []

    def expect(self, reader: str, url: str, *, most: int) -> list[tuple[str, float]]:
        """What comes next for a reader who is at a page still; nothing if that is over."""
        known = self._readers.get(f"{site_of(url)} {reader}")
        page = self._numbers.get(url)
        if known is None or page is None or self.tables.trails[known[0], 0] != page:
            return []
        return self._forecast(known[0], url, most)

    def _forecast(self, number: int, url: str, most: int) -> list[tuple[str, float]]:
        most = min(most + 1, MOST_WANTED)  # the page itself may be among them
        found = self._named(mixing.forecast(self.tables, number, -1, self._chosen[:most], self._probable))
        return [each for each in found if each[0] != url][: most - 1]

    def links(self, url: str, targets: Sequence[str], now: float) -> None:
        """What a page leads to, in its order."""
        site = site_of(url)
        page = self._page(url, site, now)
        if page is None:
            return
        inside = list(dict.fromkeys(each for each in targets if site_of(each) == site))[:MAX_LINKS]
        numbers = [each for each in (self._page(target, site, now) for target in inside) if each is not None]
        counts.link(self.tables, page, np.array(numbers, np.int32))

    def knows_links(self, url: str) -> bool:
        """Whether somebody has told what a page leads to, and that is still known."""
        page = self._numbers.get(url)
        return page is not None and bool(counts.links_of(self.tables, page)[1])

    def weights(self, site: str) -> dict[str, float]:
        """How far each model is trusted on a site, over all that may be known of a page."""
        row = self.tables.sites[self._sites.get(site, OTHERS)]
        shares = row[WEIGHTS : WEIGHTS + BUCKETS * len(MODELS)].reshape(BUCKETS, len(MODELS)).sum(axis=0)
        return dict(zip(MODELS, (shares / shares.sum()).tolist(), strict=True))

    def losses(self, site: str) -> dict[str, float]:
        """Nats a move that each model has lost on a site, and the mixture of all."""
        row = self.tables.sites[self._sites.get(site, OTHERS)]
        lost = row[LOSSES : LOSSES + len(MODELS) + 1] / max(row[FORETOLD], 1.0)
        return dict(zip((*MODELS, "mixture"), lost.tolist(), strict=True))

    def _named(self, number: int) -> list[tuple[str, float]]:
        names = self._names
        chosen, probable = self._chosen[:number].tolist(), self._probable[:number].tolist()
        return [(names[page], probability) for page, probability in zip(chosen, probable, strict=True)]

    def _reader(self, key: str, now: float) -> tuple[int, float]:
        """The number of a reader, and how long the last page was looked at; below 0: this is a new session."""
        known = self._readers.pop(key, None)
        if known is None:
            number = len(self._readers)
            if number >= self.room.readers:
                number = self._readers.pop(next(iter(self._readers)))[0]
            dwell = -1.0
        else:
            number, dwell = known[0], now - known[1]
        self._readers[key] = number, now
        if not 0.0 <= dwell <= self.window:
            mixing.leave(self.tables, number)
            dwell = -1.0
        return number, dwell

    def _page(self, url: str, site: str, now: float) -> int | None:
        """The number of a page; None if there is no room for it."""
        number = self._numbers.get(url)
        if number is not None:
            return number
        self._make_room(now)
        if self._letters + len(url) > self.room.pages * NAME_LETTERS:
            return None
        if self._unused:
            number = self._unused.pop()
            self._names[number] = url
        elif len(self._names) < self.room.pages:
            number = len(self._names)
            self._names.append(url)
        else:
            return None
        self._numbers[url] = number
        self._letters += len(url)
        row = self._sites.get(site)
        if row is None:
            row = self._sites[site] = len(self._sites) if len(self._sites) < OTHERS else OTHERS
        self.tables.pages[number] = (0, row, 0, 0.0, 0)
        self.tables.sites[row, PAGES] += 1
        return number

    def _make_room(self, now: float) -> None:
        """Let counts fade when it is time, or when there is no room; not before that has become worth its while."""
        if self._faded is None:
            self._faded = now
        full = self.tables.state[FULL] > 0 or (len(self._names) >= self.room.pages and not self._unused)
        full = full or self._letters >= 0.9 * self.room.pages * NAME_LETTERS
        if now - self._faded >= self.half_life or (full and self._asked >= self.room.pages):
            self.fade(now)

    def fade(self, now: float) -> None:
        """Halve all counts, and forget what has become small."""
        gone = np.empty(self.room.pages, np.int64)
        number = counts.faded(self.tables, 0.5, LEAST, gone)
        for page in gone[:number].tolist():
            del self._numbers[self._names[page]]
            self._letters -= len(self._names[page])
            self._names[page] = ""
            self._unused.append(page)
        self._faded, self._asked = now, 0


def site_of(url: str) -> str:
    """Scheme and authority of an address; of anything else, all up to its first slash."""
    start = url.find("://") + 3 if "://" in url else 0
    end = url.find("/", start)
    return url if end < 0 else url[:end]


def compile_ahead() -> None:
    """Compile everything, before anybody waits for it."""
    paths = Paths(SMALLEST)
    paths.links("x:/", ["x:/a"], 0.0)
    for url in ("x:/", "x:/a", "x:/"):
        paths.request("reader", url, 0.0, most=1)
    paths.knows_links("x:/")
    paths.fade(1.0)

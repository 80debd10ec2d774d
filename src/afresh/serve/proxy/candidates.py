"""What the readers of a site may ask for next, all together, and which piece of that is worth most a byte."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import TypeVar

from afresh.serve.proxy.segments import Parts, Segments, segments_of, within
from afresh.value.downloads import Downloads, Piece

T = TypeVar("T")

HORIZON = 60.0  # seconds after a request within which the next one is expected
MAX_READERS = 10_000
MAX_KNOWN = 20_000  # pages whose parts are remembered, and addresses whose sizes are
FIRST_PAGE, FIRST_PART = 30e3, 30e3  # bytes, before any was seen
_NEWEST = 0.05  # what the last size counts for in the average
LARGEST = float(1 << 40)  # bytes that an answer is believed to have, whatever it says
NEVER = 0.999  # of a probability: nothing is certain


class Candidates:
    """Candidates of one site.

    A page that several readers may come to is wanted as soon as one of them comes: its probability is that at least one
    does. `may` says whether an address may be fetched ahead.
    """

    def __init__(self, base: str, cost_per_kb: float, may: Callable[[str], bool]) -> None:
        self.base, self.cost_per_kb = base, cost_per_kb
        self._may = may
        self.downloads = Downloads(cost_per_kb=cost_per_kb)
        self._readers: OrderedDict[str, tuple[float, dict[str, float]]] = OrderedDict()
        self._chances: dict[str, dict[str, float]] = {}  # by page and reader
        self._segments: dict[str, Segments] = {}
        self._parts: OrderedDict[str, Parts] = OrderedDict()
        self._sizes: OrderedDict[str, float] = OrderedDict()
        self._page, self._part = FIRST_PAGE, FIRST_PART

    def come(self, reader: str, expected: list[tuple[str, float]], now: float) -> None:
        """A reader is at a page, from where these come next; what was expected before is over."""
        self._leave(reader)
        wanted = {url: min(chance, NEVER) for url, chance in expected if self._may(url)}
        self._readers[reader] = now + HORIZON, wanted
        for url, chance in wanted.items():
            self._chances.setdefault(url, {})[reader] = chance
            self._weigh(url)
        while len(self._readers) > MAX_READERS:
            self._leave(next(iter(self._readers)))

    def expire(self, now: float) -> None:
        """Those who have not come back leave."""
        while self._readers and next(iter(self._readers.values()))[0] <= now:
            self._leave(next(iter(self._readers)))

    def _leave(self, reader: str) -> None:
        for url in self._readers.pop(reader, (0.0, {}))[1]:
            chances = self._chances[url]
            del chances[reader]
            if not chances:
                del self._chances[url]
                self.downloads.remove(url)
                del self._segments[url]
            else:
                self._weigh(url)

    def _weigh(self, url: str) -> None:
        chance = self._chance(url)
        if url in self.downloads:
            self.downloads.weigh(url, chance)
        else:
            self._segments[url] = self._as_segments(url)
            self.downloads.add(url, chance, self._segments[url].curve)

    def _as_segments(self, url: str) -> Segments:
        return segments_of(url, self._parts.get(url, Parts()), self._sizes, page=self._page, part=self._part)

    def best(self, load: float) -> tuple[str, Piece] | None:
        """The address to fetch next and the piece that it is, which counts as fetched; None if none is worth its cost.

        The cost rises with `load`: 0 is none.
        """
        self.downloads.cost_per_kb = self.cost(load)
        piece = self.downloads.next()
        return None if piece is None else (self._segments[piece.name].starting(piece.start), piece)

    def cost(self, load: float) -> float:
        """What 1,000 bytes must gain."""
        return self.cost_per_kb * (1.0 + load)

    def not_now(self, url: str, piece: Piece) -> None:
        """A piece was not fetched after all: `url` is to be fetched still."""
        if piece.name in self.downloads:
            self.downloads.arrived(piece.name, self._segments[piece.name].start(url))

    def here(self, url: str, parts: Parts) -> None:
        """A page is here, and this is what it needs: that comes next."""
        parts = replace(
            parts,
            head=self._allowed(parts.head),
            above=self._allowed(parts.above),
            below=self._allowed(parts.below),
        )
        _remember(self._parts, url, parts)
        if url in self.downloads:
            chance = self._chance(url)
            self.downloads.remove(url)
            self._segments[url] = self._as_segments(url)
            curve = self._segments[url].curve
            self.downloads.add(url, chance, curve, done=curve.ends[0])

    def _allowed(self, urls: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(each for each in within(urls, self.base) if self._may(each))

    def measured(self, url: str, size: float, *, page: bool, of: str = "") -> None:
        """So many bytes a page, or a part of one, has: `of` which one, if that is expected and not fetched yet."""
        self.left(url, size, of=of)
        if page:
            self._page += _NEWEST * (size - self._page)
        else:
            self._part += _NEWEST * (size - self._part)

    def knows_size(self, url: str) -> bool:
        """Whether an answer of this address was measured."""
        return url in self._sizes

    def left(self, url: str, size: float, *, of: str = "") -> bool:
        """So many bytes are to be fetched of an address; whether that is news."""
        size = min(max(size, 1.0), LARGEST)
        news = self._sizes.get(url) != size
        _remember(self._sizes, url, size)
        for name in {url, of} & self._segments.keys() if news else ():
            self._resize(name)
        return news

    def _resize(self, name: str) -> None:
        """The order goes by the sizes that are known now; what was fetched stays fetched."""
        older, newer = self._segments[name], self._as_segments(name)
        if older.urls != newer.urls:
            return  # its parts are known by now, and `here` puts them in
        done = self.downloads.remove(name)
        next_one = older.starting(done) if done < older.curve.size else None
        self._segments[name] = newer
        here = newer.curve.size if next_one is None else newer.start(next_one)
        self.downloads.add(name, self._chance(name), newer.curve, done=here)

    def _chance(self, url: str) -> float:
        """That at least one of those comes who may."""
        return 1.0 - prod(1.0 - each for each in self._chances[url].values())


def _remember(kept: OrderedDict[str, T], url: str, value: T) -> None:
    kept[url] = value
    kept.move_to_end(url)
    while len(kept) > MAX_KNOWN:
        kept.popitem(last=False)

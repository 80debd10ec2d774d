"""The order of downloads ahead of their readers: always the piece with the greatest expected flux.

Flux is the value that a byte gains, expected flux that times the probability that the document is wanted. Taking the
greatest at every step is optimal at every moment at which the reader may come, for whole documents whose every byte
counts the same, for constant flux, for segments of decreasing flux, for smooth concave value in small quanta, and for
any mixture of these. For other curves it is a good rule (see `curves.enveloped`, and `idle` for the optimum).

A step takes O(log n): documents lie in heaps, and what has changed since it was put there is recognised and dropped.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf, isfinite

from afresh.errors import ConfigError
from afresh.value.curves import Curve

KB = 1000.0
LOOK_AHEAD = 64  # pieces that a change of documents may be for
_SPARE = 64  # outdated places in a heap that are not worth clearing


@dataclass(frozen=True, slots=True)
class Piece:
    """What is to be fetched next: bytes of a document, and what they gain by themselves."""

    name: str
    start: float
    end: float
    gain: float  # probability × value

    @property
    def size(self) -> float:
        """Bytes."""
        return self.end - self.start


@dataclass(slots=True, eq=False)
class _Document:
    name: str
    probability: float
    curve: Curve
    host: str
    done: float
    limit: float
    version: int = 0

    @property
    def is_whole(self) -> bool:
        return self.done >= self.limit

    def gain(self, start: float, end: float) -> float:
        return self.probability * (self.curve.value(end) - self.curve.value(start))

    def density(self, overhead: float) -> float:
        """What a byte of what comes next gains, if so many must be spent first to come to it."""
        if self.is_whole:
            return -inf
        start, best = self.done, -inf
        for _ in range(LOOK_AHEAD):
            end = min(self.curve.end(start), self.limit)
            density = self.gain(self.done, end) / (end - self.done + overhead)
            if density <= best:
                break
            best, start = density, end
            if not overhead or end >= self.limit:
                break
        return best


class _Heap:
    """Documents by what a byte gains; those of an older version are outdated."""

    def __init__(self, overhead: float) -> None:
        self.overhead = overhead
        self._entries: list[tuple[float, int, _Document, int]] = []
        self._documents: dict[str, _Document] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._documents)

    def put(self, document: _Document) -> None:
        self._documents[document.name] = document
        self._push(document)
        if len(self._entries) > 2 * len(self._documents) + _SPARE:
            self._entries = [entry for entry in self._entries if entry[3] == entry[2].version]
            heapify(self._entries)

    def _push(self, document: _Document) -> None:
        density = document.density(self.overhead)
        if density > -inf:
            self._count += 1
            heappush(self._entries, (-density, self._count, document, document.version))

    def drop(self, document: _Document) -> None:
        self._documents.pop(document.name, None)

    def best(self) -> tuple[float, _Document | None]:
        while self._entries and self._entries[0][3] != self._entries[0][2].version:
            heappop(self._entries)
        return (-self._entries[0][0], self._entries[0][2]) if self._entries else (-inf, None)


class Downloads:
    """Gives the sequence of pieces, lazily; documents arrive, leave and become more or less likely while it runs.

    `cost_per_kb`: what a piece must gain for every 1,000 bytes, or it ends. `switch_bytes`: what could be fetched in
    the time that a change to another document takes; `move_bytes`: to another host. `rate`: bytes a second; `wait` says
    when the next piece may begin. `most_each`, `most`: bytes of a document, and of all that are here.

    >>> from afresh.value.curves import Linear, Pieces
    >>> downloads = Downloads()
    >>> downloads.add("likely", 0.6, Pieces([(1000, 0.7), (9000, 0.3)]))
    >>> downloads.add("less", 0.3, Linear(2000.0))
    >>> [(piece.name, piece.size) for piece in downloads]
    [('likely', 1000.0), ('less', 2000.0), ('likely', 9000.0)]
    """

    def __init__(
        self,
        *,
        cost_per_kb: float = 0.0,
        switch_bytes: float = 0.0,
        move_bytes: float = 0.0,
        rate: float = inf,
        most_each: float = inf,
        most: float = inf,
    ) -> None:
        for name, given in (("cost_per_kb", cost_per_kb), ("switch_bytes", switch_bytes), ("move_bytes", move_bytes)):
            if not (given >= 0 and isfinite(given)):
                raise ConfigError(f"{name} must be at least 0 and finite, not {given!r}.", hint="0 leaves it out.")
        if not (rate > 0 and most_each > 0 and most >= 0):
            raise ConfigError("rate, most_each and most must be more than 0.", hint="Leave out what is not limited.")
        self.cost_per_kb = cost_per_kb
        self.rate, self.most_each, self.most = rate, most_each, most
        self.held = 0.0  # bytes of documents that are here
        self._switch = switch_bytes
        self._documents: dict[str, _Document] = {}
        self._everywhere = _Heap(max(switch_bytes, move_bytes))
        self._by_host: dict[str, _Heap] = {}  # where a change within a host costs less than one to another
        self._apart = move_bytes > switch_bytes
        self._current: _Document | None = None
        self._demanded: deque[str] = deque()
        self._free_at = -inf

    def __len__(self) -> int:
        return len(self._documents)

    def __contains__(self, name: object) -> bool:
        return name in self._documents

    def __iter__(self) -> Iterator[Piece]:
        while (piece := self.next()) is not None:
            yield piece

    def add(self, name: str, probability: float, curve: Curve, *, host: str = "", done: float = 0.0) -> None:
        """A document that may be wanted; so many bytes of it may be here already."""
        if name in self._documents:
            raise ConfigError(f"{name} is there already.", hint="`weigh` says how likely it is now.")
        document = _Document(name, _probability(probability), curve, host, 0.0, min(curve.size, self.most_each))
        document.done = min(max(done, 0.0), document.limit)
        self.held += document.done
        self._documents[name] = document
        self._put(document)

    def weigh(self, name: str, probability: float) -> None:
        """Say how likely a document is now."""
        document = self._documents[name]
        document.probability = _probability(probability)
        self._put(document)

    def remove(self, name: str) -> float:
        """A document leaves; how many bytes of it were here."""
        document = self._documents.pop(name)
        document.version = -1
        self._everywhere.drop(document)
        heap = self._by_host.get(document.host)
        if heap is not None:
            heap.drop(document)
            if not heap:
                del self._by_host[document.host]
        if self._current is document:
            self._current = None
        self.held -= document.done
        return document.done

    def demand(self, name: str) -> None:
        """A reader asks for it: what is missing goes first, whatever it costs."""
        document = self._documents[name]
        document.limit = document.curve.size
        if name not in self._demanded:
            self._demanded.append(name)

    def arrived(self, name: str, done: float) -> None:
        """So many bytes of a document are here: a piece came in part only, or more came than was asked for."""
        document = self._documents[name]
        self._reach(document, min(max(done, 0.0), document.curve.size))

    def wait(self, now: float) -> float:
        """Seconds until the next piece may begin, by the limit of bytes a second."""
        return max(self._free_at - now, 0.0)

    def next(self, now: float = 0.0) -> Piece | None:
        """The next piece, which counts as fetched from now on; None if none is worth its cost, or there is no room."""
        document = self._asked_for()
        if document is None:
            document = self._best()
            if document is None:
                return None
            end = min(document.curve.end(document.done), document.limit)
            if self.held + (end - document.done) > self.most:
                return None
        else:
            end = document.curve.end(document.done)
        start = document.done
        piece = Piece(document.name, start, end, document.gain(start, end))
        self._current = document
        self._reach(document, end)
        self._free_at = max(self._free_at, now) + piece.size / self.rate
        return piece

    def _asked_for(self) -> _Document | None:
        while self._demanded:
            document = self._documents.get(self._demanded[0])
            if document is not None and not document.is_whole:
                return document
            self._demanded.popleft()
        return None

    def _best(self) -> _Document | None:
        """The document to go on with: the present one, unless another gains more than the change to it costs."""
        least = self.cost_per_kb / KB
        density, chosen = -inf, None
        if self._current is not None:
            density, chosen = self._current.density(0.0), self._current
            near = self._by_host.get(self._current.host)
            if near is not None:
                density, chosen = _greater((density, chosen), near.best())
        density, chosen = _greater((density, chosen), self._everywhere.best())
        if chosen is None or chosen.is_whole or density < least or density <= 0.0:
            return None
        return chosen

    def _reach(self, document: _Document, done: float) -> None:
        self.held += done - document.done
        document.done = done
        self._put(document)

    def _put(self, document: _Document) -> None:
        document.version += 1
        self._everywhere.put(document)
        if self._apart:
            if document.host not in self._by_host:
                self._by_host[document.host] = _Heap(self._switch)
            self._by_host[document.host].put(document)


def _greater(
    one: tuple[float, _Document | None], other: tuple[float, _Document | None]
) -> tuple[float, _Document | None]:
    return other if other[0] > one[0] else one


def _probability(given: float) -> float:
    if not 0.0 <= given <= 1.0:
        raise ConfigError(f"A probability is between 0 and 1, not {given!r}.", hint="Divide by the sum of all.")
    return float(given)

"""What a part of a document is worth to the reader who comes to it: value curves, over the bytes that are there.

A curve says what the first bytes of a document are worth (`value`, 0 without any), and how far the next piece goes that
is worth fetching on its own (`end`). Whoever decides on an order (`afresh.value.downloads`) asks nothing else.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Protocol

from afresh.errors import ConfigError

MAX_SLICES = 100_000  # of a curve that is cut or enveloped
_ROUNDING = 1e-9  # of a size: bytes that are no more than this from a border are at it


class Curve(Protocol):
    """Value over bytes: it never falls."""

    size: float

    def value(self, done: float) -> float:
        """What the first bytes are worth."""

    def end(self, done: float) -> float:
        """Where the piece ends that begins there; `size` for the last one."""


class Linear:
    """Every byte is worth the same: what counts is how much is left to wait for, or how much of it is there.

    >>> curve = Linear(2000.0)
    >>> curve.value(500.0), curve.end(500.0)
    (0.25, 2000.0)
    """

    def __init__(self, size: float, worth: float = 1.0) -> None:
        self.size, self.worth = _positive(size), worth

    def value(self, done: float) -> float:
        """What the first bytes are worth."""
        return self.worth * min(done / self.size, 1.0)

    def end(self, done: float) -> float:
        """The whole document is one piece."""
        return self.size


class Pieces:
    """Segments one after another, each with bytes and worth: text of the first screen, its pictures, the next screen.

    >>> curve = Pieces([(1000, 0.6), (4000, 0.3), (9000, 0.1)])
    >>> round(curve.value(3000.0), 3), curve.end(3000.0)
    (0.75, 5000.0)
    """

    def __init__(self, segments: Sequence[tuple[float, float]]) -> None:
        if not segments or any(worth < 0 for _, worth in segments):
            raise ConfigError(
                "A document has at least one segment, and none is worth less than 0.", hint="See `Pieces`."
            )
        self.ends = list(accumulate(_positive(size) for size, _ in segments))
        self.worths = list(accumulate(worth for _, worth in segments))
        self.size = self.ends[-1]

    def value(self, done: float) -> float:
        """What the first bytes are worth."""
        at = bisect_right(self.ends, done)
        if at == len(self.ends):
            return self.worths[-1]
        start, before = (self.ends[at - 1], self.worths[at - 1]) if at else (0.0, 0.0)
        return before + (self.worths[at] - before) * (done - start) / (self.ends[at] - start)

    def end(self, done: float) -> float:
        """The segment's own end."""
        at = bisect_right(self.ends, done + _ROUNDING * self.size)
        return self.ends[min(at, len(self.ends) - 1)]


class Sliced:
    """Any function of the bytes that are there, looked at in slices: small quanta of a smooth one, or a rough one.

    >>> curve = Sliced(100.0, lambda done: (done / 100.0) ** 0.5, slice_bytes=25.0)
    >>> curve.value(25.0), curve.end(0.0), curve.end(90.0)
    (0.5, 25.0, 100.0)
    """

    def __init__(self, size: float, function: Callable[[float], float], slice_bytes: float) -> None:
        self.size, self.slice_bytes = _positive(size), _positive(slice_bytes)
        if size / slice_bytes > MAX_SLICES:
            raise ConfigError(f"A curve has at most {MAX_SLICES:,} slices.", hint="Cut it in larger ones.")
        self.value = function

    def end(self, done: float) -> float:
        """The end of the slice."""
        number = (done + _ROUNDING * self.size) // self.slice_bytes + 1
        return min(number * self.slice_bytes, self.size)


def enveloped(curve: Curve, slice_bytes: float) -> Pieces:
    """The least concave curve above one, as pieces: each is worth as much a byte as any beginning of what is left is.

    The greatest flux then looks beyond a poor beginning to what follows it.

    >>> steep = Sliced(4.0, lambda done: 1.0 if done >= 3 else 0.0, slice_bytes=1.0)
    >>> enveloped(steep, 1.0).ends
    [3.0, 4.0]
    """
    sliced = Sliced(curve.size, curve.value, slice_bytes)
    done, hull = 0.0, list[tuple[float, float]]()
    while done < curve.size:
        end = sliced.end(done)
        size, worth = end - done, max(curve.value(end) - curve.value(done), 0.0)
        while hull and worth * hull[-1][0] > hull[-1][1] * size:
            size, worth = size + hull[-1][0], worth + hull[-1][1]
            hull.pop()
        hull.append((size, worth))
        done = end
    return Pieces(hull)


def _positive(size: float) -> float:
    if not 0 < size < 1e18:
        raise ConfigError(f"A size is more than 0 bytes, not {size!r}.", hint="Leave empty documents out.")
    return float(size)

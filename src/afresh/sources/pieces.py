"""Long lists in parts, so that others have a turn in between."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

PIECE = 200  # links of a page that are looked at in one go, in about ten milliseconds,
PIECE_BYTES = 20_000  # and bytes of them: a link may be two thousand long

Item = TypeVar("Item")


def in_pieces(items: Sequence[Item], size: Callable[[Item], int]) -> Iterator[Sequence[Item]]:
    """Parts of a list, none of which takes long: few items, and few bytes unless a single item has more.

    >>> [len(piece) for piece in in_pieces(["x" * 8_000] * 5 + ["x"] * 300, len)]
    [2, 2, 200, 101]
    """
    start = held = 0
    for nth, item in enumerate(items):
        if nth > start and (held + size(item) > PIECE_BYTES or nth - start >= PIECE):
            yield items[start:nth]
            start, held = nth, 0
        held += size(item)
    if start < len(items):
        yield items[start:]

"""What differs between two readings of a page: which blocks, at which spots, and how much of the text that is."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from afresh.reading import Document

MAX_BLOCKS = 1_000  # that differ and are told apart; where there are more, the page has changed and no spot is noise
LEAST = 1 / 1024  # significance of a change that is in no word, such as another order
WHOLE = 0.9  # of the text at a spot that must differ if all of it is to be taken for different
SAMPLE = 80  # bytes of a block that are kept to be shown

_DIGITS = frozenset("0123456789")
NUMBERS, TEXT = "numbers", "text"


@dataclass(frozen=True, slots=True)
class Spot:
    """Blocks that stand at one place and differ.

    Two sorts: where nothing but words with digits differ (`NUMBERS`), the key is of the place and of the other words;
    else (`TEXT`) it is of the place alone.
    """

    key: int
    sort: str
    weight: int  # bytes of the blocks, old and new
    words: int  # bytes of the words among them that differ
    whole: bool  # nothing that stands there is as it was
    was: int  # mark of the old text
    mark: int  # and of the new one
    place: str  # for people
    sample: str  # the beginning of the first block

    @property
    def number(self) -> int:
        """The digits of the sample as one number: that of a clock or a counter grows."""
        return int("".join(sign for sign in self.sample if sign in _DIGITS)[:18] or "0")


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between two readings; the blocks by their numbers."""

    old: NDArray[np.int64]  # blocks of the old page that differ
    new: NDArray[np.int64]
    total: int  # bytes of text, old and new
    words: int  # bytes of words that differ
    spots: dict[int, Spot] | None = field(default_factory=dict)  # None: too many to tell apart
    present: frozenset[int] = frozenset()  # keys that were asked about and stand on the new page

    def significance(self, ignored: Iterable[int] = ()) -> float:
        """The share of the text that differs, without some spots."""
        if not len(self.old) and not len(self.new):
            return 0.0
        left_out = sum(self.spots[key].words for key in ignored) if self.spots else 0
        return min(1.0, max(LEAST, (self.words - left_out) / max(1, self.total)))


def difference(old: Document, new: Document, watched: Iterable[int] = ()) -> Difference:
    """Compare two readings; `watched` are keys of spots whose presence is of interest.

    >>> from afresh.reading import read
    >>> found = difference(read(b"<p>It is 9:00<p>Hello world"), read(b"<p>It is 9:01<p>Hello world"))
    >>> [(spot.sort, spot.sample) for spot in found.spots.values()]
    [('numbers', 'It is 9:01')]
    """
    from afresh.detect import align  # compiled code takes a second to load: not before somebody needs it

    gone, come = align.align(np.ascontiguousarray(old.marks[:, 1]), np.ascontiguousarray(new.marks[:, 1]))
    olds, news = np.flatnonzero(gone), np.flatnonzero(come)
    total = len(old.text) + len(new.text)
    sides = old.text, old.spans, olds, new.text, new.spans, news
    words = align.differing(*sides)
    keys = np.array(sorted(set(watched)), np.uint64)
    weights = align.weigh(new.spans, new.marks, keys) if len(keys) else keys
    present = frozenset(keys[weights > 0].tolist())
    spots = _spots(old, olds, new, news) if len(olds) + len(news) <= MAX_BLOCKS else None
    return Difference(olds, news, total, words, spots, present)


def _spots(old: Document, olds: NDArray[np.int64], new: Document, news: NDArray[np.int64]) -> dict[int, Spot]:
    """The blocks that differ, gathered by where they stand."""
    from afresh.detect import align

    sides = ((old, olds.tolist()), (new, news.tolist()))
    templates: list[dict[int, list[int]]] = [{}, {}]
    for side, (page, blocks) in enumerate(sides):
        for block in blocks:
            place, _, masked = page.marks[block]
            templates[side].setdefault(int(align.template(place, masked)), []).append(block)
    found: dict[tuple[int, str], tuple[list[int], list[int]]] = {}
    for side, (page, _) in enumerate(sides):
        for key, blocks in templates[side].items():
            if key in templates[1 - side]:
                found.setdefault((key, NUMBERS), ([], []))[side].extend(blocks)
                continue
            for block in blocks:
                found.setdefault((int(page.marks[block, 0]), TEXT), ([], []))[side].append(block)
    keys = np.array(sorted({key for key, _ in found}), np.uint64)
    standing = dict(
        zip(
            keys.tolist(),
            (align.weigh(old.spans, old.marks, keys) + align.weigh(new.spans, new.marks, keys)).tolist(),
            strict=True,
        )
    )
    return {key: _spot(key, sort, blocks, (old, new), standing[key]) for (key, sort), blocks in found.items()}


def _spot(
    key: int, sort: str, blocks: tuple[list[int], list[int]], pages: tuple[Document, Document], standing: int
) -> Spot:
    from afresh.detect import align

    old, new = pages
    olds, news = (np.array(side, np.int64) for side in blocks)
    sizes = ((page.spans[side, 1] - page.spans[side, 0]).sum() for page, side in ((old, olds), (new, news)))
    weight = int(sum(sizes))
    shown, nth = (new, blocks[1][0]) if blocks[1] else (old, blocks[0][0])
    return Spot(
        key,
        sort,
        weight,
        align.differing(old.text, old.spans, olds, new.text, new.spans, news),
        weight >= WHOLE * standing,
        int(old.marks[olds, 1].sum(dtype=np.uint64)),
        int(new.marks[news, 1].sum(dtype=np.uint64)),
        shown.place(nth),
        shown.block(nth, SAMPLE),
    )

"""What differs between two readings of a page: which blocks, at which spots, and how much of the text that is."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from afresh.reading import Document

MAX_BLOCKS = 1_000  # that differ and are told apart; where there are more, the page has changed and no spot is noise
LEAST = 1 / 1024  # significance of a change that is in no word, such as another order
WHOLE = 0.9  # share of the text at a spot that must differ for all of it to count as different
SAMPLE = 80  # bytes of a block that are kept to be shown

_WORD = (1 << 64) - 1
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
    words: int  # bytes of words that differ, spot by spot
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

    olds, news = align.align(old.marks, new.marks)
    total = len(old.text) + len(new.text)
    present = frozenset(key for key, weight in _weighed(watched, new).items() if weight)
    if len(olds) + len(news) > MAX_BLOCKS:
        words = align.differing(old.text, old.spans, olds, new.text, new.spans, news)
        return Difference(olds, news, total, words, None, present)
    spots = _spots(old, olds, new, news) if len(olds) or len(news) else {}
    return Difference(olds, news, total, sum(spot.words for spot in spots.values()), spots, present)


@dataclass(slots=True)
class _Group:
    """The blocks of one spot, old and new, while they are gathered."""

    blocks: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    marks: list[int] = field(default_factory=lambda: [0, 0])
    weight: int = 0


def _spots(old: Document, olds: NDArray[np.int64], new: Document, news: NDArray[np.int64]) -> dict[int, Spot]:
    """The blocks that differ, gathered by where they stand."""
    from afresh.detect import align

    sides = [align.describe(page.spans, page.marks, blocks).tolist() for page, blocks in ((old, olds), (new, news))]
    on_both = {row[2] for row in sides[0]} & {row[2] for row in sides[1]}
    groups: dict[tuple[int, str], _Group] = {}
    for side, rows in enumerate(sides):
        for block, place, template, mark, size in rows:
            key = (template, NUMBERS) if template in on_both else (place, TEXT)
            group = groups.get(key)
            if group is None:
                group = groups[key] = _Group()
            group.blocks[side].append(block)
            group.marks[side] = (group.marks[side] + mark) & _WORD
            group.weight += size
    standing = _weighed((key for key, _ in groups), old, new)
    return {key: _spot(key, sort, group, old, new, standing[key]) for (key, sort), group in groups.items()}


def _weighed(asked: Iterable[int], *pages: Document) -> dict[int, int]:
    """How many bytes of text stand at each of some keys, on some pages together."""
    from afresh.detect import align

    keys = sorted(set(asked))
    if not keys:
        return {}
    sorted_keys, weights = np.array(keys, np.uint64), np.zeros(len(keys), np.int64)
    for page in pages:
        align.weigh(page.spans, page.marks, sorted_keys, weights)
    return dict(zip(keys, weights.tolist(), strict=True))


def _spot(key: int, sort: str, group: _Group, old: Document, new: Document, standing: int) -> Spot:
    from afresh.detect import align

    olds, news = group.blocks
    words = align.differing(
        old.text, old.spans, np.array(olds, np.int64), new.text, new.spans, np.array(news, np.int64)
    )
    shown, nth = (new, news[0]) if news else (old, olds[0])
    whole, (was, mark) = group.weight >= WHOLE * standing, group.marks
    return Spot(key, sort, group.weight, words, whole, was, mark, shown.place(nth), shown.block(nth, SAMPLE))

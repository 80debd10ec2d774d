"""What changed between two texts, word by word, as data: one below the other, or side by side.

Nothing here is escaped or coloured: who shows it does that, and must, because all text is a stranger's.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from afresh.detect.matching import Effort, common

SAME, OLD, NEW = "same", "old", "new"  # of a piece
REMOVED, ADDED, CHANGED = "removed", "added", "changed"  # of a row, besides SAME
ALIKE = 0.4  # share of the words that an old and a new block have in common to be one block that changed
LOOKED_AHEAD = 8  # new blocks among which the form that an old one has now is looked for
MAX_WORDS = 20_000  # of a block that are compared; a longer one counts as taken away and put in

# Words, the blanks between them, and single signs; of scripts without blanks, every character is a word. A number is
# one word with the signs within it, and those of currencies and percent at its ends.
_LETTERS = r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
_WORDS = re.compile(
    rf"\s+|(?:[$€£¥₹](?=\d))?{_LETTERS}(?:(?<=\d)[.,'’](?=\d){_LETTERS})*(?:(?<=\d)[$€£¥₹%])?|.", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text of a row: the same in both, or in the old or the new alone."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """A block: unchanged, taken away, put in, or with other words than before."""

    kind: str
    pieces: tuple[Piece, ...]

    @property
    def before(self) -> str | None:
        """The old text; None if the block is new."""
        return None if self.kind == ADDED else "".join(each.text for each in self.pieces if each.kind != NEW)

    @property
    def after(self) -> str | None:
        """The new text; None if the block is gone."""
        return None if self.kind == REMOVED else "".join(each.text for each in self.pieces if each.kind != OLD)


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows that are the same and left out."""

    rows: int


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a pair: its pieces, none of them of the other side; None in a pair where nothing stands there."""

    kind: str
    pieces: tuple[Piece, ...]


def diff(old: Sequence[str], new: Sequence[str], effort: Effort | None = None) -> list[Row]:
    """All blocks of two texts, in order.

    >>> [(row.kind, row.before, row.after) for row in diff(["Port", "Open 9-5"], ["Port", "Open 9-6", "Closed"])]
    [('same', 'Port', 'Port'), ('changed', 'Open 9-5', 'Open 9-6'), ('added', None, 'Closed')]
    """
    effort = effort or Effort()
    rows: list[Row] = []
    at = other = 0
    for one, two in [*common(old, new, effort), (len(old), len(new))]:
        rows += _between(old[at:one], new[other:two], effort)
        if one < len(old):
            rows.append(Row(SAME, (Piece(SAME, old[one]),)))
        at, other = one + 1, two + 1
    return rows


def _between(old: Sequence[str], new: Sequence[str], effort: Effort) -> Iterator[Row]:
    """Blocks of which none is as it was: those that are alike are one block with other words."""
    at = 0
    ahead = [Counter(_WORDS.findall(text[:MAX_WORDS])) for text in new] if old else []
    for text in old:
        words = Counter(_WORDS.findall(text[:MAX_WORDS]))
        found = next((nth for nth in range(at, min(at + LOOKED_AHEAD, len(new))) if _alike(words, ahead[nth])), None)
        if found is None:
            yield Row(REMOVED, (Piece(OLD, text),))
            continue
        yield from (Row(ADDED, (Piece(NEW, each),)) for each in new[at:found])
        yield Row(CHANGED, pieces(text, new[found], effort))
        at = found + 1
    yield from (Row(ADDED, (Piece(NEW, each),)) for each in new[at:])


def _alike(one: Counter[str], other: Counter[str]) -> bool:
    weights = [sum(len(word) * count for word, count in each.items() if not word.isspace()) for each in (one, other)]
    shared = sum(len(word) * min(count, other[word]) for word, count in one.items() if not word.isspace())
    return shared >= ALIKE * max(weights)


def pieces(old: str, new: str, effort: Effort | None = None) -> tuple[Piece, ...]:
    """The words of two texts beside each other; those that differ, with blanks and signs between them, in one piece.

    >>> [(each.kind, each.text) for each in pieces("Open 9 to 5 daily", "Open 9 to 6 daily")]
    [('same', 'Open 9 to '), ('old', '5'), ('new', '6'), ('same', ' daily')]
    >>> [each.text for each in pieces("Now $1,299.95!", "Now $1,199.95!")]
    ['Now ', '$1,299.95', '$1,199.95', '!']
    """
    olds, news = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(olds), len(news)) > MAX_WORDS:
        return tuple(piece for piece in (Piece(OLD, old), Piece(NEW, new)) if piece.text)
    found: list[tuple[str, str, str]] = []  # (what stays, or what was and what is)
    at = other = 0
    for one, two in [*common(olds, news, effort or Effort()), (len(olds), len(news))]:
        gone, come = "".join(olds[at:one]), "".join(news[other:two])
        if gone or come:
            found.append(("", gone, come))
        if one < len(olds):
            found.append((olds[one], "", ""))
        at, other = one + 1, two + 1
    return tuple(_joined(found))


def _is_word(text: str) -> bool:
    return any(map(str.isalnum, text))


def _joined(found: list[tuple[str, str, str]]) -> Iterator[Piece]:
    """Pieces of neighbours; a blank or a sign alone between two differences belongs to them."""
    same = was = now = ""
    for nth, (stays, gone, come) in enumerate(found):
        lone = bool(stays) and not _is_word(stays) and (was or now) and nth + 1 < len(found) and not found[nth + 1][0]
        if stays and not lone:
            yield from _pieces("", was, now)
            same, was, now = same + stays, "", ""
        elif lone:
            was, now = was + stays, now + stays
        else:
            yield from _pieces(same, "", "")
            same, was, now = "", was + gone, now + come
    yield from _pieces(same, was, now) if same else _pieces("", was, now)


def _pieces(same: str, was: str, now: str) -> Iterator[Piece]:
    yield from (Piece(kind, text) for kind, text in ((SAME, same), (OLD, was), (NEW, now)) if text)


def inline(rows: Sequence[Row], context: int = 2) -> list[Row | Gap]:
    """The rows that differ, with some that do not round them; the others as gaps."""
    near = [False] * len(rows)
    for nth, row in enumerate(rows):
        if row.kind != SAME:
            for at in range(max(nth - context, 0), min(nth + context + 1, len(rows))):
                near[at] = True
    shown: list[Row | Gap] = []
    left_out = 0
    for row, is_near in zip(rows, near, strict=True):
        if not is_near:
            left_out += 1
            continue
        if left_out:
            shown.append(Gap(left_out))
        shown.append(row)
        left_out = 0
    return [*shown, Gap(left_out)] if left_out else shown


def side_by_side(rows: Iterable[Row | Gap]) -> Iterator[tuple[Side | None, Side | None] | Gap]:
    """The same with the old text to the left and the new text to the right; those taken away beside those put in."""
    gone: list[Side] = []
    come: list[Side] = []

    def waiting() -> Iterator[tuple[Side | None, Side | None]]:
        for nth in range(max(len(gone), len(come))):
            yield gone[nth] if nth < len(gone) else None, come[nth] if nth < len(come) else None
        gone.clear()
        come.clear()

    for row in rows:
        if isinstance(row, Gap):
            yield from waiting()
            yield row
        elif row.kind == REMOVED:
            gone.append(Side(REMOVED, row.pieces))
        elif row.kind == ADDED:
            come.append(Side(ADDED, row.pieces))
        else:
            yield from waiting()
            left = tuple(each for each in row.pieces if each.kind != NEW)
            right = tuple(each for each in row.pieces if each.kind != OLD)
            yield Side(row.kind, left), Side(row.kind, right)
    yield from waiting()


def changed_blocks(rows: Iterable[Row]) -> list[tuple[str | None, str | None]]:
    """The text of each block that differs, before and after: what an index or a pipeline of embeddings must touch."""
    return [(row.before, row.after) for row in rows if row.kind != SAME]


def counted(rows: Iterable[Row]) -> tuple[int, int]:
    """Words that were taken away, and words that were put in; signs alone are none.

    >>> counted(diff(["one two three"], ["one four three five"]))
    (1, 2)
    """
    counts = {SAME: 0, OLD: 0, NEW: 0}
    for row in rows:
        for piece in row.pieces:
            if piece.kind != SAME:
                counts[piece.kind] += sum(map(_is_word, _WORDS.findall(piece.text)))
    return counts[OLD], counts[NEW]

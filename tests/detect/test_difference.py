import time
from collections import Counter
from difflib import SequenceMatcher

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.detect import align, difference
from afresh.reading import read

MARKS = st.lists(st.integers(0, 6), max_size=12)


def differ(old: list[int], new: list[int]) -> tuple[list[int], list[int]]:
    marks = [np.array([(0, mark, 0) for mark in side], np.uint64).reshape(-1, 3) for side in (old, new)]
    gone, come = align.align(*marks)
    return gone.tolist(), come.tolist()


@given(MARKS, MARKS)
def test_what_is_left_is_the_same_sequence_on_both_sides(old: list[int], new: list[int]) -> None:
    gone, come = differ(old, new)
    one = [mark for nth, mark in enumerate(old) if nth not in gone]
    assert one == [mark for nth, mark in enumerate(new) if nth not in come]
    if old == new:
        assert not gone
        assert not come
    # What is on one side alone differs in any case.
    assert len(gone) >= sum((Counter(old) - Counter(new)).values())
    # Never more than all, and for texts without repetitions as few as can be.
    if len(set(old)) == len(old) and len(set(new)) == len(new):
        assert len(one) == longest_common(old, new)


def longest_common(old: list[int], new: list[int]) -> int:
    """The plain way, in the square of the length."""
    table = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, one in enumerate(old):
        for j, other in enumerate(new):
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@pytest.mark.parametrize("size", [0, 1, 31, 32, 511, 512, 5_000])
def test_marks_are_sorted_and_equal_ones_stay_in_order(size: int) -> None:
    rng = np.random.default_rng(size)
    for keys in (rng.integers(0, 2**64, size, np.uint64), rng.integers(0, 9, size, np.uint64) << np.uint64(50)):
        assert align.order(keys).tolist() == np.argsort(keys, kind="stable").tolist()


WORDS = st.lists(st.sampled_from(["the", "ferry", "runs", "7", "again", "on", "Sunday"]), min_size=1, max_size=8)
PARAGRAPHS = st.lists(WORDS, max_size=6)


@given(PARAGRAPHS, PARAGRAPHS)
def test_the_words_that_differ_are_counted_as_bags(old: list[list[str]], new: list[list[str]]) -> None:
    pages = [read("".join(f"<p>{' '.join(words)}" for words in side).encode()) for side in (old, new)]
    found = difference(*pages)
    sides = [
        Counter(word for nth in blocks for word in page.block(nth).split())
        for page, blocks in zip(pages, (found.old, found.new), strict=True)
    ]
    plain = (sides[0] - sides[1]) + (sides[1] - sides[0])
    assert found.spots is not None
    if len(found.spots) <= 1:
        assert found.words == sum(len(word) * count for word, count in plain.items())
    else:  # a word that went from one spot to another differs at both
        assert found.words >= sum(len(word) * count for word, count in plain.items())
    assert (found.significance() == 0.0) == (old == new)


def test_a_spot_is_a_place_and_what_stands_there_with_its_numbers_left_out() -> None:
    old = read(b"<p>Seen 7 times<p>Text<div class=ad>Tea</div><p>Price 5")
    new = read(b"<p>Seen 9 times<p>Text<div class=ad>Soap</div><p>Price five")
    spots = difference(old, new).spots
    assert spots is not None
    assert sorted((spot.sort, spot.sample, spot.whole) for spot in spots.values()) == [
        ("numbers", "Seen 9 times", True),
        ("text", "Price five", False),  # other paragraphs stay
        ("text", "Soap", True),
    ]


def test_the_presence_of_spots_is_told() -> None:
    old, new = read(b"<div class=ad>Tea</div><p>a"), read(b"<div class=ad>Tea</div><p>b")
    place = int(new.marks[0, 0])
    assert difference(old, new, [place, 12345]).present == {place}


def test_very_many_differences_are_not_told_apart() -> None:
    old, new = (read("".join(f"<p>{letter}{nth}" for nth in range(2_000)).encode()) for letter in "ab")
    found = difference(old, new)
    assert found.spots is None
    assert found.significance() == 1.0


def seconds(old: bytes, new: bytes) -> float:
    one, other = read(old), read(new)
    began = time.process_time()
    difference(one, other)
    return time.process_time() - began


@pytest.mark.parametrize(
    "line",
    [
        lambda nth, side: f"<p>{(nth * 7919 + side) % 104729} words",  # all in another order
        lambda nth, side: f"<p>{side}{nth}",  # nothing in common
        lambda nth, side: "<p>the same" if (nth + side) % 2 else "<p>another",  # repetitions, shifted
        lambda nth, side: f"<p>{nth}" if side else f"<p>{-nth}",
    ],
)
def test_comparing_takes_no_more_than_linear_time(line) -> None:  # type: ignore[no-untyped-def]
    def pages(count: int) -> tuple[bytes, bytes]:
        return tuple("".join(line(nth, side) for nth in range(count)).encode() for side in (0, 1))  # type: ignore[return-value]

    seconds(*pages(10))
    few, many = (min(seconds(*both) for _ in range(3)) for both in (pages(10_000), pages(80_000)))
    assert many < max(8 * 3 * few, 0.05), f"{few:.4f} s for 10,000 blocks, {many:.4f} s for 80,000"


def test_an_edit_is_found_where_a_plain_comparison_finds_it() -> None:
    lines = [f"line {nth}" for nth in range(50)]
    edited = [*lines[:10], "new", *lines[10:30], *lines[31:40], "another", *lines[41:]]
    gone, come = differ([hash(line) & 0xFFFF_FFFF for line in lines], [hash(line) & 0xFFFF_FFFF for line in edited])
    plain = SequenceMatcher(None, lines, edited, autojunk=False).get_opcodes()
    assert gone == [nth for kind, first, last, _, _ in plain if kind != "equal" for nth in range(first, last)]
    assert come == [nth for kind, _, _, first, last in plain if kind != "equal" for nth in range(first, last)]

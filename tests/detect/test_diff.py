"""Word diffs: what is the same, gone and new adds up to both texts, and few differences are the fewest."""

import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from afresh.detect.diff import Gap, changed_blocks, counted, diff, inline, pieces, side_by_side
from afresh.detect.matching import Effort, common
from afresh.detect.texts import blocks_of, compared
from afresh.types import Copy

LETTERS = st.lists(st.sampled_from("abc"), max_size=12)
BLOCK = st.lists(st.sampled_from(["the", "ferry", " ", "  ", "runs", ".", "7", "é", "船", "\t"]), max_size=9).map(
    "".join
)
TEXT = st.lists(BLOCK, max_size=7)


def longest_common(old: list[str], new: list[str]) -> int:
    """The plain way, in the square of the length."""
    table = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i, one in enumerate(old):
        for j, other in enumerate(new):
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@given(LETTERS, LETTERS, st.sampled_from([0, 20, 10_000]))
def test_what_stays_is_the_same_in_both_and_in_order(old: list[str], new: list[str], steps: int) -> None:
    pairs = common(old, new, Effort(steps))
    assert all(old[one] == new[other] for one, other in pairs)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))
    if steps == 10_000:
        assert len(pairs) == longest_common(old, new)


@given(TEXT, TEXT, st.sampled_from([0, 10_000]))
def test_a_diff_applied_to_the_old_text_gives_the_new_one(old: list[str], new: list[str], steps: int) -> None:
    rows = diff(old, new, Effort(steps))
    assert [row.before for row in rows if row.before is not None] == old
    assert [row.after for row in rows if row.after is not None] == new
    shown = inline(rows, context=len(rows))
    assert [row for row in shown if not isinstance(row, Gap)] == (rows if old != new else [])
    left, right = [], []
    for pair in side_by_side(rows):
        assert not isinstance(pair, Gap)
        left += ["".join(each.text for each in pair[0].pieces)] if pair[0] else []
        right += ["".join(each.text for each in pair[1].pieces)] if pair[1] else []
    assert left == old
    assert right == new
    assert (changed_blocks(rows) == []) == (old == new)


def test_words_that_differ_are_told_with_the_blanks_between_them() -> None:
    said = [(each.kind, each.text) for each in pieces("Open from 9 to 5, daily", "Open from 10 to 6, daily")]
    assert said[0] == ("same", "Open from ")
    assert "".join(text for kind, text in said if kind != "new") == "Open from 9 to 5, daily"
    kinds = [each.kind for each in pieces("price: 5 € now", "price: 7 € now")]
    assert kinds == ["same", "old", "new", "same"]


def test_unchanged_blocks_far_from_changes_are_left_out() -> None:
    old = [f"block {nth}" for nth in range(20)]
    new = [*old[:10], "something else", *old[11:]]
    shown = inline(diff(old, new), context=1)
    assert shown[0] == Gap(9)
    assert shown[-1] == Gap(8)
    assert len(shown) == 6  # two gaps, two round the change, what is gone and what is new


def test_texts_without_anything_in_common_take_no_square() -> None:
    old, new = ([f"{side} {nth} {nth * 7919 % 10_007}" for nth in range(20_000)] for side in ("one", "other"))
    began = time.process_time()
    rows = diff(old, new)
    assert sum(row.before is not None for row in rows) == 20_000
    assert time.process_time() - began < 15


def copy(body: bytes, kind: str, url: str = "https://e.org/") -> Copy:
    return Copy(url, body, kind, 0.0, 0.0)


def test_pages_text_files_results_and_bytes_each_have_their_blocks() -> None:
    assert blocks_of(copy(b"<p>One<script>x()</script><p>Two", "text/html; charset=utf-8")) == ["One", "Two"]
    assert blocks_of(copy("Größe\nzwei\n".encode("latin-1"), "text/plain; charset=ISO-8859-1")) == ["Größe", "zwei"]
    assert blocks_of(copy(b"plain", "")) == ["plain"]
    assert blocks_of(copy(b"\xff\xfe\x00\x01", "image/png")) is None
    assert blocks_of(copy(b"\xff\xd8\xff", "")) is None
    rows = b'{"columns":[],"rows":[' + b",".join(b"[%d]" % nth for nth in range(200)) + b"]}"
    assert blocks_of(copy(rows, "application/json", "sql:shop/top"))[-1] == "[199]]}"  # type: ignore[index]
    assert compared(copy(b"\0\1", "image/png"), copy(b"\0\2", "image/png")) is None
    assert compared(None, copy(b"<p>New", "text/html"))[0].kind == "added"  # type: ignore[index]


def test_a_number_is_one_word_and_signs_alone_are_none() -> None:
    for old, new, marked in (
        ("Price: 101.00 now", "Price: 89.00 now", ["101.00", "89.00"]),
        ("from $1,299.95.", "from $1,199.95.", ["$1,299.95", "$1,199.95"]),
        ("1'250,50€ a day", "1'350,50€ a day", ["1'250,50€", "1'350,50€"]),
        ("up 5% to v2.0.1", "up 6% to v2.0.1", ["5%", "6%"]),
    ):
        assert [each.text for each in pieces(old, new) if each.kind != "same"] == marked
        assert counted(diff([f"some words that stay {old}"], [f"some words that stay {new}"])) == (1, 1)
    assert counted(diff(["Open daily - 9 to 5."], ["Open daily: 9 to 5!"])) == (0, 0)
    assert [each.text for each in pieces("Open 9-5.", "Open 9-6.") if each.kind != "same"] == ["5", "6"]

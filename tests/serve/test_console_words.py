"""How the console words lengths of time and axes, and what a difference leaves out."""

import time

import pytest

from afresh.cli.looking import _shown
from afresh.detect.diff import inline
from afresh.detect.texts import compared
from afresh.serve.console.charts import charts_of
from afresh.serve.console.wording import lasting, moment
from afresh.store.figures import Figures
from afresh.types import Copy


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "0 s"),
        (59.9, "59 s"),
        (60.4, "1 min"),
        (295.2, "4 min 55 s"),
        (599.9, "9 min 59 s"),
        (601.0, "10 min"),
        (3_599.0, "59 min"),
        (7_320.0, "2 h 2 min"),
        (86_400.0 * 2 + 3_600.0 * 5, "2 d 5 h"),
        (86_400.0 * 364, "364 d"),
    ],
)
def test_lengths_are_whole_numbers_and_never_say_more_than_passed(seconds: float, words: str) -> None:
    assert lasting(seconds) == words


def test_a_moment_is_worded_from_now() -> None:
    assert ">4 min 55 s ago<" in moment(time.time() - 295.5)


@pytest.mark.parametrize("span", [30.0, 90.0, 3_600.0, 86_400.0, 7 * 86_400.0])
def test_no_axis_says_the_same_twice(span: float) -> None:
    end = 1_795_000_000.0
    rows = [Figures(end - span + nth * span / 10, 0.9, None, None, 5.0, 1.5, 9, 3, 1, 0) for nth in range(10)]
    axis = charts_of(rows, end - 7 * 86_400.0, end)["axis"]
    assert len(set(axis)) == 3, axis


@pytest.mark.parametrize(("blocks", "kinds"), [(5, ["changed", *["same"] * 5, "changed"]), (6, None)])
def test_a_single_block_that_is_left_out_is_shown_instead_of_a_gap(blocks: int, kinds: list[str] | None) -> None:
    middle = "".join(f"<p>block {nth} stays as it was</p>" for nth in range(blocks))
    old, new = (
        Copy(
            "http://a.example/",
            f"<p>one {word} three</p>{middle}<p>four {word} six</p>".encode(),
            "text/html",
            0.0,
            0.0,
        )
        for word in ("old", "new")
    )
    rows = compared(old, new)
    assert rows is not None
    shown = _shown(rows, inline(rows))
    if kinds is None:
        assert [each["rows"] for each in shown if each["kind"] == "gap"] == [2]
    else:
        assert [each["kind"] for each in shown] == kinds
        assert all(f"block {nth} stays" in str(shown[1 + nth]["pieces"]) for nth in range(blocks))

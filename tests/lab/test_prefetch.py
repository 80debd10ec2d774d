"""`afresh lab prefetch`: sessions out of every kind of file, and the curves of the models."""

import gzip
import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from afresh.errors import InputError
from afresh.lab.prefetch import compare_orders, measure
from afresh.lab.sessions import Sessions, read_sessions


def as_lists(sessions: Sessions) -> list[list[int]]:
    return [sessions.pages[a:b].tolist() for a, b in zip(sessions.offsets, sessions.offsets[1:], strict=False)]


def log_line(client: str, second: int, path: str, status: int = 200, size: str = "500", agent: str = "x") -> str:
    moment = f"10/Oct/2025:{13 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02} +0000"
    return f'{client} - - [{moment}] "GET {path} HTTP/1.1" {status} {size} "-" "{agent}"'


def test_an_access_log(tmp_path: Path) -> None:
    log = tmp_path / "access.log.gz"
    lines = [
        log_line("1.1.1.1", 0, "/a", size="1000"),
        log_line("1.1.1.1", 1, "/style.css?v=2"),
        log_line("2.2.2.2", 2, "/b", agent="y"),
        log_line("1.1.1.1", 9, "/b", size="3000"),
        log_line("1.1.1.1", 9, "/gone", status=404),
        log_line("1.1.1.1", 12, "/a", size="1000", agent="other"),  # the same address, another reader
        log_line("2.2.2.2", 30, "/c", size="-", agent="y"),
        log_line("1.1.1.1", 9 + 1801, "/c", size="-"),  # long after
    ]
    with gzip.open(log, "wt") as file:
        file.write("\n".join(lines))
    sessions = read_sessions(log)
    assert as_lists(sessions) == [[0, 1], [1, 2], [0], [2]]
    assert sessions.dwells.tolist() == [-1.0, 9.0, -1.0, 28.0, -1.0, -1.0]
    assert sessions.sizes is not None
    assert sessions.sizes.tolist() == [1000.0, 3000.0, 2000.0]  # of the last, the mean of all
    assert (len(sessions), sessions.moves, sessions.count, sessions.skipped) == (4, 2, 3, 2)


def test_lines_of_sessions_and_rows_of_numbers(tmp_path: Path) -> None:
    lines, rows = tmp_path / "sessions.tsv", tmp_path / "day.seq.xz"
    lines.write_text("s1\t/a\ns2\t/b\ns1\t/c\n# a note\ns2\t/a\n")
    with lzma.open(rows, "wt") as file:
        file.write("% a heading\n\nfrontpage news\n\n1 1 2\n7\n2 1\n")
    assert as_lists(read_sessions(lines)) == [[0, 2], [1, 0]]
    assert as_lists(read_sessions(rows)) == [[0, 0, 1], [2], [1, 0]]


def test_arrays_with_links_and_clicks_on_back(tmp_path: Path) -> None:
    path = tmp_path / "sessions.npz"
    np.savez(
        path,
        pages=np.array([5, 6, -1, 7, 6, 5]),
        offsets=np.array([0, 4, 6]),
        session_ts=np.array([20, 10]),
        links=np.array([[5, 6], [5, 9]]),
    )
    sessions = read_sessions(path)
    assert as_lists(sessions) == [[1, 0], [0, 1, 0, 2]]  # in the order of time; back shows the page before again
    assert sessions.links == {0: [1, 3]}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.log", None, "There is no file"),
        ("empty.log", "", "no session of two pages"),
        ("strange.log", "what is this\n", "1 of 1 lines of .*: line 1 is neither"),
        ("late.log", 'x - - [10/Foo/2025:13:00:00 +0000] "GET /a HTTP/1.1" 200 5\n', "line 1 .* time"),
        ("bad.seq", "1 2\nand then\nagain\n", "2 of 3 lines .*: line 2 .* page numbers"),
        ("binary.log", "\t\0\r\n" * 3, "3 of 3 lines .*: line 1 is neither"),
        ("endless.log", "x\n" * 5000 + log_line("1.1.1.1", 0, "/") * 9000, "1,001 of 1,001 lines"),
        ("bad.npz", "no archive", "cannot be read"),
        ("bad.xz", "no archive", "cannot be read"),
        ("long.tsv", "s\t" + "x" * (1 << 20), "line 1 is too long"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, name: str, content: str | None, said: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=said):
        read_sessions(path)


@pytest.mark.parametrize("name", ["access.log", "sessions.tsv", "some.seq"])
def test_lines_that_cannot_be_read_are_left_out_and_counted(tmp_path: Path, name: str) -> None:
    good = {
        "access.log": [log_line("1.1.1.1", at, f"/{at}") for at in range(4)],
        "sessions.tsv": ["a\t/0", "a\t/1", "b\t/0", "a\t/2"],
        "some.seq": ["0 1", "1 2", "3", "0 2"],
    }[name]
    lines = [each.rstrip("\n").encode() for each in good]
    lines[2:2] = [b"\0\xff" * 50, b"x" * ((1 << 20) + 5), b"GET / HTTP/1.1"]
    (tmp_path / name).write_bytes(b"\n".join(lines))
    sessions = read_sessions(tmp_path / name)
    assert (sessions.unread, sessions.first_unread.split(" is ")[0]) == (3, "line 3")
    assert len(sessions.pages) == sum(len(each.split()) if name == "some.seq" else 1 for each in good)


@pytest.mark.parametrize(
    "arrays",
    [
        {"pages": [1, 2]},
        {"pages": [1, 2], "offsets": [0, 3]},
        {"pages": [1, 2], "offsets": [1, 2]},
        {"pages": [1.5, 2.0], "offsets": [0, 2]},
        {"pages": [1, -7], "offsets": [0, 2]},
        {"pages": [1, 2**40], "offsets": [0, 2]},
        {"pages": [1, 2], "offsets": [0, 2], "links": [[1, 2, 3]]},
    ],
)
def test_arrays_that_are_no_sessions_are_refused(tmp_path: Path, arrays: dict[str, list]) -> None:
    np.savez(tmp_path / "x.npz", **{name: np.array(values) for name, values in arrays.items()})
    with pytest.raises(InputError):
        read_sessions(tmp_path / "x.npz")


@pytest.fixture(scope="module")
def wandering(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sessions in which the next page depends on the last two, and sometimes on nothing."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("log") / "sessions.tsv"
    with path.open("w") as file:
        for session in range(600):
            before, here = int(rng.integers(6)), int(rng.integers(6))
            for _ in range(6):
                file.write(f"{session}\t{here}\n")
                before, here = here, int(rng.integers(6)) if rng.random() < 0.3 else (2 * before + here) % 6
    return path


def test_the_curves(wandering: Path) -> None:
    sessions = read_sessions(wandering)
    rows = {(row.model, row.prefetched): row for row in measure(sessions, memory=8 << 20)}
    assert {row.transitions for row in rows.values()} == {300}
    assert {row.sessions for row in rows.values()} == {60}
    assert not any(model == "links" for model, _ in rows)  # none are known
    for model in ("markov-1", "markov-2", "network", "mixture", "uniform"):
        curve = [row.hit for (name, _), row in rows.items() if name == model]
        assert curve == sorted(curve)
        assert curve[-1] == 1.0  # there are six pages
    assert [rows["uniform", count].hit for count in (1, 3, 7)] == pytest.approx([1 / 6, 1 / 2, 1.0])
    assert rows["uniform", 3].saved_ms_per_kb == pytest.approx(rows["uniform", 1].saved_ms_per_kb)
    assert rows["mixture", 1].hit > 0.6 > 0.5 > rows["markov-1", 1].hit
    assert rows["mixture", 1].hit >= rows["markov-2", 1].hit - 0.02
    # Six pages of 30 kB each, 0.2 s and 0.03 s of waiting: what one page saves is its hits times that.
    assert rows["mixture", 1].saved_ms_per_kb == pytest.approx(rows["mixture", 1].hit * 230 / 30)
    assert compare_orders(sessions) is None


def test_orders_are_compared_with_the_best_for_the_idle_times_of_a_log(tmp_path: Path) -> None:
    log, rng, lines, now = tmp_path / "access.log", np.random.default_rng(0), list[str](), 0
    for _ in range(40):
        lines.append(log_line("1.1.1.1", now, f"/{rng.integers(9)}"))
        now += int(rng.integers(5, 100))
    log.write_text("\n".join(lines))
    orders = compare_orders(read_sessions(log), drawn=10)
    assert orders is not None
    assert 0.5 < orders.worst_slices <= orders.slices <= 1.0
    assert orders.slices < orders.envelope <= 1.0 + 1e-9


def test_the_command(wandering: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from afresh.cli.lab_prefetch import prefetch

    rows, picture = tmp_path / "rows.json", tmp_path / "curves.svg"
    prefetch(wandering, memory="8MiB", json=rows, plot=picture)
    written = json.loads(rows.read_text())
    assert set(written[0]) == {"model", "prefetched", "hit", "sessions", "transitions", "saved_ms_per_kb"}
    assert picture.read_text().startswith("<?xml")
    shown = capsys.readouterr().out
    assert "600 sessions, 3,000 moves, 6 pages" in shown
    assert max(map(len, shown.splitlines())) <= 80

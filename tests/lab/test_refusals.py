"""The lab with absurd options, absurd files, and stopped half-way: one sentence, nothing half-written, nobody left."""

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from afresh.cli import main
from afresh.errors import InputError
from afresh.lab import files
from afresh.lab.files import read_addresses, read_history, read_requests

DAY = 86400.0


def history_in(folder: Path, pages: int = 20, days: int = 100) -> Path:
    rng = np.random.default_rng(1)
    page = np.repeat(np.arange(pages), 30)
    path = folder / "some.npz"
    np.savez(path, ts=np.sort(rng.uniform(0.0, days * DAY, len(page))), page=rng.permutation(page))
    return path


def said(words: tuple[object, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command that is refused says on standard error."""
    monkeypatch.setattr(sys, "argv", ["afresh", "lab", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    err = capsys.readouterr().err
    assert stop.value.code == 2, err
    assert "Traceback" not in err
    assert len(err.splitlines()) == 2  # a sentence and a hint
    return err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("replay", "FILE", "--every", "0s"), "No page can be visited every 0s."),
        (("contest", "FILE", "--every", "6h,0s"), "No page can be visited every 0s."),
        (("compare", "--every", "0s"), "No page can be visited every 0s."),
        (("replay", "FILE", "--signals", "0.5,1e-300,1h"), "A precision of 1e-300 is 1e+300 signals"),
        (("compare", "--signals", "0.5,1e-300,1h"), "A precision of 1e-300 is 1e+300 signals"),
        (("replay", "FILE", "--every", "1ms"), "visits for each policy, more than 1,000,000,000."),
        (("contest", "FILE", "--every", "1ms"), "visits for each policy, more than 1,000,000,000."),
        (("compare", "--every", "1ms"), "visits for each policy, more than 1,000,000,000."),
        (("compare", "--pages", "1000000", "--changes", "0.001"), "changes, more than 50,000,000."),
        (("compare", "--spread", "40"), "changes, more than 50,000,000."),
        (("replay", "FILE", "--plot", "missing/picture.png"), "there is no folder missing"),
        (("run", "fig2", "--plot", "missing/picture.png"), "there is no folder missing"),
        (("replay", "FILE", "--json", "missing/rows.json"), "cannot be written"),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_work(
    words: tuple[str, ...],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    history = history_in(tmp_path)
    assert complaint in said(tuple(str(history) if word == "FILE" else word for word in words), monkeypatch, capsys)


def test_a_history_that_reaches_into_the_far_future_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "far.csv"
    path.write_text("a,0\nb,1e15\n")
    assert "more than 1,000,000,000" in said(("replay", path, "--every", "1s"), monkeypatch, capsys)


def test_a_line_without_end_and_too_many_rows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = tmp_path / "endless.csv.gz"
    with gzip.open(endless, "wt") as file:
        file.write("a," + "1" * (2 * files.MAX_LINE_CHARACTERS))
    for read in (read_history, read_addresses, lambda path: read_requests(path, 0.0)):
        with pytest.raises(InputError, match="a line of more than"):
            read(endless)
    monkeypatch.setattr(files, "MAX_EVENTS", 10)
    many = tmp_path / "many.csv"
    many.write_text("".join(f"a,{second}\n" for second in range(11)))
    with pytest.raises(InputError, match="more than 10 rows"):
        read_history(many)


def test_an_absurd_weight_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "requests.csv"
    path.write_text("a,1\nb,1e300\n")
    with pytest.raises(InputError, match="line 2: '1e300' is not a weight"):
        read_requests(path, 0.0)


def test_a_contest_without_our_schedule_shows_what_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--policy", "uniform,heritrix", "--visits", "5", "--weights", "equal", "--jobs", "1")
    monkeypatch.setattr(sys, "argv", ["afresh", "lab", "contest", str(history_in(tmp_path)), *options])
    with pytest.raises(SystemExit) as stop:
        main()
    out = capsys.readouterr().out
    assert not stop.value.code
    assert "uniform" in out
    assert "heritrix" in out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_half_way_it_leaves_neither_workers_nor_half_a_file(tmp_path: Path, number: int, code: int) -> None:
    history, rows = history_in(tmp_path, pages=2000, days=1000), tmp_path / "rows.json"
    rows.write_text("kept")
    words = ["lab", "contest", str(history), "--visits", "200,300,400", "--jobs", "2", "--json", str(rows)]
    command = [sys.executable, "-c", "from afresh.cli import main; main()", *words]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while len(children := _children(running.pid)) < 3 and time.monotonic() < deadline and running.poll() is None:
        time.sleep(0.05)
    time.sleep(1.0)
    assert running.poll() is None
    if number == signal.SIGINT:
        os.killpg(running.pid, number)  # as a terminal does
    else:
        running.send_signal(number)
    _, err = running.communicate(timeout=60)
    assert running.returncode == code, err
    assert "Traceback" not in err
    assert "Stopped; no result was written." in err
    assert rows.read_text() == "kept"
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [child for child in children if Path(f"/proc/{child}").exists()]


def _children(parent: int) -> list[int]:
    found = Path(f"/proc/{parent}/task/{parent}/children")
    try:
        return [int(each) for each in found.read_text().split()]
    except OSError:
        return []

"""`afresh requests`: request rates from access logs and from reports of others."""

import gzip
import json
import os
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from afresh.store import Sqlite
from afresh.store.messages import evidence
from afresh.types import Page, Request
from command_line import COMMAND

SITE = "https://example.com"


def call(folder: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "requests", *words], cwd=folder, input=stdin, capture_output=True, text=True, timeout=60, check=False
    )


def line(path: str, ago: float = 0.0) -> str:
    when = datetime.now(UTC) - timedelta(seconds=ago)
    return f'10.0.0.1 - - [{when.strftime("%d/%b/%Y:%H:%M:%S +0000")}] "GET {path} HTTP/1.1" 200 5 "-" "x"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Sqlite(tmp_path / "afresh.db") as store:
        store.add([Page(f"{SITE}/{name}", "example.com", added=0.0) for name in "abc"])
    return tmp_path


def waiting(folder: Path) -> list[Request]:
    with Sqlite(folder / "afresh.db", create=False) as store:
        entries = [entry for entry in store.inbox() if entry.kind == "requests"]
        return [each for entry in entries for each in evidence(entry)[0] if isinstance(each, Request)]


def test_logs_become_counts_and_the_same_log_counts_once(folder: Path) -> None:
    text = line("/a", 7200) * 30 + line("/b", 7200) + "garbage\n" + line("/elsewhere") + line("/a", 86400) * 5
    (folder / "access.log").write_text(text)
    with gzip.open(folder / "access.log.1.gz", "wt") as file:
        file.write(line("/c", 90000))
    said = call(folder, "access.log", "access.log.1.gz", "--site", SITE)
    assert said.returncode == 0, said
    assert "37 requests for 3 pages from" in said.stdout
    assert "1 request for pages that are not kept." in said.stdout
    assert "access.log, line 32: it is neither" in said.stderr
    counts: dict[str, float] = {}
    for each in waiting(folder):
        counts[each.url] = counts.get(each.url, 0.0) + each.count
    assert counts == {f"{SITE}/a": 35.0, f"{SITE}/b": 1.0, f"{SITE}/c": 1.0}
    assert len(waiting(folder)) == 4, "by page and hour"
    assert "counted before" in call(folder, "access.log", "--site", SITE).stdout
    assert len(waiting(folder)) == 4
    with Sqlite(folder / "afresh.db", create=False) as store:
        assert float(store.get("requests since") or 0) == pytest.approx(time.time() - 90000, abs=60)


def test_counts_from_standard_input_and_as_json(folder: Path) -> None:
    said = call(folder, "-", "--json", "--over", "10d", stdin=f"page,count\n{SITE}/a,100\n{SITE}/b,x\n")
    assert json.loads(said.stdout) == {
        "requests": 100.0,
        "pages": 1,
        "not_kept": 0.0,
        "bad_lines": 1,
        "lines": 3,
        "new": True,
        "skipped": {},
        "taken": False,
    }


def until_open(process: int, file: Path) -> None:
    """Wait until a process has a file open, and has had a moment to go to its end."""
    deadline = time.monotonic() + 60
    while not any(os.path.realpath(each) == str(file) for each in Path(f"/proc/{process}/fd").iterdir()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.5)


def test_a_log_is_followed_through_its_rotation(folder: Path) -> None:
    log = folder / "access.log"
    log.write_text(line("/c") * 9)  # what is there already was counted by others
    process = subprocess.Popen(
        [*COMMAND, "requests", "access.log", "--follow", "--site", SITE],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def until(count: float) -> None:
        deadline = time.monotonic() + 60
        while sum(each.count for each in waiting(folder)) < count:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    try:
        until_open(process.pid, log)
        with log.open("a") as file:
            file.write(line("/a") * 3 + line("/b")[:20])
            file.flush()
            until(3.0)
            file.write(line("/b")[20:])
        until(4.0)
        log.rename(folder / "access.log.1")
        log.write_text(line("/b") * 2)
        until(6.0)
        process.send_signal(signal.SIGINT)
        said, problems = process.communicate(timeout=60)
    finally:
        process.kill()
    assert "6 requests for 2 pages" in said, (said, problems)
    assert not problems


def test_a_report_of_others_is_a_prior(folder: Path) -> None:
    (folder / "report.csv").write_text(f"page,rank\n{SITE}/a,1\n{SITE}/b,10\nwhat\n")
    said = call(folder, "--prior", "report.csv")
    assert said.stdout == "2 of 3 pages are named by report.csv. 1 line could not be read, the first is line 4.\n"
    with Sqlite(folder / "afresh.db", create=False) as store:
        given = [state.page.popularity for _, state in store.states()]
    assert [each is not None and round(each, 3) for each in given] == [2.5, 0.25, 0.25]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "There is nothing to read."),
        (["missing.log"], "There is no file missing.log."),
        (["bad.log"], "No line could be read."),
        (["bad.gz"], "cannot be read"),
        (["bomb.gz"], "unpacks to more than"),
        (["bad.log", "--site", "example.com"], "is not the address of a site"),
        (["a", "b", "--follow"], "Only one file can be followed."),
        (["--prior", "bad.log"], "is no popularity report"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(folder: Path, words: list[str], sentence: str) -> None:
    (folder / "bad.log").write_text("nothing\nat all\n")
    (folder / "bad.gz").write_bytes(b"\x1f\x8b\x08nonsense")
    with gzip.open(folder / "bomb.gz", "wb") as file:
        file.write(bytes(30_000_000))
    said = call(folder, *words)
    assert (said.returncode, sentence in said.stderr) == (2, True), said

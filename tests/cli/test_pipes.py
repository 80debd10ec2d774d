"""Output that nobody reads to its end, or that cannot be written: a quiet end, the usual exit code, nothing lost."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from afresh.cli.output import Output
from afresh.store import PageState, Sqlite
from afresh.testing.store_model import page, record
from afresh.types import Outcome
from command_line import COMMAND, SETTINGS, synthetic_web

full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "afresh.db"
    with Sqlite(path) as kept:
        pages = [page(nth) for nth in range(3000)]
        kept.add(pages)
        kept.write([record(PageState(each), Outcome.NEW, 1.0, b"x" * 100_000) for each in pages[:10]])
        kept.write([record(PageState(each), Outcome.NEW, 1.0, b"hello") for each in pages[10:]])
    return path


WORDS = [
    ("changes",),
    ("hosts",),
    ("hosts", "--json"),
    ("status",),
    ("status", "--json"),
    ("show", page(0).url),
    ("show", page(0).url, "--json"),
    ("show", page(0).url, "--body"),
    ("add", "http://new.example/", "--json"),
    ("--help",),
]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_a_reader_that_leaves_ends_it_quietly(store: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run([*COMMAND, *words], cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, timeout=60)
    os.close(writing)
    assert process.stderr == b""
    assert process.returncode == -signal.SIGPIPE
    if words[0] == "add":
        with Sqlite(store) as kept:
            assert kept.state("http://new.example/") is not None


def test_the_first_line_is_all_that_head_wants(store: Path, tmp_path: Path) -> None:
    command = " ".join(f"'{word}'" for word in COMMAND)
    line = f"{command} changes | head -n 1; echo ${{PIPESTATUS[0]}}"
    process = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    first, code = process.stdout.splitlines()
    assert json.loads(first)["number"] == 1
    assert (code, process.stderr) == ("141", "")


@full
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_a_full_disk_behind_standard_output_is_one_sentence(
    store: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    with Path("/dev/full").open("wb") as nowhere:
        process = subprocess.run([*COMMAND, *words], cwd=tmp_path, stdout=nowhere, stderr=subprocess.PIPE, timeout=60)
    assert process.stderr.decode() == "afresh: Standard output cannot be written: No space left on device.\n"
    assert process.returncode == 1


@full
@pytest.mark.parametrize("kind", ["--jsonl", "--warc"])
def test_an_export_to_a_full_disk_is_one_sentence(store: Path, tmp_path: Path, kind: str) -> None:
    process = subprocess.run([*COMMAND, "export", kind, "/dev/full"], cwd=tmp_path, capture_output=True, timeout=60)
    assert process.stderr.decode().startswith("afresh: /dev/full cannot be written: No space left on device.")
    assert process.returncode == 2


@pytest.mark.parametrize("where", ["a pipe", "/dev/full"])
def test_a_run_whose_output_cannot_be_written_stores_what_it_has(tmp_path: Path, where: str) -> None:
    if where == "/dev/full" and not Path(where).exists():
        pytest.skip("there is no /dev/full here")
    (tmp_path / "afresh.toml").write_text(SETTINGS)
    with synthetic_web(pages=50, hosts=10, day=20.0) as server:
        urls = [server.site.url(nth, server.port) for nth in range(50)]
        subprocess.run([*COMMAND, "add", *urls], cwd=tmp_path, check=True, capture_output=True, timeout=60)
        command = [*COMMAND, "run", "--json", "--seconds", "60s"]
        if where == "a pipe":
            process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(5)]
            process.stdout.close()
        else:
            with Path(where).open("wb") as nowhere:
                process = subprocess.Popen(command, cwd=tmp_path, stdout=nowhere, stderr=subprocess.PIPE)
            lines = []
        assert process.stderr is not None
        said = process.stderr.read().decode()
        code = process.wait(60)
        process.stderr.close()
    assert "Traceback" not in said
    assert "Stopped." in said
    assert code == (-signal.SIGPIPE if where == "a pipe" else 1)
    with Sqlite(tmp_path / "afresh.db") as kept:
        assert list(kept.problems()) == []
        stored = {(crawl.url, crawl.time) for url in urls for crawl in kept.history(url)}
    assert stored
    assert {(line["url"], line["time"]) for line in map(json.loads, lines)} <= stored


def test_a_pipe_that_nobody_reads_does_not_hold_up_the_crawl(tmp_path: Path) -> None:
    """Lines beyond the bound are dropped and counted; the crawl goes on at its budget, and ends as it should."""
    (tmp_path / "afresh.toml").write_text(SETTINGS)
    with synthetic_web(pages=200, hosts=50, seed=5, day=10.0) as server:
        (tmp_path / "urls.txt").write_text("\n".join(server.urls()))
        assert subprocess.run([*COMMAND, "add", "--file", "urls.txt"], cwd=tmp_path, stdout=subprocess.DEVNULL)
        reading, writing = os.pipe()
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
        code = "import afresh.cli.output as o; o.MAX_WAITING = 50; from afresh.cli import main; main()"
        command = [sys.executable, "-c", code, "run", "--json", "--seconds", "6s"]
        process = subprocess.run(command, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=90)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            read = pipe.read().splitlines()
    assert process.returncode == 0, process.stderr
    with Sqlite(tmp_path / "afresh.db") as kept:
        crawls = kept.totals().crawls
    assert crawls > 3 * len(read) + 200
    assert process.stderr.count("Nobody reads standard output") == 1
    dropped = int(re.search(r"([\d,]+) lines of standard output were dropped", process.stderr)[1].replace(",", ""))  # type: ignore[index]
    whole = [line for line in read if line.endswith("}")]
    assert len(whole) <= crawls - dropped + 256, "what was being written when it ended counts as dropped"
    assert whole
    assert all(json.loads(line)["url"] for line in whole)


def test_lines_come_out_whole_and_in_order() -> None:
    reading, writing = os.pipe()
    output = Output(lambda error: None, handle=writing)
    os.close(writing)
    sent = [f"{nth} ä\udc80" for nth in range(5000)]
    with os.fdopen(reading, encoding="utf-8") as pipe:
        got: list[str] = []
        reader = threading.Thread(target=lambda: got.extend(pipe.read().splitlines()))
        reader.start()
        assert all(output.write(line) for line in sent)
        assert output.close() == 0
        reader.join(10)
    assert got == [f"{nth} ä\\udc80" for nth in range(5000)]

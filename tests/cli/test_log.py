"""The log: one line an event whatever it holds, no secrets, and nothing that happens to it stops a crawl."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from afresh.cli.faults import Faults
from afresh.cli.hangup import Hangup
from afresh.cli.log import MAX_WAITING, Log, write_to
from afresh.cli.log_lines import MAX_TRACE, line, redacted
from afresh.daemon import Stored
from afresh.errors import ConfigError
from afresh.frontier import host_of
from afresh.store import Sqlite
from afresh.types import Crawl, Outcome, Page
from command_line import COMMAND, SETTINGS, synthetic_web

NASTY = 'x\n2026-01-01T00:00:00.000Z crawl url=http://fake/\r\x1b[31m\u2028\u202e" \udc80\0'


def wait_for(reached: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("as_json", [False, True])
def test_nothing_in_a_value_begins_a_line_or_steers_a_terminal(tmp_path: Path, as_json: bool) -> None:
    log = Log(str(tmp_path / "log"), as_json=as_json, clock=lambda: 0.0)
    crawl = Crawl("http://h/" + NASTY, 1.0, Outcome.FAILED, reason=NASTY)
    write_to(log, Stored((crawl,) * 3))
    log.write("fault", {"trace": NASTY, "message": NASTY})
    log.close()
    content = (tmp_path / "log").read_bytes()
    assert content.count(b"\n") == 4
    assert all(32 <= byte < 127 or byte == 10 for byte in content)
    for text in content.decode().splitlines():
        assert text.startswith('{"time": "1970-' if as_json else "1970-01-01T00:00:00.000Z ")
        if as_json:
            json.loads(text)
    assert json.loads(line(0.0, "crawl", {"url": NASTY}, as_json=True))["url"] == NASTY, "and nothing is lost"


def test_no_secret_reaches_a_line() -> None:
    hidden = {
        "http://me:S3CRET@h.example/": "http://***@h.example/",
        "see https://S3CRET@h/ and //a:S3CRET@b/": "see https://***@h/ and //***@b/",
        "http://h/?a=1&access_token=S3CRET&b=2": "http://h/?a=1&access_token=***&b=2",
        "http://h/?to%6ben=S3CRET": "http://h/?to%6ben=***",
        "http://h/?X-Amz-Signature=S3CRET#x": "http://h/?X-Amz-Signature=***#x",
        "http://h/p;jsessionid=S3CRET?key=S3CRET": "http://h/p;jsessionid=***",
        "http://h/?apiKey=S3CRET&PASSWORD=S3CRET": "http://h/?apiKey=***&PASSWORD=***",
        "Authorization: Bearer S3CRETS3CRET": "Authorization: Bearer ***",
        "http://h/?keyword=python&author=me&monkey=1": "http://h/?keyword=python&author=me&monkey=1",
    }
    for text, shown in hidden.items():
        assert redacted(text) == shown
        for as_json in (False, True):
            assert "S3CRET" not in line(0.0, "fault", {"message": text, "trace": text}, as_json=as_json)
    cut = "x" * (MAX_TRACE - 10) + " http://me:S3CRET@h/"
    assert "S3CRET" not in line(0.0, "fault", {"trace": cut, "url": cut}, as_json=False)


@pytest.mark.parametrize("kind", ["folder", "no folder", "pipe", "store"])
def test_what_cannot_be_a_log_is_refused_before_anything_begins(afresh: Any, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "log"
    if kind == "folder":
        target.mkdir()
    elif kind == "no folder":
        target = tmp_path / "nowhere" / "log"
    elif kind == "pipe":
        os.mkfifo(target)
    else:
        Sqlite(target).close()
    before = target.read_bytes() if kind == "store" else b""
    with pytest.raises(ConfigError, match="log"):
        Log(str(target))
    if kind == "folder":  # the others take the same way
        result = afresh("run", "--log", str(target))
        assert (result.returncode, len(result.stderr.splitlines())) == (2, 2)
    assert kind != "store" or target.read_bytes() == before


def test_options_that_contradict_each_other_are_refused(afresh: Any) -> None:
    assert afresh("run", "--log", "-", "--json").returncode == 2
    assert "plain or json" in afresh("run", "--log", "x", "--log-format", "xml").stderr


def test_a_log_is_opened_again_after_outside_tools_moved_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log, hangup = Log(str(path)), Hangup()
    log.write("one", {})
    wait_for(lambda: b"one" in path.read_bytes())
    path.rename(tmp_path / "log.1")
    log.write("two", {})
    wait_for(lambda: b"two" in (tmp_path / "log.1").read_bytes())

    async def go() -> None:
        faults = Faults(log)
        faults.listen(asyncio.get_running_loop())
        hangup.add(lambda: 1 / 0)
        hangup.add(log.reopen)
        hangup.listen(asyncio.get_running_loop())
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0.1)
        assert faults.faults == 1, "a fault in one action is told, and stops no other"

    asyncio.run(go())
    log.write("three", {})
    log.close()
    assert b"three" in path.read_bytes()
    assert b"two" not in path.read_bytes()
    assert b"ZeroDivisionError" in path.read_bytes()


def test_lines_that_cannot_be_written_are_counted_and_told_of(tmp_path: Path) -> None:
    full = Log("/dev/full")
    for _ in range(10):
        full.write("event", {})
    full.close()
    assert full.lost == 10
    folder = tmp_path / "folder"
    folder.mkdir()
    log = Log(str(folder / "log"))
    (folder / "log").unlink()
    folder.rmdir()
    log.write("lost", {})
    wait_for(lambda: log.lost == 1)
    folder.mkdir()
    log.reopen()
    log.write("found", {})
    log.close()
    lines = (folder / "log").read_text().splitlines()
    assert ["lost lines=1" in lines[0], lines[1].endswith("found"), len(lines)] == [True, True, 2]


def test_a_pipe_that_nobody_empties_holds_nothing_up_and_one_that_was_closed_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    log = Log(str(path))
    began = time.monotonic()
    for _ in range(3 * MAX_WAITING):
        log.write("event", {"text": "x" * 100})
    assert log.lost > MAX_WAITING
    assert time.monotonic() - began < 5.0
    os.close(reader)  # ends the write that waits
    wait_for(lambda: not log._waiting)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    log.reopen()
    log.write("again", {})
    log.close()
    text = os.read(reader, 1 << 16).decode()
    os.close(reader)
    assert "lost lines=" in text
    assert text.splitlines()[-1].endswith("again")


def test_faults_and_warnings_wait_for_the_end_of_the_display(capsys: pytest.CaptureFixture[str]) -> None:
    async def go(faults: Faults) -> None:
        faults.listen(asyncio.get_running_loop())
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        logging.getLogger("afresh.store").warning("A copy is damaged.")
        await asyncio.sleep(0.01)
        assert capsys.readouterr() == ("", "")

    with Faults(None) as faults:
        asyncio.run(go(faults))
    faults.tell()
    shown = capsys.readouterr().err
    assert "1 fault in afresh itself" in shown
    assert "ZeroDivisionError" in shown
    assert "test_log.py" in shown
    assert "1 warning: A copy is damaged." in shown


def test_a_run_writes_its_log_through_rotation_and_a_closed_pipe_does_not_stop_it(tmp_path: Path) -> None:
    with synthetic_web(pages=40, hosts=20, seed=5, day=5.0) as server:
        (tmp_path / "afresh.toml").write_text(SETTINGS)
        with Sqlite(tmp_path / "afresh.db") as store:
            store.add(Page(url, host_of(url)) for url in server.urls())
        log = tmp_path / "log"
        process = subprocess.Popen(
            [*COMMAND, "run", "--log", str(log), "--log-format", "json"],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for(lambda: log.exists() and b'"crawl"' in log.read_bytes(), 60.0)
            log.rename(tmp_path / "log.1")
            process.send_signal(signal.SIGHUP)
            wait_for(lambda: log.exists() and b'"crawl"' in log.read_bytes())
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        assert process.returncode == 0
        events = [json.loads(each)["event"] for each in (tmp_path / "log.1").read_text().splitlines()]
        assert events[0] == "started"
        assert json.loads(log.read_text().splitlines()[-1])["event"] == "stopped"
        with Sqlite(tmp_path / "afresh.db", create=False) as store:
            crawls = store.totals().crawls
        whole = (tmp_path / "log.1").read_text() + log.read_text()
        assert whole.count('"event": "crawl"') == crawls, "every crawl has one line, across the rotation"

        command = [*COMMAND, "run", "--log", "-", "--seconds", "3s"]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reading:
            assert reading.stdout is not None
            assert reading.stderr is not None
            assert b" started pages=40" in reading.stdout.readline()
            reading.stdout.close()
            errors = reading.stderr.read()
        assert reading.returncode == 0, errors
        assert b"Stopped." in errors
        assert b"lines of the log could not be written" in errors
        with Sqlite(tmp_path / "afresh.db", create=False) as store:
            assert store.totals().crawls > crawls


def test_what_became_of_a_request_is_logged_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from afresh.cli.faults import Faults
    from afresh.cli.log import Log

    log = Log(str(tmp_path / "log"), as_json=False)
    faults = Faults(log)
    faults.say("done")
    faults.say("The settings stay as they are: no.", refused=True)
    log.close()
    assert capsys.readouterr().err == "done\nThe settings stay as they are: no.\n"
    assert "done" in (tmp_path / "log").read_text()
    assert "stay as they are" in (tmp_path / "log").read_text()

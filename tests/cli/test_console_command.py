"""`afresh console` as a process: where it is, what it refuses, and that it never outlives the runner that began it."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from afresh.cli.console import Beside
from afresh.config import load
from afresh.store import Sqlite
from afresh.types import Page

COMMAND = [sys.executable, "-m", "afresh", "console"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Sqlite(tmp_path / "afresh.db") as store:
        store.add([Page("https://example.org/", "example.org")])
    return tmp_path


def test_it_says_where_it_is_and_ends_with_who_began_it(folder: Path) -> None:
    words = [*COMMAND, "--beside", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(words, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    (folder / "afresh.db").rename(folder / "other.db")
    process.stdin.write(b'{"store": "other.db"}\n')
    process.stdin.flush()
    address = json.loads(process.stdout.readline())["address"]
    with urllib.request.urlopen(f"http://{address}/api/v1/pages", timeout=30) as answer:
        assert json.load(answer)["pages"][0]["url"] == "https://example.org/"
    process.stdin.close()  # as when the runner is killed
    assert process.wait(20) == 0
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()


def test_beside_a_runner_it_begins_again_where_it_was(folder: Path) -> None:
    async def answers(address: str) -> bool:
        try:
            await asyncio.to_thread(urllib.request.urlopen, f"http://{address}/static/console.css", timeout=10)
        except OSError:
            return False
        return True

    async def go() -> None:
        config = load()
        store = replace(config.store, path=folder / "afresh.db")
        console = replace(config.console, listen=("127.0.0.1", 0))
        beside = Beside(replace(config, store=store, console=console), None)
        address = await beside.start()
        try:
            assert await answers(address)
            assert beside.process is not None
            beside.process.kill()
            async with asyncio.timeout(60):
                while await answers(address):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)
                while not await answers(address):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
        finally:
            await beside.stop()
        assert not await answers(address)

    asyncio.run(go())


def test_alone_it_reads_until_it_is_stopped(folder: Path) -> None:
    process = subprocess.Popen([*COMMAND, "--listen", "127.0.0.1:0"], cwd=folder, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert re.match(r"Console at http://127\.0\.0\.1:\d+/ ", process.stderr.readline())
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    process.stderr.close()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--listen", "nowhere"], "nowhere"),
        (["--store", "none.db"], "none.db"),
        (["--listen", "TAKEN", "--beside"], "Nothing can listen"),
    ],
)
def test_what_it_cannot_do_is_a_sentence(folder: Path, words: list[str], says: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        words = [word.replace("TAKEN", f"127.0.0.1:{taken.getsockname()[1]}") for word in words]
        command = [*COMMAND, *words]
        done = subprocess.run(command, cwd=folder, input="\n", capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    # Who began it reads what is wrong, and says it in its own name.
    assert says in (json.loads(done.stdout)["error"] if "--beside" in words else done.stderr)

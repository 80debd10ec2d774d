"""A console beside a runner that starts: it answers from the beginning, says what is going on, and compiles nothing."""

import asyncio
import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from typer.testing import CliRunner

from afresh.cli import app, build
from afresh.cli.collection import COMPILING, STARTING
from afresh.cli.console import Beside
from afresh.cli.run import _started
from afresh.daemon.events import Started
from afresh.serve.console.facts import STARTS
from afresh.store import Sqlite
from consoles import CHANGED, console, fill
from notify_waits import until


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sqlite]:
    """A store that somebody runs on who does not answer yet."""
    path: Path = tmp_path_factory.mktemp("starting") / "s.db"
    fill(path)
    with Sqlite(path) as kept:
        kept.claim()
        yield kept


@pytest.fixture(scope="module")
def client(store: Sqlite) -> Iterator[httpx.Client]:
    with console(store.path.parent) as served, httpx.Client(base_url=served.base, timeout=60) as made:
        yield made


def html(client: httpx.Client, path: str) -> httpx.Response:
    return client.get(path, headers={"Accept": "text/html"})


def test_while_a_runner_compiles_it_is_said_and_nothing_is_compiled_twice(
    store: Sqlite, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from afresh.cli import plan, stated

    def compiles(*args: object, **more: object) -> None:
        raise AssertionError("this would be compiled here as well")

    monkeypatch.setattr(stated, "stated_freshness", compiles)
    monkeypatch.setattr(plan, "plan_facts", compiles)
    store.put({STARTING: repr(time.time() - 5.0), COMPILING: repr(time.time() - 4.0)})
    said = client.get("/api/v1/collection").json()
    assert said["running"]
    assert said["starting"] == pytest.approx(time.time() - 5.0, abs=30.0)
    assert said["compiling"] > said["starting"]
    assert (said["expected_freshness"], said["pages"]) == (None, 62)
    overview = html(client, "/")
    assert overview.status_code == 200
    assert "The runner is starting. It compiles for this machine" in overview.text
    assert '<span class="badge new">starting</span>' in overview.text
    page = f"/page?url={quote(CHANGED, safe='')}"
    for path in ("/api/v1/plan?budget=1", f"/api/v1{page}", f"/api/v1/diff?url={quote(CHANGED, safe='')}"):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "10"), path
        assert answer.json()["detail"].startswith(STARTS)
    for path in (page, "/plan"):
        answer = html(client, path)
        assert (answer.status_code, answer.headers["refresh"]) == (503, "3")
        assert STARTS in answer.text
    for path in ("/api/v1/pages", "/api/v1/hosts", "/api/v1/changes", "/api/v1/settings", "/metrics"):
        assert client.get(path).status_code == 200, path


def test_once_it_has_started_that_is_said_at_once(store: Sqlite, client: httpx.Client) -> None:
    """However long the answer took: those that take long are kept for longer."""
    store.put({STARTING: repr(time.time()), COMPILING: None})
    until(lambda: "The runner is starting, which it began" in html(client, "/").text)
    asyncio.run(_hear_of_the_start(store))
    until(lambda: client.get("/api/v1/collection").json()["starting"] is None)
    until(lambda: ">running</span>" in html(client, "/").text)
    assert store.get(STARTING) is None


async def _hear_of_the_start(store: Sqlite) -> None:
    _started(store)(Started(62))
    await asyncio.get_running_loop().shutdown_default_executor()


def test_a_run_opens_its_console_before_it_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "s.db")
    seen, opened = list[dict[str, object]](), list[str]()
    begin, compile_all = Beside.begin, build.compile_all

    def begins(self: Beside) -> str:
        opened.append(begin(self))
        return opened[-1]

    def compiles(begins: Callable[[], object] = lambda: None, *, policy: str = "value") -> None:
        begins()
        with urllib.request.urlopen(f"http://{opened[0]}/api/v1/collection", timeout=60) as answer:
            seen.append(json.load(answer))
        compile_all(policy=policy)

    monkeypatch.setattr(Beside, "begin", begins)
    monkeypatch.setattr(build, "compile_all", compiles)
    words = [
        "run",
        "--store",
        str(tmp_path / "s.db"),
        "--console",
        "127.0.0.1:0",
        "--seconds",
        "1s",
        "--budget",
        "0.001/s",
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    (said,) = seen
    assert said["starting"]
    assert said["compiling"]
    assert f"Console at http://{opened[0]}/" in result.output
    with Sqlite(tmp_path / "s.db") as kept:
        assert (kept.get(STARTING), kept.get(COMPILING)) == (None, None)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://{opened[0]}/", timeout=10)

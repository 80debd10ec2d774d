"""Everything that a person can say to a running crawler, and to a store on which none runs."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from afresh.errors import ConfigError
from afresh.sim.web import Server
from afresh.store import Sqlite
from afresh.store.messages import Pauses
from afresh.store.socket_file import ask
from afresh.types import Importance, Page
from command_line import COMMAND, SETTINGS, synthetic_web

URL = "https://example.com/"


def call(folder: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], cwd=folder, input=stdin, capture_output=True, text=True, timeout=60, check=False
    )


@contextmanager
def running(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A runner that is up, killed with SIGKILL if it was not stopped before."""
    process = subprocess.Popen([*COMMAND, "run", *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        until(lambda: ask(folder / "afresh.db", "status") is not None or process.poll() is not None, 60)
        yield process
    finally:
        process.kill()
        process.communicate()


def until(holds: Callable[[], Any], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass in time"
        time.sleep(0.02)


def urls_of(server: Server) -> list[str]:
    return list(server.urls())


def crawls(folder: Path, url: str) -> int:
    with Sqlite(folder / "afresh.db", create=False) as store:
        state = store.state(url)
    return 0 if state is None else state.crawls


def test_a_running_crawler_takes_up_every_wish_within_a_second(tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text(SETTINGS)
    with synthetic_web(pages=40, hosts=20, seed=3, day=60.0) as server:
        first, second, third, *rest = urls_of(server)
        assert "3 new" in call(tmp_path, "add", first, second, third).stdout
        with running(tmp_path, "--budget", "20/s") as process:
            path = tmp_path / "afresh.db"

            def pages() -> int:
                return int(ask(path, "status")["pages"])

            said = call(tmp_path, "add", *rest)
            assert said.stdout == "37 new, 0 known already.\n", said
            assert pages() == 40
            assert call(tmp_path, "remove", first, "https://nowhere.example/").stdout == "1 page removed, 1 not kept.\n"
            assert pages() == 39
            assert call(tmp_path, "add", second, "--importance", "x7", "--longest", "1d").returncode == 0
            with Sqlite(path, create=False) as store:
                state = store.state(second)
                assert state is not None
                assert (state.page.importance, state.page.longest) == (Importance(7.0, times=True), 86400.0)
            until(lambda: crawls(tmp_path, second) > 0)
            assert "Everything paused." in call(tmp_path, "pause").stdout
            time.sleep(0.5)  # what was under way is stored
            with Sqlite(path, create=False) as store:
                before = store.totals().crawls
            time.sleep(0.5)
            with Sqlite(path, create=False) as store:
                assert store.totals().crawls == before, "nothing is crawled while everything is paused"
            assert "Everything resumed." in call(tmp_path, "resume").stdout
            assert "1 page paused." in call(tmp_path, "pause", third).stdout
            assert ask(path, "page", {"url": third})["held_by"] == "paused"
            assert ask(path, "status")["paused"]["pages"] == 1
            shown = call(tmp_path, "show", third).stdout
            assert "state       paused" in shown
            assert "due         not while it is paused" in shown
            at = crawls(tmp_path, rest[0])
            assert "1 page to be crawled next." in call(tmp_path, "refresh", rest[0]).stdout
            until(lambda: crawls(tmp_path, rest[0]) > at, 3.0)
            heard = call(tmp_path, "signal", second, "--sender", "cms", "--key", "release 7")
            assert heard.stdout == "1 signal heard.\n"
            assert "heard before" in call(tmp_path, "signal", second, "--sender", "cms", "--key", "release 7").stdout
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        assert not (tmp_path / "afresh.db.sock").exists()
        with Sqlite(path, create=False) as store:
            assert list(store.problems()) == []
            assert store.state(first) is None


def test_settings_are_read_again_at_sighup(tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text(SETTINGS)
    with synthetic_web(pages=10, hosts=5, seed=3, day=60.0) as server:
        urls = urls_of(server)
        host = urls[0].split("/")[2]
        call(tmp_path, "add", *urls)
        with running(tmp_path) as process:
            path = tmp_path / "afresh.db"
            text = SETTINGS.replace("[crawl]\n", '[crawl]\nbudget_hours = ["00:00-24:00 = 3/s"]\n')
            text += f'\n[[site]]\nhost = "{host}"\nbudget = "100/h"\nimportance = 5\n'
            (tmp_path / "afresh.toml").write_text(text)
            process.send_signal(signal.SIGHUP)
            until(lambda: ask(path, "status")["budget"] == 3.0)
            until(lambda: ask(path, "status")["host_budgets"])
            (one,) = ask(path, "status")["host_budgets"]
            assert (one["host"], one["budget"]) == (host, pytest.approx(100 / 3600))
            assert ask(path, "page", {"url": urls[0]})["beliefs"]["request_rate"] == 5.0
            (tmp_path / "afresh.toml").write_text("[crawl]\nbudget = nonsense")
            process.send_signal(signal.SIGHUP)
            time.sleep(0.3)
            assert ask(path, "status")["budget"] == 3.0
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=30)
        assert b"The settings were read again." in said
        assert b"The settings stay as they are" in said
        assert b"budget 3/s" in said, "the one in force, not that of other hours"


def test_without_a_runner_the_same_commands_work_on_the_store(tmp_path: Path) -> None:
    assert call(tmp_path, "add", URL, f"{URL}a", f"{URL}b", "--hours", "mon-fri 08:00-18:00").returncode == 0
    assert "1 page paused." in call(tmp_path, "pause", f"{URL}a").stdout
    assert "example.com paused: 3 pages." in call(tmp_path, "pause", "--host", "example.com").stdout
    assert "Everything paused." in call(tmp_path, "pause").stdout
    said = call(tmp_path, "resume").stdout
    assert said == "Everything resumed.\nStill paused: example.com, 1 page by URL.\n"
    shown = " ".join(call(tmp_path, "show", f"{URL}a").stdout.split())
    assert "Its host is paused: `afresh resume --host example.com` continues." in shown
    assert f"It is paused by itself: `afresh resume {URL}a` continues." in shown
    assert "crawled only mon-fri 08:00-18:00" in shown
    said = call(tmp_path, "refresh", f"{URL}b").stdout
    assert said.startswith(
        "1 page to be crawled next.\nIt is paused. It goes first once resumed: afresh resume --host "
    )
    shown = call(tmp_path, "status").stdout
    assert "paused       example.com\n" in shown
    assert "paused       1 page by URL: `afresh resume URL` goes on\n" in shown
    assert "    paused: `afresh resume --host example.com` continues\n" in call(tmp_path, "hosts").stdout
    assert call(tmp_path, "resume").stdout.startswith("Not everything was paused: each pause is undone as it was made.")
    said = call(tmp_path, "signal", URL).stdout
    assert said == "1 signal heard.\nIt is safe in the inbox and takes effect when `afresh run` starts.\n"
    assert "1 page removed." in call(tmp_path, "remove", "--file", "-", stdin=f"{URL}\n").stdout
    with Sqlite(tmp_path / "afresh.db", create=False) as store:
        states = {state.page.url: state for _, state in store.states()}
        assert [entry.kind for entry in store.inbox()] == ["signals"]
        assert Pauses.from_text(store.get("paused")) == Pauses(False, frozenset({"example.com"}))
    assert (states[f"{URL}a"].page.paused, states[f"{URL}b"].urgent) == (True, True)
    assert {state.page.hours for state in states.values()} == {"mon-fri 08:00-18:00"}
    said = json.loads(call(tmp_path, "remove", "--host", "example.com", "--json").stdout)
    assert said == {"removed": 2, "host": "example.com", "running": False, "taken": True}


def test_resume_says_that_nothing_was_paused(tmp_path: Path) -> None:
    assert call(tmp_path, "add", URL, f"{URL}a").returncode == 0
    assert call(tmp_path, "resume").stdout == "Nothing was paused.\n"
    assert call(tmp_path, "resume", "--host", "example.com").stdout == "example.com was not paused.\n"
    assert call(tmp_path, "pause", URL).returncode == 0
    assert call(tmp_path, "resume", URL, f"{URL}a").stdout == "1 page resumed, 1 page was not paused by URL.\n"
    assert "paused" not in call(tmp_path, "hosts").stdout
    assert call(tmp_path, "hosts", "zzz").stdout == "No host's name contains 'zzz'.\n"
    assert call(tmp_path, "refresh", URL).stdout == "1 page to be crawled next.\n"


def test_show_says_what_is_wanted_of_a_page_and_that_its_hours_are_over(tmp_path: Path) -> None:
    later = (int(time.time() / 3600) + 3) % 24  # no test takes so long
    hours = f"{later:02}:00-{later:02}:30"
    words = ["add", URL, "--hours", hours, "--shortest", "10m", "--longest", "2h", "--importance", "x5"]
    assert call(tmp_path, *words).returncode == 0
    shown = " ".join(call(tmp_path, "show", URL).stdout.split())
    assert f"It is outside of its hours ({hours}), and waits for them." in shown
    assert "paused" not in shown
    assert "due not before its hours, from " in shown
    assert " UTC on" in shown
    assert "not crawled again within 10 min; crawled at least every 2 h" in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["remove"], "There is nothing to remove."),
        (["remove", "https://nowhere.example/"], "is not kept"),
        (["remove", "--host", "nowhere.example"], "There are no pages of the host nowhere.example."),
        (["refresh"], "There is nothing to refresh."),
        (["signal", URL, "--sender", "\x1b[31m"], "no name for a sender"),
        (["add", URL, "--hours", "25:00-26:00"], "are no hours"),
        (["add", URL, "--hours", "08:00-09:00 Mars/Olympus"], "names no time zone"),
        (["add", URL, "--shortest", "2h", "--longest", "1h"], "--shortest is longer than --longest"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(tmp_path: Path, words: list[str], sentence: str) -> None:
    with Sqlite(tmp_path / "afresh.db") as store:
        store.add([Page(f"{URL}kept", "example.com")])
    said = call(tmp_path, *words)
    assert (said.returncode, sentence in said.stderr) == (2, True), said
    assert "hint:" in said.stderr


def test_no_page_of_a_host_that_is_never_to_be_crawled_is_said_to_be_refreshed(tmp_path: Path) -> None:
    with Sqlite(tmp_path / "afresh.db") as store:
        store.add([Page(f"{URL}kept", "example.com")])
    (tmp_path / "afresh.toml").write_text('[crawl]\nnever = ["example.com"]\n')
    said = call(tmp_path, "refresh", f"{URL}kept")
    assert (said.returncode, "example.com is never to be crawled" in said.stderr) == (2, True), said
    with Sqlite(tmp_path / "afresh.db") as store:
        assert not any(state.urgent for _, state in store.states())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[[site]]\nhost = "*.example"\nkeep = ["main"]', "hold for one whole host"),
        ('[[site]]\nhost = "a.example"\nshortest_interval = "2h"\nlongest_interval = "1h"', "longer than its longest"),
        ('[[site]]\nhost = "a.example"\nbudget = "0/s"', "no budget"),
        ('[crawl]\nbudget_hours = ["22:00-06:00"]', "not a list of hours and rates"),
    ],
)
def test_settings_of_sites_that_cannot_be_meant_are_refused(text: str, sentence: str) -> None:
    from afresh.config import parse

    with pytest.raises(ConfigError, match=sentence):
        parse(text)

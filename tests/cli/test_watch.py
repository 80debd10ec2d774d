"""`afresh watch`: pages, interval, versions, who is told and the console, in one command."""

import json
import os
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path

from afresh.store import Sqlite
from command_line import COMMAND, SETTINGS, synthetic_web
from hook import hook
from notify_waits import until


def test_three_pages_are_watched_and_told_of_in_one_command(tmp_path: Path) -> None:
    (tmp_path / "afresh.toml").write_text(SETTINGS)
    environment = {**os.environ, "COLUMNS": "80"}

    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, *words],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def done(*words: str) -> str:
        process = start(*words)
        output, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
        return output

    with synthetic_web(pages=3, hosts=1, seed=4, day=3.0, change_factor=5.0) as web, hook() as there:
        words = ["--every", "1s", "--notify", there.url, "--console", "127.0.0.1:0"]
        process = start("watch", *web.urls(), *words)
        try:
            assert process.stderr is not None
            said = []
            while not (said and said[-1].startswith("Console at ")):
                said.append(process.stderr.readline())
                assert said[-1], said
            address = said[-1].split()[-1]
            has_changes: Callable[[], bool] = lambda: len(there.messages) >= 3  # noqa: E731
            until(has_changes, 100)
            with urllib.request.urlopen(f"{address}api/v1/changes?limit=5", timeout=20) as answer:
                assert answer.status == 200
            with urllib.request.urlopen(address, timeout=60) as answer:
                overview = answer.read().decode()
        finally:
            process.terminate()
            printed, _ = process.communicate(timeout=60)
    assert "Watching 3 pages, each every 1 s.\n" in said
    assert "Who is told" in overview
    assert "watch-screen" in overview
    assert printed.count("is new\n") == 3
    assert " changed" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert not any(message["changes"][0]["change"] == "new" for message in there.messages)
    first = there.messages[0]["changes"][0]
    with Sqlite(tmp_path / "afresh.db", create=False) as kept:
        state = kept.state(first["url"])
        assert state is not None
        assert (state.page.shortest, state.page.longest) == (1.0, 1.0)
        assert max(len(kept.versions(url)) for url in web.urls()) > 1
        assert all(len(kept.versions(url)) <= 11 for url in web.urls())
    shown = json.loads(done("diff", first["url"], "--json"))
    assert shown["rows"]
    told = json.loads(done("status", "--json"))["notify"]
    assert {each["rule"].partition("-")[0] for each in told} == {"watch"}


def test_what_cannot_be_watched_gets_a_sentence_and_nothing_is_kept(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for words, sentence in (
        (("https://e.org/", "--every", "0.1s"), "less than a second"),
        (("https://e.org/", "--notify", "me"), "is no place for messages"),
        (("not a url",), "is not a URL"),
    ):
        done = afresh("watch", *words, "--console", "off")
        assert done.returncode == 2, done
        assert sentence in done.stderr
    with Sqlite(tmp_path / "afresh.db") as kept:
        assert kept.totals().pages == 0

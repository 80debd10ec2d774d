"""`afresh watch`: pages, interval, versions, who is told and the console, in one command."""

import json
import os
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from afresh.cli.troubles import Troubles
from afresh.daemon import Finished
from afresh.store import Sqlite
from afresh.types import Crawl, Outcome
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
            until(has_changes, 300)  # it may have to compile before it crawls
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


def test_a_page_that_fails_is_told_of_once_and_again_when_it_is_well() -> None:
    said: list[str] = []
    troubles = Troubles(said.append, lambda url: url == "http://e.org/seen")

    def crawled(url: str, outcome: Outcome, reason: str = "") -> list[str]:
        said.clear()
        troubles.hear(Finished(Crawl(url, 1.0, outcome, reason=reason)))
        return list(said)

    page, other = "http://e.org/seen", "http://e.org/never"
    assert crawled(page, Outcome.NEW) == []
    assert crawled(page, Outcome.FAILED, "status_500") == ["http://e.org/seen fails: HTTP 500."]
    assert crawled(page, Outcome.BUSY, "status_503") == []
    assert crawled(page, Outcome.PROBED) == []
    assert crawled(page, Outcome.UNCHANGED) == ["http://e.org/seen is well again."]
    assert crawled(page, Outcome.UNCHANGED) == []
    assert crawled(page, Outcome.GONE, "status_404") == []  # which is told of as a change
    assert crawled(other, Outcome.GONE, "status_404") == ["http://e.org/never fails: HTTP 404."]


def test_who_watches_sees_that_a_page_fails_while_it_does(tmp_path: Path) -> None:
    class Page(BaseHTTPRequestHandler):
        status = 500

        def do_GET(self) -> None:
            body = b"" if self.path == "/robots.txt" else b"<p>The harbour"
            self.send_response(404 if self.path == "/robots.txt" else Page.status)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    site = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    (tmp_path / "afresh.toml").write_text(SETTINGS)
    url = f"http://127.0.0.1:{site.server_address[1]}/"
    process = subprocess.Popen(
        [*COMMAND, "watch", url, "--every", "1s", "--console", "off"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line, until_when = "", time.monotonic() + 100
        while "fails" not in line and time.monotonic() < until_when:
            line = process.stderr.readline()
        assert line.endswith(f" UTC  {url} fails: HTTP 500.\n")
    finally:
        process.terminate()
        process.communicate(timeout=60)
        site.shutdown()
        site.server_close()

"""`afresh run` on the synthetic web, stopped in every way there is."""

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from afresh.frontier import host_of
from afresh.sim.web import Server, read_mark
from afresh.store import Sqlite
from afresh.types import Page
from command_line import COMMAND, SETTINGS, synthetic_web, whole_lines


def prepare(folder: Path, server: Server) -> Path:
    (folder / "afresh.toml").write_text(SETTINGS)
    with Sqlite(folder / "afresh.db") as store:
        store.add(Page(url, host_of(url)) for url in server.urls())
    return folder / "afresh.db"


def start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    # Unbuffered: what a buffered reader had taken ahead would be lost to `communicate`.
    return subprocess.Popen(
        [*COMMAND, "run", "--json", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )


def test_killed_at_random_moments_it_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """SIGKILL 20 times: every restart comes up by itself, no half copy, no lost acknowledged crawl."""
    rng = random.Random(20)
    acknowledged: list[tuple[str, float]] = []
    with synthetic_web(pages=120, hosts=30, seed=5, day=10.0) as server:
        path = prepare(tmp_path, server)
        for _ in range(20):
            process = start(tmp_path)
            assert process.stdout is not None
            # Most kills hit a running crawl; some hit the start-up, before the first line.
            lines = []
            if rng.random() < 0.8:
                lines.append(process.stdout.readline())
            time.sleep(rng.uniform(0.0, 0.5))
            assert process.poll() is None, process.communicate()
            process.kill()
            rest, _ = process.communicate(timeout=20)
            crawls = whole_lines(b"".join(lines) + rest)
            acknowledged += [(str(crawl["url"]), float(crawl["time"])) for crawl in crawls]  # type: ignore[arg-type]
            with Sqlite(path, create=False, keep_crawls=1000) as store:
                assert list(store.problems()) == []
                check_copies(store, server)
        with Sqlite(path, create=False) as store:
            kept = {(crawl.url, crawl.time) for url in server.urls() for crawl in store.history(url, 1000)}
            assert store.totals().crawls >= len(acknowledged)
        last = start(tmp_path)
        assert last.stdout is not None
        assert whole_lines(last.stdout.readline())
        last.send_signal(signal.SIGTERM)
        _, errors = last.communicate(timeout=60)
        assert last.returncode == 0, errors
    assert len(acknowledged) > 300
    missing = [crawl for crawl in acknowledged if crawl not in kept]
    assert not missing


def check_copies(store: Sqlite, server: Server) -> None:
    for url in server.urls():
        copy = store.copy(url)
        state = store.state(url)
        assert state is not None
        assert (copy is None) == (state.fetched is None)
        if copy is not None:
            mark = read_mark(copy.body)
            assert mark is not None
            assert mark.whole
            assert server.site.find(url) == mark.page
            assert copy.validators == state.validators


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_ends_it_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    with synthetic_web(pages=60, hosts=20, seed=2, latency=0.1) as server:
        path = prepare(tmp_path, server)
        process = start(tmp_path)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(10)]
        process.send_signal(number)
        rest, errors = process.communicate(timeout=20)
        assert process.returncode == 0
        assert b"Stopped." in errors
        reported = whole_lines(b"".join(lines) + rest)
        with Sqlite(path, create=False) as store:
            assert store.totals().crawls == len(reported)
        counts = next(iter(server.ledger.clients.values())).counts
        assert counts.requests == len(reported)  # every fetch that began was finished and kept


def test_pages_added_from_another_process_are_crawled(tmp_path: Path) -> None:
    with synthetic_web(pages=10, hosts=5, seed=2) as server:
        (tmp_path / "afresh.toml").write_text(SETTINGS)
        first, *others = server.urls()
        subprocess.run([*COMMAND, "add", first], cwd=tmp_path, check=True, capture_output=True)
        # Few enough lines that the pipe holds them all while nobody reads.
        process = start(tmp_path, "--seconds", "8s", "--budget", "20/s")
        assert process.stdout is not None
        process.stdout.readline()
        subprocess.run([*COMMAND, "add", *others], cwd=tmp_path, check=True, capture_output=True)
        output, errors = process.communicate(timeout=60)
        assert {str(crawl["url"]) for crawl in whole_lines(output)} >= set(others), errors


def test_a_rough_web_is_survived(tmp_path: Path) -> None:
    """Errors, resets, truncated and slow answers: every copy kept is whole, and failures are named."""
    options = {"error_share": 0.1, "busy_share": 0.05, "reset_share": 0.1, "truncated_share": 0.1, "retry_after": 0.1}
    with synthetic_web(pages=80, hosts=40, seed=9, day=10.0, **options) as server:
        path = prepare(tmp_path, server)
        (tmp_path / "afresh.toml").write_text(SETTINGS + "[politeness.x]\n" if False else SETTINGS)
        process = start(tmp_path)
        assert process.stdout is not None
        wanted = {("failed", "truncated"), ("failed", "reset"), ("failed", "status_500"), ("busy", "status_503")}
        seen: set[tuple[str, str]] = set()
        copies = 0
        while not (wanted <= seen and copies > 40):
            (crawl,) = whole_lines(process.stdout.readline())
            seen.add((str(crawl["outcome"]), str(crawl["reason"])))
            copies += crawl["outcome"] == "new"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == 0
        with Sqlite(path, create=False) as store:
            check_copies(store, server)
            assert store.totals().copies > 40

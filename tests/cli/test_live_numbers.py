"""Numbers that people read while `afresh run` runs, against the synthetic web's own books."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from afresh.frontier import host_of
from afresh.store import Sqlite
from afresh.store.socket_file import ask
from afresh.types import Page
from command_line import COMMAND, SETTINGS, synthetic_web


def asked(folder: Path, *words: str) -> dict[str, Any]:
    done = subprocess.run([*COMMAND, *words, "--json"], cwd=folder, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def running(folder: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([*COMMAND, "run"], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 400  # where nothing is compiled yet
    while not (folder / "afresh.db.sock").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    return process


def stopped(process: subprocess.Popen[bytes]) -> str:
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    return errors.decode()


def test_what_is_shown_of_a_run_is_true_now(tmp_path: Path) -> None:
    # All pages are wanted alike, so the site's share is that of pages.
    with synthetic_web(pages=200, hosts=40, seed=3, day=15.0, zipf=0.0, processes="poisson") as server:
        (tmp_path / "afresh.toml").write_text(SETTINGS.replace("120/s", "40/s"))
        with Sqlite(tmp_path / "afresh.db") as store:
            store.add(Page(url, host_of(url)) for url in server.urls())
        process = running(tmp_path)
        try:
            while (facts := asked(tmp_path, "status"))["crawls"] < 500:
                assert facts["running"], facts
                assert facts["expected_freshness"] <= (facts["copies"] + 60) / 200, "no copy, no fresh copy"
                time.sleep(0.5)
            facts = asked(tmp_path, "status")
            (name,) = server.ledger.clients
            true = server.ledger.fresh_now(name, server.clock())
            assert (facts["freshness_by"], facts["freshness_weighted_by"]) == ("runner", "pages")
            assert facts["freshness_age"] < 3.0
            assert facts["expected_freshness"] == pytest.approx(true, abs=0.15)
            assert facts["politeness"] == ""
            check_pages(tmp_path, server.urls()[:3], facts["price"])
        finally:
            errors = stopped(process)
        counts = server.ledger.client(name).counts
        assert f"{counts.requests:,} crawls" in " ".join(errors.split()), (
            "what it says it did is what the site has seen"
        )


def check_pages(folder: Path, urls: list[str], price: float) -> None:
    for url in urls:
        page = asked(folder, "show", url)
        assert page["by"] == "runner"
        assert 0.1 < page["price"] / price < 10, "it moves, but it is the same price"
        assert page["first_crawls"] == 0
        said = page["copy"]["fresh_because"]
        if said:
            assert f"{page['copy']['fresh_probability']:.2f}" in said


def test_a_plan_knows_at_once_what_the_first_requests_tell_of_all_pages(tmp_path: Path) -> None:
    """A request for some pages says that the others are wanted less; a plan must not mix old rates with new ones."""
    from afresh.cli.plan import _from_store

    (tmp_path / "afresh.toml").write_text(SETTINGS)
    with synthetic_web(pages=30, hosts=30, seed=4, day=1000.0) as server:
        urls = list(server.urls())
        (tmp_path / "urls.txt").write_text("\n".join(urls))
        subprocess.run([*COMMAND, "add", "--file", "urls.txt"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
        process = subprocess.Popen([*COMMAND, "run", "--budget", "30/s"], cwd=tmp_path, stdout=subprocess.DEVNULL)
        try:
            path, deadline = tmp_path / "afresh.db", time.monotonic() + 60
            while not path.exists() or ask(path, "status") is None or Sqlite(path).totals().copies < 30:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            # Afterwards nothing is crawled that could write what is believed of other pages.
            subprocess.run([*COMMAND, "pause"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
            (tmp_path / "counts.csv").write_text(f"{urls[0]},5000\n")
            words = [*COMMAND, "requests", "counts.csv", "--over", "1h"]
            subprocess.run(words, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
            time.sleep(1.0)
            said = [ask(path, "page", {"url": url})["beliefs"]["request_rate"] for url in urls]
            known = _from_store(tmp_path / "afresh.toml", None)
            planned = dict(zip(known.names, known.arrays["request_rate"].tolist(), strict=True))
            assert said[0] > 10 * said[1]
            assert [planned[url] for url in urls] == pytest.approx(said, rel=0.05)
        finally:
            process.kill()
            process.wait()

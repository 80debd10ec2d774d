"""`policy = "mirror"` on the command line: a crawl of a synthetic web, what `show` says of it, and bad settings."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from afresh.frontier import host_of
from afresh.store import Sqlite
from afresh.types import Outcome, Page
from command_line import COMMAND, SETTINGS, synthetic_web


def test_a_crawl_by_costs_and_what_show_says(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "afresh.toml").write_text(SETTINGS + 'policy = "mirror"\ncost = "staleness"\nprobes = 0.5\n')
    with synthetic_web(pages=12, hosts=6, seed=5, day=5.0) as server:
        urls = server.urls()
        with Sqlite(tmp_path / "afresh.db") as store:
            store.add(Page(url, host_of(url)) for url in urls)
        process = subprocess.Popen([*COMMAND, "run", "--seconds", "300s"], cwd=tmp_path, stdout=subprocess.DEVNULL)
        try:
            end, said = time.monotonic() + 240, {}
            while time.monotonic() < end:  # it may have to compile first
                said = json.loads(afresh("show", urls[3], "--json").stdout)
                if said["by"] == "runner" and (said["learned_rate"] or {}).get("slope") is not None:
                    break
                time.sleep(0.5)
            shown = afresh("show", urls[3], "--history", "100").stdout
            told, status = json.loads(afresh("status", "--json").stdout)["learning"], afresh("status").stdout
        finally:
            process.terminate()
            process.wait(30)
    assert told["updates"] >= 1
    assert told["asked"]["known"] >= told["probes"] > 0
    assert "rates        learned from costs (staleness): " in status
    assert "price " not in status
    learned = said["learned_rate"]
    assert 120 / 12 / 16 / 2 < learned["rate"] < 120 / 12 * 8
    assert learned["slope"] <= 0.0
    assert {learned["cost"], learned["probe"]} <= {0.0, 1.0}
    words = " ".join(shown.split())
    assert "learned from costs" in words
    assert "Its costs have taught a refresh every" in words
    assert "probed (" in words
    with Sqlite(tmp_path / "afresh.db", create=False) as store:
        outcomes = [crawl.outcome for url in urls for crawl in store.history(url, 100)]
    refreshes = sum(outcome.refreshed for outcome in outcomes)
    assert outcomes.count(Outcome.PROBED) == pytest.approx(0.5 * refreshes, rel=0.3)
    afterwards = json.loads(afresh("show", urls[3], "--json").stdout)  # nothing runs: the store has it
    assert afterwards["by"] == "store"
    assert afterwards["learned_rate"]["rate"] == pytest.approx(learned["rate"], rel=0.5)
    assert "Its costs have taught" in afterwards["why"]


def test_a_cost_that_always_fails_is_told_of_at_once_and_after_the_end(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "afresh.toml").write_text(SETTINGS + 'policy = "mirror"\ncost = "mycost:cost"\n')
    (tmp_path / "mycost.py").write_text("def cost(seen):\n    raise ValueError('no index')\n")
    with synthetic_web(pages=3, hosts=3, seed=5, day=5.0) as server:
        with Sqlite(tmp_path / "afresh.db") as store:
            store.add(Page(url, host_of(url)) for url in server.urls())
        environment = {**os.environ, "PYTHONPATH": ".", "COLUMNS": "200"}
        process = subprocess.Popen(
            [*COMMAND, "run", "--seconds", "300s", "--json"],
            cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert process.stderr is not None
            told = process.stderr.readline()
            while told and "Note:" not in told:
                told = process.stderr.readline()
            time.sleep(0.3)
        finally:
            process.terminate()
            rest = process.communicate(timeout=30)[1]
    assert "The cost of a crawl is not known: ValueError: no index." in told
    assert "Note:" not in rest
    assert "(not running)" in (status := " ".join(afresh("status").stdout.split()))
    assert re.search(
        r"in the last run 0 known, 0 probes .* the function failed [\d,]+ times; the last: ValueError", status
    )


def test_status_of_a_store_says_what_holds_for_the_next_run(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "afresh.toml").write_text('[crawl]\nbudget = "1/d"\npolicy = "mirror"\n')
    with Sqlite(tmp_path / "afresh.db") as store:
        store.add([Page("http://a.example/", "a.example")])
        store.put({"budget": "1.0", "price": "0.25"})  # of a run with another policy
    assert json.loads(afresh("status", "--json").stdout)["price"] is None
    assert "one crawl every 1 d, the first of them as soon as a run begins" in afresh("status").stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('cost = "stale"', "There is no cost 'stale'"),
        ('cost = "no.such.module:cost"', "cannot be imported: ModuleNotFoundError"),
        ('cost = "math:pi"', "is not a function"),
        ('cost = "math:missing"', "math has no missing. hint: Is the name spelled right?"),
        ('cost = "fractions:Fraction"', "is a class"),
        ('cost = "asyncio:sleep"', "is async"),
        ('cost = "os:getcwd"', "cannot be called with 1 argument"),
        ("probes = 1", "is no share from 0.001 to 0.5"),
        ("probes = 0.0", "is no share from 0.001 to 0.5"),
    ],
)
def test_settings_without_sense_are_refused(afresh, tmp_path: Path, line: str, said: str) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "afresh.toml").write_text(f'[crawl]\npolicy = "mirror"\n{line}\n')
    with Sqlite(tmp_path / "afresh.db") as store:
        store.add([Page("http://a.example/", "a.example")])
    result = afresh("run", "--seconds", "1s")
    assert result.returncode == 2, result.stderr
    assert said in " ".join(result.stderr.split())
    assert "hint:" in result.stderr

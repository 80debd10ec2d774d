"""The commands over an index, as people use them."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from afresh.cli import app
from afresh.cli.wording import search_lines
from afresh.errors import InputError
from afresh.index import FullText
from afresh.store import Sqlite
from afresh.store.messages import SEARCHES_KEPT, searches_kept, weights_kept
from afresh.types import Beliefs, Page
from searched import fill, record


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    with Sqlite(tmp_path / "afresh.db") as kept:
        fill(kept, FullText(), random.Random(3), 20)

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(app, list(words))

    return invoke


def test_search_index_and_check(run: Callable[..., Result], tmp_path: Path) -> None:
    found = json.loads(run("search", "ferry OR boat", "--limit", "3", "--json").stdout)
    assert len(found["results"]) == 3
    assert {"url", "title", "snippet", "age", "fresh"} <= found["results"][0].keys()
    shown = run("search", "ferry", "boat").stdout
    assert shown.startswith(" 1. ")
    assert all(len(line) <= 80 or "http" in line for line in shown.splitlines())
    assert "Nothing is found" in run("search", "lighthouse").stdout
    assert "The index agrees" in run("check").stdout
    with Sqlite(tmp_path / "afresh.db") as kept, kept.writing() as connection:
        connection.execute("UPDATE search_docs SET checksum = 0")
    assert run("check", "--no-mend").exit_code == 2
    assert "built anew, and agrees now" in run("check").stdout
    assert "copies are as they were" in run("index", "--drop").stdout
    missing = run("search", "ferry")
    assert missing.exit_code != 0
    assert "has no index" in str(missing.exception)
    assert json.loads(run("index", "--json").stdout)["due"] == 0
    assert run("search", "ferry").exit_code == 0


def test_what_strangers_write_does_not_steer_the_terminal(run: Callable[..., Result], tmp_path: Path) -> None:
    hostile = "\x1b[2J\x9b31m\u202e\u2066\x07\x85\u2028" + "\u0301" * 500
    pages = ["word " * 400_000, "<div>" * 200_000 + "lighthouse", " ".join(f"w{nth}" for nth in range(100_000))]
    with Sqlite(tmp_path / "afresh.db") as kept:
        kept.accompany(FullText())
        bodies = [f"<title>{hostile}{'t' * 500}</title><p>lighthouse {hostile} keeper\0", *pages]
        urls = [f"http://a.example/hostile/{nth}" for nth in range(len(bodies))]
        kept.add(Page(url, "a.example") for url in urls)
        kept.write([record(url, "a.example", body) for url, body in zip(urls, bodies, strict=True)])
    shown = run("search", "lighthouse", "keeper").stdout
    assert "lighthouse" in shown
    assert all(character.isprintable() for character in shown.replace("\n", ""))
    assert shown.count("\u0301") < 20
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "http://a.example/hostile/3" in run("search", "w9*").stdout
    for query in ("x" * 10_000_000, "a " * 10_000, '"', "(" * 300, "* ** *", "-(-(a))"):
        refused = run("search", "--", query)
        assert refused.exit_code != 0
        assert isinstance(refused.exception, InputError), query[:20]


def test_plan_counts_right_answers(run: Callable[..., Result], tmp_path: Path) -> None:
    refused = run("plan", "--quality")
    assert "Nothing is known of" in str(refused.exception)
    with Sqlite(tmp_path / "afresh.db") as kept:
        from dataclasses import replace

        from afresh.store import Record

        states = [state for _, state in kept.states()]
        known = Beliefs(1.0, 1e-4, observations=9)
        kept.write([Record(None, replace(state, beliefs=known)) for state in states])
        weights = [[states[0].page.url, 0.2], [states[1].page.url, 0.1]]
        summary = {"searches_per_second": 2.0, "queries": 1}
        kept.put({SEARCHES_KEPT: json.dumps({"weights": weights, "base": 0.001, "summary": summary})})
        assert weights_kept(kept.get) == ({states[0].page.url: 0.2, states[1].page.url: 0.1}, 0.001, 2.0)
    said = run("plan", "--quality", "--worth", "0.5", "--budget", "0.001/s", "--budget", "0.01/s", "--json")
    facts = json.loads(said.stdout)
    assert 0.3 < facts["at_stake"] < 0.35
    assert [row["quality"] > row["freshness"] for row in facts["budgets"]] == [True, True]
    assert facts["budgets"][0]["price"] > facts["budgets"][1]["price"]
    assert 0.01 < facts["worth"]["budget"] < 0.1
    assert facts["budgets"][1]["price"] > 0.5
    assert "right answers" in run("plan", "--quality", "--worth", "0.5").stdout


def test_status_says_how_right_answers_are() -> None:
    measured = {name: {"mean": 0.98, "error": 0.004} for name in ("overlap", "rbo", "ndcg")}
    facts = {"queries": 3, "judged": 50, "depth": 10, "quality": measured, "steers": True, "report": False}
    lines = list(search_lines(facts))
    assert lines[0] == "searches     98.00 ± 0.4 % right (the first 10 results, against fresh copies)"
    assert lines[2].endswith("3 frequent queries, which decide what is refreshed")
    assert "no crawl has shown" in next(iter(search_lines({**facts, "judged": 0})))
    assert list(search_lines(None)) == []
    assert searches_kept(lambda _: "nonsense") is None

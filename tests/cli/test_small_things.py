"""Words that a person meets: refusals with a hint, examples, and what each page of a plan gets."""

import csv
import json
import socket
from pathlib import Path

import pytest

from afresh.cli.plan_pages import shares_of_pages
from afresh.cli.play import _too_slow
from afresh.config import parse
from afresh.demo import DemoOptions, Result
from afresh.errors import ConfigError
from afresh.value import expected_freshness, refresh_probabilities


@pytest.mark.parametrize(
    ("words", "sentence", "hint"),
    [
        (("run", "--budget", "0/s"), "A budget of 0 crawls nothing.", "above 0"),
        (("plan", "--budget", "0/s"), "A budget of 0 crawls nothing.", "above 0"),
        (("add", "not a url"), "'not a url' is not a URL.", "https://example.com/page"),
        (("add", "https://example.com/ much"), "'much' is not an importance.", "a URL, a blank"),
        (("run", "--bugdet", "1/s"), "There is no option --bugdet.", "--budget"),
        (("rum",), "There is no command 'rum'.", "afresh --help"),
        (("statu",), "There is no command 'statu'.", "Did you mean 'status'? See afresh --help."),
        (("plan", "--reach", "100%"), "No budget keeps every copy fresh all the time.", "99.9%"),
        (("add", "https://example.com/", "--shortest", "5"), "'5' has no unit.", '"5min"'),
        (("lab", "compare", "--every", "5"), "'5' has no unit.", '"5d"'),
        (("lab", "contest", "."), "holds no .npz and no .csv.", "one by one"),
        (("show",), "Missing argument 'url'.", "afresh show --help"),
    ],
)
def test_bad_words_get_a_sentence_and_a_hint(afresh, words: tuple[str, ...], sentence: str, hint: str) -> None:  # type: ignore[no-untyped-def]
    if words[0] == "run":
        afresh("add", "https://example.com/")
    done = afresh(*words)
    assert done.returncode == 2
    first, second = done.stderr.splitlines()[:2]
    assert first.startswith("afresh: ")
    assert sentence in first
    assert second.startswith("  hint: ")
    assert hint in second


def test_a_port_that_is_taken_gets_a_sentence(afresh) -> None:  # type: ignore[no-untyped-def]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = afresh("web", "--pages", "5", "--hosts", "1", "--port", str(taken.getsockname()[1]))
    assert done.returncode == 2
    assert "cannot be listened on: another program does." in done.stderr


def test_adding_a_known_page_says_what_was_set(afresh) -> None:  # type: ignore[no-untyped-def]
    assert afresh("add", "https://example.com/").stdout == "1 new, 0 known already.\n"
    assert afresh("add", "https://example.com/").stdout.endswith("\nThose that were known stay as they are.\n")
    said = afresh("add", "https://example.com/", "--importance", "x2", "--longest", "1d").stdout
    assert said == "0 new, 1 known already.\nSet for all: importance x2; crawled at least every 1 d.\n"


def test_a_folder_of_csv_histories_has_a_contest(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    from afresh.cli.contest import _files

    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("p,1\n")
    assert [path.name for path in _files([tmp_path])] == ["a.csv", "b.csv"]


def test_requests_that_do_not_count_are_counted_by_kind(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    afresh("add", "https://example.com/")
    line = '1.2.3.4 - - [10/Oct/2020:13:55:36 -0700] "{} / HTTP/1.1" {} 2326\n'
    kinds = [("GET", 200), ("GET", 404), ("POST", 200), ("GET", 500)]
    (tmp_path / "log").write_text("".join(line.format(*kind) for kind in kinds))
    said = afresh("requests", "log", "--site", "https://example.com").stdout
    assert "2 requests that failed do not count.\n1 request other than GET and HEAD does not count.\n" in said
    refused = afresh("requests", "log")
    assert "Say which site: --site https://example.com." in refused.stderr


@pytest.mark.parametrize("words", [("status",), ("add", "https://example.com/"), ("plan",), ("hosts",), ("changes",)])
def test_a_bad_selector_is_refused_by_every_command_that_reads_the_settings(
    afresh,  # type: ignore[no-untyped-def]
    tmp_path: Path,
    words: tuple[str, ...],
) -> None:
    (tmp_path / "afresh.toml").write_text('[[site]]\nhost = "example.com"\nkeep = ["main[["]\n')
    done = afresh(*words)
    assert done.returncode == 2
    assert "In the rules for example.com" in done.stderr


@pytest.mark.parametrize(
    ("text", "sentence", "hint"),
    [
        ('budget = "5/s"', "budget stands outside its table", "[crawl]"),
        ("robots = false", "robots stands outside its table", "[politeness]"),
        ("[crawll]", "There is no setting [crawll]", "[crawl]"),
        (
            '[politeness]\nshortest_gap = "10min"',
            "shortest_gap (10 min) is longer than politeness.longest_gap",
            "Raise",
        ),
        ('[politeness]\nfirst_back_off = "2h"', "first_back_off (2 h) is longer than", "longest_back_off"),
    ],
)
def test_settings_that_contradict_or_stand_in_the_wrong_place_are_refused(text: str, sentence: str, hint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(text)
    assert sentence in refused.value.message
    assert hint in refused.value.hint


def test_lines_that_are_skipped_are_named(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "urls.txt").write_text("https://example.com/\nftp://example.com/\nno url\n")
    done = afresh("add", "--file", "urls.txt", "--skip-bad", "--json")
    assert "Skipped urls.txt, line 2: 'ftp://example.com/' is not a web address" in done.stderr
    assert "Skipped urls.txt, line 3: 'no url' is not a URL" in done.stderr
    counts = json.loads(done.stdout)
    assert (counts["new"], counts["skipped"], len(counts["skipped_lines"])) == (1, 2, 2)


def test_help_shows_an_example_and_the_exit_codes(afresh) -> None:  # type: ignore[no-untyped-def]
    shown = afresh("--help").stdout
    assert "Example: afresh add https://example.com/" in shown
    assert "Exit codes: 0 done" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert afresh().stdout.split() == shown.split()


def test_the_demo_says_when_the_machine_could_not_keep_the_pace() -> None:
    options = DemoOptions(seconds=10.0, budget=50.0)
    shares = {"afresh": 0.5, "uniform": 0.5, "nutch": 0.5, "ceiling": 0.6}
    facts = {"budget": 50.0, "pages": 10, "seconds": 10.0, "seed": 1, "requests": 5}
    counts = {name: {"requests": 499} for name in ("afresh", "uniform", "nutch")}
    assert _too_slow(Result(**shares, **facts, counts=counts), options) == ""  # type: ignore[arg-type]
    counts["uniform"] = {"requests": 300}
    said = _too_slow(Result(**shares, **facts, counts=counts), options)  # type: ignore[arg-type]
    assert "could not keep the pace: uniform made 30/s of 50/s" in said


def test_each_page_of_a_plan_gets_what_the_optimum_gives_it(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "rates.csv").write_text("page,request_rate,change_rate\na,1,0.1\nb,9,0.1\nc,1,5\n")
    done = afresh("plan", "--rates", "rates.csv", "--budget", "0.5/s", "--pages", "-")
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [(row["page"], row["rank"]) for row in rows] == [("b", "1"), ("a", "2"), ("c", "3")]
    assert [float(row["utility"]) for row in rows] == pytest.approx([90.0, 10.0, 0.2])  # requests over changes
    assert sum(float(row["refresh_rate"]) for row in rows) == pytest.approx(0.5)
    assert float(rows[2]["refresh_rate"]) == 0.0, "below the price"
    chances = [float(row["refresh_probability"]) for row in rows]
    assert sum(chances) == pytest.approx(1.0)
    changed = [1 - 2.718281828459045 ** (-rate / 0.5) for rate in (0.1, 0.1, 5.0)]
    best = expected_freshness([9.0, 1.0, 1.0], changed, refresh_probabilities([9.0, 1.0, 1.0], changed))
    assert expected_freshness([9.0, 1.0, 1.0], changed, chances) == pytest.approx(best)
    afresh("plan", "--rates", "rates.csv", "--budget", "0.5/s", "--pages", "pages.jsonl")
    lines = (tmp_path / "pages.jsonl").read_text().splitlines()
    assert [json.loads(line)["page"] for line in lines] == ["b", "a", "c"]
    refused = afresh("plan", "--rates", "rates.csv", "--pages", "-")
    assert "What each page gets depends on the budget." in refused.stderr


def test_signals_and_costs_count_in_a_plan() -> None:
    import numpy as np

    arrays = {
        "request_rate": np.ones(3),
        "change_rate": np.full(3, 0.1),
        "recall": np.array([0.0, 0.9, 0.0]),
        "false_rate": np.array([0.0, 0.01, 0.0]),
        "cost": np.array([1.0, 1.0, 4.0]),
    }
    rows = {row["page"]: row for row in shares_of_pages(["plain", "heard", "dear"], arrays, 0.3)}
    assert rows["dear"]["rank"] == 3
    assert rows["dear"]["utility"] == pytest.approx(rows["plain"]["utility"] / 4)

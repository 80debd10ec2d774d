import json
import re
import sqlite3
from pathlib import Path

import pytest

from afresh.estimate import Calibration
from afresh.frontier import host_of
from afresh.store import Record, Sqlite
from afresh.types import Beliefs, Copy, Crawl, Importance, Outcome, Page, Validators

URL = "http://example.com/"


def assert_refused(done: object, *words: str) -> None:
    """One clear sentence with a hint, exit code 2, no traceback, nothing on standard output."""
    assert done.returncode == 2, done.stderr  # type: ignore[attr-defined]
    lines = done.stderr.splitlines(keepends=True)  # type: ignore[attr-defined]
    error = "".join(line for line in lines if not line.endswith(" ...\n"))  # which says that something takes a while
    assert "Traceback" not in error
    assert error.startswith("afresh: ")
    assert "\n  hint: " in error
    assert len(error.strip().splitlines()) == 2
    assert not done.stdout.replace("Setting up a synthetic web site and three crawlers ...", "").strip()  # type: ignore[attr-defined]
    for word in words:
        assert word in error, error


def test_init_writes_settings_that_can_be_read(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert afresh("init").returncode == 0
    assert "[crawl]" in (tmp_path / "afresh.toml").read_text()
    assert_refused(afresh("init"), "afresh.toml is there already", "--force")
    assert afresh("init", "--force").returncode == 0
    assert_refused(afresh("init", "no/such/folder.toml"), "cannot be written")


def test_add_tells_new_from_known(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert "2 new, 0 known" in afresh("add", URL, "http://example.com/b#part").stdout
    assert json.loads(afresh("add", URL, "HTTP://EXAMPLE.com:80/c", "--json").stdout) == {
        "new": 1,
        "known": 1,
        "skipped": 0,
        "skipped_lines": [],
    }
    with Sqlite(tmp_path / "afresh.db", create=False) as store:
        assert [state.page.url for _, state in store.states()] == [URL, URL + "b", URL + "c"]


def test_add_reads_files_and_standard_input(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "urls.txt").write_text(f"# mine\n{URL}a 2.5\n\n{URL}b\n")
    assert "2 new" in afresh("add", "--file", "urls.txt").stdout
    assert "1 new" in afresh("add", "--file", "-", "--importance", "4", stdin=f"{URL}c\n").stdout
    assert "1 new" in afresh("add", f"{URL}d", "--importance", "x5").stdout
    with Sqlite(tmp_path / "afresh.db", create=False) as store:
        assert [state.page.importance for _, state in store.states()] == [
            Importance(2.5),
            None,
            Importance(4.0),
            Importance(5.0, times=True),
        ]


def test_a_bad_line_adds_nothing_unless_it_may_be_skipped(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "urls.txt").write_text(f"{URL}a\nnot a url\n{URL}b much\nftp://x/\n")
    assert_refused(afresh("add", "-f", "urls.txt"), "urls.txt, line 2", "2 more bad lines", "Nothing was added")
    assert not (tmp_path / "afresh.db").exists()
    assert json.loads(afresh("add", "-f", "urls.txt", "--skip-bad", "--json").stdout)["skipped"] == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["add"], "nothing to add"),
        (["add", "-f", "missing.txt"], "no file missing.txt"),
        (["add", "example.com"], "not a URL"),
        (["add", ""], "not a URL"),
        (["add", URL, "--importance", "inf"], "not an importance"),
        (["add", "javascript:alert(1)"], "not a web address"),
        (["add", URL, "--config", "missing.toml"], "missing.toml"),
        (["run"], "no store"),
        (["status"], "no store"),
        (["show", URL], "no store"),
        (["run", "--budget", "lots"], "'lots' is not a rate"),
        (["demo", "--seconds", "soon"], "'soon' is not a duration"),
        (["demo", "--pages", "1"], "cannot show 1 page"),
        (["demo", "--json", "no/such/file"], "cannot be written"),
        (["web", "--pages", "3", "--hosts", "9"], "too few"),
        (["web", "--port", "99999"], "port"),
        (["status", "--store", "no/such/folder.db"], "does not exist"),
    ],
)
def test_bad_input_is_one_sentence_and_a_hint(afresh, words: list[str], said: str) -> None:  # type: ignore[no-untyped-def]
    assert_refused(afresh(*words), said)


def test_a_bad_setting_is_named(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "afresh.toml").write_text('[crawl]\nbuget = "1/s"\n')
    assert_refused(afresh("status"), "crawl.buget", "crawl.budget")


def test_a_selector_that_cannot_be_read_is_refused_before_the_first_crawl(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "afresh.toml").write_text('[[site]]\nhost = "shop.example"\ndrop = ["p["]\n')
    assert_refused(afresh("add", URL), "'p['", "shop.example")
    assert_refused(afresh("run", "--seconds", "1s"), "'p['", "shop.example")


def test_files_that_are_no_store_are_refused_and_left_alone(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    garbage = tmp_path / "garbage.db"
    garbage.write_bytes(b"This is no database at all. " * 300)
    assert_refused(afresh("status", "-s", "garbage.db"))
    assert_refused(afresh("add", URL, "-s", "garbage.db"))
    assert garbage.read_bytes().startswith(b"This is no database")
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("create table mine (x)")
    connection.close()
    assert_refused(afresh("run", "-s", "foreign.db"))
    assert sqlite3.connect(foreign).execute("select count(*) from mine").fetchone() == (0,)


def test_a_store_in_use_is_named_with_its_process(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    afresh("add", URL)
    with Sqlite(tmp_path / "afresh.db") as store:
        store.claim()
        assert_refused(afresh("run", "--seconds", "1s"), "afresh.db")
        assert "1 new" in afresh("add", URL + "b").stdout
        assert afresh("status").returncode == 0


def test_an_unknown_page_and_a_page_without_copy(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    afresh("add", URL)
    assert_refused(afresh("show", URL + "nothing"), "is not kept", "afresh add")
    assert_refused(afresh("show", URL, "--body"), "no copy")
    shown = afresh("show", URL)
    assert shown.returncode == 0
    assert "never crawled" in shown.stdout
    assert "0.0 %" not in shown.stdout


def crawled(path: Path, *, now: float, rate: float) -> None:
    """A store in which one page was fetched and then checked."""
    validators = Validators(etag='"1"', fingerprint=7)
    with Sqlite(path) as store:
        store.add([Page(URL, host_of(URL))])
        state = store.state(URL)
        assert state is not None
        from dataclasses import replace

        state = replace(
            state,
            beliefs=Beliefs(request_rate=0.5, change_rate=rate, observations=3),
            validators=validators,
            fetched=now,
            checked=now,
            crawls=2,
            changes=1,
        )
        copy = Copy(URL, b"<p>hello</p>", "text/html\x1b[31m", now, now, validators)
        crawl = Crawl(URL, now, Outcome.CHANGED, elapsed=60.0, took=0.2, status=200, size=12)
        store.write([Record(crawl, state, copy)])
        store.put({"price": "0.25", "budget": "2.0", "alive": "0"})


def test_show_explains_the_decision(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import time

    crawled(tmp_path / "afresh.db", now=time.time() - 3600, rate=1 / 7200)
    shown = afresh("show", URL).stdout
    assert "12 B, text/html?[31m" in shown
    assert "changes 12/d" in shown
    whole = " ".join(shown.split())  # lines end at 80 columns
    assert "fresh with probability 0.61" in whole
    assert "at least the price 0.25" in whole
    assert "changed, status 200, 12 B" in shown
    facts = json.loads(afresh("show", URL, "--json").stdout)
    assert facts["copy"]["fresh_probability"] == pytest.approx(0.6065, abs=0.01)
    assert facts["value"] == pytest.approx(0.5 * 7200 * (1 - 0.6065 * 1.5), rel=0.02)
    assert facts["due"] <= time.time()
    assert afresh("show", URL, "--body").stdout == "<p>hello</p>"


def test_show_says_what_is_noise_and_since_when_and_how_pages_were_compared(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    from afresh.daemon.reader import NAME
    from afresh.detect import Habit, Habits

    clock = Habit("numbers", "<p class=clock>", "It is 12:00\x1b[31m", since=1_700_000_000.0)
    advert = Habit("text", "<div id=ad>", "Buy soap", since=1_600_000_000.0)
    doubtful = Habit("text", "<p>", "Maybe")
    with Sqlite(tmp_path / "afresh.db") as store:
        store.add([Page(URL, host_of(URL))])
        state = store.state(URL)
        assert state is not None
        from dataclasses import replace

        noted = replace(state, noise=Habits({1: clock, 2: doubtful}).to_text())
        for reason in ("not_modified", "same_bytes", "same_text", "noise"):
            store.write([Record(Crawl(URL, 1.7e9, Outcome.UNCHANGED, reason=reason, status=200), noted)])
        store.write([Record(Crawl(URL, 1.7e9, Outcome.CHANGED, reason="too_complex", status=200), noted)])
        store.put({NAME + host_of(URL): Habits({3: advert}).to_text()})
    shown = afresh("show", URL).stdout
    assert "its text at <div id=ad>, of the host, since 2020-09-13" in shown
    assert "its numbers at <p class=clock>, of the page, since 2023-11-14" in shown
    assert "\x1b" not in shown
    assert "Maybe" not in shown
    for words in ("its source says so", "same bytes", "only markup differs", "only noise differs", "too complex"):
        assert words in shown
    facts = json.loads(afresh("show", URL, "--json").stdout)
    assert [each["of"] for each in facts["noise"]] == ["host", "page"]
    assert facts["history"][0]["reason"] == "too_complex"


def test_show_does_not_hide_that_keep_matches_nothing(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import time

    crawled(tmp_path / "afresh.db", now=time.time() - 10, rate=1 / 7200)
    for selector, said in {"#moved-away": True, "p": False}.items():
        (tmp_path / "afresh.toml").write_text(f'[[site]]\nhost = "{host_of(URL)}"\nkeep = ["{selector}"]\n')
        assert ("matches nothing on the copy" in afresh("show", URL).stdout) is said
        assert json.loads(afresh("show", URL, "--json").stdout)["keep_matches_nothing"] is said


def test_show_says_when_a_page_will_be_due(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import time

    crawled(tmp_path / "afresh.db", now=time.time() - 10, rate=1 / 7200)
    with Sqlite(tmp_path / "afresh.db") as store:
        store.put({"price": "300"})
    facts = json.loads(afresh("show", URL, "--json").stdout)
    assert facts["value"] < 300
    assert 1000 < facts["due"] - time.time() < 7200
    assert "which it reaches in" in facts["why"]


def test_status_counts_and_states_freshness(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import time

    crawled(tmp_path / "afresh.db", now=time.time() - 7200, rate=1 / 7200)
    facts = json.loads(afresh("status", "--json").stdout)
    assert (facts["pages"], facts["copies"], facts["running"], facts["budget"]) == (1, 1, False, 2.0)
    assert facts["expected_freshness"] == pytest.approx(0.368, abs=0.01)
    shown = afresh("status").stdout
    assert re.search(r"36\.[678]% of pages have a fresh copy now", shown)
    assert "each page counts the same: no requests were reported" in shown
    assert "as reckoned now from the store, since nothing runs" in shown
    assert facts["calibration"] is None
    said = Calibration()
    for fresh in (True, True, True, False):
        said.add(0.8, fresh)
    with Sqlite(tmp_path / "afresh.db") as store:
        store.put({"calibration": said.to_text()})
    calibration = json.loads(afresh("status", "--json").stdout)["calibration"]
    (row,) = calibration["rows"]
    assert isinstance(calibration["statements"], int)
    assert (row["stated"], row["fresh"]) == (pytest.approx(0.8), pytest.approx(0.75, abs=1e-4))
    shown = afresh("status").stdout
    assert "of 4 statements that crawls have checked" in shown
    assert "bias +0.050: copies turned out staler than was said" in shown
    assert "Brier score 0.190: mean squared error; 0 is perfect" in shown
    assert "80.0%        75.0%             4" in shown


def test_help_reads_well(afresh) -> None:  # type: ignore[no-untyped-def]
    shown = afresh("--help").stdout
    assert "Exit codes" in shown
    assert "..." not in shown.replace("[ARGS]...", "")
    assert afresh("--version").stdout.startswith("afresh 0.")
    assert afresh().returncode != 1


RATES = "request_rate,change_rate\n" + "1,0.1\n" * 10


def test_plan_answers_both_questions(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Ten equal pages: a budget of B visits each every 10/B seconds, so freshness is (B/10Δ)(1 − exp(−10Δ/B))."""
    (tmp_path / "rates.csv").write_text(RATES)
    done = afresh("plan", "--rates", "rates.csv", "--budget", "1/s", "--reach", "90%", "--json", "--plot", "p.png")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["budgets"][0]["freshness"] == pytest.approx(1 - 2.718281828**-1, abs=1e-4)
    budget = facts["goals"][0]["budget"]
    assert budget * (1 - 2.718281828 ** (-1 / budget)) == pytest.approx(0.9, abs=1e-4)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    shown = afresh("plan", "--rates", "rates.csv").stdout
    assert "What a budget buys" in shown
    assert "95 %" in shown


def test_plan_reads_the_beliefs_in_the_store(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import time

    afresh("add", URL + "new")
    assert_refused(afresh("plan"), "Nothing is known")
    crawled(tmp_path / "afresh.db", now=time.time(), rate=0.1)
    facts = json.loads(afresh("plan", "--budget", "0.1/s", "--json").stdout)
    assert (facts["pages"], facts["left_out"]) == (1, 1)
    assert facts["budgets"][0]["freshness"] == pytest.approx(1 - 2.718281828**-1, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "lacks the column request_rate"),
        ("request_rate,change_rate,colour\n1,1,1\n", "line 1 has an unknown column 'colour'"),
        ("request_rate,change_rate\n1\n", "line 2 has 1 value instead of 2"),
        ("request_rate,change_rate\n1,1\n1,nan\n", "line 3: 'nan' is not a change_rate"),
        ("request_rate,change_rate,recall\n1,1,2\n", "line 2: '2' is not a recall"),
        ("request_rate,change_rate\n", "has no pages"),
    ],
)
def test_plan_names_the_bad_line(afresh, tmp_path: Path, text: str, said: str) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "rates.csv").write_text(text)
    assert_refused(afresh("plan", "--rates", "rates.csv"), said)

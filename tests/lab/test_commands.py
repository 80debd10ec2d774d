import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from afresh.cli import main
from afresh.store import PageState, Record, Sqlite
from afresh.types import Crawl, Outcome, Page

DAY = 86400.0


@pytest.fixture
def afresh(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Run a command in this process: (exit code, standard output, standard error)."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["afresh", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def history_file(folder: Path, pages: int = 40) -> Path:
    rng = np.random.default_rng(1)
    lines = ["page,timestamp"]
    for page in range(pages):
        times = np.cumsum(rng.exponential(DAY * (1 + page), 200))
        lines += [f"/page/{page},{time:.0f}" for time in times if time < 200 * DAY]
    file = folder / "history.csv"
    file.write_text("\n".join(lines))
    return file


def test_list_names_every_figure(afresh) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = afresh("lab", "list")
    assert code == 0
    assert all(f"fig{number}" in out for number in range(2, 15))
    code, out, _ = afresh("lab", "list", "--json")
    assert next(each for each in json.loads(out) if each["name"] == "fig4")["pages"] == [
        100,
        200,
        500,
        750,
        1000,
        10000,
    ]


def test_run_writes_rows_picture_and_report(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows, picture, folder = tmp_path / "rows.json", tmp_path / "picture.svg", tmp_path / "results"
    options = ("--pages", "50", "--reps", "2", "--jobs", "1", "--json", rows, "--plot", picture, "--into", folder)
    code, out, _ = afresh("lab", "run", "fig2", *options)
    assert code == 0
    assert "of ceiling" in out
    found = json.loads(rows.read_text())
    keys = ["figure", "pages", "policy", "accuracy", "stderr", "ceiling", "baseline", "reps", "seconds"]
    assert [list(row) for row in found] == [keys] * 3
    assert {row["policy"] for row in found} == {"greedy", "lds", "baseline"}
    assert "<svg" in picture.read_text()
    code, out, _ = afresh("lab", "report", folder)
    page = (folder / "report.html").read_text()
    assert "afresh lab run fig2 --pages 50 --reps 2" in page
    assert "data:image/png;base64" in page
    assert f"{found[0]['accuracy']:.4g}" in page
    assert "comes first with" in page


@pytest.mark.parametrize("name", ["fig1", "fig5", "fig6", "fig7", "fig9", "fig10", "mirror-fig1", "mirror-regret"])
def test_every_kind_of_picture_can_be_drawn(afresh, tmp_path: Path, name: str) -> None:  # type: ignore[no-untyped-def]
    picture = tmp_path / "picture.png"
    code, _, err = afresh("lab", "run", name, "--pages", "20", "--reps", "1", "--jobs", "1", "--plot", picture)
    assert code == 0, err
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_replay_scores_policies_on_a_csv_with_requests(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    requests, rows = tmp_path / "requests.csv", tmp_path / "rows.json"
    requests.write_text("page,weight\n" + "\n".join(f"/page/{page},{1 + 39 - page}" for page in range(39)))
    code, out, _ = afresh(
        *("lab", "replay", history_file(tmp_path), "--requests", requests, "--every", "5d", "--train", "0.2"),
        *("--policy", "afresh,uniform,oracle,clairvoyant", "--signals", "0.8,0.9,1h", "--jobs", "1", "--json", rows),
    )
    assert code == 0
    assert "1 page left out" in out
    found = {row["policy"]: row for row in json.loads(rows.read_text())}
    assert found["afresh"]["weighted"] > found["uniform"]["weighted"]
    assert found["afresh"]["pages"] == 39
    assert found["uniform"]["crawls"] == pytest.approx(160 / 5 * 39, rel=0.02)


def test_replay_takes_pages_apart_only_if_told_and_says_what_past_has_seen(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = tmp_path / "rows.json"
    stated = {}
    for words in ((), ("--apart",), ("--apart", "--train", "0.2")):
        code, out, _ = afresh(
            *("lab", "replay", history_file(tmp_path), "--every", "5d", "--policy", "afresh,past", "--jobs", "1"),
            *("--json", rows, *words),
        )
        assert code == 0
        assert ("past has seen nothing" in " ".join(out.split())) == ("--train" not in words)
        stated[words] = next(row for row in json.loads(rows.read_text()) if row["policy"] == "afresh")["brier"]
    assert stated[()] != stated["--apart",]


def test_replay_reads_the_changes_in_a_store(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "kept.db"
    with Sqlite(file, create=True) as store:
        pages = [Page(f"https://example.com/{k}", "example.com") for k in range(5)]
        store.add(pages)
        store.claim()
        for day in range(1, 30):
            page = pages[day % 5]
            crawl = Crawl(page.url, time=day * DAY, outcome=Outcome.CHANGED, elapsed=DAY)
            store.write([Record(crawl, PageState(page))])
    rows = tmp_path / "rows.json"
    code, _, err = afresh(
        "lab", "replay", file, "--every", "3d", "--policy", "afresh,uniform", "--jobs", "1", "--json", rows
    )
    assert (code, err) == (0, "")
    assert {row["pages"] for row in json.loads(rows.read_text())} == {5}


def test_compare_shows_all_policies_at_equal_budget(afresh, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows, picture = tmp_path / "rows.json", tmp_path / "picture.png"
    code, _, _ = afresh(
        *("lab", "compare", "--pages", "100", "--days", "200", "--every", "20d", "--jobs", "1"),
        *("--signals", "0.6,0.8,1h", "--json", rows, "--plot", picture),
    )
    assert code == 0
    found = {row["policy"]: row for row in json.loads(rows.read_text())}
    assert len(found) == 23
    assert max(found, key=lambda policy: found[policy]["weighted"]) in ("afresh", "greedy-ncis", "greedy-cis")
    assert {round(row["crawls"] / 750, 2) for row in found.values()} == {1.0}
    assert picture.is_file()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("run", "fig99"), "There is no experiment 'fig99'"),
        (("run", "fig2", "--pages", "many"), "'many' is not a list of sizes"),
        (("run", "fig2", "--plot", "picture.gif"), "neither PNG nor SVG"),
        (("run", "fig2", "--json", "/nowhere/at/all.json"), "cannot be written"),
        (("compare", "--policy", "telepathy"), "There is no policy 'telepathy'"),
        (("compare", "--signals", "a,b"), "does not describe signals"),
        (("compare", "--pages", "0"), "pages 0 cannot be made"),
        (("replay", "nowhere.npz"), "There is no file nowhere.npz"),
        (("report", "nowhere"), "nowhere holds no results"),
    ],
)
def test_bad_input_gets_one_sentence_and_a_hint(afresh, words: tuple[str, ...], complaint: str) -> None:  # type: ignore[no-untyped-def]
    code, _, err = afresh("lab", *words)
    assert code == 2
    assert complaint in err
    assert "hint:" in err


@pytest.mark.parametrize("words", [("--train", "1.5"), ("--from", "1950-01-01"), ("--budget", "0/s")])
def test_a_replay_outside_its_history_is_refused(afresh, tmp_path: Path, words: tuple[str, str]) -> None:  # type: ignore[no-untyped-def]
    code, _, err = afresh("lab", "replay", history_file(tmp_path, 3), *words)
    assert code == 2
    assert "hint:" in err


def test_help_of_the_lab_loads_nothing_heavy() -> None:
    code = "import sys, afresh.cli.lab, afresh.cli.contest; print('numba' in sys.modules, 'matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]

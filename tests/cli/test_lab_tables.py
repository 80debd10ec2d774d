"""Tables and reports of the lab: whole at 80 columns, in people's units; what is missing is said before the work."""

import io
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

from afresh.cli import lab, replay
from afresh.cli.lab import Keeper, progress_bar
from afresh.errors import ConfigError
from afresh.lab import Result, Row, experiment
from afresh.lab.report import write_report
from afresh.sim.replay import POLICIES, Replayed


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Standard output as a terminal of 80 columns."""
    out = io.StringIO()
    console = Console(file=out, width=80, highlight=False, markup=False, soft_wrap=True, force_terminal=False)
    for module in (lab, replay):
        monkeypatch.setattr(module, "console", console)
    return out


def replayed(policy: str) -> Replayed:
    values = dict.fromkeys(Replayed.__dataclass_fields__, 0.123456)
    return Replayed(**{**values, "policy": policy, "crawls": 12_345_678, "stale_age": 8.64e6})  # type: ignore[arg-type]


@pytest.mark.parametrize("wide", [False, True])
def test_nothing_of_a_table_is_cut(narrow: io.StringIO, wide: bool) -> None:
    replay._show([replayed(policy) for policy in POLICIES], 0.5, "A title", wide=wide)
    shown = narrow.getvalue()
    assert "…" not in shown
    for policy in POLICIES:
        assert policy in shown
    assert shown.count("12,345,678") == len(POLICIES)
    assert shown.count("100 d") == len(POLICIES)
    assert ("Brier" in shown.split("\n--wide")[0]) == wide
    if not wide:
        assert max(len(line.rstrip()) for line in shown.splitlines()) <= 80


def test_a_report_has_peoples_units_and_a_sentence(tmp_path: Path) -> None:
    row = {"policy": "afresh", "pages": 2000, "weighted": 0.81234, "ceiling": 0.9, "budget": 200 / 86400}
    rows = [{**row, "stale_age": 5.5 * 86400}, {**row, "policy": "uniform", "weighted": 0.5, "stale_age": 7200.0}]
    kept = {"title": "t", "command": "c", "claim": "", "rows": rows}
    (tmp_path / "x.record.json").write_text(json.dumps(kept))
    page = write_report(tmp_path).read_text()
    assert "<p>afresh comes first with 81.2 %, 90.3 % of the ceiling; the last, uniform, has 50.0 %.</p>" in page
    for said in ("81.2 %", "8.33/h", "5.5 d", "2 h", "2,000"):
        assert f"<td>{said}</td>" in page


@pytest.mark.parametrize("into", [False, True])
def test_missing_matplotlib_is_said_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, into: bool
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError) as refused:
        Keeper("fig4", None, None if into else tmp_path / "p.png", tmp_path if into else None)
    assert refused.value.message == "Pictures need matplotlib."
    assert "pip install matplotlib" in refused.value.hint
    assert "'.[plot]' in a source checkout" in refused.value.hint


def test_long_work_says_how_far_it_is_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(lab, "errors", Console(file=out, force_terminal=False))
    monkeypatch.setattr(lab, "LINE_EVERY", 0.02)
    with progress_bar("fig4") as progress:
        progress(3, 10)
        for _ in range(500):
            if "fig4: 3 of 10 done" in out.getvalue():
                break
            time.sleep(0.02)
    assert "fig4: 3 of 10 done" in out.getvalue()


def test_json_to_standard_output_stands_there_alone(tmp_path: Path) -> None:
    """`--json -` prints JSON and nothing else; what is for people goes to standard error."""
    words = [sys.executable, "-c", "from afresh.cli import main; main()", "lab", "run", "fig2", "--pages", "20"]
    said = subprocess.run(
        [*words, "--reps", "2", "--jobs", "1", "--json", "-"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert said.returncode == 0, said.stderr
    assert [row["pages"] for row in json.loads(said.stdout)]
    assert "Claim: " in said.stderr
    assert list(tmp_path.iterdir()) == []


def test_nothing_of_a_result_is_cut_however_long_its_names_are(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(lab, "console", Console(file=out, width=80))
    names = [f"without exploring, without signals, {crawls} crawls" for crawls in (3, 300)]
    rows = [Row("learn", 1000, name, 0.9165, 0.001, 1.0, 0.0, 20, 123.4) for name in names]
    lab._show(Result(experiment("learn"), rows, {}))
    shown = out.getvalue()
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert " ".join(shown.split()).count("91.6 %") == 2

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from afresh.errors import ConfigError
from afresh.lab.contest import (
    ANY,
    ENTRANTS,
    PEERS,
    Line,
    Row,
    Run,
    Subject,
    carry_out,
    check_names,
    hold_all,
    lines_of,
    runs_of,
    summary_of,
    weights_of,
)
from afresh.schedule.peer_rules import RULES
from afresh.sim.history import draw_history
from afresh.sim.replay import replay

DAY = 86400.0
NAN = float("nan")


def subject(pages: int = 30) -> Subject:
    rng = np.random.default_rng(3)
    rates = np.exp(rng.normal(-np.log(20 * DAY), 1.2, pages))
    rates[0] = 1e-9 / DAY
    return Subject(
        "made-up", draw_history(rng, rates, weight=np.ones(pages), start=0.0, end=400 * DAY), score_from=100 * DAY
    )


def runs(**options: object) -> list[Run]:
    chosen = {"everies": [10 * DAY], "weights": ("equal", "zipf"), "signals": ("none", "good"), "policies": ENTRANTS}
    return runs_of(subject(), seed=1, **(chosen | options))  # type: ignore[arg-type]


def test_who_does_not_look_at_weights_or_signals_runs_once() -> None:
    counts: dict[str, list[Run]] = {}
    for run in runs():
        counts.setdefault(run.policy, []).append(run)
    assert {policy: len(found) for policy, found in counts.items() if policy in RULES} == dict.fromkeys(RULES, 1)
    assert counts["uniform"][0].weights == ("equal", "zipf")
    assert len(counts["past"]) == len(counts["refresh-probabilities"]) == 2
    assert {(run.weights, run.signals) for run in counts["afresh"]} == {
        (("equal",), "none"), (("equal",), "good"), (("zipf",), "none"), (("zipf",), "good")
    }  # fmt: skip


def test_one_run_is_scored_under_every_weighting_as_if_it_had_run_for_it() -> None:
    (run,) = runs(policies=("heritrix",))
    rows = carry_out(run)
    for row in rows:
        history = replace(run.subject.history, weight=weights_of(row.weights, 30, 1))
        alone = replay(history, "heritrix", budget=30 / (10 * DAY), score_from=100 * DAY, seed=1)
        assert row.fresh == pytest.approx(alone.weighted)
    assert rows[0].fresh != rows[1].fresh
    assert [row.signals for row in rows] == [ANY, ANY]
    assert rows[0].visits == pytest.approx(30.0)


def test_signals_reach_our_schedule_and_late_ones_are_worth_less() -> None:
    found = {row.signals: row.fresh for run in runs(policies=("afresh",), weights=("equal",)) for row in carry_out(run)}
    assert found["good"] > found["none"] + 0.01
    (late,) = runs(policies=("afresh",), weights=("equal",), signals=("late",))
    assert 0 < carry_out(late)[0].fresh != found["good"]


def test_visits_are_counted_by_true_changes() -> None:
    (run,) = runs(policies=("afresh",), weights=("equal",), signals=("none",))
    (row,) = carry_out(run)
    assert sum(group.pages for group in row.groups) == 30
    assert sum(group.pages * group.visits for group in row.groups if group.pages) == pytest.approx(row.crawls)
    silent = row.groups[0]
    assert (silent.least, silent.most) == (0, 0)
    assert silent.pages >= 1
    assert silent.fresh == 1.0
    # Changes before the scored time do not count, nor does a page that was visited late.
    inside = run.subject.history.times > run.subject.score_from
    assert sum(group.pages for group in row.groups[1:]) <= inside.sum()
    (seldom,) = runs(policies=("afresh",), weights=("equal",), signals=("none",), everies=[1000 * DAY])
    assert max(group.unvisited for group in carry_out(seldom)[0].groups if group.pages) > 0


def test_rows_keep_their_order_on_several_processes() -> None:
    wanted = runs(policies=("uniform", "heritrix"), everies=[10 * DAY, 20 * DAY])
    one, two = hold_all(wanted, jobs=1), hold_all(wanted, jobs=2)
    assert [replace(row, seconds=0.0, stated=0.0, brier=0.0) for row in one] == [
        replace(row, seconds=0.0, stated=0.0, brier=0.0) for row in two
    ]
    assert [row.policy for row in one] == ["uniform", "uniform", "heritrix", "heritrix"] * 2


def test_zipf_weights_are_those_of_their_seed_and_in_no_order() -> None:
    weights = weights_of("zipf", 1000, 7)
    assert (weights == weights_of("zipf", 1000, 7)).all()
    assert (weights != weights_of("zipf", 1000, 8)).any()
    assert sorted(weights, reverse=True) == pytest.approx(1 / np.arange(1, 1001))
    assert abs(np.corrcoef(np.argsort(weights), np.arange(1000))[0, 1]) < 0.1
    assert (weights_of("equal", 3, 7) == 1).all()


def row(policy: str, fresh: float, weights: str = "equal", signals: str = ANY, stated: float = NAN) -> Row:
    return Row("h", 10, 20.0, DAY, weights, signals, policy, fresh, stated, NAN, 200, 0.1)


def test_a_setting_stands_beside_its_best_peer() -> None:
    rows = [
        row("afresh", 0.8, signals="none", stated=0.83),
        row("afresh", 0.9, signals="good", stated=0.89),
        row("uniform", 0.7),
        row("past", 0.95),
        row("scrapy", 0.85),
        row("scrapy", 0.1, weights="zipf"),
        row("nutch", 0.6),
    ]
    lines = lines_of(rows)
    assert lines == [
        Line("h", 20.0, "equal", "none", 0.8, 0.83, 0.7, 0.95, "scrapy", 0.85),
        Line("h", 20.0, "equal", "good", 0.9, 0.89, 0.7, 0.95, "scrapy", 0.85),
    ]
    summary = summary_of(lines)
    assert (summary.settings, summary.above, summary.plain, summary.above_plain) == (2, 0.5, 1, 0.0)
    assert summary.least_over_uniform == pytest.approx(0.1)
    assert summary.stated_error == pytest.approx(0.02)
    assert "uniform" in PEERS
    alone = summary_of(lines_of(rows[:2]))
    assert np.isnan([alone.above, alone.above_plain, alone.least_over_uniform]).all()  # nobody ran beside us
    assert "past" not in PEERS


def test_the_table_fits_on_80_columns_with_the_longest_names(capsys: pytest.CaptureFixture[str]) -> None:
    from afresh.cli.contest import _show

    _show([Line("h", 3288.0, "equal", "none", 0.8, 0.83, 0.7, 0.95, "stormcrawler-adaptive", 0.9999)])
    out = capsys.readouterr().out
    assert "3288 equal none 0.8000" in out
    assert "stormcrawler-adaptive 0.9999 -19.99" in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_an_unknown_name_is_refused() -> None:
    assert check_names(["zipf"], ("equal", "zipf"), "weighting") == ("zipf",)
    assert check_names([], ("equal", "zipf"), "weighting") == ("equal", "zipf")
    with pytest.raises(ConfigError, match="There is no weighting 'flat'"):
        check_names(["zipf,flat"], ("equal", "zipf"), "weighting")


def test_the_command_writes_tables_rows_and_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from afresh.cli import main

    rng = np.random.default_rng(1)
    folder = tmp_path / "histories"
    folder.mkdir()
    for name in ("first", "second"):
        page = rng.integers(0, 12, 400)
        kind = np.where(np.arange(400) == 5, 9, 1)
        np.savez(folder / f"{name}.npz", ts=np.sort(rng.integers(0, 200 * 86400, 400)), page=page, kind=kind)
    rows, picture = tmp_path / "rows.json", tmp_path / "picture.svg"
    words = f"afresh lab contest {folder} --visits 8 --signals none --policy afresh,uniform,past,scrapy --jobs 1"
    monkeypatch.setattr("sys.argv", [*words.split(), "--by-changes", "--json", str(rows), "--plot", str(picture)])
    with pytest.raises(SystemExit) as stop:
        main()
    out = capsys.readouterr().out
    assert not stop.value.code
    assert "first.npz: 1 events of unknown kind (9) are skipped." in out
    assert "Above every peer in" in out
    assert "no late visit" in out
    assert all(len(line) <= 80 or line.startswith(("Pages by", "first,", "second,")) for line in out.splitlines())
    found = json.loads(rows.read_text())
    assert len(found) == 2 * 2 * 4
    assert {row["history"] for row in found} == {"first", "second"}
    assert "<svg" in picture.read_text()

"""Rules of other caches, and ours beside them at equal fetches."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from afresh.cli import app
from afresh.lab.served import BY_DATES, THRESHOLDS, Scene, by_rule, join, ours, ours_ahead
from afresh.sim.caches import RULES, Asked, Knobs, play
from afresh.sim.history import draw_history

KNOBS = Knobs()


@pytest.mark.parametrize(
    ("rule", "fetches", "fresh", "unwaited"),
    [
        # Asked at 0, 5, 60, 100.5, 104, 115, 830 with a lifetime of 100 s; changes at 50 and 110.
        ("squid", 3, 5, 4),  # at 0, 100.5, 830: the reader waits; stale at 60 and 115
        ("varnish", 3, 4, 5),  # at 100.5: stale, and fetched behind
        ("nginx", 3, 5, 4),
        ("nginx-updating", 3, 4, 5),
        ("unbound", 3, 5, 4),
    ],
)
def test_rules_do_what_is_said_of_them(rule: str, fetches: int, fresh: int, unwaited: int) -> None:
    page = Asked([0.0, 5.0, 60.0, 100.5, 104.0, 115.0, 830.0], [50.0, 110.0], 0.0)
    tally = play(page, RULES[rule], 100.0, np.random.default_rng(0), knobs=KNOBS)
    assert (tally.fetches, tally.fresh, tally.unwaited, tally.requests) == (fetches, fresh, unwaited, 7)


def test_what_refreshes_early_does_so_at_hits_near_the_end() -> None:
    rng = np.random.default_rng(0)
    steady = Asked([10.0 * nth for nth in range(100)], [], 0.0)
    tally = {rule: play(steady, RULES[rule], 100.0, rng, knobs=KNOBS) for rule in RULES}
    assert tally["unbound"].unwaited == 99
    assert tally["coredns"].unwaited == 99
    assert tally["squid"].unwaited == 90
    once = Asked([0.0, 95.0, 190.0], [], 0.0)  # a gap of more than a minute
    assert play(once, RULES["coredns"], 100.0, rng, knobs=KNOBS).fetches == 2
    assert play(once, RULES["unbound"], 100.0, rng, knobs=KNOBS).fetches == 3
    often = Asked([0.0] + [99.999] * 1000, [], 0.0)
    slow = Knobs(took=5.0)
    assert play(often, RULES["xfetch"], 100.0, rng, knobs=slow).fetches == 2
    assert play(often, RULES["squid"], 100.0, rng, knobs=slow).fetches == 1


def scene_of(requests: int = 6_000, pages: int = 50, days: float = 40.0) -> Scene:
    rng = np.random.default_rng(1)
    rates = np.exp(rng.normal(np.log(1 / 86400.0), 1.5, pages))
    history = draw_history(rng, rates, weight=np.ones(pages), start=0.0, end=days * 86400.0)
    shares = 1.0 / np.arange(1, pages + 1)
    items = rng.choice(pages, requests, p=shares / shares.sum())
    return join(items.astype(np.int64), history, seed=0)


def test_ours_is_fresher_than_any_rule_at_equal_fetches() -> None:
    scene = scene_of()
    curves = {
        dated: np.array(
            sorted(
                (each.fetches, each.fresh) for each in (ours(scene, level, dated=dated) for level in THRESHOLDS[1::2])
            )
        ).T
        for dated in (False, True)
    }
    compared = 0
    for rule, settings in {**dict.fromkeys(RULES, (60_000.0, 120_000.0)), BY_DATES: (0.5, 1.0)}.items():
        for setting in settings:
            other = by_rule(scene, rule, setting, KNOBS, 0)
            curve = curves[rule == BY_DATES]
            if curve[0, 0] <= other.fetches <= curve[0, -1]:
                compared += 1
                assert float(np.interp(other.fetches, *curve)) > other.fresh - 0.001 * other.requests, (rule, setting)
    assert compared >= 7


def test_refresh_ahead_spares_readers_the_wait() -> None:
    scene = scene_of(6000, 20, 30.0)
    alone = ours(scene, 0.9)
    beside = ours_ahead(scene, 0.9, 1200 / (scene.end - scene.start))
    assert beside.unwaited > alone.unwaited + 0.01 * alone.requests
    assert beside.fresh > 0.85 * beside.requests


def test_the_command_prints_keeps_and_refuses(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "trace.npz", item=rng.zipf(1.5, 400) % 30)
    np.savez(tmp_path / "history.npz", ts=np.sort(rng.integers(0, 10**6, 600)), page=rng.integers(0, 30, 600))
    runner = CliRunner()
    files = [str(tmp_path / "trace.npz"), str(tmp_path / "history.npz")]
    said = runner.invoke(
        app, ["lab", "serve", *files, "--lifetimes", "0.5", "--jobs", "1", "--json", str(tmp_path / "o")]
    )
    assert said.exit_code == 0, said.output
    assert "traffic-server" in said.output
    assert "Gain in fresh answers" in said.output
    rows = json.loads((tmp_path / "o").read_text())
    assert {row["rule"] for row in rows} >= {*RULES, BY_DATES, "afresh"}
    wrong = runner.invoke(app, ["lab", "serve", str(tmp_path / "history.npz"), files[0], "--jobs", "1"])
    assert wrong.exit_code != 0
    assert not isinstance(wrong.exception, KeyError)

"""The experiments about learned rates: the published numbers, at small scale, and the laws behind them."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from afresh.lab import RegretRow, experiment, run
from afresh.lab.families import AgeSquared, Family, Poisson, Polynomial, Significance, best_rates, cost_of, slope_of
from afresh.lab.mirrored import growth
from afresh.lab.missed import AGE_SQUARED, SIGNIFICANCE, STALE, costs_of, missed, score
from afresh.mirror.plays import hand_out, new_arms
from afresh.sim.history import draw_history

TOTAL = 40.0 / 1.05

# Mean costs of instances 0 to 149: at the uniform start, and of the best rates, as published.
MEANS = {Polynomial: (3.0, 0.61390, 0.54466), Poisson: (6.0, 0.75759, 0.72331)}
# Mean gaps of 150 trials after rounds 10, 30, 60, 120 and 240, and the standard error of the last.
GAPS = {
    ("polynomial", "MirrorSync"): (0.04760, 0.02643, 0.01426, 0.00700, 0.00387, 0.00006),
    ("polynomial", "AsyncMirrorSync"): (0.04555, 0.02411, 0.01288, 0.00675, 0.00444, 0.00007),
    ("polynomial", "AsyncPsgdSync"): (0.05869, 0.04300, 0.02734, 0.01034, 0.00233, 0.00005),
    ("poisson", "MirrorSync"): (0.03191, 0.02816, 0.02395, 0.01857, 0.01325, 0.00007),
    ("poisson", "AsyncMirrorSync"): (0.03153, 0.02745, 0.02328, 0.01822, 0.01389, 0.00010),
    ("poisson", "AsyncPsgdSync"): (0.03267, 0.02971, 0.02601, 0.02033, 0.01424, 0.00026),
}


@pytest.mark.parametrize("kind", MEANS)
def test_instances_are_the_published_ones(kind: type) -> None:
    r_max, start, best = MEANS[kind]
    found = []
    for seed in range(150):
        law = kind(100, seed)
        rates = best_rates(law, 100, low=0.025, high=r_max / 1.05, total=TOTAL)
        found.append((cost_of(law, np.full(100, TOTAL / 100)), cost_of(law, rates)))
        gain, free = -slope_of(law, rates), rates > 0.025 * (1 + 1e-9)  # no page has the largest rate
        assert abs(rates.sum() - TOTAL) <= 1e-15 * TOTAL
        assert rates.max() < r_max / 1.05
        assert np.ptp(gain[free]) <= 1e-12 * gain[free].max()
        assert gain[~free].max(initial=0.0) <= gain[free].max()
    assert np.allclose(np.mean(found, axis=0), (start, best), atol=6e-6)


def laws(seed: int) -> list[Family]:
    size = np.random.default_rng(seed).uniform(0.1, 3.0, 40)
    return [Polynomial(40, seed), Poisson(40, seed), AgeSquared(40, seed), Significance(40, seed, size)]


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("seed", range(5))
def test_the_best_rates_all_gain_alike_but_those_at_a_bound(which: int, seed: int) -> None:
    law = laws(seed)[which]
    rates = best_rates(law, 40, low=0.025, high=2.0, total=16.0)
    assert rates.sum() == pytest.approx(16.0, rel=1e-12)
    gain = -slope_of(law, rates)
    free = (rates > 0.025 * (1 + 1e-6)) & (rates < 2.0 * (1 - 1e-6))
    assert np.ptp(gain[free]) < 1e-9 * gain[free].max()
    assert (gain[rates <= 0.025 * (1 + 1e-6)] <= gain[free].max() * (1 + 1e-9)).all()
    assert (gain[rates >= 2.0 * (1 - 1e-6)] >= gain[free].min() * (1 - 1e-9)).all()


@pytest.mark.parametrize("which", range(4))
def test_integrals_and_slopes_are_those_of_the_mean_cost(which: int) -> None:
    law, rates, step = laws(1)[which], np.linspace(0.05, 2.0, 40), 1e-5
    moments = (np.arange(4000) + 0.5) / 4000
    area = sum(law.mean_cost(moment / rates) for moment in moments) / 4000 / rates
    assert np.allclose(law.mean_spent(1.0 / rates), area, rtol=1e-4)
    by_hand = [(cost_of(law, rates + step * one) - cost_of(law, rates - step * one)) / (2 * step) for one in np.eye(40)]
    assert np.allclose(slope_of(law, rates), by_hand, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("kind", [STALE, AGE_SQUARED, SIGNIFICANCE])
def test_costs_of_copies_are_those_of_their_changes_one_by_one(kind: int) -> None:
    rng = np.random.default_rng(kind)
    history = draw_history(rng, rng.uniform(0.05, 1.0, 5), weight=np.ones(5), start=0.0, end=60.0)
    sizes = rng.random(len(history.times))
    law = missed(history, kind, sizes)

    def plainly(page: int, since: float, now: float) -> float:
        inside = slice(history.first[page], history.first[page + 1])
        late = (history.times[inside] > since) & (history.times[inside] <= now)
        if not late.any():
            return 0.0
        first = history.times[inside][late][0]
        return {STALE: 1.0, AGE_SQUARED: (now - first) ** 2, SIGNIFICANCE: sizes[inside][late].sum()}[kind]

    arms = new_arms(5, 0.3, 0.0)
    plays = hand_out(arms, 0.5, np.uint64(1), 60.0)
    expected = [plainly(*each) for each in zip(plays.arm, plays.time - plays.age, plays.time, strict=True)]
    assert np.allclose(costs_of(law, plays), expected)
    page, moments = rng.integers(0, 5, 80), np.sort(rng.uniform(0.0, 60.0, 80))
    fine = (np.arange(60_000) + 0.5) / 1000
    cost = np.zeros(60_000)
    for k in range(5):
        mine = np.concatenate([[0.0], moments[page == k]])
        since = mine[np.searchsorted(mine, fine, side="right") - 1]
        cost += [plainly(k, a, b) for a, b in zip(since, fine, strict=True)]
    windows = cost.reshape(6, 10_000).mean(axis=1) / 5
    assert np.allclose(score(law, page, moments, width=10.0, windows=6), windows, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", ["mirror-fig1", "mirror-fig2", "mirror-fig3", "mirror-fig4"])
def test_the_published_gaps(name: str) -> None:
    chosen = experiment(name)
    rows = run(chosen, reps=24).rounds
    assert {row.family for row in rows} == {chosen.family}
    for row in rows:
        gaps = GAPS.get((row.family, row.algorithm))
        if gaps is None or row.round not in (10, 30, 60, 120, 240):
            continue
        # The reference has other instances besides these: its spread counts as well.
        error = math.hypot(row.gap_stderr, row.gap_stderr / math.sqrt(150 / 24))
        published = gaps[(10, 30, 60, 120, 240).index(row.round)]
        assert abs(row.gap - published) < 4 * error, (row, published)


def test_learners_follow_costs_that_turn_and_fixed_rates_do_not() -> None:
    rows = {(row.algorithm, row.round): row.gap for row in run(experiment("mirror-turns"), reps=2).rounds}
    assert max(nth for _, nth in rows) == 239  # no curve ends in a new phase
    for name in ("MirrorSync", "AsyncMirrorSync"):
        for end in (59, 119, 179, 239):
            assert rows[name, end] < 0.5 * rows["best fixed rates", end], (name, end)
        assert rows[name, 60] > 2 * rows[name, 59]


def test_regret_grows_like_the_time_to_two_thirds() -> None:
    found = growth(20, 0, (256, 2048), fastest=0.5)
    for name, sample in found.items():
        gap = sample.curves["cost"] - sample.curves["optimum"]
        assert gap[0] > 0.0, name
        assert 1.0 + math.log(gap[1] / gap[0]) / math.log(8) < 0.70, name


def test_rows_of_regret_have_the_optimum_of_their_own_costs_and_the_exponent() -> None:
    known = experiment("mirror-regret")
    chosen = replace(known, trial=partial(growth, lengths=(64, 256), fastest=0.5))
    rows = [row for row in run(chosen, reps=2).rounds if isinstance(row, RegretRow)]
    assert [(row.algorithm, row.round) for row in rows] == [
        (f"MirrorSync, {name}", length) for name in ("same costs", "adversary") for length in (64, 256)
    ]
    for first, second in (rows[:2], rows[2:]):
        assert second.regret == pytest.approx(256 * (second.mean_J - second.optimum))
        assert first.exponent == second.exponent == pytest.approx(math.log(second.regret / first.regret, 4))
    assert rows[0].optimum != pytest.approx(rows[2].optimum, rel=0.01)


def test_the_table_and_the_rows_of_rounds() -> None:
    result = run(experiment("mirror-fig1"), sizes=(10,), reps=2)
    assert len(result.rounds) == 3 * 241
    optimum = [row for row in result.rounds if row.algorithm == "optimum"]
    assert {row.gap for row in optimum} == {0.0}
    first = result.rounds[0]
    assert (first.figure, first.family, first.algorithm, first.round) == ("mirror-fig1", "polynomial", "MirrorSync", 0)
    assert first.gap == pytest.approx(first.mean_J - optimum[0].mean_J)

"""The learners: what they play, that their samples are unbiased, and what an update touches."""

import math

import numpy as np
import pytest

from afresh.errors import ConfigError
from afresh.lab.families import Poisson, Polynomial, slope_of
from afresh.mirror import BRIDGE, PROBE, SYNC, AsyncMirrorSync, AsyncPsgdSync, Learner, MirrorSync
from afresh.mirror.plays import hand_out, new_arms, take_in

LEARNERS = (MirrorSync, AsyncMirrorSync, AsyncPsgdSync)


def made(kind: type, arms: int = 20, seed: int = 1, **settings: float) -> Learner:
    return kind(arms, 0.4 * arms, rng=np.random.default_rng(seed), **settings)


@pytest.mark.parametrize("law", [Polynomial(6, 3), Poisson(6, 3)])
def test_the_gradient_is_unbiased(law: Polynomial | Poisson) -> None:
    rates = np.array([0.1, 0.2, 0.4, 0.8, 1.6, 3.0])
    arms = new_arms(6, 1.0, 0.0)
    arms.rates[:] = rates
    epsilon, samples = 0.2, [[] for _ in range(6)]
    for batch in range(400):
        plays = hand_out(arms, epsilon, np.uint64(7), 1000.0 * (batch + 1))
        take_in(arms, epsilon, plays.arm, plays.kind, law.costs(plays))
        for k in range(6):
            samples[k].append(arms.sums[k] / arms.counts[k])
        arms.sums[:] = 0.0
        arms.counts[:] = 0
    means, spread = np.mean(samples, axis=1), np.std(samples, axis=1, ddof=1) / math.sqrt(400)
    truth = 6 * slope_of(law, rates)  # of each arm's own cost
    assert (np.abs(means - truth) < 4 * spread).all()
    assert (spread < 0.05 * np.abs(truth) + 0.01).all()  # else the test would say nothing


@pytest.mark.parametrize("kind", LEARNERS)
def test_plays_come_in_order_at_the_rates_and_within_the_budget(kind: type) -> None:
    learner = made(kind, eta=0.0)
    count, last, kinds = 0, 0.0, np.zeros(3)
    while learner.now < 5000.0:
        plays = learner.plays(5000.0)
        assert (np.diff(plays.time) >= 0).all()
        assert not plays.time.size or (plays.time[0] >= last - 1e-6 and plays.time[-1] <= plays.end * (1 + 1e-9))
        last, count = plays.end, count + len(plays.arm)
        kinds += np.bincount(plays.kind, minlength=3)
        learner.observe(plays, plays.age)
    assert count == pytest.approx(0.4 * 20 * 5000, rel=0.05 if kind is MirrorSync else 0.01)
    assert kinds[PROBE] == pytest.approx(0.05 * (kinds[SYNC] + kinds[BRIDGE]), rel=0.1)
    assert (kinds[BRIDGE] > 0) == (kind is not MirrorSync)


@pytest.mark.parametrize("kind", LEARNERS)
def test_plays_do_not_depend_on_the_portions_they_are_asked_for_in(kind: type) -> None:
    whole, parts = made(kind), made(kind)
    costs_of = Polynomial(20, 5).costs
    times: list[list[float]] = [[], []]
    for learner, step, kept in ((whole, 1e9, times[0]), (parts, 3.7, times[1])):
        while learner.now < 600.0:
            plays = learner.plays(min(600.0, learner.now + step))
            kept += plays.time.tolist()
            learner.observe(plays, costs_of(plays))
    assert np.allclose(times[0], times[1])
    assert np.allclose(whole.rates, parts.rates)


@pytest.mark.parametrize("kind", LEARNERS)
def test_rates_stay_in_the_set_and_the_cost_falls(kind: type) -> None:
    law = Polynomial(50, 2)
    learner = made(kind, arms=50)
    before = learner.rates
    assert np.allclose(before, 0.4 / 1.05)
    while learner.now < 4000.0:
        plays = learner.plays(4000.0)
        learner.observe(plays, law.costs(plays))
        assert learner.rates.sum() == pytest.approx(20.0 / 1.05, rel=1e-9)
        assert learner.rates.min() >= 0.025 * (1 - 1e-9)
        assert learner.rates.max() <= 3.0 / 1.05 * (1 + 1e-9)
    slope = slope_of(law, before)
    assert slope @ learner.rates < slope @ before


def test_an_update_leaves_arms_without_samples_alone() -> None:
    learner = made(AsyncMirrorSync, update_interval=5.0)
    for _ in range(60):
        before = learner.rates
        plays = learner.plays(1e9)
        learner.observe(plays, plays.age**2)
        played = np.unique(plays.arm[plays.kind == SYNC])
        others = np.setdiff1d(np.arange(20), played)
        assert (learner.rates[others] == before[others]).all()
        assert learner.rates[played].sum() == pytest.approx(before[played].sum(), rel=1e-9)
    assert np.ptp(learner.rates) > 0.05


def test_a_probe_and_the_sync_after_it_share_their_interval() -> None:
    learner = made(MirrorSync, epsilon=1.0, r_max=10.0)
    plays = learner.plays(1e9)
    for arm in range(20):
        mine = plays.arm == arm
        kinds, intervals = plays.kind[mine], plays.nth[mine]
        assert kinds.tolist() == [PROBE, SYNC] * (len(kinds) // 2)
        assert (intervals[::2] == intervals[1::2]).all()
        assert (plays.age[mine][::2] <= plays.age[mine][1::2]).all()


@pytest.mark.parametrize("kind", LEARNERS)
def test_a_set_without_rates_is_refused_by_name(kind: type) -> None:
    with pytest.raises(ConfigError, match=r"r_min = 0\.5 is too high"):
        made(kind, r_min=0.5)
    with pytest.raises(
        ConfigError, match=r"r_max = 0.3 is too low: 20 times that is 6, less .* Raise r_max to 0.4 or more"
    ):
        made(kind, r_max=0.3)
    with pytest.raises(ConfigError, match="epsilon"):
        made(kind, epsilon=0.0)
    learner = made(kind)
    plays = learner.plays(1e9)
    with pytest.raises(ConfigError, match="costs must be finite"):
        learner.observe(plays, np.full(len(plays.arm), np.nan))


@pytest.mark.parametrize("kind", [AsyncMirrorSync, AsyncPsgdSync])
def test_a_huge_step_keeps_the_sum_or_is_refused(kind: type) -> None:
    learner = made(kind, arms=4, eta=1e150)
    for _ in range(20):
        plays = learner.plays(1e9)
        learner.observe(plays, plays.age)
        assert learner.rates.sum() == pytest.approx(1.6 / 1.05, rel=1e-9)
    assert np.ptp(learner.rates) > 0.1


@pytest.mark.parametrize("kind", LEARNERS)
def test_what_makes_no_sense_gets_a_sentence_and_teaches_nothing(kind: type) -> None:
    for rng in (None, 1):
        with pytest.raises(ConfigError, match=r"rng must be a numpy\.random\.Generator"):
            kind(4, 1.6, rng=rng)
    for name in ("eta", "epsilon"):
        with pytest.raises(ConfigError, match=f"{name} must be a number, not 'a'. Write it without quotes"):
            made(kind, **{name: "a"})
    learner = made(kind)
    for until in ("x", math.nan):
        with pytest.raises(ConfigError, match="until must be"):
            learner.plays(until)
    plays = learner.plays(20.0)
    for costs in (["a"], -plays.age, plays.age[1:]):
        with pytest.raises(ConfigError, match="costs must be finite numbers of at least 0"):
            learner.observe(plays, costs)
    with pytest.raises(ConfigError, match="plays must be what"):
        learner.observe("x", [1.0])
    learner.observe(plays, plays.age)
    with pytest.raises(ConfigError, match="These plays are not awaited"):
        learner.observe(plays, plays.age)


def test_an_arm_at_the_least_rate_gives_a_sample_in_every_round() -> None:
    learner = made(MirrorSync, r_min=0.3, r_max=10.0)
    learner._arms.rates[0] = 0.3
    for _ in range(50):
        plays = learner.plays(1e9)
        assert ((plays.arm == 0) & (plays.kind == SYNC)).sum() >= 1
        learner.observe(plays, np.zeros(len(plays.arm)))
        learner._arms.rates[0] = 0.3

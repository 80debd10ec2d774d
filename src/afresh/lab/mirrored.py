"""One repetition of each experiment about rates that are learned from costs: the papers' curves, and our comparisons.

Every sample holds a curve by rounds of 1/r_min, the time in which the rarest arm is refreshed once.
"""

import math
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from afresh.lab.base import Floats, Sample
from afresh.lab.families import (
    AgeSquared,
    Family,
    Poisson,
    Polynomial,
    Significance,
    best_rates,
    cost_of,
)
from afresh.lab.missed import AGE_SQUARED, STALE, costs_of, missed, score
from afresh.mirror import PROBE, AsyncMirrorSync, AsyncPsgdSync, Learner, MirrorSync, Plays
from afresh.sim.history import History, draw_history
from afresh.sim.learned import replay_learned

Samples = dict[str, Sample]

BUDGET = 0.4  # an arm and unit of time
R_MIN = 0.025
ROUND = 1.0 / R_MIN
ROUNDS = 240
SCORED = 10  # rounds over which a comparison averages: the costs of single copies are noisy


class Published(NamedTuple):
    """A published family: its instances, its largest rate, and what was chosen for each learner."""

    instance: Callable[[int, int], Any]
    r_max: float
    settings: dict[str, dict[str, float]]


LEARNERS: dict[str, Callable[..., Learner]] = {
    "MirrorSync": MirrorSync,
    "AsyncMirrorSync": AsyncMirrorSync,
    "AsyncPsgdSync": AsyncPsgdSync,
}
FAMILIES = {
    "polynomial": Published(
        Polynomial,
        3.0,
        {
            "MirrorSync": {"eta": 0.027},
            "AsyncMirrorSync": {"eta": 0.016, "update_interval": 20.0},
            "AsyncPsgdSync": {"eta": 0.0008, "update_interval": 20.0},
        },
    ),
    "poisson": Published(
        Poisson,
        6.0,
        {
            "MirrorSync": {"eta": 0.05},
            "AsyncMirrorSync": {"eta": 0.013, "update_interval": 8.0},
            "AsyncPsgdSync": {"eta": 0.005, "update_interval": 40.0},
        },
    ),
}  # η by arm


def learner_of(family: str, name: str, arms: int, seed: int, **other: Any) -> Learner:
    """A learner with the published settings of a family, but what is said otherwise."""
    published = FAMILIES[family]
    settings: dict[str, Any] = {"r_min": R_MIN, "r_max": published.r_max, **published.settings[name], **other}
    settings["eta"] *= arms
    rng = np.random.default_rng([seed, arms, list(LEARNERS).index(name)])
    return LEARNERS[name](arms, BUDGET * arms, rng=rng, **settings)


def _play(learner: Learner, costs: Callable[[Plays], Floats], until: float) -> None:
    while learner.now < until:
        plays = learner.plays(until)
        learner.observe(plays, costs(plays))


def curves(pages: int, seed: int, family: str, algorithms: Iterable[str], rounds: int = ROUNDS) -> Samples:
    """What the learned rates cost after each round, by the closed form, and what the best rates would."""
    law = FAMILIES[family].instance(pages, seed)
    best = _best(law, pages, FAMILIES[family].r_max, epsilon=0.05)
    found = {}
    for name in algorithms:
        began = time.perf_counter()
        learner = learner_of(family, name, pages, seed)
        costs = [cost_of(law, learner.rates)]
        for count in range(1, rounds + 1):
            _play(learner, law.costs, count * ROUND)
            costs.append(cost_of(law, learner.rates))
        found[name] = _sample(np.arange(rounds + 1.0), costs, best, time.perf_counter() - began)
    return found


def _best(law: Family, pages: int, r_max: float, *, epsilon: float = 0.0) -> float:
    """The least cost of constant rates, if a share goes to probes."""
    rates = best_rates(law, pages, low=R_MIN, high=r_max / (1 + epsilon), total=BUDGET * pages / (1 + epsilon))
    return cost_of(law, rates)


def _sample(rounds: Floats, costs: Iterable[float] | Floats, best: float | Floats, seconds: float) -> Sample:
    found = np.asarray(costs, np.float64)
    optimum = np.broadcast_to(np.asarray(best, np.float64), found.shape)
    curve = {"round": rounds, "cost": found, "optimum": optimum}
    return Sample(float(found[-1]), float(optimum[-1]), float(found[0]), seconds, curve)


# --- costs that an adversary chooses from round to round ---


class Turned(Polynomial):
    """Polynomial costs whose arms trade their scales from time to time: the dear ones become the cheap ones."""

    def turn(self) -> None:
        """Reverse the order of the scales."""
        order = np.argsort(self.scale)
        self.scale[order] = self.scale[order[::-1]].copy()


def turning(pages: int, seed: int, every: int) -> Samples:
    """Costs turn round every so many rounds; the best is that of the phase, and one learner knows the mean of all."""
    law = Turned(pages, seed)
    scales = [law.scale.copy()]
    best = [_best(law, pages, 3.0, epsilon=0.05)]
    law.turn()
    scales.append(law.scale.copy())
    best.append(_best(law, pages, 3.0, epsilon=0.05))
    law.scale = np.mean(scales, axis=0)
    fixed = best_rates(law, pages, low=R_MIN, high=3.0 / 1.05, total=BUDGET * pages / 1.05)
    phases = np.arange(ROUNDS) // every % 2  # the last phase ends with the last round
    optimum = np.array(best)[phases]
    found = {}
    for name in ("MirrorSync", "AsyncMirrorSync"):
        began = time.perf_counter()
        learner, costs = learner_of("polynomial", name, pages, seed), []
        for count, phase in enumerate(phases.tolist()):
            law.scale = scales[phase]
            costs.append(cost_of(law, learner.rates))
            _play(learner, law.costs, (count + 1) * ROUND)
        found[name] = _sample(np.arange(float(ROUNDS)), costs, optimum, time.perf_counter() - began)
    known = []
    for phase in phases.tolist():
        law.scale = scales[phase]
        known.append(cost_of(law, fixed))
    found["best fixed rates"] = _sample(np.arange(float(ROUNDS)), known, optimum, 0.0)
    return found


def growth(pages: int, seed: int, lengths: Iterable[int], fastest: float) -> Samples:
    """The mean regret a round against the best rates of the whole budget, with the theorem's ε and η of each length.

    Once the laws stay as they are; once an adversary sees the rates before each round, doubles the costs of the half
    that is refreshed the least, and lets the others cost nothing. The best rates are those of hindsight. No page
    changes faster than `fastest`: what the best rates give up is learned slowly, and would hide the law for long.
    """
    law, spread = Poisson(pages, seed, fastest=fastest), math.log(BUDGET / R_MIN)
    found = {}
    for name, spiteful in (("same costs", False), ("adversary", True)):
        began = time.perf_counter()
        costs, best = [], []
        for rounds in lengths:
            epsilon = rounds ** (-1 / 3) * spread ** (1 / 3)
            eta = math.sqrt(spread * epsilon / rounds) / (2.0 if spiteful else 1.0)  # by the largest cost
            learner = learner_of("poisson", "MirrorSync", pages, seed, epsilon=epsilon, eta=eta)
            spent, importance = 0.0, np.zeros(pages)
            for count in range(1, rounds + 1):
                law.importance = np.ones(pages)
                if spiteful:
                    law.importance *= 2.0
                    law.importance[np.argsort(learner.rates, kind="stable")[pages // 2 :]] = 0.0
                importance += law.importance
                spent += cost_of(law, learner.rates)
                _play(learner, law.costs, count * ROUND)
            law.importance = importance / rounds
            costs.append(spent / rounds)
            best.append(_best(law, pages, FAMILIES["poisson"].r_max))
        moments = np.array(list(lengths), np.float64)
        found[f"MirrorSync, {name}"] = _sample(moments, costs, np.array(best), time.perf_counter() - began)
    return found


# --- against the learner that has a model, over the same changes ---


class Scaled:
    """Costs in units of their own mean so far, so that one η fits all of them."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def __call__(self, costs: Floats) -> Floats:
        """The same costs, of a mean around 1."""
        self.total, self.count = self.total + float(costs.sum()), self.count + len(costs)
        return costs if self.total <= 0.0 else costs * (self.count / self.total)


def against_model(pages: int, seed: int, kind: int, rounds: int = ROUNDS) -> Samples:
    """What copies have really cost, with rates learned from costs, by the model of changes, and alike for all.

    All make equally many requests: probes and bridges are paid for. η and the update interval are those published for
    the polynomial family, whatever the kind of costs.
    """
    rng = np.random.default_rng([seed, pages, kind])
    law = Poisson(pages, seed)
    size = np.exp(rng.normal(0.0, 1.0, pages))
    end = rounds * ROUND
    history = draw_history(rng, law.change_rate, weight=np.ones(pages), start=0.0, end=end)
    changed = np.repeat(np.arange(pages), np.diff(history.first))
    significance = size[changed] * np.minimum(rng.pareto(1.5, len(changed)), 100.0)
    costs = missed(history, kind, significance)
    truth = _law_of(kind, pages, seed, size * float(np.minimum(rng.pareto(1.5, 10**6), 100.0).mean()))
    best = _best(truth, pages, 6.0)

    def sample(page: Any, moments: Any, began: float) -> Sample:
        means = score(costs, page, moments, width=SCORED * ROUND, windows=rounds // SCORED)
        return _sample(SCORED * np.arange(1.0, rounds // SCORED + 1), means, best, time.perf_counter() - began)

    began = time.perf_counter()
    refreshed, plays = _learn_costs(costs, pages, seed, end)
    found = {"AsyncMirrorSync": sample(*refreshed, began)}
    began = time.perf_counter()
    picks = _picks(history, plays / end)
    moments = (np.arange(len(picks)) + 1.0) * end / plays
    found["model of changes"] = sample(picks[picks >= 0], moments[picks >= 0], began)
    alike = np.arange(int(plays)) % pages
    found["all alike"] = sample(alike, (np.arange(int(plays)) + 1.0) * end / plays, time.perf_counter())
    return found


def _law_of(kind: int, pages: int, seed: int, size: Floats) -> Family:
    if kind == STALE:
        return Poisson(pages, seed)
    return AgeSquared(pages, seed) if kind == AGE_SQUARED else Significance(pages, seed, size)


def _learn_costs(costs: Any, pages: int, seed: int, end: float) -> tuple[tuple[Any, Floats], float]:
    """((pages, moments) of all refreshes, number of all requests)."""
    learner = learner_of("polynomial", "AsyncMirrorSync", pages, seed, r_max=6.0)
    scaled, kept, count = Scaled(), [], 0
    while learner.now < end:
        plays = learner.plays(end)
        learner.observe(plays, scaled(costs_of(costs, plays)))
        kept.append((plays.arm[plays.kind != PROBE], plays.time[plays.kind != PROBE]))
        count += len(plays.arm)
    page, moments = (np.concatenate([each[k] for each in kept]) for k in range(2))
    order = np.argsort(moments, kind="stable")
    return (page[order], moments[order]), float(count)


def _picks(history: History, budget: float) -> Any:
    """The page of every tick of the live learner and scheduler."""
    picks = np.full(int(history.end * budget), -1, np.int64)
    replay_learned(history, budget=budget, score_from=0.0, picks=picks)
    return picks

"""Policies by name over one history, and what each scored."""

from dataclasses import dataclass

import numpy as np

from afresh.schedule.peer_rules import RULES
from afresh.sim.constant import best_rates
from afresh.sim.field import FINDS, VISITS, Field, close
from afresh.sim.history import SILENCE, Floats, Heard, History
from afresh.sim.learned import replay_learned
from afresh.sim.peers import replay_rates, replay_rule
from afresh.sim.random import replay_random
from afresh.value import optimum

OURS = ("afresh", "greedy", "greedy-cis", "greedy-ncis")
BOUNDS = ("past", "oracle", "clairvoyant")
POLICIES = (*OURS, *BOUNDS, *RULES, "weights-only", "refresh-probabilities")


@dataclass(frozen=True, slots=True)
class Replayed:
    """How a policy did in the scored part of a history."""

    policy: str
    weighted: float  # share of time that copies were fresh, weighted by requests
    unweighted: float
    crawls: int
    finds: float  # share of crawls that found a change
    stale_age: float  # seconds; mean age of stale copies: how long since they missed their first change
    expected: float  # the weighted share that was believed meanwhile; NaN for policies that state none
    brier: float = float("nan")  # mean square of what was said of a copy just before a visit, minus what it found


def replay(
    history: History,
    policy: str,
    *,
    budget: float,
    score_from: float | None = None,
    heard: Heard = SILENCE,
    early: bool = True,
    seed: int = 0,
) -> Replayed:
    """Run a policy over a history from its start; scored from `score_from` (default: from the start) to its end.

    `afresh` and the greedy policies learn online from their own crawls, as the live engine does; peers follow their
    rules. `past` is the best constant rates by the mean rates before `score_from`, `oracle` our schedule with the true
    mean rates of the scored time, `clairvoyant` the best constant rates for its changes as they came.
    `weights-only` knows the mean rate of all pages before `score_from`, and takes every page to change at that.
    """
    if policy not in POLICIES:
        raise ValueError(f"policy must be one of {', '.join(POLICIES)}, not {policy!r}")
    begin = history.start if score_from is None else score_from
    field, expected = run_policy(history, policy, budget=budget, score_from=begin, heard=heard, early=early, seed=seed)
    close(field)
    return scored(history, policy, field, expected)


def scored(history: History, policy: str, field: Field, expected: float) -> Replayed:
    """What a policy scored that has come to the end, by the weights of a history."""
    lived = history.lived(field.span[0], history.end)
    weight = history.weight * lived  # nobody asks for a page that is not born yet, or gone
    share = field.fresh_time / lived
    stale = float(field.stale_time.sum())
    visits = int(field.tally[VISITS])
    return Replayed(
        policy=policy,
        weighted=float(weight @ share / weight.sum()),
        unweighted=float(share.mean()),
        crawls=visits,
        finds=int(field.tally[FINDS]) / visits if visits else 0.0,
        stale_age=float(field.stale_age.sum()) / stale if stale > 0 else 0.0,
        expected=expected,
        brier=float(field.said[1] / field.said[0]) if field.said[0] else float("nan"),
    )


def run_policy(
    history: History,
    policy: str,
    *,
    budget: float,
    score_from: float,
    heard: Heard = SILENCE,
    early: bool = True,
    seed: int = 0,
) -> tuple[Field, float]:
    """All copies at the end of a run, not closed yet, and the freshness that the policy stated; NaN: it states none."""
    if policy in OURS:
        name = "greedy-ncis" if policy == "afresh" else policy
        return replay_learned(history, budget=budget, score_from=score_from, policy=name, heard=heard)
    if policy == "oracle":
        known = _true_rates(history, score_from), 0.0, 0.0
        return replay_learned(history, budget=budget, score_from=score_from, policy="greedy", known=known)
    return _other(history, policy, budget, score_from, early, seed), float("nan")


def _other(history: History, policy: str, budget: float, begin: float, early: bool, seed: int) -> Field:
    if policy in RULES:
        return replay_rule(history, RULES[policy], budget=budget, score_from=begin, early=early, seed=seed)
    if policy == "refresh-probabilities":
        return replay_random(history, budget=budget, score_from=begin, seed=seed)
    if policy == "clairvoyant":
        best = best_rates(history, begin, budget)
    else:
        rates = _past_rates(history, begin, budget)
        if policy == "weights-only":
            rates = np.full(history.pages, rates.mean())
        best = optimum(budget=budget, request_rate=history.weight, change_rate=rates).rates
    return replay_rates(history, best, budget=budget, score_from=begin, seed=seed)


def _true_rates(history: History, begin: float) -> Floats:
    """Mean rates from a moment to the end; half a change for pages without any, whose copy may be stale from before."""
    lived = history.lived(begin, history.end)
    return np.maximum(history.rates(begin, history.end), 0.5 / np.maximum(lived, 1e-300))


def _past_rates(history: History, begin: float, budget: float) -> Floats:
    """Mean rates before a moment and half a change for everybody, since who was silent for a while need not stay so.

    Of pages that were not there nothing can be known but the geometric mean of the others, and if nobody was, one
    change a visit.
    """
    span, lived = begin - history.start, history.lived(history.start, begin)
    if not lived.any():
        return np.full(history.pages, budget / history.pages)
    rates = history.rates(history.start, begin) * np.minimum(1.0, lived / (0.01 * span)) + 0.5 / span
    return np.where(lived > 0, rates, np.exp(np.log(rates[lived > 0]).mean()))

"""One run of a schedule over a world, and its score."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from afresh.schedule import Scheduler
from afresh.sim import loop
from afresh.sim.alias import alias_table
from afresh.sim.evenly import evenly_spaced
from afresh.sim.world import Floats, World

Integers = NDArray[np.int64]
Steps = Sequence[tuple[float, float]]  # (until, budget)
_ON_THEIR_WAY = 1 << 20  # signals that may be delayed at once


@dataclass(frozen=True, slots=True)
class Score:
    """How a schedule did in the scored time."""

    accuracy: float  # share of requests that a fresh copy answers: time-weighted, exact for the changes that happened
    unweighted: float  # share of time that a copy was fresh, all pages equal
    sampled: float  # share of simulated requests that hit a fresh copy; NaN if requests were not simulated
    crawls: int
    finds: int  # crawls that found a change
    events: int  # changes, signals, requests and crawls simulated, also before the scored time
    rates: Floats  # crawls of each page per unit of time
    curve: Floats  # share of fresh hits per bin of time
    asked: Floats  # requests per bin of time


def simulate(
    world: World,
    policy: str = "greedy-ncis",
    *,
    budget: float = 100.0,
    horizon: float = 1000.0,
    warm_up: float = 0.0,
    seed: int = 0,
    requests: bool = False,
    bins: int = 0,
    believed: World | None = None,
    steps: Steps = (),
    exact: bool = False,
    dated: bool = False,
) -> Score:
    """Run a policy by its scheduler's name, from fresh copies at time 0; scored from `warm_up` to `horizon`.

    `believed` is what the schedule is told instead of the truth. `steps` are (until, budget) pairs that replace
    `budget`, for bandwidth that changes while running. `dated` signals tell when they were sent, and those that are
    older than the copy are dropped. The world's events depend on world and seed alone, so that policies can be compared
    under the same changes.
    """
    if not 0 <= warm_up < horizon:
        raise ValueError(f"warm_up must lie between 0 and the horizon of {horizon}, not {warm_up}")
    steps = steps or [(horizon, budget)]
    scheduler = _scheduler(believed or world, policy, steps[0][1], exact)
    picks = np.empty(0, np.int64)
    if policy == "lds":
        picks = evenly_spaced((believed or world).baseline(budget).rates, round(horizon * budget) + 1)
    truth = _truth(world, requests, bins, horizon, picks)._replace(dated=dated)
    rng = np.random.default_rng([seed, 0x5EED])
    clock, tally = np.zeros(3), np.zeros(5, np.int64)
    clock[loop.NEXT_EVENT] = rng.standard_exponential() / truth.total_rate
    clock[loop.NEXT_TICK] = 1.0 / steps[0][1]
    for until, rate in steps:
        if rate != scheduler.budget:
            clock[loop.NEXT_TICK] += 1.0 / rate - 1.0 / scheduler.budget
            scheduler.budget = rate
        loop.run_until(scheduler.state.core, truth, clock, tally, rng, warm_up, min(until, horizon))
    return _score(truth, tally, horizon - warm_up, horizon, warm_up)


def _scheduler(known: World, policy: str, budget: float, exact: bool) -> Scheduler:
    named = "greedy" if policy == "lds" else policy  # whose picks are known before the run
    scheduler = Scheduler(budget=budget, policy=named, exact=exact)
    scheduler.add_many(
        request_rate=known.request_rate / max(float(known.request_rate.sum()), 1e-300),
        change_rate=known.change_rate,
        recall=known.recall,
        false_rate=known.false_rate,
        now=0.0,
        age=0.0,
    )
    return scheduler


def _truth(world: World, requests: bool, bins: int, horizon: float, picks: Integers) -> loop.Truth:
    heard = world.recall * world.change_rate
    blocks = [world.change_rate - heard, heard, world.false_rate]
    if requests:
        blocks.append(world.request_rate)
    weights = np.concatenate(blocks)
    total = float(weights.sum())
    keep, other = alias_table(weights) if total > 0 else (np.ones(1), np.zeros(1, np.int32))
    delayed = _ON_THEIR_WAY if world.signal_delay > 0 else 1
    following = np.arange(1, delayed + 1, dtype=np.int32)
    following[-1] = -1
    return loop.Truth(
        keep=keep,
        other=other,
        total_rate=total,
        pages=world.pages,
        signal_delay=world.signal_delay,
        request_rate=world.request_rate,
        fresh=np.ones(world.pages, np.uint8),
        since=np.zeros(world.pages),
        fresh_time=np.zeros(world.pages),
        crawls=np.zeros(world.pages, np.int64),
        first=np.full(loop.RING, -1, np.int32),
        following=following,
        where=np.zeros(delayed, np.int32),
        sent=np.zeros(delayed),
        dated=False,
        crawled=np.zeros(world.pages),
        free=np.zeros(1, np.int64),
        picks=picks,
        bins=np.zeros((2, bins)),
        bin_width=horizon / max(bins, 1),
    )


def _score(truth: loop.Truth, tally: Integers, span: float, horizon: float, warm_up: float) -> Score:
    still = truth.fresh == 1
    fresh_time = truth.fresh_time + np.where(still, horizon - np.maximum(truth.since, warm_up), 0.0)
    weight = truth.request_rate
    share = fresh_time / span
    asked = int(tally[loop.REQUESTS])
    with np.errstate(invalid="ignore"):
        curve = truth.bins[1] / truth.bins[0]
    return Score(
        accuracy=float(weight @ share / weight.sum()) if weight.sum() > 0 else 1.0,
        unweighted=float(share.mean()),
        sampled=int(tally[loop.HITS]) / asked if asked else float("nan"),
        crawls=int(tally[loop.CRAWLS]),
        finds=int(tally[loop.FINDS]),
        events=int(tally[loop.EVENTS]),
        rates=truth.crawls / span,
        curve=curve,
        asked=truth.bins[0],
    )

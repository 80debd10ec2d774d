"""A replay is the live engine over a recorded history: same picks at every tick, and the same said of the copies."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from afresh.engine import Arrivals, Engine
from afresh.estimate import Activity, Learner
from afresh.estimate.activity import SLICES_PER_ROUND
from afresh.estimate.senders import ALL, FIRST_OCTAVE, FIRST_PAIR
from afresh.frontier import Hosts, Politeness
from afresh.schedule import DEFAULT_SWEEP, Scheduler
from afresh.sim.field import Field, new_field, visit
from afresh.sim.history import Heard, History, make_history
from afresh.sim.learned import _GOLDEN, _LOOKS_PER_ROUND, address_of, replay_learned
from afresh.types import Fetched, Importance, Order, Outcome, Page, Signal, Verdict

DAY = 86400.0
PAGES, ROUND, END = 60, 3 * DAY, 45 * DAY  # pages, the time of a visit to each, and the end: 900 ticks
BUDGET, SCORE_FROM = PAGES / ROUND, 10 * DAY
FOLDERS = tuple(f"https://{host}.example/{folder}" for host in "abc" for folder in ("docs", "news"))
SENDERS = 2
NO_GAPS = Politeness(factor=0.0, shortest_gap=0.0, first_back_off=0.0, longest_back_off=0.0)


def recorded(seed: int) -> tuple[History, Heard]:
    """Pages that change by themselves and with their folders; a good sender, sometimes late, and a bad one."""
    rng = np.random.default_rng(seed)
    folder = np.arange(PAGES) % len(FOLDERS)
    rate = np.exp(rng.normal(-math.log(5 * DAY), 1.0, PAGES))
    page = np.repeat(np.arange(PAGES), rng.poisson(rate * END))
    time = END * rng.random(len(page))
    for each in range(len(FOLDERS)):
        for moment in END * rng.random(6):  # somebody edits a folder: most of it changes within the hour
            some = np.flatnonzero((folder == each) & (rng.random(PAGES) < 0.8))
            page = np.concatenate([page, some])
            time = np.concatenate([time, moment + 3600.0 * rng.random(len(some))])
    # Shares of 1/4096: what columns keep of request rates, to seven digits, is what the replay computes with.
    weight = rng.multinomial(4096, rng.dirichlet(np.full(PAGES, 0.5))).astype(float)
    names = tuple(f"{FOLDERS[folder[k]]}/{k}" for k in range(PAGES))
    history = make_history(page, time, weight=weight, start=0.0, end=END, names=names)
    told = rng.random(len(page)) < 0.6
    late = np.where(rng.random(told.sum()) < 0.3, rng.exponential(0.5 * DAY, told.sum()), 0.0)
    false = rng.integers(0, PAGES, 250)
    arrived = np.concatenate([time[told] + late, END * rng.random(len(false))])
    about = np.concatenate([page[told], false])
    sender = np.concatenate([(rng.random(told.sum()) < 0.1).astype(np.int64), rng.random(len(false)) < 0.8])
    order = np.argsort(arrived, kind="stable")
    return history, Heard(arrived[order], about[order].astype(np.int64), sender[order].astype(np.int64))


def live_engine(history: History, *, exact: bool) -> Engine:
    """The engine of a live run, with the settings of a replay: hosts need no rest, and all senders are known."""
    weight = history.weight / history.weight.sum()
    engine = Engine(
        scheduler=Scheduler(budget=BUDGET, lease=60.0, exact=exact, sweep=DEFAULT_SWEEP),
        estimator=Learner(typical_rate=BUDGET / PAGES),
        activity=Activity(width=ROUND / SLICES_PER_ROUND),
        hosts=Hosts(NO_GAPS),
    )
    for number in range(SENDERS):
        engine.senders.number(str(number))
    pages = [
        Page(name, address_of(name)[1], importance=Importance(float(weight[k]))) for k, name in enumerate(history.names)
    ]
    if exact:
        for page in pages:
            engine.add(page, history.start, current=history.start)
    else:
        # One by one, each finds another price, and so the places of those before it differ.
        some = Arrivals.of(pages)
        engine.add_many(replace(some, current=[history.start] * len(pages)), history.start)
    return engine


class Ran(NamedTuple):
    picks: list[int]
    stated: float
    brier: float
    found: int
    field: Field


def run_live(engine: Engine, history: History, heard: Heard) -> Ran:
    """The ticks of a replay, by what the engine offers a live runner, and a clock that stands where it is put."""
    field = new_field(history, SCORE_FROM)
    step = 1.0 / BUDGET
    ticks = int((history.end - history.start) / step) + 1
    looks = max(1, PAGES // _LOOKS_PER_ROUND)
    picks, stated, squares, signal = [], [], [], 0
    for tick in range(1, ticks + 1):
        now = history.start + tick * step
        if now <= history.end:
            while signal < len(heard.time) and heard.time[signal] <= now:
                assert heard.sender is not None
                url = history.names[heard.page[signal]]
                assert engine.observe(Signal(url, float(heard.time[signal]), str(heard.sender[signal])))
                signal += 1
            order = engine.next(now)
            assert isinstance(order, Order), order
            changed = visit(field, order.slot, now)
            fetched = Fetched(order.url, started=now, took=0.0, status=200)
            outcome = Outcome.CHANGED if changed else Outcome.UNCHANGED
            crawl = engine.finish(order, fetched, Verdict(outcome), now)
            picks.append(order.slot)
            if now > SCORE_FROM:
                assert crawl.fresh_probability is not None
                squares.append((crawl.fresh_probability - (not changed)) ** 2)
        if tick % looks == 0 or tick == ticks:
            nth = -(-tick // looks) - 1
            moment = history.start + (tick + nth * _GOLDEN % 1.0) * step
            if SCORE_FROM < moment <= history.end:
                said = engine.survey(moment).carry_out()
                assert said is not None
                stated.append(said.share)
    return Ran(picks, float(np.mean(stated)), float(np.mean(squares)), int(field.tally[1]), field)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_live_engine_makes_the_picks_of_the_replay_and_says_the_same(seed: int, exact: bool) -> None:
    history, heard = recorded(seed)
    engine = live_engine(history, exact=exact)
    live = run_live(engine, history, heard)
    picks = np.full(len(live.picks), -1)
    field, stated = replay_learned(history, budget=BUDGET, score_from=SCORE_FROM, heard=heard, exact=exact, picks=picks)
    assert live.picks == picks.tolist()
    assert live.stated == pytest.approx(stated, abs=1e-8)  # weights are kept in single precision
    assert live.brier == pytest.approx(field.said[1] / field.said[0], abs=1e-9)
    assert (live.field.fresh_time == field.fresh_time).all()
    # All of it was at work: changes were found, signals were credited by sender, host and delay, siblings looked at.
    assert live.found > 100
    credit = engine.senders.credit
    assert credit[ALL] > 10.0
    assert (credit[FIRST_OCTAVE:FIRST_PAIR] > 0.0).any()
    assert (credit[FIRST_PAIR:] > 0.0).sum() >= 4
    assert engine.activity is not None
    assert (engine.activity.odds != 0.0).any()

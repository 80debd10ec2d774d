"""The same world at another pace: every constant with a unit of time follows from the collection, and so do picks.

Factors are powers of two, so that not even rounding tells the worlds apart, as far as reckoning in them is.
"""

from dataclasses import replace

import numpy as np
import pytest

from afresh.sim.history import SILENCE, Heard, History, make_history
from afresh.sim.learned import replay_learned

PAGES, ROUNDS = 60, 30
PACES = [2.0**-13, 2.0**-7, 2.0**7, 2.0**13]  # 1.2e-4, 8e-3, 128, 8192
DAY = 86400.0


def drawn(seed: int, *, signals: bool) -> tuple[History, Heard]:
    """Pages at which some things happen all the time and others never, visited once a day on average."""
    rng = np.random.default_rng(seed)
    rates = np.where(np.arange(PAGES) % 4 == 0, 0.0, np.exp(rng.normal(0.0, 1.5, PAGES))) / DAY
    end = ROUNDS * DAY
    page = np.repeat(np.arange(PAGES), rng.poisson(rates * end))
    moment = end * rng.random(len(page))
    history = make_history(page, moment, weight=rng.uniform(0.2, 1.0, PAGES), start=0.0, end=end)
    if not signals:
        return history, SILENCE
    told = rng.random(len(page)) < 0.6
    false = rng.integers(PAGES, size=len(page) // 2)
    time = np.concatenate([moment[told], end * rng.random(len(false))])
    order = np.argsort(time, kind="stable")
    return history, Heard(time[order], np.concatenate([page[told], false])[order].astype(np.int64))


def stretched(history: History, heard: Heard, pace: float) -> tuple[History, Heard]:
    """The same, with all times so many times as long."""
    slower = replace(history, times=pace * history.times, start=pace * history.start, end=pace * history.end)
    return slower, replace(heard, time=pace * heard.time)


def picks_of(history: History, heard: Heard, pace: float, *, exact: bool) -> tuple[np.ndarray, float]:
    picks = np.full(PAGES * ROUNDS, -2)
    budget = PAGES / (DAY * pace)
    _, stated = replay_learned(history, budget=budget, score_from=0.0, heard=heard, picks=picks, exact=exact)
    return picks, stated


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("signals", [False, True])
@pytest.mark.parametrize("pace", PACES)
def test_picks_do_not_depend_on_the_unit_of_time(pace: float, signals: bool, exact: bool) -> None:
    world = drawn(1, signals=signals)
    before, stated = picks_of(*world, 1.0, exact=exact)
    after, stated_after = picks_of(*stretched(*world, pace), pace, exact=exact)
    assert (before >= -1).mean() > 0.99
    assert len(np.unique(before)) > PAGES // 2
    differ = np.flatnonzero(before != after)
    assert len(differ) == 0, f"{len(differ)} of {len(before)} picks differ, the first at {differ[0]}"
    assert stated_after == pytest.approx(stated, rel=1e-6)

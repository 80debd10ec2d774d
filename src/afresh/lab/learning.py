"""From nothing to good: figure 4's pages with nothing known of them, against a schedule that knows all their rates.

`learn` scores the learner, and visits to all pages alike, in windows from the first crawl to the hundredth a page, as
shares of what knowing all rates scores there. `explore` compares the value of learning with none and with a tenth of
the crawls at random, twice: whole short runs, which pay for what is learned and do not live to use it, and the time
after them, in which nobody explores any more and what was learned shows.
"""

import time
from dataclasses import replace

import numpy as np

from afresh.lab.base import Experiment, Sample
from afresh.lab.trials import BUDGET
from afresh.sim.field import Field, close, fresh_until
from afresh.sim.history import Heard, History, make_history
from afresh.sim.learned import Known, replay_learned
from afresh.sim.peers import replay_rule
from afresh.sim.rules import RULES
from afresh.sim.world import World, paper_world

# In crawls a page.
WINDOWS = ((0.0, 1.0), (1.0, 3.0), (3.0, 10.0), (15.0, 20.0), (20.0, 40.0), (40.0, 50.0), (90.0, 100.0))
LENGTHS = (1.0, 3.0, 10.0, 30.0)
AFTER = 10.0  # crawls a page, in which what was learned is put to use


def draw_world(pages: int, seed: int, rounds: float) -> tuple[World, History, Heard]:
    """A world of noisy signals, and what happens in it in the time of so many crawls a page."""
    rng = np.random.default_rng([seed, pages])
    world = paper_world(rng, pages, signals="noisy")
    end = rounds * pages / BUDGET
    heard, untold = world.recall * world.change_rate, (1 - world.recall) * world.change_rate
    page, moment, told = [], [], []
    for rates, changes, signals in ((heard, True, True), (untold, True, False), (world.false_rate, False, True)):
        which = np.repeat(np.arange(pages), rng.poisson(rates * end))
        page.append(which)
        moment.append(end * rng.random(len(which)))
        told.append((changes, signals))
    history = make_history(
        np.concatenate(page[:2]), np.concatenate(moment[:2]), weight=world.request_rate, start=0.0, end=end
    )
    arrived = np.concatenate([moment[0], moment[2]])
    order = np.argsort(arrived, kind="stable")
    return world, history, Heard(arrived[order], np.concatenate([page[0], page[2]])[order].astype(np.int64))


def _known(world: World) -> Known:
    return world.change_rate, world.recall, world.false_rate


def _cut(history: History, end: float) -> History:
    page = np.repeat(np.arange(history.pages), np.diff(history.first))
    return make_history(page, history.times, weight=history.weight, start=history.start, end=end)


def _share(history: History, fresh_time: np.ndarray, span: float) -> float:
    return float(history.weight @ fresh_time / history.weight.sum() / span)


def _score(history: History, heard: Heard, begin: float, known: Known | None = None, **learning: float) -> float:
    field, _ = replay_learned(history, budget=BUDGET, score_from=begin, heard=heard, known=known, **learning)  # type: ignore[arg-type]
    close(field)
    return _share(history, field.fresh_time, history.end - begin)


def _uniform(history: History, begin: float) -> float:
    field = replay_rule(history, RULES["uniform"], budget=BUDGET, score_from=begin)
    close(field)
    return _share(history, field.fresh_time, history.end - begin)


def _by_windows(history: History, heard: Heard, known: Known | None = None) -> list[float]:
    """Fresh shares in each window of one run."""
    round_ = history.pages / BUDGET
    fresh = {0: 0.0}  # time until so many tenths of a round

    def look(now: float, field: Field) -> None:
        fresh[round(10 * now / round_)] = _share(history, fresh_until(field, now), 1.0)

    replay_learned(history, budget=BUDGET, score_from=0.0, heard=heard, known=known, watch=look)
    return [(fresh[round(10 * b)] - fresh[round(10 * a)]) / ((b - a) * round_) for a, b in WINDOWS]


def learn_trial(pages: int, seed: int) -> dict[str, Sample]:
    """Shares of what knowing all rates scores, in each window."""
    world, whole, heard = draw_world(pages, seed, WINDOWS[-1][1])
    known = _by_windows(whole, heard, _known(world))
    began = time.perf_counter()
    learned = _by_windows(whole, heard)
    seconds = (time.perf_counter() - began) / len(WINDOWS)
    found = {}
    for (first, last), knows, learns in zip(WINDOWS, known, learned, strict=True):
        history = _cut(whole, last * pages / BUDGET)
        began = time.perf_counter()
        uniform = _uniform(history, first * pages / BUDGET)
        found[f"learns, {last:g} crawls"] = Sample(learns / knows, 1.0, 0.0, seconds)
        found[f"uniform, {last:g} crawls"] = Sample(uniform / knows, 1.0, 0.0, time.perf_counter() - began)
    return found


def explore_trial(pages: int, seed: int) -> dict[str, Sample]:
    """Some crawls a page with each way of exploring, and the time after them, against knowing all rates."""
    found = {}
    ways: dict[str, dict[str, float]] = {
        "value of learning": {},
        "none": {"curiosity": 0.0},
        "a tenth at random": {"curiosity": 0.0, "random_every": 10},
    }
    for length in LENGTHS:
        world, whole, heard = draw_world(pages, seed, length + AFTER)
        turn = length * pages / BUDGET
        for part, history, begin in (("in", _cut(whole, turn), 0.0), ("after", whole, turn)):
            known = _score(history, heard, begin, _known(world))
            for name, learning in ways.items():
                began = time.perf_counter()
                share = _score(history, heard, begin, None, explore_until=turn, **learning) / known
                found[f"{name}, {part} {length:g} crawls"] = Sample(share, 1.0, 0.0, time.perf_counter() - began)
    return found


LEARN = Experiment(
    name="learn",
    title="From nothing to good: figure 4's pages, nothing known",
    claim="97 % of knowing all rates within 20 crawls a page, 99 % within 100, never below uniform",
    sizes=(1000,),
    trial=learn_trial,
    reps=5,
    full_reps=20,
    measure="share of what knowing all rates scores",
    picture="bars",
)
EXPLORE = replace(
    LEARN,
    name="explore",
    title="What exploring is worth: figure 4's pages, in and after some crawls a page",
    claim="the value of learning beats none and a fixed share of random crawls",
    trial=explore_trial,
)

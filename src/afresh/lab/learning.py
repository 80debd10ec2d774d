"""From nothing to good: figure 4's pages with nothing known of them, against a schedule that knows all their rates.

`learn` scores the learner, and visits to all pages alike, in windows from the first crawl to the hundredth a page, as
shares of what knowing all rates scores there. `explore` compares the value of learning with none and with a tenth of
the crawls at random, twice: whole runs of some crawls a page, as long as the learner's plan, which pay for what is
learned, and the time after them, in which nobody explores any more and what was learned shows. All is scored by
expected freshness: what changes there happened to be hides small differences.
"""

import math
import time
from dataclasses import replace

import numpy as np

from afresh.lab.base import Experiment, Sample
from afresh.lab.trials import BUDGET
from afresh.sim.expected import freshness_of_picks
from afresh.sim.history import Heard, History, make_history
from afresh.sim.learned import Known, replay_learned
from afresh.sim.world import World, paper_world

# In crawls a page.
WINDOWS = ((0.0, 1.0), (1.0, 3.0), (3.0, 10.0), (15.0, 20.0), (20.0, 40.0), (40.0, 50.0), (90.0, 100.0))
LENGTHS = (1.0, 3.0, 10.0, 30.0)
AFTER = 10.0  # crawls a page, in which what was learned is put to use
THRIFTY = 1.5  # a curiosity that pays within a plan of any length; the default one aims at its end, and beyond


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


def _moments(edges: tuple[float, ...], pages: int) -> tuple[float, ...]:
    """When there have been so many crawls a page."""
    return tuple(edge * pages / BUDGET for edge in edges)


def _freshness(
    world: World,
    history: History,
    heard: Heard,
    edges: tuple[float, ...],
    known: Known | None = None,
    **learning: float,
) -> np.ndarray:
    """Expected freshness of one run of our schedule, in the windows up to these edges, in crawls a page."""
    picks = np.full(round(history.end * BUDGET), -1)
    replay_learned(history, budget=BUDGET, score_from=0.0, heard=heard, known=known, picks=picks, **learning)  # type: ignore[arg-type]
    return freshness_of_picks(world, heard, picks, step=1 / BUDGET, edges=_moments(edges, history.pages))


def _uniform(world: World, heard: Heard, edges: tuple[float, ...], seed: int) -> np.ndarray:
    """The same of visits to all pages alike, one after another."""
    order = np.random.default_rng([seed, world.pages, 1]).permutation(world.pages)
    picks = np.tile(order, math.ceil(edges[-1]))
    return freshness_of_picks(world, heard, picks, step=1 / BUDGET, edges=_moments(edges, world.pages))


def learn_trial(pages: int, seed: int) -> dict[str, Sample]:
    """Shares of what knowing all rates scores, in each window."""
    world, history, heard = draw_world(pages, seed, WINDOWS[-1][1])
    edges = tuple(sorted({edge for window in WINDOWS for edge in window} - {0.0}))
    known = _freshness(world, history, heard, edges, _known(world))
    began = time.perf_counter()
    learned = _freshness(world, history, heard, edges)
    seconds = (time.perf_counter() - began) / len(WINDOWS)
    uniform = _uniform(world, heard, edges, seed)
    found = {}
    for _, last in WINDOWS:
        which = edges.index(last)
        found[f"learns, {last:g} crawls"] = Sample(learned[which] / known[which], 1.0, 0.0, seconds)
        found[f"uniform, {last:g} crawls"] = Sample(uniform[which] / known[which], 1.0, 0.0, 0.0)
    return found


def explore_trial(pages: int, seed: int, lengths: tuple[float, ...] = LENGTHS) -> dict[str, Sample]:
    """Some crawls a page with each way of exploring, and the time after them, against knowing all rates."""
    found = {}
    for length in lengths:
        ways: dict[str, dict[str, float]] = {
            "value of learning": {"curiosity": THRIFTY, "plan": length},
            "value of learning, for later": {"plan": length},
            "none": {"curiosity": 0.0},
            "a tenth at random": {"curiosity": 0.0, "random_every": 10},
        }
        world, history, heard = draw_world(pages, seed, length + AFTER)
        edges, turn = (length, length + AFTER), length * pages / BUDGET
        known = _freshness(world, history, heard, edges, _known(world))
        for name, learning in ways.items():
            began = time.perf_counter()
            shares = _freshness(world, history, heard, edges, explore_until=turn, **learning) / known  # type: ignore[arg-type]
            seconds = time.perf_counter() - began
            for part, share in zip(("in", "after"), shares, strict=True):
                found[f"{name}, {part} {length:g} crawls"] = Sample(float(share), 1.0, 0.0, seconds)
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

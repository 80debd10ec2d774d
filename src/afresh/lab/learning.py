"""From nothing to good: figure 4's pages with nothing known of them, against a schedule that knows all their rates.

`learn` scores the learner, visits to all pages alike, and the learner without exploring, from the start up to the
third, tenth, thirtieth, hundredth and three hundredth crawl a page, with signals and without, as shares of what knowing
all rates scores in the same time. Without exploring, the believed mean rate is used as if it were known: the value
over all rates that a page may have is what makes the learner look where little is known. All is scored by expected
freshness: what changes there happened to be hides small differences.
"""

import math
import time

import numpy as np

from afresh.lab.base import Experiment, Sample
from afresh.lab.trials import BUDGET
from afresh.sim.expected import freshness_of_picks
from afresh.sim.history import Heard, History, make_history
from afresh.sim.learned import Known, replay_learned
from afresh.sim.world import World, paper_world

LENGTHS = (3.0, 10.0, 30.0, 100.0, 300.0)  # crawls a page


def draw_world(pages: int, seed: int, rounds: float, signals: str = "noisy") -> tuple[World, History, Heard]:
    """A world of noisy signals, or of none, and what happens in it in the time of this many crawls a page."""
    rng = np.random.default_rng([seed, pages])
    world = paper_world(rng, pages, signals=signals)
    end = rounds * pages / BUDGET
    heard, untold = world.recall * world.change_rate, (1 - world.recall) * world.change_rate
    page, moment, told = [], [], []
    for rates, changes, told_of in ((heard, True, True), (untold, True, False), (world.false_rate, False, True)):
        which = np.repeat(np.arange(pages), rng.poisson(rates * end))
        page.append(which)
        moment.append(end * rng.random(len(which)))
        told.append((changes, told_of))
    history = make_history(
        np.concatenate(page[:2]), np.concatenate(moment[:2]), weight=world.request_rate, start=0.0, end=end
    )
    arrived = np.concatenate([moment[0], moment[2]])
    order = np.argsort(arrived, kind="stable")
    return world, history, Heard(arrived[order], np.concatenate([page[0], page[2]])[order].astype(np.int64))


def _known(world: World) -> Known:
    return world.change_rate, world.recall, world.false_rate


def _moments(edges: tuple[float, ...], pages: int) -> tuple[float, ...]:
    """When there have been this many crawls a page."""
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


def learn_trial(pages: int, seed: int, lengths: tuple[float, ...] = LENGTHS) -> dict[str, Sample]:
    """Shares of what knowing all rates scores, over the first crawls a page, up to each number."""
    found = {}
    for kind, label in (("noisy", "with signals"), ("none", "without signals")):
        world, history, heard = draw_world(pages, seed, lengths[-1], kind)
        began = time.perf_counter()
        learned = _freshness(world, history, heard, lengths)
        seconds = (time.perf_counter() - began) / len(lengths)
        ways = {
            "learns": learned,
            "without exploring": _freshness(world, history, heard, lengths, certain=True),
            "uniform": _uniform(world, heard, lengths, seed),
        }
        known = _so_far(_freshness(world, history, heard, lengths, _known(world)), lengths)
        for name, scores in ways.items():
            shares = _so_far(scores, lengths) / known
            for length, share in zip(lengths, shares, strict=True):
                found[f"{name}, {label}, {length:g} crawls"] = Sample(float(share), 1.0, 0.0, seconds)
    return found


def _so_far(scores: np.ndarray, edges: tuple[float, ...]) -> np.ndarray:
    """From means over windows between edges to means from the start to each edge."""
    return np.asarray(np.cumsum(scores * np.diff(edges, prepend=0.0)) / np.array(edges))


LEARN = Experiment(
    name="learn",
    title="From nothing to good: figure 4's pages, nothing known",
    claim="at least as fresh as without exploring over any number of crawls, and never below uniform",
    sizes=(1000,),
    trial=learn_trial,
    reps=5,
    full_reps=20,
    measure="share of what knowing all rates scores",
    picture="bars",
)

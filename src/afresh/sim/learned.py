"""Our schedule over a history: it knows no rate, and learns from its own crawls, on the live scheduler's own table."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.online import (
    CURIOSITY,
    DEFAULT_MEMORY,
    GLANCES,
    Table,
    beliefs_of,
    fresh_probability_of,
    glance,
    interest_of,
    learn_crawl,
    new_table,
)
from afresh.schedule import Scheduler
from afresh.schedule.events import believe, replace, signal, urge
from afresh.schedule.memory import page_at
from afresh.schedule.turn import crawl, take
from afresh.sim.field import Field, new_field, visit
from afresh.sim.history import SILENCE, Heard, History
from afresh.value.compiled import compiled

_LOOKS_PER_ROUND = 10  # how often what is stated is compared, in the time of a visit to every page


Known = tuple[NDArray[np.float64], NDArray[np.float64] | float, NDArray[np.float64] | float]  # Δ, recall, false rate


class Setting(NamedTuple):
    """How the run goes, for the compiled loop."""

    learns: bool  # False: beliefs stay as they are
    weight: NDArray[np.float64]  # of each page, together 1
    signal_time: NDArray[np.float64]
    signal_page: NDArray[np.int64]
    signals: NDArray[np.int64]  # heard of each page since its copy was current
    start: float
    step: float
    random_every: int  # every so many ticks a page at random is crawled, for comparison; 0: never


@compiled
def _believe(core: int, table: Table, setting: Setting, page: int, now: float) -> None:
    change_rate, recall, false_rate = beliefs_of(table, page, now)
    believe(core, page, change_rate, recall, false_rate)
    page_at(core, page).request_rate = setting.weight[page] * interest_of(table, page, now)


@compiled
def _hear(core: int, table: Table, setting: Setting, heard: int, now: float) -> int:
    """Take in the signals that have arrived, and how often they come; the index of the next one."""
    while heard < setting.signal_time.size and setting.signal_time[heard] <= now:
        page = setting.signal_page[heard]
        moment = max(setting.signal_time[heard], setting.start)
        setting.signals[page] += 1
        table.pages[page].heard += 1.0
        signal(core, page, moment, 1)
        if setting.learns:
            _believe(core, table, setting, page, moment)
            replace(core, page, moment)
        heard += 1
    return heard


@compiled
def _fetch(core: int, table: Table, field: Field, setting: Setting, page: int, now: float) -> None:
    """A page was picked: visit it, learn from what is found, and let its age start again."""
    elapsed = now - field.current[page]
    changed = visit(field, page, now)
    if setting.learns:
        learn_crawl(table, page, elapsed, float(setting.signals[page]), changed)
        _believe(core, table, setting, page, now)
    setting.signals[page] = 0
    crawl(core, page, now)


@compiled
def _look_round(core: int, table: Table, setting: Setting, now: float) -> None:
    """A few pages, in turn, learn what the others have taught their groups; all at once would make the price ring."""
    for _ in range(int(table.control[GLANCES])):
        page = glance(table)
        _believe(core, table, setting, page, now)
        replace(core, page, now)


@compiled
def run_learning(core: int, table: Table, field: Field, setting: Setting, first: int, last: int, heard: int) -> int:
    """The ticks from `first` to `last`; the index of the next signal."""
    for tick in range(first, last + 1):
        now = setting.start + tick * setting.step
        if now > field.span[1]:
            break
        heard = _hear(core, table, setting, heard, now)
        if setting.random_every > 0 and tick % setting.random_every == 0:
            # A multiplier without a rhythm of its own: as good as random, and can be repeated.
            urge(core, (tick // setting.random_every * 2_654_435_761) % setting.weight.size, now)
        page = take(core, now)
        if page >= 0:
            _fetch(core, table, field, setting, page, now)
        if setting.learns:
            _look_round(core, table, setting, now)
    return heard


@compiled
def stated_freshness(table: Table, field: Field, setting: Setting, now: float) -> float:
    """The share of requests that would find a fresh copy, as it is believed."""
    total = 0.0
    for page in range(setting.weight.size):
        elapsed = now - field.current[page]
        total += setting.weight[page] * fresh_probability_of(table, page, elapsed, float(setting.signals[page]))
    return total


def replay_learned(
    history: History,
    *,
    budget: float,
    score_from: float,
    policy: str = "greedy-ncis",
    heard: Heard = SILENCE,
    known: Known | None = None,
    memory: float = DEFAULT_MEMORY,
    exact: bool = False,
    random_every: int = 0,
    explore_until: float = math.inf,
    **learning: float,
) -> tuple[Field, float]:
    """Run one of our policies over a history; `known` are the rates that it knows, None: it learns them.

    After `explore_until` no crawl is made for the sake of learning any more, though all teach. The second result is the
    freshness that it stated, on average over the scored time; NaN if it does not learn.
    """
    pages, step = history.pages, 1.0 / budget
    field = new_field(history, score_from)
    table = new_table(pages, typical_rate=budget / pages, now=history.start, memory=memory, **learning)  # type: ignore[arg-type]
    scheduler = Scheduler(budget=budget, policy=policy, exact=exact)
    weight = history.weight / history.weight.sum()
    change_rate, recall, false_rate = known or (beliefs_of(table, 0, history.start)[0], 0.0, 0.0)
    scheduler.add_many(
        request_rate=weight,
        change_rate=change_rate,
        recall=recall,
        false_rate=false_rate,
        now=history.start,
        age=0.0,
    )
    signals = np.zeros(pages, np.int64)
    setting = Setting(known is None, weight, heard.time, heard.page, signals, history.start, step, random_every)
    ticks = int((history.end - history.start) / step) + 1
    each = max(1, pages // _LOOKS_PER_ROUND)
    next_signal = 0
    stated = []
    for first in range(1, ticks + 1, each):
        last = min(first + each - 1, ticks)
        if history.start + first * step > explore_until:
            table.control[CURIOSITY] = 0.0
            setting = setting._replace(random_every=0)
        next_signal = run_learning(scheduler.state.core, table, field, setting, first, last, next_signal)
        now = history.start + last * step
        if setting.learns and score_from < now <= history.end:
            stated.append(stated_freshness(table, field, setting, now))
    return field, float(np.mean(stated)) if stated else float("nan")

"""Our schedule over a history: it knows no rate, and learns from its own crawls, on the live scheduler's own table."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.table import Table, beliefs_of, learn_crawl, new_table, refresh_prior
from afresh.schedule import Scheduler
from afresh.schedule.events import believe, replace, signal
from afresh.schedule.memory import control_at
from afresh.schedule.turn import crawl, take
from afresh.sim.field import Field, new_field, visit
from afresh.sim.history import SILENCE, Heard, History
from afresh.value.compiled import compiled

_SWEEPS_PER_ROUND = 0.5  # the prior is refreshed, and all beliefs with it, twice in the time of a visit to every page


class Setting(NamedTuple):
    """How the run goes, for the compiled loop."""

    learns: bool  # False: beliefs stay as they are
    signal_time: NDArray[np.float64]
    signal_page: NDArray[np.int64]
    signals: NDArray[np.int64]  # heard of each page since its copy was current
    start: float
    step: float


@compiled
def _hear(core: int, table: Table, setting: Setting, heard: int, now: float) -> int:
    """Take in the signals that have arrived; the index of the next one."""
    while heard < setting.signal_time.size and setting.signal_time[heard] <= now:
        page = setting.signal_page[heard]
        setting.signals[page] += 1
        table.signals[page] += 1.0
        signal(core, page, max(setting.signal_time[heard], setting.start), 1)
        heard += 1
    return heard


@compiled
def _fetch(core: int, table: Table, field: Field, setting: Setting, page: int, now: float) -> None:
    """A page was picked: visit it, learn from what is found, and let its age start again."""
    elapsed = now - field.current[page]
    changed = visit(field, page, now)
    if setting.learns:
        learn_crawl(table, page, elapsed, float(setting.signals[page]), changed)
        change_rate, recall, false_rate = beliefs_of(table, page, now)
        believe(core, page, change_rate, recall, false_rate)
    setting.signals[page] = 0
    crawl(core, page, now)


@compiled
def run_learning(core: int, table: Table, field: Field, setting: Setting, first: int, last: int, heard: int) -> int:
    """The ticks from `first` to `last`; the index of the next signal."""
    for tick in range(first, last + 1):
        now = setting.start + tick * setting.step
        if now > field.span[1]:
            break
        heard = _hear(core, table, setting, heard, now)
        page = take(core, now)
        if page >= 0:
            _fetch(core, table, field, setting, page, now)
    return heard


@compiled
def believe_all(core: int, table: Table, now: float) -> None:
    """Refresh the prior, and what follows from it for every page."""
    refresh_prior(table)
    for page in range(table.observations.size):
        change_rate, recall, false_rate = beliefs_of(table, page, now)
        believe(core, page, change_rate, recall, false_rate)
        replace(core, page, now)
    control_at(core).changes += table.observations.size


def replay_learned(
    history: History,
    *,
    budget: float,
    score_from: float,
    policy: str = "greedy-ncis",
    heard: Heard = SILENCE,
    rates: NDArray[np.float64] | None = None,
    memory: float = np.inf,
    exact: bool = False,
) -> Field:
    """Run one of our policies over a history; `rates` are change rates that it knows, None: it learns them."""
    pages, step = history.pages, 1.0 / budget
    field = new_field(history, score_from)
    table = new_table(pages, typical_rate=budget / pages, now=history.start, memory=memory)
    scheduler = Scheduler(budget=budget, policy=policy, exact=exact)
    scheduler.add_many(
        request_rate=history.weight / history.weight.sum(),
        change_rate=beliefs_of(table, 0, history.start)[0] if rates is None else rates,
        now=history.start,
        age=0.0,
    )
    setting = Setting(rates is None, heard.time, heard.page, np.zeros(pages, np.int64), history.start, step)
    ticks = int((history.end - history.start) / step) + 1
    each = max(1, int(pages * _SWEEPS_PER_ROUND))
    next_signal = 0
    for first in range(1, ticks + 1, each):
        next_signal = run_learning(
            scheduler.state.core, table, field, setting, first, min(first + each - 1, ticks), next_signal
        )
        now = history.start + min(first + each - 1, ticks) * step
        if setting.learns and now < history.end:
            believe_all(scheduler.state.core, table, now)
    return field

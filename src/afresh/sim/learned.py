"""Our schedule over a history: it knows no rate, and learns from its own crawls, on the live scheduler's own table."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.activity import TOLD_OF_A_CHANGE
from afresh.estimate.online import (
    DEFAULT_MEMORY,
    GLANCES,
    Table,
    beliefs_of,
    fresh_probability_of,
    glance,
    hear_signals,
    learn_crawl,
    new_table,
    posterior_of,
)
from afresh.estimate.senders import Senders
from afresh.schedule import DEFAULT_SWEEP, Scheduler
from afresh.schedule.wheel.events import believe, remove, replace, resume, signal, urge
from afresh.schedule.wheel.memory import page_at
from afresh.schedule.wheel.turn import crawl, take
from afresh.sim.field import Field, coming, is_gone, new_field, visit
from afresh.sim.hearing import Hearing, counted, hear, heard_out, hearing_of, learn_senders
from afresh.sim.history import SILENCE, Heard, History
from afresh.sim.siblings import Siblings, age_of, fresh_by_time, next_sibling, siblings_of, tell
from afresh.value.compiled import compiled
from afresh.value.predictive import predictive_staleness

_LOOKS_PER_ROUND = 10  # how often what is stated is compared, in the time of a visit to every page
_GOLDEN = 0.6180339887  # its multiples are spread evenly over the parts of one
_NOT_KEPT = np.empty(0, np.int64)
Known = tuple[NDArray[np.float64], NDArray[np.float64] | float, NDArray[np.float64] | float]  # Δ, recall, false rate


class Setting(NamedTuple):
    """How the run goes, for the compiled loop."""

    learns: bool  # False: beliefs stay as they are
    certain: bool  # rates are scheduled by as if they were known exactly, for comparison
    weight: NDArray[np.float64]  # of each page, together 1
    signal_time: NDArray[np.float64]
    signal_page: NDArray[np.int64]
    signals: NDArray[np.int64]  # heard of each page since its copy was current
    start: float
    step: float
    random_every: int  # every n-th tick crawls a random page, for comparison; 0: never
    siblings: Siblings
    hearing: Hearing
    picks: NDArray[np.int64]  # the page that every tick went to, if there is room
    coming: NDArray[np.int64]  # pages that are born on the way
    born: NDArray[np.int64]  # how many of them are


@compiled
def _believe(core: int, table: Table, field: Field, setting: Setting, page: int, now: float) -> None:
    """Tell the scheduler what is believed of a page and its copy."""
    change_rate, recall, false_rate, shape = beliefs_of(table, page, now)
    believe(core, page, change_rate, recall, false_rate, math.inf if setting.certain else shape)
    record = page_at(core, page)
    record.signals = _count(setting, page)
    if setting.siblings.ranks:
        record.current = now - age_of(setting.siblings, page, field.current[page], now)


@compiled
def _count(setting: Setting, page: int) -> float:
    """Signals since the copy was current, as a number of good ones."""
    if not setting.hearing.weighs or setting.signals[page] == 0:
        return float(setting.signals[page])
    return counted(setting.hearing, page)


@compiled
def _fetch(core: int, table: Table, field: Field, setting: Setting, page: int, now: float) -> None:
    """A page was picked: visit it, learn from what is found, and let its age start again."""
    current = field.current[page]
    changed = visit(field, page, now)
    if is_gone(field, page, now):
        remove(core, page)
        return
    if setting.learns:
        _check(table, field, setting, page, current, now, changed)
        _learn(table, setting, page, current, now, changed)
    setting.signals[page] = 0
    heard_out(setting.hearing, page, changed)
    if setting.learns:
        _believe(core, table, field, setting, page, now)
    crawl(core, page, now)
    if setting.siblings.ranks and changed:
        for _ in range(TOLD_OF_A_CHANGE):
            _believe_anew(core, table, field, setting, next_sibling(setting.siblings, page), now)


@compiled
def _said(table: Table, setting: Setting, page: int, current: float, now: float) -> float:
    """How likely the copy is to be current, as it is stated."""
    plain = fresh_probability_of(table, page, now - current, 0.0)
    said = fresh_by_time(setting.siblings, page, current, now, -math.log(max(plain, 1e-300)))
    if setting.signals[page] == 0:
        return said
    return said * fresh_probability_of(table, page, now - current, _count(setting, page)) / max(plain, 1e-300)


@compiled
def _check(table: Table, field: Field, setting: Setting, page: int, current: float, now: float, changed: bool) -> None:
    """Compare what was believed of the copy with what the visit found."""
    if now > field.span[0]:
        wrong = _said(table, setting, page, current, now) - (not changed)
        field.said[0] += 1.0
        field.said[1] += wrong * wrong


@compiled
def _learn(table: Table, setting: Setting, page: int, current: float, now: float, changed: bool) -> None:
    elapsed, signals = now - current, _count(setting, page)
    if setting.siblings.on or setting.hearing.weighs:
        alpha, shape, b = posterior_of(table, page, signals)
        by_time = predictive_staleness(elapsed, 0.0, alpha, b, shape)
        if setting.hearing.weighs and setting.signals[page] > 0:
            stretched = predictive_staleness(age_of(setting.siblings, page, current, now), 0.0, alpha, b, shape)
            learn_senders(setting.hearing, page, stretched, b, changed)
        tell(setting.siblings, page, current, now, by_time, b * signals, changed)
    learn_crawl(table, page, elapsed, signals, changed)


@compiled
def _believe_anew(core: int, table: Table, field: Field, setting: Setting, page: int, now: float) -> None:
    if is_gone(field, page, field.current[page]) or field.births[page] > now:
        return  # a visit found that out, or it is not born
    _believe(core, table, field, setting, page, now)
    replace(core, page, now)


@compiled
def _hear(core: int, table: Table, field: Field, setting: Setting, heard: int, now: float) -> int:
    """Take in the signals that have arrived; the index of the next one."""
    while heard < setting.signal_time.size and setting.signal_time[heard] <= now:
        page = setting.signal_page[heard]
        setting.signals[page] += 1
        arrived = max(setting.signal_time[heard], setting.start)
        weighs = setting.hearing.weighs
        count = hear(setting.hearing, heard, page, arrived - field.current[page]) if weighs else 1.0
        hear_signals(table, page, count, arrived)
        if not is_gone(field, page, field.current[page]) and field.births[page] <= arrived:
            # What is believed of the page hardly changes by a signal, and is found anew when it is its turn.
            signal(core, page, arrived, _count(setting, page) - page_at(core, page).signals)
        heard += 1
    return heard


@compiled
def _bear(core: int, table: Table, field: Field, setting: Setting, now: float) -> None:
    """Pages that were born until now are known from their birth on, with a copy of then."""
    while setting.born[0] < setting.coming.size:
        page = setting.coming[setting.born[0]]
        birth = field.births[page]
        if birth > now:
            return
        setting.born[0] += 1
        table.pages[page].since = birth
        page_at(core, page).current = birth
        if setting.learns:
            _believe(core, table, field, setting, page, birth)
        resume(core, page, now)


@compiled
def _look_round(core: int, table: Table, field: Field, setting: Setting, now: float) -> None:
    """A few pages, in turn, learn what the others have taught their groups; all at once would make the price ring."""
    for _ in range(int(table.control[GLANCES])):
        _believe_anew(core, table, field, setting, glance(table), now)


@compiled
def run_learning(core: int, table: Table, field: Field, setting: Setting, first: int, last: int, heard: int) -> int:
    """The ticks from `first` to `last`; the index of the next signal."""
    for tick in range(first, last + 1):
        now = setting.start + tick * setting.step
        if now > field.span[1]:
            break
        _bear(core, table, field, setting, now)
        heard = _hear(core, table, field, setting, heard, now)
        if setting.random_every > 0 and tick % setting.random_every == 0:
            # A multiplier without a rhythm of its own: as good as random, and can be repeated.
            urge(core, (tick // setting.random_every * 2_654_435_761) % setting.weight.size, now)
        page = take(core, now)
        if page >= 0:
            _fetch(core, table, field, setting, page, now)
        if tick <= setting.picks.size:
            setting.picks[tick - 1] = page
        if setting.learns:
            _look_round(core, table, field, setting, now)
    return heard


@compiled
def stated_freshness(table: Table, field: Field, setting: Setting, now: float) -> tuple[float, float]:
    """The requests that would find a fresh copy, as it is stated, and all for pages that are not gone."""
    total, weight = 0.0, 0.0
    for page in range(setting.weight.size):
        if is_gone(field, page, now) or field.births[page] > now:
            continue
        weight += setting.weight[page]
        total += setting.weight[page] * _said(table, setting, page, field.current[page], now)
    return total, weight


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
    senders: Senders | None = None,
    certain: bool = False,
    sweep: float = DEFAULT_SWEEP,
    picks: NDArray[np.int64] = _NOT_KEPT,
    **learning: float,
) -> tuple[Field, float]:
    """Run one of our policies over a history; `known` are the rates that it knows, None: it learns them.

    What it learns of the senders of signals, where they have any, goes to `senders`. `certain`: the mean rate is
    used as if it were known exactly. The page that each tick went to is left in `picks`, −1: none, as
    far as there is room; the first tick is one step after the start.

    The second result is the freshness that it stated, on average over the scored time; NaN if it does not learn.
    """
    pages, step = history.pages, 1.0 / budget
    field = new_field(history, score_from)
    table = new_table(pages, typical_rate=budget / pages, now=history.start, memory=memory, **learning)  # type: ignore[arg-type]
    scheduler = Scheduler(budget=budget, policy=policy, exact=exact, sweep=sweep if known is None else 0.0)
    weight = history.weight / history.weight.sum()
    first_guess = beliefs_of(table, 0, history.start) if pages else (0.0, 0.0, 0.0, math.inf)
    change_rate, recall, false_rate = known or first_guess[:3]
    scheduler.add_many(
        request_rate=weight,
        change_rate=change_rate,
        recall=recall,
        false_rate=false_rate,
        shape=math.inf if certain or known is not None else first_guess[3],
        now=history.start,
        age=0.0,
    )
    later = coming(field, history.start)
    for page in later.tolist():
        scheduler.pause(page)
    if later.size:
        scheduler.budget = budget  # so that the price is that of the pages that are there
    signals = np.zeros(pages, np.int64)
    siblings = siblings_of(history.names if known is None else (), pages, pages * step)
    hearing = hearing_of(heard, pages, senders or Senders(), learns=known is None and policy == "greedy-ncis")
    setting = Setting(
        known is None,
        certain,
        weight,
        heard.time,
        heard.page,
        signals,
        history.start,
        step,
        random_every,
        siblings,
        hearing,
        picks,
        later,
        np.zeros(1, np.int64),
    )
    ticks = int((history.end - history.start) / step) + 1
    each = max(1, pages // _LOOKS_PER_ROUND)
    next_signal = 0
    stated = []
    for nth, first in enumerate(range(1, ticks + 1, each)):
        last = min(first + each - 1, ticks)
        next_signal = run_learning(scheduler.state.core, table, field, setting, first, last, next_signal)
        # Somewhere between two visits: right after one the copy that was visited would always count as fresh.
        now = history.start + (last + nth * _GOLDEN % 1.0) * step
        if setting.learns and score_from < now <= history.end:
            stated.append(stated_freshness(table, field, setting, now))
    fresh, asked = np.sum(stated, axis=0) if stated else (float("nan"), 1.0)
    return field, float(fresh / asked)

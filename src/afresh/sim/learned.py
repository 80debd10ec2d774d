"""Our schedule over a history: it knows no rate, and learns from its own crawls, by the live engine's own heart."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.engine import heart as does
from afresh.engine.columns import ALIKE, CERTAIN, mark_ordered
from afresh.engine.heart import Heart
from afresh.engine.hearts import CompiledHeart, Entries
from afresh.engine.opened import opened
from afresh.estimate import Activity, Learner, Senders
from afresh.estimate.activity import SLICES_PER_ROUND
from afresh.estimate.online import DEFAULT_MEMORY
from afresh.schedule import DEFAULT_SWEEP, Scheduler
from afresh.schedule.wheel.events import remove, resume, signal, urge
from afresh.schedule.wheel.memory import page_at
from afresh.schedule.wheel.turn import crawl, take
from afresh.sim.dated import Dates, first_date, first_dates, later_date, no_dates
from afresh.sim.field import Field, coming, is_gone, new_field, visit
from afresh.sim.history import SILENCE, Heard, History
from afresh.value.compiled import compiled

_LOOKS_PER_ROUND = 10  # how often what is stated is compared, in the time of a visit to every page
_GOLDEN = 0.6180339887  # its multiples are spread evenly over the parts of one
_NOT_KEPT = np.empty(0, np.int64)
Known = tuple[NDArray[np.float64], NDArray[np.float64] | float, NDArray[np.float64] | float]  # Δ, recall, false rate
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Setting(NamedTuple):
    """How the run goes, for the compiled loops."""

    weight: Floats  # of each page, together 1
    signal_time: Floats
    signal_page: Integers
    signal_sender: Integers
    signal_pair: Integers  # the row of the sender on the page's host
    start: float
    step: float
    random_every: int  # every n-th tick crawls a random page, for comparison; 0: never
    picks: Integers  # the page that every tick went to, if there is room
    coming: Integers  # pages that are born on the way
    born: Integers  # how many of them are
    dates: Dates  # what pages say of their last changes


@compiled
def _fetch(heart: Heart, field: Field, dates: Dates, page: int, now: float) -> None:
    """A page was picked: visit it, and let the heart learn from what is found, as after a live crawl."""
    before, told = field.current[page], bool(heart.pages[page]["signals"] > 0)
    mark_ordered(heart.pages, heart.heard, page)
    if now > field.span[0] and not is_gone(field, page, now):
        said = does.fresh_probability(heart, page, now)
        changed = visit(field, page, now)
        wrong = said - (not changed)
        field.said[0] += 1.0
        field.said[1] += wrong * wrong
    else:
        changed = visit(field, page, now)
    if is_gone(field, page, now):
        does.forget(heart, page)
        remove(heart.core, page)
        return
    does.check(heart, page, now, now, True, changed, changed)
    crawl(heart.core, page, now)
    does.look_round(heart, page, now, changed)
    later_date(heart, field, dates, page, before, now, changed, told)


@compiled
def _hear(heart: Heart, setting: Setting, heard: int, now: float) -> int:
    """Take in the signals that have arrived; the index of the next one. There must be room for them."""
    while heard < setting.signal_time.size and setting.signal_time[heard] <= now:
        page = setting.signal_page[heard]
        arrived = max(setting.signal_time[heard], setting.start)
        if not math.isnan(heart.pages[page]["current"]):  # it is there
            does.hear(heart, page, setting.signal_sender[heard], setting.signal_pair[heard], arrived)
            does.heard(heart, page, arrived)
        heard += 1
    return heard


@compiled
def _bear(heart: Heart, field: Field, setting: Setting, now: float) -> None:
    """Pages that were born until now are known from their birth on, with a copy of then."""
    while setting.born[0] < setting.coming.size:
        page = setting.coming[setting.born[0]]
        birth = field.births[page]
        if birth > now:
            return
        setting.born[0] += 1
        heart.table.pages[page].since = birth
        heart.pages[page]["current"] = birth
        does.believe(heart, page, birth)
        resume(heart.core, page, now)
        first_date(heart, field, setting.dates, page, birth)


@compiled
def _urge_at_random(core: int, setting: Setting, tick: int, now: float) -> None:
    if setting.random_every > 0 and tick % setting.random_every == 0:
        # A multiplier without a rhythm of its own: as good as random, and can be repeated.
        urge(core, (tick // setting.random_every * 2_654_435_761) % setting.weight.size, now)


@compiled
def run_learning(at: int, field: Field, setting: Setting, first: int, last: int, heard: int) -> int:
    """The ticks from `first` to `last`; the index of the next signal."""
    heart = opened(at)
    for tick in range(first, last + 1):
        now = setting.start + tick * setting.step
        if now > field.span[1]:
            break
        _bear(heart, field, setting, now)
        heard = _hear(heart, setting, heard, now)
        _urge_at_random(heart.core, setting, tick, now)
        page = take(heart.core, now)
        if page >= 0:
            _fetch(heart, field, setting.dates, page, now)
        if tick <= setting.picks.size:
            setting.picks[tick - 1] = page
    return heard


@compiled
def begin(at: int, field: Field, setting: Setting) -> None:
    """The start: what the pages that are there say at their first crawls."""
    first_dates(opened(at), field, setting.dates, setting.start)


@compiled
def run_knowing(core: int, field: Field, setting: Setting, last: int) -> None:
    """All ticks of a schedule that knows the rates, and learns nothing."""
    heard = 0
    for tick in range(1, last + 1):
        now = setting.start + tick * setting.step
        if now > field.span[1]:
            return
        while setting.born[0] < setting.coming.size and field.births[setting.coming[setting.born[0]]] <= now:
            page = setting.coming[setting.born[0]]
            page_at(core, page).current = field.births[page]
            resume(core, page, now)
            setting.born[0] += 1
        while heard < setting.signal_time.size and setting.signal_time[heard] <= now:
            page, arrived = setting.signal_page[heard], max(setting.signal_time[heard], setting.start)
            if not is_gone(field, page, field.current[page]) and field.births[page] <= arrived:
                signal(core, page, arrived, 1.0)
            heard += 1
        _urge_at_random(core, setting, tick, now)
        page = take(core, now)
        if page >= 0:
            visit(field, page, now)
            if is_gone(field, page, now):
                remove(core, page)
            else:
                crawl(core, page, now)
        if tick <= setting.picks.size:
            setting.picks[tick - 1] = page


@compiled
def stated_freshness(at: int, field: Field, weight: Floats, now: float) -> tuple[float, float]:
    """The requests that would find a fresh copy, as it is stated, and all for pages that are not gone."""
    heart = opened(at)
    total, asked = 0.0, 0.0
    for page in range(weight.size):
        if is_gone(field, page, now) or field.births[page] > now:
            continue
        asked += weight[page]
        total += weight[page] * does.fresh_probability(heart, page, now)
    return total, asked


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
    picks: Integers = _NOT_KEPT,
    dates: Dates | None = None,
    kinds: Integers | None = None,
    **learning: float,
) -> tuple[Field, float]:
    """Run one of our policies over a history; `known` are the rates that it knows, None: it learns them.

    Who learns makes the picks of a live `Engine` that was given all pages and the names of all senders at the start.
    What it learns of the senders of signals, where they have any, goes to `senders`. `certain`: the mean rate is
    used as if it were known exactly. The page that each tick went to is left in `picks`, −1: none, as
    far as there is room; the first tick is one step after the start. `dates` are what pages say of their last changes,
    `kinds` of what kinds they are, as `estimate.kinds.pack` gives them.

    The second result is the freshness that it stated, on average over the scored time; NaN if it does not learn.
    """
    pages, step = history.pages, 1.0 / budget
    field = new_field(history, score_from)
    scheduler = Scheduler(budget=budget, policy=policy, exact=exact, sweep=sweep if known is None else 0.0)
    weight = history.weight / history.weight.sum()
    ticks = int((history.end - history.start) / step) + 1
    later = coming(field, history.start)
    setting = Setting(
        weight=weight,
        signal_time=heard.time,
        signal_page=heard.page,
        signal_sender=np.zeros(len(heard.time), np.int64) if heard.sender is None else heard.sender,
        signal_pair=np.zeros(len(heard.time), np.int64),
        start=history.start,
        step=step,
        random_every=random_every,
        picks=picks,
        coming=later,
        born=np.zeros(1, np.int64),
        dates=no_dates() if dates is None else dates,
    )
    if known is not None:
        change_rate, recall, false_rate = known
        scheduler.add_many(
            request_rate=weight,
            change_rate=change_rate,
            recall=recall,
            false_rate=false_rate,
            now=history.start,
            age=0.0,
        )
        _wait_for_birth(scheduler, later)
        run_knowing(scheduler.state.core, field, setting, ticks)
        return field, math.nan
    learner = Learner(typical_rate=budget / pages, memory=memory, **learning)  # type: ignore[arg-type]
    activity = Activity(width=pages * step / SLICES_PER_ROUND) if history.names else None
    machine = CompiledHeart(scheduler, learner, activity, senders)
    machine.columns.control[CERTAIN] = certain
    machine.columns.control[ALIKE] = heard.sender is None or policy != "greedy-ncis"
    slots = machine.enter_many(history.start, _entries(history, machine, weight))
    if kinds is not None:
        learner.table.pages["kind"][slots] = kinds
    machine.believe_many(slots, history.start)
    machine.settle_many(slots, history.start)
    _wait_for_birth(scheduler, later)
    machine.columns.pages["current"][later] = math.nan
    setting = setting._replace(signal_pair=_pairs(history, heard, machine.senders))
    return field, _learn(machine, field, setting, ticks)


def _learn(machine: CompiledHeart, field: Field, setting: Setting, ticks: int) -> float:
    """Run all ticks; the freshness that was stated meanwhile."""
    each = max(1, len(setting.weight) // _LOOKS_PER_ROUND)
    heard, stated = 0, []
    if setting.dates.host.size:
        begin(machine.at, field, setting)
    for nth, first in enumerate(range(1, ticks + 1, each)):
        last = min(first + each - 1, ticks)
        to_come = np.searchsorted(setting.signal_time, setting.start + last * setting.step, side="right")
        machine.columns.room_for_heard(int(to_come) - heard)
        heard = run_learning(machine.at, field, setting, first, last, heard)
        # Somewhere between two visits: right after one the copy that was visited would always count as fresh.
        now = setting.start + (last + nth * _GOLDEN % 1.0) * setting.step
        if field.span[0] < now <= field.span[1]:
            stated.append(stated_freshness(machine.at, field, setting.weight, now))
    fresh, asked = np.sum(stated, axis=0) if stated else (math.nan, 1.0)
    return float(fresh / asked)


def _wait_for_birth(scheduler: Scheduler, later: Integers) -> None:
    for page in later.tolist():
        scheduler.pause(page)
    if later.size:
        scheduler.budget = scheduler.budget  # so that the price is that of the pages that are there


def _entries(history: History, machine: CompiledHeart, weight: Floats) -> Entries:
    """The pages of a history, with the groups and branches that their names give them, as in a live run."""
    pages = history.pages
    places = [machine.place(*address_of(name)) for name in history.names] or [(-1, 0)] * pages
    branch, group = np.array(places, np.int64).reshape(-1, 2).T
    return Entries(
        host=np.full(pages, -1),
        branch=branch,
        group=group,
        current=np.full(pages, history.start),
        importance=weight,
        failures=np.zeros(pages, np.int64),
        flags=np.zeros(pages, np.int64),
    )


def _pairs(history: History, heard: Heard, senders: Senders) -> Integers:
    """The row of each signal's sender on the host of its page."""
    if heard.sender is None or not len(heard.time):
        return np.zeros(len(heard.time), np.int64)
    numbers = [senders.number(str(number)) for number in range(int(heard.sender.max()) + 1)]
    hosts = [address_of(name)[1] for name in history.names] or [""] * history.pages
    return np.array([senders.row(hosts[page], numbers[k]) for page, k in zip(heard.page, heard.sender, strict=True)])


def address_of(name: str) -> tuple[str, str]:
    """A page's address and its host, whether there is a scheme before it or not; "" is the host of a path alone.

    >>> address_of("https://example.com/a/b"), address_of("example.com/a/b")
    (('https://example.com/a/b', 'example.com'), ('example.com/a/b', 'example.com'))
    >>> address_of("/docs/a.html"), address_of("17")
    (('/docs/a.html', ''), ('/17', ''))
    """
    if "/" not in name:
        return f"/{name}", ""
    return name, name.split("//", 1)[-1].split("/", 1)[0]

"""A rule of somebody else's over a history: due pages at a constant rate, the oldest due first."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.schedule.peer_rules import PeerRule
from afresh.sim.field import Field, coming, is_gone, new_field, visit
from afresh.sim.history import History
from afresh.sim.queue import Queue, new_queue, pop, push
from afresh.sim.rules import Intervals, first_due, new_intervals, next_due
from afresh.value.compiled import compiled


class Machine(NamedTuple):
    """A rule at work."""

    rule: PeerRule
    intervals: Intervals
    waiting: Queue  # by the time they may be taken
    ready: Queue  # by age of the copy, for rules that take the oldest copy first
    coming: NDArray[np.int64]  # pages that are born on the way


@compiled
def _next_page(machine: Machine, now: float, early: bool) -> int:
    """The page that goes now; −1: none is due, and none is fetched early."""
    waiting, ready = machine.waiting, machine.ready
    if machine.rule.wait == 0.0:
        if early or (waiting.size[0] > 0 and waiting.key[0] <= now):
            return pop(waiting)
        return -1
    while waiting.size[0] > 0 and waiting.key[0] <= now:
        due = pop(waiting)
        push(ready, due, machine.intervals.interval[due])
    if ready.size[0] > 0:
        return pop(ready)
    return pop(waiting) if early else -1


@compiled
def _wait(machine: Machine, page: int, now: float, due: float) -> None:
    """The copy of a page is of now; it is due again at a moment."""
    if machine.rule.wait > 0.0:
        machine.intervals.interval[page] = now
    push(machine.waiting, page, due + machine.rule.wait)


@compiled
def run_rule(machine: Machine, field: Field, start: float, step: float, early: bool, order: NDArray[np.int64]) -> None:
    """Visit one page a tick until the end, beginning with every page once, in the given order."""
    now = start
    tick = 0
    born = 0
    while True:
        tick += 1
        now = start + tick * step
        if now > field.span[1]:
            return
        while born < machine.coming.size and field.births[machine.coming[born]] <= now:
            page = machine.coming[born]
            _wait(machine, page, field.births[page], first_due(machine.rule, machine.intervals, field, page))
            born += 1
        page = order[tick - 1] if tick <= order.size else _next_page(machine, now, early)
        if page < 0:
            continue
        changed = visit(field, page, now)
        if is_gone(field, page, now):
            continue
        _wait(machine, page, now, next_due(machine.rule, machine.intervals, field, page, now, changed))


def replay_rule(
    history: History, rule: PeerRule, *, budget: float, score_from: float, early: bool = True, seed: int = 0
) -> Field:
    """Run a rule over a history from its start; scored from `score_from`.

    `early`: a budget that would be left over is spent on the page that will be due next, so that a comparison at equal
    budget is one; otherwise the rule rests until somebody is due.
    """
    field = new_field(history, score_from)
    machine = Machine(
        rule,
        new_intervals(field, rule),
        new_queue(history.pages),
        new_queue(history.pages),
        coming(field, history.start),
    )
    order = np.random.default_rng([seed, 1]).permutation(np.flatnonzero(field.births <= history.start))
    run_rule(machine, field, history.start, 1.0 / budget, early, order)
    return field


@compiled
def run_rates(
    field: Field, queue: Queue, interval: NDArray[np.float64], coming: NDArray[np.int64], start: float, step: float
) -> None:
    """Constant rates, evenly spaced: the page whose next visit is due first goes, one a tick.

    Pages that are born on the way join those that are there; until then these share all of the budget.
    """
    tick = 0
    born = 0
    while queue.size[0] > 0 or born < coming.size:
        tick += 1
        now = start + tick * step
        if now > field.span[1]:
            return
        while born < coming.size and field.births[coming[born]] <= now:
            push(queue, coming[born], (queue.key[0] if queue.size[0] > 0 else now) + interval[coming[born]])
            born += 1
        if queue.size[0] == 0:
            continue
        due = queue.key[0]
        page = pop(queue)
        visit(field, page, now)
        if not is_gone(field, page, now):
            push(queue, page, due + interval[page])


def replay_rates(
    history: History, rates: NDArray[np.float64], *, budget: float, score_from: float, seed: int = 0
) -> Field:
    """Visit every page at its own constant rate, at most `budget` visits per second; a page of rate 0 never."""
    field = new_field(history, score_from)
    queue = new_queue(history.pages)
    phases = np.random.default_rng([seed, 2]).random(history.pages)
    with np.errstate(divide="ignore"):
        interval = np.where(rates > 0, 1.0 / rates, np.inf)
    for page in np.flatnonzero((rates > 0) & (field.births <= history.start)):
        push(queue, int(page), history.start + phases[page] * interval[page])
    later = coming(field, history.start)
    run_rates(field, queue, interval, later[rates[later] > 0], history.start, 1.0 / budget)
    return field

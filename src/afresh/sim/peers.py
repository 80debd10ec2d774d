"""A rule of somebody else's over a history: due pages at a constant rate, the oldest due first."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.sim.field import Field, is_gone, new_field, visit
from afresh.sim.history import History
from afresh.sim.queue import Queue, new_queue, pop, push
from afresh.sim.rules import Intervals, Rule, new_intervals, next_due
from afresh.value.compiled import compiled


class Machine(NamedTuple):
    """A rule at work."""

    rule: Rule
    intervals: Intervals
    waiting: Queue  # by the time they may be taken
    ready: Queue  # by age of the copy, for rules that take the oldest copy first


@compiled
def _next_page(machine: Machine, now: float, early: bool) -> int:
    """Who goes now; −1: nobody is due, and nobody is fetched early."""
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
def run_rule(machine: Machine, field: Field, start: float, step: float, early: bool, order: NDArray[np.int64]) -> None:
    """Visit one page a tick until the end, beginning with every page once, in the given order."""
    now = start
    tick = 0
    while True:
        tick += 1
        now = start + tick * step
        if now > field.span[1]:
            return
        page = order[tick - 1] if tick <= order.size else _next_page(machine, now, early)
        if page < 0:
            continue
        changed = visit(field, page, now)
        if is_gone(field, page, now):
            continue
        due = next_due(machine.rule, machine.intervals, field, page, now, changed, start)
        if machine.rule.wait > 0.0:
            machine.intervals.interval[page] = now
        push(machine.waiting, page, due + machine.rule.wait)


def replay_rule(
    history: History, rule: Rule, *, budget: float, score_from: float, early: bool = True, seed: int = 0
) -> Field:
    """Run a rule over a history from its start; scored from `score_from`.

    `early`: a budget that would be left over is spent on the page that will be due next, so that a comparison at equal
    budget is one; otherwise the rule rests until somebody is due.
    """
    field = new_field(history, score_from)
    machine = Machine(
        rule,
        new_intervals(history.pages, rule, history.start),
        new_queue(history.pages),
        new_queue(history.pages),
    )
    order = np.random.default_rng([seed, 1]).permutation(history.pages)
    run_rule(machine, field, history.start, 1.0 / budget, early, order)
    return field


@compiled
def run_rates(field: Field, queue: Queue, interval: NDArray[np.float64], start: float, step: float) -> None:
    """Constant rates, evenly spaced: the page whose next visit is due first goes, one a tick."""
    tick = 0
    while queue.size[0] > 0:
        tick += 1
        now = start + tick * step
        if now > field.span[1]:
            return
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
    for page in np.flatnonzero(rates > 0):
        push(queue, int(page), history.start + phases[page] * interval[page])
    run_rates(field, queue, interval, history.start, 1.0 / budget)
    return field

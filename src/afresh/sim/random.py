"""Refreshing at random, by refresh probabilities over beliefs that are learned on the way."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.online import GLANCES, Table, beliefs_of, glance, learn_crawl, new_table
from afresh.sim.alias import alias_table, draw
from afresh.sim.field import Field, new_field, visit
from afresh.sim.history import History
from afresh.value import refresh_probabilities
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]


@compiled
def _run(
    table: Table,
    field: Field,
    chances: tuple[Floats, NDArray[np.int32]],
    rng: Any,
    clock: tuple[float, float],
    ticks: int,
) -> None:
    """So many ticks from a moment on, each with a page drawn by its chance."""
    begin, step = clock
    for tick in range(1, ticks + 1):
        now = begin + tick * step
        if now > field.span[1]:
            return
        page = draw(rng, chances[0], chances[1])
        elapsed = now - field.current[page]
        changed = visit(field, page, now)
        learn_crawl(table, page, elapsed, 0.0, changed)
        for _ in range(int(table.control[GLANCES])):
            glance(table)


@compiled
def _change_rates(table: Table, now: float) -> Floats:
    rates = np.empty(table.pages.size)
    for page in range(rates.size):
        rates[page] = beliefs_of(table, page, now)[0]
    return rates


def replay_random(history: History, *, budget: float, score_from: float, seed: int = 0) -> Field:
    """Each tick refreshes one page at random; the probabilities are solved anew twice in a sweep's time."""
    pages, step = history.pages, 1.0 / budget
    field = new_field(history, score_from)
    table = new_table(pages, typical_rate=budget / pages, now=history.start)
    rng = np.random.default_rng([seed, 3])
    each = max(1, pages // 2)
    now = history.start
    while now < history.end:
        changes = -np.expm1(-_change_rates(table, now) * step)
        # What a visit found gone is not visited again, and nobody visits what is not born.
        weight = np.where((field.current >= field.ends) | (field.births > now), 0.0, history.weight)
        probabilities = refresh_probabilities(weight, changes, budget=1.0)
        _run(table, field, alias_table(np.asarray(probabilities, np.float64)), rng, (now, step), each)
        now += each * step
    return field

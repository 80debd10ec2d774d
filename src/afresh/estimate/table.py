"""Learning for many pages at once: the grid posterior of `grid`, compiled, on arrays.

The same model as `Grid`: P(changed) = 1 − exp(−(α·elapsed + b·signals)), α from a grid for every page, b from one for
all pages together, and a prior over α that is the average of what the pages turned out to be. Two things differ: the
prior is refreshed now and then (`refresh_prior`) and not after every crawl, so that a crawl costs about a microsecond;
and what was seen long ago counts less: a page's evidence fades with `memory` seconds, for pages change their ways.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.value.compiled import compiled

Floats = NDArray[np.float64]

DECADES = 3.0  # the grid reaches this far to either side of the typical rate
POINTS = 37
PRIOR_SPREAD = 1.0  # decades
PRIOR_PAGES = 2.0  # how many pages' worth the first guess weighs
SIGNAL_WEIGHTS = np.concatenate([[0.0], np.geomspace(0.05, 10.0, 20)])
_LEAST = -12.0  # one odd crawl cannot rule a rate out

SIGNAL_WEIGHT, MEMORY, WATCH = range(3)  # indices of `numbers`


class Table(NamedTuple):
    """What is believed of all pages."""

    rates: Floats  # the grid
    log_rates: Floats
    prior: Floats  # probability of each rate for a page of which nothing is known
    guess: Floats  # the first guess of it
    likelihood: NDArray[np.float32]  # log; pages × grid
    observations: NDArray[np.int32]
    signals: Floats  # heard of each page
    since: Floats  # the page is watched since then
    signal_likelihood: Floats  # log; of each of SIGNAL_WEIGHTS
    numbers: Floats


def new_table(pages: int, *, typical_rate: float, now: float, memory: float = math.inf) -> Table:
    """Nothing is known yet; any guess of the typical change rate within an order of magnitude or two will do."""
    exponents = np.linspace(-DECADES, DECADES, POINTS)
    guess = np.exp(-0.5 * (exponents / PRIOR_SPREAD) ** 2)
    guess /= guess.sum()
    table = Table(
        rates=typical_rate * 10**exponents,
        log_rates=math.log(typical_rate) + math.log(10) * exponents,
        prior=guess.copy(),
        guess=guess,
        likelihood=np.zeros((pages, POINTS), np.float32),
        observations=np.zeros(pages, np.int32),
        signals=np.zeros(pages),
        since=np.full(pages, float(now)),
        signal_likelihood=-0.5 * (SIGNAL_WEIGHTS / 5.0) ** 2,  # a mild doubt that signals say much
        numbers=np.array([0.0, memory, 0.01 / typical_rate]),
    )
    table.numbers[SIGNAL_WEIGHT] = _mean_weight(table)
    return table


@compiled
def _log_probability(x: float, changed: bool) -> float:
    if changed:
        return max(_LEAST, math.log(-math.expm1(-max(x, 1e-12))))
    return max(_LEAST, -x)


@compiled
def _mean_weight(table: Table) -> float:
    likelihood = table.signal_likelihood
    top = likelihood.max()
    total, mean = 0.0, 0.0
    for k in range(likelihood.size):
        p = math.exp(likelihood[k] - top)
        total += p
        mean += p * SIGNAL_WEIGHTS[k]
    return mean / total


@compiled
def silent_rate(table: Table, page: int) -> float:
    """α as the schedule should take it: the geometric mean.

    The arithmetic mean is ruled by high rates that are not yet excluded, and such pages would not be looked at; the
    harmonic mean by low ones, and looks at too many. Between them lies what did best where evidence is thin.
    """
    row = table.likelihood[page]
    total, mean = 0.0, 0.0
    for k in range(row.size):
        p = table.prior[k] * math.exp(row[k])
        total += p
        mean += p * table.log_rates[k]
    return math.exp(mean / total)


@compiled
def learn_crawl(table: Table, page: int, elapsed: float, signals: float, changed: bool) -> None:
    """One checked interval: the copy was `elapsed` old, had heard `signals`, and had or had not changed."""
    row = table.likelihood[page]
    if signals > 0.0:
        silent = silent_rate(table, page) * elapsed
        top = -math.inf
        for k in range(table.signal_likelihood.size):
            table.signal_likelihood[k] += _log_probability(silent + SIGNAL_WEIGHTS[k] * signals, changed)
            top = max(top, table.signal_likelihood[k])
        for k in range(table.signal_likelihood.size):
            table.signal_likelihood[k] -= top
        table.numbers[SIGNAL_WEIGHT] = _mean_weight(table)
    weight = table.numbers[SIGNAL_WEIGHT]
    fading = math.exp(-elapsed / table.numbers[MEMORY])
    top = -math.inf
    for k in range(row.size):
        row[k] = row[k] * fading + _log_probability(table.rates[k] * elapsed + weight * signals, changed)
        top = max(top, np.float64(row[k]))
    for k in range(row.size):
        row[k] -= top
    table.observations[page] += 1


@compiled
def beliefs_of(table: Table, page: int, now: float) -> tuple[float, float, float]:
    """(change_rate, recall, false_rate) of a page."""
    silent = silent_rate(table, page)
    heard = table.signals[page] / (max(0.0, now - table.since[page]) + table.numbers[WATCH])
    false_rate = heard * math.exp(-table.numbers[SIGNAL_WEIGHT])
    change_rate = silent + heard - false_rate
    return change_rate, (heard - false_rate) / change_rate, false_rate


@compiled
def refresh_prior(table: Table) -> None:
    """Let the prior be the average of what the pages turned out to be."""
    mass = table.guess * PRIOR_PAGES
    share = np.empty(table.rates.size)
    for page in range(table.observations.size):
        if table.observations[page] > 0:
            row = table.likelihood[page]
            total = 0.0
            for k in range(row.size):
                share[k] = table.prior[k] * math.exp(row[k])
                total += share[k]
            for k in range(row.size):
                mass[k] += share[k] / total
    table.prior[:] = mass / mass.sum()

"""Learning for many pages: compiled, O(1) a crawl, 72 bytes a page, with priors that groups of pages share.

A page's crawls are kept as the eight sums of `sums`, its requests as two counts that fade. Pages belong to groups (a
path pattern within a host within everything). Each group knows how its pages are distributed over some silent rates α
and signal weights b (`points`). At every crawl a few other pages are glanced at in turn; after a whole turn each
group's priors become what its members turned out to be, with some pages' worth of its parent's (empirical Bayes, by
expectation and maximisation). Nothing jumps: a schedule whose beliefs all change at the same moment would ring.

What was seen fades, by crawls and by time, so belief goes back towards what pages of the group are like: pages change
their ways, and one that was silent for a year may wake. All times follow from the typical interval, which is about
that between two visits to a page: a collection that changes by the second is learned like one that changes by the year.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.estimate import dates
from afresh.estimate.kinds import (
    CONTROL_SIZE,
    FIRST_GUESS,
    FIRST_OWN,
    GUESSES,
    JUDGED_CRAWLS,
    JUDGES,
    add_found,
    judge,
    prior_of,
    start,
)
from afresh.estimate.points import (
    PAIRS,
    RATES,
    WEIGHTS,
    fresh_of,
    guessed_rates,
    guessed_weights,
    rate_of,
    spread_rates,
    weigh_pairs,
    weigh_rates,
    weight_beside,
    weight_of,
)
from afresh.estimate.sums import FEW, SUMS, add_crawl, tell_of_signals
from afresh.value.compiled import compiled

Records = NDArray[Any]
Floats = NDArray[np.float64]

PAGE = np.dtype(
    [
        ("since", "f8"),  # watched since then
        ("asked", "f4"),  # how long after that the counts of requests were last brought up to date
        ("sums", "f4", (SUMS,)),
        ("heard", "f4"),  # signals, a count that fades
        ("requests", "f4"),  # a count that fades slowly
        ("burst", "f4"),  # and one that fades fast
        ("group", "i4"),
        ("observations", "u2"),
        ("kind", "u2"),  # see `kinds.pack`
        # What follows was not kept by earlier versions.
        ("heard_at", "f4"),  # how long after `since` the count of signals was last brought up to date
        ("foretold", "f4"),  # logarithm of how much it is foretold to be asked for, in times pages alike
    ]
)
GROUP = np.dtype(
    [
        ("rates", "f4", (RATES,)),  # logarithms of the chances of each silent rate, in a page of the group
        ("weights", "f4", (WEIGHTS.size,)),  # and of each signal weight
        ("found_rates", "f4", (RATES,)),  # sums of the chances of members, in the present turn
        ("found_weights", "f4", (WEIGHTS.size,)),
        ("found", "f4"),  # members about which something is known, in the present turn
        ("heard", "f4"),  # and those that sent signals
        ("members", "f4"),  # found in the turn before
        ("value", "f4"),  # of a kind: how much more its pages are wanted than others
        ("parent", "i8"),  # always an earlier one; the first group is its own
    ]
)
MAX_COUNTED = 65535
GUESS_SHAPE = 0.5  # of the first guess of α and of b: anything goes, over two orders of magnitude
GUESS_WEIGHT = 0.5  # first guess of b: a signal halves the freshness, more or less
WILD_WEIGHT = 1.0  # where the rate is a wild guess, as that of a query: its signals come from its own database
GUESS_PAGES = 2.0  # how many pages' worth the first guess weighs
PARENT_PAGES = 5.0  # and a parent's prior, in a group
SPREAD = 2 / 3  # of what is found of a rate: it may as well be one of its neighbours
WEIGHT_SPREAD = 0.25  # and of a weight
CRAWL_MEMORY = 0.98  # what a crawl leaves of what was known before it
DEFAULT_MEMORY = 100.0  # typical intervals, in which what was known fades to 1/e
SIGNAL_MEMORY = 10.0  # typical intervals, in which the count of signals fades to 1/e: silence is evidence, too
MAX_EXPECTED = 3.0  # signals in a time in which none came: more are excluded with 95 % certainty
SHORTEST_WATCH = 0.02  # typical intervals: a first signal right after the start does not mean signals without end
_LEAST = 1e-9  # chance of a point in a prior: none is ruled out for all pages

TOGETHER = 64  # neighbours that are glanced at one after another: a page alone would be far from the processor's cache
STRIDE = 0.618  # of all blocks, from one to the next

GUESSED_RATES, GUESSED_WEIGHTS = guessed_rates(GUESS_SHAPE), guessed_weights(GUESS_SHAPE, GUESS_WEIGHT)

# Indices of `control`. The memory is in typical intervals; the block is that of the pages that the hand is in. The
# usual time between two crawls of a page tells where the typical interval was guessed too short.
HAND, MEMORY, GLANCES, TYPICAL_RATE, USED, BLOCK, CRAWL_FADE, USUAL, WIDE = range(9)
OF_KINDS = 9  # from there on what `kinds` keeps,
OF_DATES = OF_KINDS + CONTROL_SIZE  # and behind it what `dates` does
_USUAL_FADE = 0.999  # a crawl
# Where the typical rate is a wild guess, the usual time is soon that of the last crawls; but not far below the guess.
_WIDE_STEP, _LEAST_USUAL = 0.1, 0.02


class Table(NamedTuple):
    """All beliefs, and working memory."""

    pages: Records
    groups: Records
    control: Floats
    chance: Floats
    pairs: Floats


def new_table(
    pages: int,
    *,
    typical_rate: float,
    now: float,
    memory: float = DEFAULT_MEMORY,
    crawl_memory: float = CRAWL_MEMORY,
    glances: int = 2,
    spread: float | None = None,
) -> Table:
    """Nothing is known yet; any guess of the typical change rate within an order of magnitude or two will do.

    `spread`: two thirds of all rates are within this factor of it, where that guess is a wild one.
    What was seen long ago counts less: a page's evidence fades with `memory` typical intervals, and with every crawl.
    """
    usual, wide = (0.0, 0.0) if spread is None else (1.0 / typical_rate, 1.0)
    control = np.array([0.0, memory, glances, typical_rate, pages, 0.0, crawl_memory, usual, wide])
    control = np.concatenate([control, np.zeros(CONTROL_SIZE + dates.CONTROL_SIZE)])
    groups = np.zeros(FIRST_OWN, GROUP)
    table = Table(np.zeros(pages, PAGE), groups, control, np.zeros(RATES + WEIGHTS.size), np.zeros(PAIRS))
    table.pages["since"] = now
    for number in range(FIRST_OWN):
        set_guess(groups[number])
    if spread is not None:
        groups["rates"] = spread_rates(spread, 1.0)
        groups["weights"] = guessed_weights(GUESS_SHAPE, WILD_WEIGHT)
    start(control[OF_KINDS:OF_DATES])
    dates.start(control[OF_DATES:])
    return table


def set_guess(group: Any) -> None:
    """Let a group believe what is guessed before anything is seen."""
    group["rates"], group["weights"], group["value"] = GUESSED_RATES, GUESSED_WEIGHTS, 1.0


@compiled
def _group_of(table: Table, record: Any) -> int:
    """The group whose rates are the prior of a page."""
    if record.kind == 0:
        return int(record.group)
    return prior_of(table.groups, table.control[OF_KINDS:], record.group, record.kind)


@compiled
def weigh_page(table: Table, page: int) -> None:
    """Find out how likely each rate and weight is, of a page."""
    record = table.pages[page]
    group = table.groups[record.group]
    typical_rate, prior = table.control[TYPICAL_RATE], table.groups[_group_of(table, record)]
    if tell_of_signals(record.sums):  # else rates and weights do not depend on each other
        weigh_pairs(record.sums, typical_rate, prior.rates, group.weights, table.pairs, table.chance)
        return
    weigh_rates(record.sums, typical_rate, prior.rates, table.chance)
    for j in range(WEIGHTS.size):
        table.chance[RATES + j] = math.exp(group.weights[j])


@compiled
def posterior_of(table: Table, page: int, signals: float = 1.0) -> tuple[float, float, float]:
    """(α, its shape, b for this many signals together) of a page."""
    weigh_page(table, page)
    alpha, shape, _ = rate_of(table.chance, table.control[TYPICAL_RATE])
    return alpha, shape, weight_of(table.chance, signals)


@compiled
def usual_interval(control: Floats) -> float:
    """Seconds between two crawls of a page, as a rule."""
    guess = 1.0 / control[TYPICAL_RATE]
    return float(max(guess if control[WIDE] == 0.0 else _LEAST_USUAL * guess, control[USUAL]))


@compiled
def _note_usual(control: Floats, elapsed: float) -> None:
    if control[WIDE] == 0.0:
        control[USUAL] += (1.0 - _USUAL_FADE) * (elapsed - control[USUAL])
    else:  # the geometric mean: some things are looked at a thousand times as often as others
        control[USUAL] *= (max(elapsed, 1e-3 / control[TYPICAL_RATE]) / control[USUAL]) ** _WIDE_STEP


@compiled
def _signal_memory(control: Floats) -> float:
    """Seconds in which the count of signals fades to 1/e."""
    return SIGNAL_MEMORY * usual_interval(control)


@compiled
def signal_rate_of(table: Table, page: int, now: float) -> float:
    """γ of a page, as it was counted lately."""
    record, memory = table.pages[page], _signal_memory(table.control)
    watched = max(0.0, now - record.since)
    silence = max(0.0, watched - record.heard_at)
    counted = record.heard * math.exp(-silence / memory)
    rate = counted / (-memory * math.expm1(-watched / memory) + SHORTEST_WATCH / table.control[TYPICAL_RATE])
    return float(min(rate, MAX_EXPECTED / silence) if silence > 0.0 else rate)


@compiled
def hear_signals(table: Table, page: int, count: float, now: float) -> None:
    """Signals of a page arrived, as a number of good ones."""
    record = table.pages[page]
    at = max(now - record.since, np.float64(record.heard_at))
    record.heard = record.heard * math.exp(-(at - record.heard_at) / _signal_memory(table.control)) + count
    record.heard_at = at


@compiled
def learn_crawl(table: Table, page: int, elapsed: float, signals: float, changed: bool) -> None:
    """One checked interval: the copy was `elapsed` old, had heard `signals`, and had or had not changed."""
    record = table.pages[page]
    control = table.control
    if record.observations == 0 and record.sums[FEW] > 0.0 and signals == 0.0:
        prior = table.groups[_group_of(table, record)].rates
        rate = control[TYPICAL_RATE]
        dates.judge_first(control[OF_DATES:], table.chance, record.sums, rate, prior, elapsed, not changed)
    if record.kind != 0 and record.observations < JUDGED_CRAWLS and signals == 0.0 and page & JUDGES == 0:
        rate, gap = control[TYPICAL_RATE], (elapsed, not changed)
        judge(table.groups, control[OF_KINDS:], table.chance, record.sums, rate, record.group, record.kind, gap)
    _note_usual(control, elapsed)
    longest = max(1.0 / control[TYPICAL_RATE], control[USUAL])  # what is seldom looked at is not forgotten in between
    left = control[CRAWL_FADE] * math.exp(-elapsed / (control[MEMORY] * longest))
    for k in range(SUMS):
        record.sums[k] *= left
    alpha, b = 0.0, 0.0
    if changed:
        # Where little is known, the geometric mean: with the arithmetic one, a change would always be expected.
        weigh_page(table, page)
        _, _, alpha = rate_of(table.chance, table.control[TYPICAL_RATE])
        b = weight_of(table.chance, signals)
    add_crawl(record.sums, elapsed, signals, changed, alpha, b)
    record.observations = min(record.observations + 1, MAX_COUNTED)


@compiled
def tell_age(table: Table, page: int, age: float, trust: float) -> None:
    """At its first crawl a page says how old its content is, with this much trust in its date."""
    record, interval = table.pages[page], 1.0 / table.control[TYPICAL_RATE]
    if record.observations == 0 and record.sums[FEW] < dates.MOST_SAID and age > 0.0:
        weight = trust * table.control[OF_DATES + dates.POWER]
        dates.add_age(record.sums, min(age, dates.LONGEST_AGE * interval), weight, dates.SHORTEST_AGE * interval)


@compiled
def tell_last_change(table: Table, page: int, since: float, elapsed: float, trust: float) -> None:
    """A page that was found changed after `elapsed` last changed so long ago."""
    since, record, rate = min(since, elapsed), table.pages[page], table.control[TYPICAL_RATE]
    if since > 0.0:
        # By time alone: what signals weigh hardly matters here, and would take five times as long.
        weigh_rates(record.sums, rate, table.groups[_group_of(table, record)].rates, table.chance)
        _, _, alpha = rate_of(table.chance, rate)
        dates.add_last_change(record.sums, since, elapsed, alpha, trust)


@compiled
def beliefs_of(table: Table, page: int, now: float) -> tuple[float, float, float, float]:
    """(change_rate, recall, false_rate, shape) of a page."""
    signal_rate, usual = signal_rate_of(table, page, now), usual_interval(table.control)
    alpha, shape, b = posterior_of(table, page, signal_rate * usual)
    if table.control[WIDE] != 0.0 and tell_of_signals(table.pages[page].sums):
        b = weight_beside(table.pairs, table.chance, table.control[TYPICAL_RATE], usual, signal_rate * usual)
    false_rate = signal_rate * math.exp(-b)
    change_rate = alpha + signal_rate - false_rate
    return change_rate, (signal_rate - false_rate) / change_rate, false_rate, shape


@compiled
def fresh_probability_of(table: Table, page: int, elapsed: float, signals: float) -> float:
    """How likely the copy is to be current, over all rates that the page may have: what a crawl can check."""
    weigh_page(table, page)
    return fresh_of(table.chance, table.control[TYPICAL_RATE], elapsed, signals)


@compiled
def _blend(prior: Any, found: Any, count: float, parent: Any, worth: float, spread: float) -> None:
    """Let a prior become what was found on `count` pages, with `worth` pages' worth of the parent's.

    A share `spread` of what was found of each point goes to its neighbours: otherwise a group whose pages are alike
    would settle on one point, which need not be the nearest.
    """
    total, last = count + worth, prior.size - 1
    for k in range(prior.size):
        near = 0.5 * (found[max(k - 1, 0)] + found[min(k + 1, last)])
        share = ((1.0 - spread) * found[k] + spread * near + worth * math.exp(np.float64(parent[k]))) / total
        prior[k] = math.log(max(share, _LEAST))
    for k in range(prior.size):
        found[k] = 0.0


@compiled
def settle_groups(table: Table) -> None:
    """After a whole turn: children's sums count for their parents too, then parents teach children."""
    groups = table.groups
    for number in range(groups.size - 1, FIRST_GUESS, -1):
        group = groups[number]
        parent = groups[group.parent]
        for k in range(RATES):
            parent.found_rates[k] += group.found_rates[k]
        for j in range(WEIGHTS.size):
            parent.found_weights[j] += group.found_weights[j]
        parent.found += group.found
        parent.heard += group.heard
    for number in range(groups.size):
        group = groups[number]
        if GUESSES < number <= FIRST_GUESS:
            continue
        group.members = group.found
        if number == 0:
            first = groups[FIRST_GUESS]
            _blend(group.rates, group.found_rates, group.found, first.rates, GUESS_PAGES, SPREAD)
            _blend(group.weights, group.found_weights, group.heard, first.weights, GUESS_PAGES, WEIGHT_SPREAD)
        else:
            parent = groups[group.parent]
            _blend(group.rates, group.found_rates, group.found, parent.rates, PARENT_PAGES, SPREAD)
            _blend(group.weights, group.found_weights, group.heard, parent.weights, PARENT_PAGES, WEIGHT_SPREAD)
        group.found, group.heard = 0.0, 0.0


@compiled
def block_in_turn(nth: int, blocks: int) -> int:
    """The n-th of all blocks, in strides: each comes once, and any part of a turn covers the whole range.

    At first pages are crawled in the order of their numbers, and a hand that ran ahead of that would find out what
    pages are like only in the next turn.
    """
    if nth >= blocks:
        return nth  # the last pages do not fill a block
    stride = max(1, int(STRIDE * blocks))
    while math.gcd(stride, blocks) > 1:
        stride += 1
    return nth * stride % blocks


@compiled
def glance(table: Table) -> int:
    """Look at the page whose turn it is, for its group's sake; which one it was, −1: there is none."""
    control = table.control
    used = int(control[USED])
    if used == 0:
        return -1
    nth = int(control[HAND])
    if nth >= used:
        nth = 0
    if nth % TOGETHER == 0:
        control[BLOCK] = block_in_turn(nth // TOGETHER, used // TOGETHER)
    page = min(int(control[BLOCK]) * TOGETHER + nth % TOGETHER, used - 1)
    record = table.pages[page]
    if record.observations > 0:
        weigh_page(table, page)
        group = table.groups[record.group]
        for k in range(RATES):
            group.found_rates[k] += table.chance[k]
        group.found += 1.0
        if record.kind != 0:
            add_found(table.groups, record.kind, table.chance)
        if record.heard > 0.0:
            for j in range(WEIGHTS.size):
                group.found_weights[j] += table.chance[RATES + j]
            group.heard += 1.0
    control[HAND] = nth + 1
    if nth + 1 >= used:
        control[HAND] = 0.0
        settle_groups(table)
    return page


@compiled
def sweep(table: Table, turns: int) -> None:
    """Whole turns at once: after many pages were read back."""
    table.control[HAND] = 0.0
    for _ in range(turns * int(table.control[USED])):
        glance(table)


@compiled
def observe_many(table: Table, pages: Any, elapsed: Any, signals: Any, changed: Any) -> None:
    """Many crawls in the order in which they happened; the same as one after another, in any batching."""
    for k in range(pages.size):
        learn_crawl(table, pages[k], elapsed[k], signals[k], changed[k])
        for _ in range(int(table.control[GLANCES])):
            glance(table)

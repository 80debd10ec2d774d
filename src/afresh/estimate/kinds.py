"""Kinds of pages, a level of belief beside host and path: how a kind moves what is believed of a page that is new.

A page has up to two kinds with shares in sixteenths, in 16 bits; the rest is unknown. Each kind knows how its pages
are distributed over the rates (`points`), as a group does, whatever host they are on. What a kind says beyond the
group is how its distribution differs from that of all pages: a factor on each rate, to a power. The powers are what
kinds have proved to be worth on this collection: for four powers it is kept how well they would have foretold the
first crawls of pages, apart for groups with no, few and many members. A kind that foretells nothing gets power 0.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.points import RATES, Logs, fresh_of, guessed_rates, spread_rates, weigh_rates
from afresh.estimate.sums import Sums
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]

MAX_KINDS = 15  # four bits; 0 is unknown
SIXTEENTHS = 15  # the largest share, of sixteen

# Groups that kinds take: group k is that of kind k, group 15 + k what an operator says of it, and one is for working.
GUESSES = MAX_KINDS
SCRATCH = 2 * MAX_KINDS + 1
FIRST_GUESS = SCRATCH + 1  # what is guessed of all things, before anything is seen of them
FIRST_OWN = FIRST_GUESS + 1  # the first group that is one of pages

POWERS = np.array([0.0, 0.35, 0.7, 1.0])
LEVELS = 3  # groups with no members that are known, few, and many
FEW_MEMBERS, MANY_MEMBERS = 1.0, 12.0
JUDGED_CRAWLS = 5  # of a page, in which kinds are judged,
JUDGES = 2  # by half of the pages: those whose number lacks this bit
SCORE_MEMORY = 0.9995  # what a judged crawl leaves of the scores before it
# Nats that each power has to begin with: kinds have yet to prove that they are worth anything, unless an operator says
# what their rates are.
START_SCORES, GIVEN_SCORES = np.array([3.0, 0.0, -1.0, -2.0]), np.array([-1.0, 0.0, 0.0, 0.0])
NEGLIGIBLE = 0.02  # a power below this changes nothing that can be seen
GUESS_SHAPE = 2.0  # of the Gamma distribution round the rate that an operator names for a kind without its spread
MIN_SPREAD, MAX_SPREAD = 1.2, 1000.0  # of the rates of a kind: a factor
_LEAST = 1e-6  # no crawl rules a power out for ever,
_MOST = 300.0  # and nats beyond this prove no more

# What kinds add to `online.Table.control`, from `CONTROL` on: the scores of each level, then the powers of each level,
# then for each level the crawls that
# were judged and the nats that kinds gained there, as they were believed; then whether an operator gave rates.
POWER, JUDGED, GAINED = LEVELS * POWERS.size, LEVELS * (POWERS.size + 1), LEVELS * (POWERS.size + 2)
GIVEN = LEVELS * (POWERS.size + 3)
CONTROL_SIZE = GIVEN + 1 + POWERS.size  # what is behind is for working


def pack(shares: Sequence[float]) -> int:
    """The two likeliest kinds with their shares, in 16 bits; `shares` has that of kind 1 first.

    >>> unpack(pack([0.1, 0.7, 0.2]))
    [(2, 0.6875), (3, 0.1875)]
    """
    order = sorted(range(min(len(shares), MAX_KINDS)), key=lambda nth: -shares[nth])[:2]
    packed = 0
    for place, nth in enumerate(order):
        sixteenths = min(max(round(16 * shares[nth]), 0), SIXTEENTHS)
        if sixteenths:
            packed |= (nth + 1) << (4 * place) | sixteenths << (8 + 4 * place)
    return packed


def unpack(packed: int) -> list[tuple[int, float]]:
    """The kinds of a page and their shares."""
    found = ((packed >> (4 * place) & 15, (packed >> (8 + 4 * place) & 15) / 16) for place in (0, 1))
    return [(kind, share) for kind, share in found if kind and share]


def start(control: Floats) -> None:
    """Nothing is known yet of what kinds are worth."""
    control[:] = 0.0
    control[POWER : POWER + LEVELS] = _mean_power(START_SCORES)


def give(control: Floats) -> None:
    """An operator says what the rates of kinds are: that counts before anything has proved it."""
    control[GIVEN] = 1.0
    for level in range(LEVELS):
        scores = control[level * POWERS.size : (level + 1) * POWERS.size]
        control[POWER + level] = _mean_power(scores + GIVEN_SCORES)


def _mean_power(scores: Floats) -> float:
    """What `power_of` says, for the interpreter, which need not wait until that is compiled."""
    weights = np.exp(scores - scores.max())
    return float(weights @ POWERS / weights.sum())


def guessed(rate: float, typical_rate: float, spread: float | None = None) -> Logs:
    """The distribution over the rates that an operator's rate for a kind stands for, and the factor by which those of
    two thirds of its pages differ from that at most."""
    if spread is None:
        return guessed_rates(GUESS_SHAPE, rate / typical_rate)
    return spread_rates(spread, rate / typical_rate)


@compiled
def level_of(members: float) -> int:
    """How well a group is known: 0 not at all, 1 a little, 2 well."""
    if members < FEW_MEMBERS:
        return 0
    return 1 if members < MANY_MEMBERS else 2


@compiled
def weight_of_power(scores: Floats, nth: int, given: bool) -> float:
    """How well a power foretold, beside the power 0."""
    begun = GIVEN_SCORES if given else START_SCORES
    return math.exp(min(scores[nth] + begun[nth] - scores[0] - begun[0], _MOST))


@compiled
def power_of(scores: Floats, given: bool) -> float:
    """The mean of the powers, each weighed by how well it foretold."""
    total, mean = 0.0, 0.0
    for nth in range(POWERS.size):
        weight = weight_of_power(scores, nth, given)
        total += weight
        mean += weight * POWERS[nth]
    return mean / total


@compiled
def raise_prior(groups: Any, group: int, kind: int, power: float) -> int:
    """Make the prior of a page from that of its group and from its kinds; which group holds it then."""
    if power < NEGLIGIBLE:
        return group
    first, second = groups[kind & 15], groups[kind >> 4 & 15]
    one, other = power * (kind >> 8 & 15) / 16.0, power * (kind >> 12 & 15) / 16.0
    own, everything, made = groups[group], groups[0], groups[SCRATCH]
    for k in range(RATES):
        usual = everything.rates[k]
        made.rates[k] = own.rates[k] + one * (first.rates[k] - usual) + other * (second.rates[k] - usual)
    return SCRATCH


@compiled
def prior_of(groups: Any, control: Floats, group: int, kind: int) -> int:
    """The group whose rates are the prior of a page of this group and kind; `control` is that of kinds."""
    return raise_prior(groups, group, kind, control[POWER + level_of(groups[group].members)])


@compiled
def judge(
    groups: Any, control: Floats, chance: Floats, sums: Sums, typical_rate: float, group: int, kind: int, gap: Any
) -> None:
    """See how well each power would have foretold what a crawl found; `gap`: the copy's age, and whether it held."""
    elapsed, held = gap
    level = level_of(groups[group].members)
    scores, given = control[level * POWERS.size : (level + 1) * POWERS.size], control[GIVEN] != 0.0
    without, believed, total = 0.0, 0.0, 0.0
    for nth in range(POWERS.size):
        prior = groups[raise_prior(groups, group, kind, POWERS[nth])]
        weigh_rates(sums, typical_rate, prior.rates, chance)
        fresh = fresh_of(chance, typical_rate, elapsed, 0.0)
        likely = max(fresh if held else 1.0 - fresh, _LEAST)
        weight = weight_of_power(scores, nth, given)
        believed += weight * likely
        total += weight
        without = math.log(likely) if nth == 0 else without
        control[GIVEN + 1 + nth] = math.log(likely)
    for nth in range(POWERS.size):
        scores[nth] = scores[nth] * SCORE_MEMORY + control[GIVEN + 1 + nth]
    control[JUDGED + level] += 1.0
    control[GAINED + level] += math.log(believed / total) - without
    control[POWER + level] = power_of(scores, given)


@compiled
def add_found(groups: Any, kind: int, chance: Floats) -> None:
    """A page of these kinds was glanced at: what it may be counts for them, by their shares."""
    for place in range(2):
        number, share = kind >> (4 * place) & 15, (kind >> (8 + 4 * place) & 15) / 16.0
        if number > 0 and share > 0.0:
            own = groups[number]
            for k in range(RATES):
                own.found_rates[k] += share * chance[k]
            own.found += share


@compiled
def value_of(groups: Any, kind: int) -> float:
    """How much more a page of these kinds is wanted than others, as its operator says."""
    value = 1.0
    for place in range(2):
        value += (kind >> (8 + 4 * place) & 15) / 16.0 * (groups[kind >> (4 * place) & 15].value - 1.0)
    return float(value)

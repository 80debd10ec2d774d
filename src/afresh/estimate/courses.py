"""The course of interest in a page that is new: it rises like a sigmoid, stays, and decays exponentially.

What is known of a page are its age since it was first seen and the two counts that fade (`requests`). For some courses
it is worked out how well each explains them: how many requests there were in all, and how many of them lately. A
course is followed at an amplitude of the page's own, which has a Gamma prior, so that its posterior is one too. How
common courses are, and how high, is shared by all pages, and learned from them as requests come.

Counts spread more than by chance; so each counts as a share of one, `1/SPREAD`.

Whether courses foretell requests better than the counts alone do is judged all the time, on every eighth request; they
are used once they do.
"""

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray

from afresh.value.compiled import compiled

Floats = NDArray[np.float64]

HOUR = 3600.0
# When interest is half risen, how long it stays, and how fast it decays: people's rhythms, which the collection does
# not know. The last course stays for good: most pages have it.
COURSES = (*product((-0.5 * HOUR, HOUR), (0.0, 4 * HOUR, 12 * HOUR), (2 * HOUR, 10 * HOUR)), (-0.5 * HOUR, 1e12, HOUR))
RISE = 0.3 * HOUR  # the width of the sigmoid
STEP, LAST = 0.5 * HOUR, 48 * HOUR  # courses are tabled so finely, and up to this age
AGES = int(LAST / STEP) + 1
FEWEST = 3.0  # requests before a course is looked for
SPREAD = 3.5  # the variance of counts, in times that of chance
SHAPE = 1.4  # of the amplitudes' Gamma distribution
EVERY = 8  # requests that are judged and learned from: one of so many
PROOF = 3.0  # nats by which courses must have foretold better before they are used
SCORE_MEMORY = 0.9995  # what a judged request leaves of the score before it
_LEARNING = 0.03  # what one of them adds to what is known of all pages
_GUESS = 1.0  # pages' worth of the guess of amplitudes
_FINE = 20  # pieces of a step that tables are summed over
_LEAST = 1e-9

KINDS = len(COURSES)
# What is kept, in one array: a counter, the score, how often it was judged, then for each course how common it is, the
# sums that its mean amplitude follows from, room for working, and two tables: interest up to each age, and how much of
# that a count that fades still holds.
TICK, SCORE, JUDGED = 0, 1, 2
WEIGHT, HEIGHT, FOUND, WORK, INTEREST = (3 + KINDS * nth for nth in range(5))
LATELY = INTEREST + KINDS * AGES
SIZE = LATELY + KINDS * AGES


def course(rise: float, plateau: float, decay: float, at: NDArray[np.floating]) -> Floats:
    """How much interest there is at some ages, in times its height."""
    risen = 1.0 / (1.0 + np.exp(-np.clip((at - rise) / RISE, -30.0, 30.0)))
    return np.asarray(risen * np.exp(-np.maximum(at - rise - plateau, 0.0) / decay))


def new_courses(fast: float) -> Floats:
    """Nothing is known yet; `fast` is the memory of the count that fades fast."""
    kept = np.zeros(SIZE)
    kept[WEIGHT : WEIGHT + KINDS] = 1.0 / KINDS
    piece = STEP / _FINE
    at = (np.arange((AGES - 1) * _FINE) + 0.5) * piece
    for nth, form in enumerate(COURSES):
        own = course(*form, at) * piece
        interest, lately = kept[INTEREST + nth * AGES :], kept[LATELY + nth * AGES :]
        interest[1:AGES] = np.cumsum(own)[_FINE - 1 :: _FINE]
        fading = np.exp(-(np.arange(_FINE)[::-1] + 0.5) * piece / fast)
        for step in range(1, AGES):
            new = own[(step - 1) * _FINE : step * _FINE] @ fading
            lately[step] = lately[step - 1] * math.exp(-STEP / fast) + new
    return kept


@compiled
def _tabled(kept: Floats, table: int, nth: int, age: float) -> float:
    """A table's value at an age."""
    place = min(max(age, 0.0), LAST) / STEP
    low = min(int(place), AGES - 2)
    at = table + nth * AGES + low
    return float(kept[at] + (place - low) * (kept[at + 1] - kept[at]))


@compiled
def _explained(
    kept: Floats, nth: int, age: float, requests: float, burst: float, average: float
) -> tuple[float, float]:
    """How well a course explains what was seen of a page, in logarithms, and the amplitude that it has then."""
    interest = _tabled(kept, INTEREST, nth, age) + 1.0
    lately = min(max(_tabled(kept, LATELY, nth, age) / interest, 1e-4), 1.0 - 1e-4)
    mean = (kept[HEIGHT + nth] + _GUESS * average) / (kept[FOUND + nth] + _GUESS)
    counted, rate = requests / SPREAD + SHAPE, SHAPE / max(mean, _LEAST)
    late = min(burst, requests)
    logs = math.log(max(kept[WEIGHT + nth], _LEAST)) + SHAPE * math.log(rate)
    logs += requests / SPREAD * math.log(interest) - counted * math.log(rate + interest / SPREAD)
    logs += (late * math.log(lately) + (requests - late) * math.log(1.0 - lately)) / SPREAD
    return logs, counted / (rate + interest / SPREAD)


@compiled
def expected(kept: Floats, age: float, ahead: float, requests: float, burst: float, average: float) -> float:
    """The requests that are expected within a time, of a page of this age."""
    top, total, found = -math.inf, 0.0, 0.0
    for nth in range(KINDS):
        logs, amplitude = _explained(kept, nth, age, requests, burst, average)
        if logs > top:
            left = math.exp(top - logs)
            total, found, top = total * left, found * left, logs
        weight = math.exp(logs - top)
        total += weight
        now, then = _tabled(kept, INTEREST, nth, age), _tabled(kept, INTEREST, nth, age + ahead)
        found += weight * amplitude * (then - now)
    return found / total


@compiled
def fits(kept: Floats, age: float, requests: float) -> bool:
    """Whether a page is young enough for courses, and was asked for."""
    return age + 60.0 < LAST and requests >= FEWEST


@compiled
def are_used(kept: Floats) -> bool:
    """Whether courses have proved better than the counts alone."""
    return bool(kept[SCORE] > PROOF)


@compiled
def judge(kept: Floats, told: float, otherwise: float, came: float) -> None:
    """So many requests came where courses had told one number, and the counts alone another."""
    told, otherwise = max(told, _LEAST), max(otherwise, _LEAST)
    gained = (came * math.log(told / otherwise) - told + otherwise) / SPREAD
    kept[SCORE] = kept[SCORE] * SCORE_MEMORY + min(max(gained, -20.0), 20.0)
    kept[JUDGED] += 1.0


@compiled
def learn(kept: Floats, age: float, requests: float, burst: float, average: float) -> None:
    """Take in what a page turned out to be: for all pages, by as much as one of its requests is worth."""
    top, total = -math.inf, 0.0
    for nth in range(KINDS):
        kept[WORK + nth], _ = _explained(kept, nth, age, requests, burst, average)
        top = max(top, kept[WORK + nth])
    for nth in range(KINDS):
        kept[WORK + nth] = math.exp(kept[WORK + nth] - top)
        total += kept[WORK + nth]
    worth = min(EVERY / requests, 1.0)  # much wanted pages do not count for more
    for nth in range(KINDS):
        share, (_, amplitude) = kept[WORK + nth] / total, _explained(kept, nth, age, requests, burst, average)
        kept[WEIGHT + nth] += _LEARNING * worth * (share - kept[WEIGHT + nth])
        left = 1.0 - _LEARNING * worth * share
        kept[HEIGHT + nth] = kept[HEIGHT + nth] * left + worth * share * amplitude
        kept[FOUND + nth] = kept[FOUND + nth] * left + worth * share

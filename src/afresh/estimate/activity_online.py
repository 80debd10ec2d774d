"""`activity`, compiled: the same arithmetic in loops, for simulations and for many pages."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.estimate.activity import (
    DRAWN,
    FIRST_FOLDER_ODDS,
    FIRST_ODDS,
    KNOWN_AT_FIRST,
    MOST_ODDS,
    MOST_TONE,
    ODDS_FADE,
    SHORTEST,
    SLICE_FADE,
    SLICES,
    SWEEP,
    TONE_FADE,
    TONE_PRIOR,
    USUAL_FADE,
    Activity,
)
from afresh.value.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Slices(NamedTuple):
    """The arrays of an `Activity`, shared with it."""

    width: float
    found: Floats
    expected: Floats
    newest: Integers
    odds: Floats
    tone: Floats
    tone_known: Floats
    usual: Floats
    folder_odds: Floats


def slices_of(activity: Activity) -> Slices:
    """The arrays of an activity, once all its branches are known."""
    return Slices(
        activity.width,
        activity.found,
        activity.expected,
        activity.newest,
        activity.odds,
        activity.tone,
        activity.tone_known,
        activity.usual,
        activity.folder_odds,
    )


@compiled
def _sure(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-(FIRST_ODDS + odds)))


@compiled
def _folders(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-(FIRST_FOLDER_ODDS + odds)))


@compiled
def _once(mean: float) -> float:
    if mean < 1e-9:
        return 1.0
    return mean / math.expm1(mean) if mean < 500.0 else 0.0


@compiled
def _ratio(slices: Slices, branches: Integers, at: int) -> tuple[float, float]:
    """How many changes there were in a slice to one that was expected, and the variance of that."""
    ratio, expected = 1.0, 0.0
    place = at % SLICES
    for branch in branches:
        newest, found, expected = slices.newest[branch], 0.0, 0.0
        if newest - SLICES < at <= newest:
            found, expected = slices.found[branch, place], slices.expected[branch, place]
        ratio = (DRAWN * ratio + found) / (DRAWN + expected)
    return ratio, ratio / (KNOWN_AT_FIRST + expected)


@compiled
def _span(slices: Slices, since: float, now: float, at: int) -> float:
    return max(0.0, min(now, (at + 1) * slices.width) - max(since, at * slices.width))


@compiled
def _bounds(slices: Slices, since: float, now: float) -> tuple[int, int]:
    last = math.floor(now / slices.width)
    return max(math.floor(since / slices.width), last - SLICES + 1), last


@compiled
def _passed(slices: Slices, branches: Integers, since: float, now: float) -> tuple[float, float]:
    """The time that passed by what was found, on folders as far as they are believed, and the doubt about it."""
    time, variance = _passed_on(slices, branches[:1], since, now)
    if branches.size > 1:
        folders = _folders(slices.folder_odds[branches[0]])
        narrow, doubt = _passed_on(slices, branches, since, now)
        time, variance = time + folders * (narrow - time), variance + folders * (doubt - variance)
    return time, variance


@compiled
def _mixed_ratio(slices: Slices, branches: Integers, at: int) -> float:
    of_host, folders = _ratio(slices, branches[:1], at)[0], _folders(slices.folder_odds[branches[0]])
    return float(of_host + folders * (_ratio(slices, branches, at)[0] - of_host))


@compiled
def _passed_on(slices: Slices, branches: Integers, since: float, now: float) -> tuple[float, float]:
    """The same on these branches alone."""
    first, last = _bounds(slices, since, now)
    time, variance = max(0.0, first * slices.width - since), 0.0
    for at in range(first, last + 1):
        ratio, doubt = _ratio(slices, branches, at)
        inside = _span(slices, since, now, at)
        time += inside * ratio
        variance += inside * inside * doubt
    return time, variance


@compiled
def _averaged(mean: float, variance: float) -> float:
    if not variance > 1e-9 * mean:
        return mean
    return mean * mean / variance * math.log1p(variance / mean)


@compiled
def stretched(slices: Slices, branches: Integers, since: float, now: float) -> float:
    """Seconds between two moments, as long as what happened in them on the branches made them."""
    if not since < now:
        return 0.0
    host = branches[0]
    sure = _sure(slices.odds[host])
    seconds = (1.0 - sure) * (now - since)
    if sure > 1e-6:
        seconds += sure * _passed(slices, branches, since, now)[0]
    return seconds * math.exp(sure * slices.tone[host])


@compiled
def _log_likelihood(x: float, changed: bool) -> float:
    return math.log(max(-math.expm1(-x), 1e-9)) if changed else -x


@compiled
def _bring_up(slices: Slices, branches: Integers, last: int) -> None:
    for branch in branches:
        for at in range(max(slices.newest[branch] + 1, last - SLICES + 1), last + 1):
            slices.found[branch, at % SLICES] = 0.0
            slices.expected[branch, at % SLICES] = 0.0
        slices.newest[branch] = max(slices.newest[branch], last)


@compiled
def _fresh(slices: Slices, host: int, x: float) -> float:
    stale = min(slices.usual[host], 1.0 - 1e-9)
    usual = -math.log1p(-stale)
    if x >= usual:
        return math.exp(-x)
    swept = _once(usual / SWEEP) * _sure(slices.odds[host])
    return float((1.0 - swept) * math.exp(-x) + swept * (1.0 - stale * x / usual))


@compiled
def fresh(slices: Slices, branches: Integers, since: float, now: float, expected: float) -> float:
    """How likely a copy is to be current that by the estimator is `expected` stale by time alone, as x in exp(−x)."""
    if not since < now:
        return math.exp(-expected)
    host, rate = branches[0], expected / (now - since)
    sure = _sure(slices.odds[host])
    time, doubt = _passed(slices, branches, since, now)
    x = (1.0 - sure) * expected + sure * _averaged(rate * time, rate * (rate * doubt))
    return _fresh(slices, host, x * math.exp(sure * slices.tone[host]))


@compiled
def _learn_folders(
    slices: Slices, branches: Integers, since: float, now: float, rate: float, told: float, changed: bool
) -> None:
    if branches.size == 1:
        return
    gain = 0.0
    for narrow in range(2):
        time, doubt = _passed_on(slices, branches if narrow == 1 else branches[:1], since, now)
        said = _log_likelihood(_averaged(rate * time, rate * (rate * doubt)) + told, changed)
        gain += said if narrow == 1 else -said
    odds = ODDS_FADE * slices.folder_odds[branches[0]] + gain
    slices.folder_odds[branches[0]] = min(max(odds, -MOST_ODDS), MOST_ODDS)


@compiled
def _learn_host(slices: Slices, host: int, x: float, told: float, gain: float, changed: bool) -> None:
    slices.odds[host] = min(max(ODDS_FADE * slices.odds[host] + gain, -MOST_ODDS), MOST_ODDS)
    said = x * math.exp(slices.tone[host])
    current = _fresh(slices, host, said) * math.exp(-told)
    slices.tone_known[host] = TONE_FADE * slices.tone_known[host] + said * math.exp(-(said + told))
    tone = slices.tone[host] + (changed - 1.0 + current) / (TONE_PRIOR + slices.tone_known[host])
    slices.tone[host] = min(max(tone, -MOST_TONE), MOST_TONE)
    slices.usual[host] += (1.0 - USUAL_FADE) * (-math.expm1(-said) - slices.usual[host])


@compiled
def learn_activity(
    slices: Slices, branches: Integers, since: float, now: float, expected: float, told: float, changed: bool
) -> None:
    """A crawl: stale by `expected` from time alone and by `told` from signals, and had or had not changed."""
    if not now - since > SHORTEST or not math.isfinite(expected + told):
        return
    first, last = _bounds(slices, since, now)
    _bring_up(slices, branches, last)
    rate, host = max(expected, 1e-9) / (now - since), branches[0]
    sure = _sure(slices.odds[host])
    alone = rate * (now - since)
    told = min(told, 50.0)
    _learn_folders(slices, branches, since, now, rate, told, changed)
    time, doubt = _passed(slices, branches, since, now)
    together = _averaged(rate * time, rate * (rate * doubt))
    x = (1.0 - sure) * alone + sure * together
    gain = _log_likelihood(together + told, changed) - _log_likelihood(alone + told, changed)
    _learn_host(slices, host, x, told, gain, changed)
    share = 1.0 / -math.expm1(-(x + told)) if changed else 0.0
    for at in range(first, last + 1):
        place, span = at % SLICES, rate * _span(slices, since, now, at)
        found = share * span * (1.0 - sure + sure * _mixed_ratio(slices, branches, at))
        say = 1.0
        for branch in branches[::-1]:
            if at <= slices.newest[branch] - SLICES:
                continue
            before_it = slices.expected[branch, place]
            slices.expected[branch, place] = SLICE_FADE * before_it + say * span
            slices.found[branch, place] = SLICE_FADE * slices.found[branch, place] + say * found
            say *= (DRAWN / (DRAWN + before_it)) ** 2

"""How many changes each sender told of, and how many of its hints were true, as far as crawls can show.

Between two crawls of a page only so much is seen: whether it changed, and when which sender was heard. How often it
changed is not seen, nor are hints that nobody would have noticed: of a list only the latest change since its last
reading, of some senders nothing after their first hint. The model: a page changes at c times the rate that the engine
believes. Each change is told by a sender with its recall, if it was listened to then; false hints of it come at a rate
in proportion. Hints of several senders at about the same time tell of the same change, or some are false. All that is
fitted together for a host, by expectation and maximisation: who tells soon is crawled for soon, so that the windows of
one sender end where another was heard.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SAME_CHANGE = 0.1  # hints so near, in expected changes between them, may tell of one change
ROUNDS = 200
ENOUGH = 1e-4  # the fit is done when no share moves more than that in a round
QUANTILE = 1.6449  # of the normal distribution: nine of ten lie within
PRIOR_RATE = 6.0  # changes that the engine's own rates count for
EDGE_ROUNDS = 15
NEAR = 0.7  # a range that comes so near to an edge may reach it
_TINY = 1e-12
_STEP = 0.02  # of the second differences


class Hint(NamedTuple):
    """A sender was heard, at a place of a window from 0 to 1."""

    sender: int
    place: float
    deaf_since: float  # from there to the place, nothing of it would have been noticed
    last: bool  # nor anything after it


@dataclass(slots=True)
class Window:
    """From one crawl of a page to the next."""

    expected: float  # changes, by the rate that was believed when it began
    changed: bool
    senders: int  # a bit for each sender of the host that was listened to from its beginning to its end
    hints: list[Hint] = field(default_factory=list)
    deaf: tuple[tuple[int, float], ...] = ()  # of this sender nothing would have been noticed from that place on


@dataclass(frozen=True, slots=True)
class Share:
    """A share, and the range in which it lies nine times in ten; as sure as so many direct observations make it."""

    mean: float
    low: float
    high: float
    weight: float


UNKNOWN = Share(0.5, 0.0, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class Told:
    """What is believed of one sender on a host: before any window is looked at, or after."""

    precision: Share = UNKNOWN
    recall: Share = UNKNOWN


@dataclass(frozen=True, slots=True)
class Fitted:
    """What the windows of a host say."""

    senders: tuple[Told, ...]
    pace: float  # the rate of change, against what the engine believed


def fit(windows: Sequence[Window], before: Sequence[Told], pace: float = 1.0) -> Fitted:
    """Precision and recall of all senders of a host, given what was believed of them before.

    >>> heard, missed, quiet = (Window(0.5, True, 1, [Hint(0, 0.5, 0.5, False)]), Window(0.5, True, 1),
    ...                         Window(0.5, False, 1))
    >>> told = fit([heard] * 30 + [missed] * 30 + [quiet] * 60, [Told()]).senders[0]
    >>> round(told.precision.mean, 1), 0.25 < told.recall.low < told.recall.mean < told.recall.high < 0.5
    (1.0, True)
    """
    return _Host(windows, before).fitted(pace)


class _Host:
    """The windows as columns: stretches of time without a hint, and moments with hints, each with who listened."""

    def __init__(self, windows: Sequence[Window], before: Sequence[Told]) -> None:
        count = len(before)
        stretches: list[tuple[int, float, int]] = []  # window, expected changes, who listened
        moments: list[tuple[int, float, int, int]] = []  # window, expected changes within reach, who was heard, not
        for nth, window in enumerate(windows):
            _lay_out(nth, window, count, stretches, moments)
        self.changed = np.array([window.changed for window in windows], bool)
        self.of_stretch = np.array([each[0] for each in stretches], np.intp)
        self.length = np.array([each[1] for each in stretches], np.float64)
        self.listened = _bits([each[2] for each in stretches], count)
        self.of_moment = np.array([each[0] for each in moments], np.intp)
        self.reach = np.array([each[1] for each in moments], np.float64)
        self.heard = _bits([each[2] for each in moments], count)
        self.silent = _bits([each[3] for each in moments], count)
        # What was believed before counts like so many hints and changes that were looked at.
        self.right = np.array([told.precision.mean * told.precision.weight for told in before])
        self.wrong = np.array([(1 - told.precision.mean) * told.precision.weight for told in before])
        self.told = np.array([told.recall.mean * told.recall.weight for told in before])
        self.untold = np.array([(1 - told.recall.mean) * told.recall.weight for told in before])

    def fitted(self, pace: float) -> Fitted:
        recall = self.told / (self.told + self.untold)
        false = recall * self.wrong / self.right
        for _ in range(ROUNDS):
            before = recall, false / (false + recall), pace
            recall, false, pace = self._round(recall, false, pace)
            moved = max(
                np.abs(recall - before[0]).max(initial=0.0),
                np.abs(false / (false + recall) - before[1]).max(initial=0.0),
            )
            if max(moved, abs(log(pace / before[2]))) < ENOUGH:
                break
        return Fitted(tuple(self._said(nth, recall, false, pace) for nth in range(len(recall))), pace)

    def _settled(self, at: tuple[Floats, Floats, float], rounds: int, hold: tuple[Floats, Floats]) -> float:
        """How likely all is where some shares are held at an edge and the others have settled round that."""
        recall, false, pace = at
        for _ in range(rounds):
            recall, false, pace = self._round(recall, false, pace)
            recall, false = (
                np.where(np.isnan(held), got, held) for held, got in zip(hold, (recall, false), strict=True)
            )
        return self._likelihood(recall, false, pace, flat=True)

    def _round(self, recall: Floats, false: Floats, pace: float) -> tuple[Floats, Floats, float]:
        """One round: what must have happened, and from that the shares."""
        unseen, real, each_true = self._chances(recall, false, pace)
        none = -np.bincount(self.of_stretch, unseen, len(self.changed))
        none += np.bincount(self.of_moment, np.log1p(-np.minimum(real, 1 - _TINY)), len(self.changed))
        some = np.where(self.changed, 1.0 / np.maximum(-np.expm1(none), _TINY), 0.0)
        unseen, real = unseen * some[self.of_stretch], real * some[self.of_moment]
        true = (each_true * real[:, None]).sum(0)
        missed = (self.listened * unseen[:, None]).sum(0) + ((self.heard + self.silent) * real[:, None]).sum(0) - true
        wrong = self.heard.sum(0) - true
        exposed = pace * (self.listened * self.length[:, None]).sum(0)
        recall = (true + self.told) / (true + missed + self.told + self.untold)
        # False hints a change: so many as were heard in the time that was listened to.
        own = self.told + self.untold
        false = (wrong + self.told * self.wrong / self.right) / (exposed + own)
        changes = unseen.sum() + real.sum()
        return recall, np.maximum(false, _TINY), float((changes + PRIOR_RATE) / (self.length.sum() + PRIOR_RATE))

    def _chances(self, recall: Floats, false: Floats, pace: float) -> tuple[Floats, Floats, Floats]:
        """Unseen changes expected in each stretch; the chance that a moment is one; that each sender told of it."""
        untold = np.log(np.maximum(1.0 - recall, _TINY))
        unseen = pace * self.length * np.exp(self.listened @ untold)
        by_chance, wrong = self._false_ones(false, pace)
        either = np.where(self.heard > 0, recall + (1.0 - recall) * by_chance, 1.0)
        neither = np.where(self.heard > 0, (1.0 - recall) * by_chance, 1.0)
        whole = either.prod(1)
        true = np.maximum(whole - neither.prod(1), _TINY)
        real = true * np.exp(self.silent @ untold)
        each = np.where(self.heard > 0, recall / np.maximum(either, _TINY), 0.0) * (whole / true)[:, None]
        return unseen, real / (real + wrong), each

    def _false_ones(self, false: Floats, pace: float) -> tuple[Floats, Floats]:
        """The chance that a false hint of each sender is near others; how often, a change, a moment is all false."""
        expected = false * self.reach[:, None] * pace
        near = -np.expm1(-expected)  # however many come near, one of them is put to the others
        rare = np.where(self.heard > 0, near / expected, 1.0).prod(1)
        rare **= 1.0 - 1.0 / self.heard.sum(1)  # of all but one: that is the one that others come near
        return near, np.where(self.heard > 0, expected, 1.0).prod(1) * rare / (self.reach * pace)

    def _likelihood(self, recall: Floats, false: Floats, pace: float, *, flat: bool = False) -> float:
        """The logarithm of how likely all that was seen is, with what was believed before.

        As a density over log odds, for its curvature; `flat`: over the shares themselves, which may be 0 or 1.
        """
        untold = np.log(np.maximum(1.0 - recall, _TINY))
        unseen, real, _ = self._chances(recall, false, pace)
        by_chance, wrong = self._false_ones(false, pace)
        either = np.where(self.heard > 0, recall + (1.0 - recall) * by_chance, 1.0).prod(1)
        neither = np.where(self.heard > 0, (1.0 - recall) * by_chance, 1.0).prod(1)
        density = np.log(pace * (np.maximum(either - neither, _TINY) * np.exp(self.silent @ untold) + wrong)).sum()
        seen = pace * self.length * -np.expm1(self.listened @ untold)
        silence = -(seen + pace * self.length * (self.listened @ false)).sum()
        none = -np.bincount(self.of_stretch, unseen, len(self.changed))
        none += np.bincount(self.of_moment, np.log1p(-np.minimum(real, 1 - _TINY)), len(self.changed))
        outcome = np.where(self.changed, np.log(np.maximum(-np.expm1(none), _TINY)), none).sum()
        less = 1.0 if flat else 0.0
        own, known = self.told + self.untold, np.log(np.maximum(recall, _TINY))
        prior = (np.maximum(self.told - less, 0.0) * known + np.maximum(self.untold - less, 0.0) * untold).sum()
        wrong = np.maximum(self.told * self.wrong / self.right - less, 0.0)
        prior += (wrong * np.log(false) - own * false * (1.0 - less)).sum()
        prior += PRIOR_RATE * (log(pace) - pace)
        return float(density + silence + outcome + prior)

    def _said(self, nth: int, recall: Floats, false: Floats, pace: float) -> Told:
        """The shares of one sender, with how sure they are."""
        at = np.array([log(recall[nth] / (1.0 - recall[nth])), log(false[nth]), log(pace)])

        def value(moved: Floats) -> float:
            mine, others = recall.copy(), false.copy()
            mine[nth], others[nth] = 1.0 / (1.0 + exp(-moved[0])), exp(moved[1])
            return self._likelihood(mine, others, exp(moved[2]))

        spread = _spread(value, at)
        precise = recall[nth] / (recall[nth] + false[nth])
        by_recall = np.array([1.0 - recall[nth], -1.0, 0.0])  # of log(recall) - log(false), the log odds of precision
        precision = _share(precise, sqrt(by_recall @ spread @ by_recall))
        recalled = _share(recall[nth], sqrt(spread[0, 0]))
        least = self._likelihood(recall, false, pace, flat=True) - QUANTILE**2 / 2

        def reaches(which: int, edge: float) -> bool:
            hold = np.full_like(recall, np.nan), np.full_like(recall, np.nan)
            hold[which][nth] = edge
            start = tuple(np.where(np.isnan(held), own, held) for held, own in zip(hold, (recall, false), strict=True))
            return self._settled((start[0], start[1], pace), EDGE_ROUNDS, hold) >= least

        if recalled.high > NEAR and reaches(0, 1.0 - 1e-9):
            recalled = replace(recalled, high=1.0)
        if precision.high > NEAR and reaches(1, 1e-9):
            precision = replace(precision, high=1.0)
        if min(recalled.low, precision.low) < 1.0 - NEAR and reaches(0, 1e-9):
            recalled, precision = replace(recalled, low=0.0), replace(precision, low=0.0)
        return Told(precision, recalled)


def _share(mean: float, deviation: float) -> Share:
    """A share whose log odds are as uncertain as that."""
    odds = log(mean / (1.0 - mean))
    low, high = (1.0 / (1.0 + exp(-odds - each)) for each in (-QUANTILE * deviation, QUANTILE * deviation))
    return Share(float(mean), low, high, 1.0 / max(deviation**2 * mean * (1.0 - mean), _TINY))


def _spread(value: Callable[[Floats], float], at: Floats) -> Floats:
    """The covariance round a maximum, by second differences."""
    size = len(at)
    steps = np.eye(size) * _STEP
    curved = np.empty((size, size))
    top = value(at)
    single = [(value(at + step), value(at - step)) for step in steps]
    for i in range(size):
        curved[i, i] = (single[i][0] + single[i][1] - 2 * top) / _STEP**2
        for j in range(i):
            both = value(at + steps[i] + steps[j]) + value(at - steps[i] - steps[j])
            curved[i, j] = curved[j, i] = (both - sum(single[i]) - sum(single[j]) + 2 * top) / (2 * _STEP**2)
    values, vectors = np.linalg.eigh(-curved)
    spread: Floats = (vectors / np.maximum(values, 1e-2)) @ vectors.T
    return spread


def _lay_out(
    nth: int,
    window: Window,
    count: int,
    stretches: list[tuple[int, float, int]],
    moments: list[tuple[int, float, int, int]],
) -> None:
    """Cut a window where somebody was heard, or was listened to again."""
    expected = max(window.expected, 1e-9)
    everybody = window.senders & (1 << count) - 1
    hints = sorted((hint for hint in window.hints if everybody >> hint.sender & 1), key=lambda hint: hint.place)
    if not hints and not window.deaf:
        stretches.append((nth, expected, everybody))
        return
    reach = min(2.0 * SAME_CHANGE, expected)  # a hint by chance may come before another or after it
    gaps = [(hint.sender, hint.deaf_since, hint.place) for hint in hints if hint.deaf_since < hint.place]
    gaps += [(sender, since, 1.0) for sender, since in window.deaf if everybody >> sender & 1]
    gaps += [(hint.sender, hint.place, 1.0) for hint in hints if hint.last]
    cuts = sorted({0.0, 1.0, *(hint.place for hint in hints), *(place for _, *both in gaps for place in both)})
    for begin, end in pairwise(cuts):
        middle = (begin + end) / 2
        deaf = sum({1 << sender for sender, since, until in gaps if since < middle < until})
        stretches.append((nth, expected * (end - begin), everybody & ~deaf))
    group: list[Hint] = []
    for hint in [*hints, None]:
        if group and (
            hint is None
            or (hint.place - group[0].place) * expected > SAME_CHANGE
            or hint.sender in [each.sender for each in group]
        ):
            heard, middle = sum(1 << each.sender for each in group), group[0].place
            deaf = sum({1 << sender for sender, since, until in gaps if since < middle < until})
            moments.append((nth, reach, heard, everybody & ~deaf & ~heard))
            group = []
        if hint is not None:
            group.append(hint)


def _bits(masks: list[int], count: int) -> Floats:
    """A row of zeros and ones for each mask."""
    return (np.array(masks, np.int64)[:, None] >> np.arange(count) & 1).astype(np.float64).reshape(len(masks), count)

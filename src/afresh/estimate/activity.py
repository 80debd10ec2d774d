"""Pages that change together: what a crawl of one says about its siblings since they were last looked at.

Real sites are edited in sweeps: a template is replaced, a whole folder is reworded in an hour. For every branch of a
site (the host, and its folders) the recent past is cut into slices, and in each stands how many changes were found
against how many were expected. A crawl says only that a change lies somewhere in its interval, so the change is
shared out among the slices by what is believed of them so far. Their ratio, drawn towards the wider branch's and the
host's towards 1, stretches the time that has passed for every page of the branch: a copy is as old as what has happened
since. Busy branches are crawled more, because they are busy; so what a branch has said of a slice counts less and less
in the wider one, or all would look as busy as those.

Whether this explains anything is learned too, host by host: the odds that it foretells crawls better than plain time,
and the odds that folders foretell more than the host as a whole. Where pages change each on their own, the former fall
and time passes as it does on the clock; where folders mean nothing (an alphabet, say), the latter fall and what happens
anywhere on the host counts for all its pages alike.

What is stated about a copy allows for what such slices cannot tell. Little may be known about a branch: then freshness
is averaged over how busy it may have been. And a crawl shows that there was a sweep since the last one, but only later
crawls show when. Until then log-freshness is not linear in age: a copy half as old as those that are crawled was hit
or not, each with half the chance. So its freshness runs partly along the straight line from 1 to what is
usual when copies are crawled, by how likely it is that one sweep explains that, and not all along the exponential
below it.

This is the plain form, one page at a time in numpy; `activity_online` is the same, compiled, and is checked against it.
"""

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from afresh.checks import MAX_MOMENT, number
from afresh.estimate.base import bounded

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Number = TypeVar("Number", float, NDArray[np.float64])

SLICES = 64  # that are remembered
SLICES_PER_ROUND = 16  # in the time of one visit to every page
MOST_BRANCHES = 16_384
NO_ROOM = "*"  # the branch of all pages whose host came when there were as many
TOLD_OF_A_CHANGE = 16  # siblings, in turn, that are looked at anew when a page was found changed
SLICE_FADE = 0.997  # a crawl that covers a slice: later ones know better which slices the changes belong to
DRAWN = (
    0.2  # changes' worth by which a branch's ratio is drawn towards its parent's; it says about as much there in all
)
KNOWN_AT_FIRST = 0.5  # changes' worth of trust in the wider branch, while nothing is known about a branch itself
MIN_WIDTH = 1e-6  # seconds of a slice: slices have whole numbers
MAX_STALE = 1e6  # x in exp(−x)
SHORTEST = 1e-9  # seconds: an interval that says nothing
FIRST_ODDS = -2.0  # nats: that pages change together has to show
FIRST_FOLDER_ODDS = 0.0  # nats: that folders foretell more than their host
ODDS_FADE = 0.999  # a crawl: about the last thousand decide whether pages change together
MOST_ODDS = 20.0  # nats
TONE_FADE = 0.9995
TONE_PRIOR = 50.0  # crawls' worth by which the level is drawn towards what the estimator says
MOST_TONE = 1.5
USUAL_FADE = 0.998  # a crawl: what is usual is that of about the last five hundred
LEVELS = ("odds", "tone", "tone_known", "usual", "folder_odds")  # what is known of a host as a whole
SWEEP = 2.0  # how stale one sweep leaves copies, as x in exp(−x): it changes some nine pages in ten


def slice_width(typical_rate: float) -> float:
    """Seconds that a slice covers where pages are visited about so often; a collection without a budget has long ones.

    >>> slice_width(1 / 1600), slice_width(1e-15), slice_width(1e9)
    (100.0, 1000000000000.0, 1e-06)
    """
    return min(max(1.0 / (SLICES_PER_ROUND * typical_rate), MIN_WIDTH), MAX_MOMENT)


class Activity:
    """How busy each branch of each site has been lately, slice by slice.

    Invariants: time is stretched by a finite factor above 0, whatever comes in; there are at most `MOST_BRANCHES` and
    one more, of a kilobyte each; `width` is the length of a slice in seconds.

    >>> activity = Activity(width=3600.0)
    >>> branches = activity.branches(("example.com", "example.com/docs"))
    >>> activity.stretched(branches, 0.0, 7200.0)
    7200.0
    >>> for _ in range(20):  # siblings that were all found changed
    ...     activity.learn(branches, 0.0, 7200.0, expected=0.1, told=0.0, changed=True)
    >>> activity.stretched(branches, 0.0, 7200.0) > 5 * 7200.0
    True
    """

    def __init__(self, *, width: float) -> None:
        self.width = width = number("width", width, least=MIN_WIDTH, most=MAX_MOMENT)
        self._numbers: dict[str, int] = {}
        self.found = np.zeros((16, SLICES))
        self.expected = np.zeros((16, SLICES))
        self.newest = np.zeros(16, np.int64)  # the slice up to which each branch is kept
        self.wider = np.full(16, -1)  # the branch that each is on; −1: it is a host
        self.odds = np.zeros(16)  # log odds that pages change together, beside the first; of hosts only
        self.folder_odds = np.zeros(16)  # log odds that folders foretell more, beside the first; of hosts only
        self.tone = np.zeros(16)  # logarithm of what is found over what was said
        self.tone_known = np.zeros(16)
        self.usual = np.zeros(16)  # how likely copies are to be stale when they are crawled; of hosts only
        self.learned = 0  # crawls so far
        self._kept: tuple[tuple[tuple[int, ...], int], _Clock] | None = None

    def branches(self, names: Sequence[str]) -> tuple[int, ...]:
        """Numbers of the branches that a page is on, from the host to the narrowest; new ones are made."""
        numbers: list[int] = []
        for name in names:
            number = self._numbers.get(name)
            if number is None:
                if len(self._numbers) >= MOST_BRANCHES:
                    break  # what happens on the wider branch has to do
                number = self._new_branch(name)
            self.wider[number] = numbers[-1] if numbers else -1
            numbers.append(number)
        if not numbers:  # sites that found no room are one: what they have in common is little, and that is learned
            shared = self._numbers.get(NO_ROOM)
            return (self._new_branch(NO_ROOM) if shared is None else shared,)
        return tuple(numbers)

    @property
    def names(self) -> list[str]:
        """The names of all branches, by number."""
        return list(self._numbers)

    def stretched(self, branches: tuple[int, ...], since: float, now: float) -> float:
        """Seconds between two moments, as long as what happened in them on the branches made them."""
        since, now = bounded("since", since), bounded("now", now)
        if not since < now:
            return 0.0
        host = branches[0]
        sure = _sure(self.odds.item(host))
        together, _ = self._passed(branches, since, now)
        return ((1.0 - sure) * (now - since) + sure * together) * math.exp(sure * self.tone.item(host))

    def fresh(self, branches: tuple[int, ...], since: float, now: float, expected: float) -> float:
        """How likely a copy is to be current that by the estimator is `expected` stale by time alone, as x in exp(−x).

        >>> activity = Activity(width=3600.0)
        >>> round(activity.fresh(activity.branches(("example.com",)), 0.0, 7200.0, expected=0.5), 2)
        0.61
        """
        since, now, expected = (
            bounded("since", since),
            bounded("now", now),
            min(number("expected", expected), MAX_STALE),
        )
        if not since < now:
            return math.exp(-expected)
        host, rate = branches[0], expected / (now - since)
        sure = _sure(self.odds.item(host))
        time, doubt = self._passed(branches, since, now)
        x = (1.0 - sure) * expected + sure * _averaged(rate * time, rate * (rate * doubt))
        return self._fresh(host, x * math.exp(sure * self.tone.item(host)))

    def _fresh(self, host: int, x: float) -> float:
        """exp(−x), or closer to the line that ends with what is usual, by how likely one sweep explains that."""
        stale = min(self.usual.item(host), 1.0 - 1e-9)
        usual = -math.log1p(-stale)
        if x >= usual:
            return math.exp(-x)
        swept = _once(usual / SWEEP) * _sure(self.odds.item(host))
        return (1.0 - swept) * math.exp(-x) + swept * (1.0 - stale * x / usual)

    def _passed(self, branches: tuple[int, ...], since: float, now: float) -> tuple[float, float]:
        """The time that passed between two moments by what was found on the branches, and the doubt about it."""
        last = math.floor(now / self.width)
        if math.floor(since / self.width) == last:
            return self._within(branches, last, since, now)
        return self._clock(branches, last).between(since, now)

    def _within(self, branches: tuple[int, ...], place: int, since: float, now: float) -> tuple[float, float]:
        """The same for an interval within one slice, as after every crawl: no arrays are needed for that."""
        ratio, begin, passed = 1.0, place * self.width, []
        for branch in branches:
            newest, found, expected = self.newest.item(branch), 0.0, 0.0
            if newest - SLICES < place <= newest:
                found, expected = self.found.item(branch, place % SLICES), self.expected.item(branch, place % SLICES)
            ratio = (DRAWN * ratio + found) / (DRAWN + expected)
            passed.append((ratio, ratio / (KNOWN_AT_FIRST + expected)))
        folders = _folders(self.folder_odds.item(branches[0]))
        ratio, doubt = (mixed(passed[0][k], passed[-1][k], folders) for k in range(2))
        inside = max(now - max(since, begin), 0.0)
        return max(0.0, begin - since) + inside * ratio, inside * inside * doubt

    def _clock(self, branches: tuple[int, ...], last: int) -> "_Clock":
        """Stretched time on these branches; siblings are looked at one after another, so the last one is kept."""
        if self._kept is None or self._kept[0] != (branches, last):
            first = last - SLICES + 1
            self._kept = (branches, last), _Clock(first, self.width, *self._mixed_ratios(branches, first, SLICES))
        return self._kept[1]

    def learn(
        self, branches: tuple[int, ...], since: float, now: float, *, expected: float, told: float, changed: bool
    ) -> None:
        """A crawl of a page on these branches: by the estimator it had become `expected` stale by time alone, and
        `told` by signals (both as x in exp(−x)), and had or had not changed."""
        since, now = bounded("since", since), bounded("now", now)
        expected, told = min(number("expected", expected), MAX_STALE), number("told", told, least=-math.inf)
        if not now - since > SHORTEST:
            return
        self._kept = None
        self.learned += 1
        first, spans, before = self._cover(since, now)
        for branch in branches:
            self._bring_up(branch, first + len(spans) - 1)
        rate, host = max(expected, 1e-9) / (now - since), branches[0]
        sure, alone = _sure(self.odds[host]), rate * (now - since)
        told = min(max(told, 0.0), 50.0)
        self._learn_folders(branches, first, spans, before, rate, told, changed)
        ratios, doubts = self._mixed_ratios(branches, first, len(spans))
        together = _averaged(rate * (before + float(spans @ ratios)), float((rate * spans) ** 2 @ doubts))
        x = (1.0 - sure) * alone + sure * together
        gain = _log_likelihood(together + told, changed) - _log_likelihood(alone + told, changed)
        self.odds[host] = min(max(ODDS_FADE * self.odds[host] + gain, -MOST_ODDS), MOST_ODDS)
        self._learn_tone(host, x, told, changed)
        shares = rate * spans * (1.0 - sure + sure * ratios)
        found = shares / -math.expm1(-(x + told)) if changed else np.zeros(len(spans))
        say = np.ones(len(spans))
        for branch in reversed(branches):
            # A crawl that took long may come when some of its slices are no longer kept.
            gone = max(0, int(self.newest[branch]) - SLICES + 1 - first)
            places = np.arange(first + gone, first + len(spans)) % SLICES
            before_it = self.expected[branch, places]
            self.expected[branch, places] = SLICE_FADE * before_it + say[gone:] * rate * spans[gone:]
            self.found[branch, places] = SLICE_FADE * self.found[branch, places] + say[gone:] * found[gone:]
            say[gone:] *= (DRAWN / (DRAWN + before_it)) ** 2  # which adds up to about DRAWN

    def _learn_folders(
        self,
        branches: tuple[int, ...],
        first: int,
        spans: Floats,
        before: float,
        rate: float,
        told: float,
        changed: bool,
    ) -> None:
        """The odds that a page's folders foretell its crawls better than its host does."""
        if len(branches) == 1:
            return
        said = []
        for which in (branches[:1], branches):
            ratios, doubts = self._ratios(which, first, len(spans))
            x = _averaged(rate * (before + float(spans @ ratios)), float((rate * spans) ** 2 @ doubts))
            said.append(_log_likelihood(x + told, changed))
        odds = ODDS_FADE * self.folder_odds[branches[0]] + said[1] - said[0]
        self.folder_odds[branches[0]] = min(max(odds, -MOST_ODDS), MOST_ODDS)

    def _learn_tone(self, host: int, x: float, told: float, changed: bool) -> None:
        """The level of what is said, by how much of it comes true."""
        said = x * math.exp(self.tone[host])
        fresh = self._fresh(host, said) * math.exp(-told)
        self.tone_known[host] = TONE_FADE * self.tone_known[host] + said * math.exp(-(said + told))
        tone = self.tone[host] + (changed - 1.0 + fresh) / (TONE_PRIOR + self.tone_known[host])
        self.tone[host] = min(max(tone, -MOST_TONE), MOST_TONE)
        self.usual[host] += (1.0 - USUAL_FADE) * (-math.expm1(-said) - self.usual[host])

    def _cover(self, since: float, now: float) -> tuple[int, Floats, float]:
        """The first slice that is remembered of an interval, the seconds in it and in those up to now, and the seconds
        before it."""
        last = math.floor(now / self.width)
        first = max(math.floor(since / self.width), last - SLICES + 1)
        edges = np.arange(first, last + 2) * self.width
        edges[0], edges[-1] = max(since, edges[0]), now
        return first, np.maximum(np.diff(edges), 0.0), max(0.0, first * self.width - since)

    def _ratios(self, branches: tuple[int, ...], first: int, count: int) -> tuple[Floats, Floats]:
        """The ratio of changes found to changes expected over these slices, and its variance."""
        slices = np.arange(first, first + count)
        ratio, expected = np.ones(count), np.zeros(count)
        for branch in branches:
            kept = (slices <= self.newest[branch]) & (slices > self.newest[branch] - SLICES)
            places = slices % SLICES
            found, expected = np.where(kept, (self.found[branch, places], self.expected[branch, places]), 0.0)
            ratio = (DRAWN * ratio + found) / (DRAWN + expected)
        return ratio, ratio / (KNOWN_AT_FIRST + expected)

    def _mixed_ratios(self, branches: tuple[int, ...], first: int, count: int) -> tuple[Floats, Floats]:
        """The same as far as folders are believed, and of the host alone as far as they are not."""
        if len(branches) == 1:
            return self._ratios(branches, first, count)
        folders = _folders(self.folder_odds.item(branches[0]))
        of_host, of_all = (self._ratios(which, first, count) for which in (branches[:1], branches))
        return mixed(of_host[0], of_all[0], folders), mixed(of_host[1], of_all[1], folders)

    def follow(self, round_time: float) -> None:
        """Let slices be as long as a visit to every page needs them to be: where it takes longer now, two become one.

        >>> activity = Activity(width=1.0)
        >>> activity.follow(100.0)
        >>> activity.width
        4.0
        """
        round_time = number("round_time", round_time, infinite=True)
        while 2.0 * SLICES_PER_ROUND * self.width < round_time <= MAX_MOMENT:
            self._kept, self.width, newest = None, 2.0 * self.width, self.newest // 2
            slices = newest[:, None] - np.arange(SLICES)
            found, expected = np.zeros_like(self.found), np.zeros_like(self.expected)
            rows = np.arange(len(newest))[:, None]
            for old in (2 * slices, 2 * slices + 1):
                kept = (old <= self.newest[:, None]) & (old > self.newest[:, None] - SLICES)
                for before, after in ((self.found, found), (self.expected, expected)):
                    after[rows, slices % SLICES] += np.where(kept, before[rows, old % SLICES], 0.0)
            self.found, self.expected, self.newest = found, expected, newest

    def _bring_up(self, branch: int, newest: int) -> None:
        """Let slices that are too old make room for those up to `newest`."""
        before = int(self.newest[branch])
        if newest <= before:
            return
        new = np.arange(max(before + 1, newest - SLICES + 1), newest + 1) % SLICES
        self.found[branch, new] = self.expected[branch, new] = 0.0
        self.newest[branch] = newest

    def _new_branch(self, name: str) -> int:
        number = self._numbers[name] = len(self._numbers)
        if number >= len(self.newest):
            for each in ("found", "expected", "newest", "wider", *LEVELS):
                old = getattr(self, each)
                setattr(self, each, np.concatenate([old, np.zeros_like(old)]))
        return number


class _Clock:
    """Time that runs at a rate of its own in each slice, and at the wall's before the first one; and how sure that is.

    The doubt about a part of a slice grows with its square: what is not known is how fast time ran in it.
    """

    def __init__(self, first: int, width: float, ratios: Floats, doubts: Floats) -> None:
        self.start, self.width = first * width, width
        self.slices = list(zip(ratios.tolist(), doubts.tolist(), strict=True))
        self.times = [0.0, *(width * np.cumsum(ratios)).tolist()]
        self.doubts = [0.0, *(width * width * np.cumsum(doubts)).tolist()]

    def between(self, since: float, now: float) -> tuple[float, float]:
        """What passed by this clock between moments in two slices, and the variance of it."""
        (nth, left), (last, inside) = self._place(since), self._place(now)
        ratio, doubt = self.slices[last]
        time, variance = self.times[last] + inside * ratio, self.doubts[last] + inside * inside * doubt
        if nth < 0:
            return time + left, variance
        ratio, doubt = self.slices[nth]
        time += (self.width - left) * ratio - self.times[nth + 1]
        return time, variance + (self.width - left) ** 2 * doubt - self.doubts[nth + 1]

    def _place(self, moment: float) -> tuple[int, float]:
        """The slice that a moment is in, and the seconds of it before; or −1, and the seconds up to the first one."""
        if moment < self.start:
            return -1, self.start - moment
        nth = min(int((moment - self.start) / self.width), len(self.slices) - 1)
        return nth, moment - self.start - nth * self.width


def _averaged(mean: float, variance: float) -> float:
    """The x for which exp(−x) is the mean of exp(−X), for a Gamma variable X.

    >>> round(_averaged(1.0, 1e-9), 6), round(_averaged(1.0, 1.0), 6)
    (1.0, 0.693147)
    """
    if not variance > 1e-9 * mean:
        return mean
    return mean * mean / variance * math.log1p(variance / mean)


def _once(mean: float) -> float:
    """How likely a Poisson number of sweeps is to be one, if it is not none.

    >>> round(_once(1e-12), 6), round(_once(1.0), 6), _once(1000.0)
    (1.0, 0.581977, 0.0)
    """
    if mean < 1e-9:
        return 1.0
    return mean / math.expm1(mean) if mean < 500.0 else 0.0


def mixed(of_host: Number, of_all: Number, folders: float) -> Number:
    """What is said by the host, and by its folders as far as they are believed."""
    return (1.0 - folders) * of_host + folders * of_all


def _folders(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-(FIRST_FOLDER_ODDS + odds)))


def _sure(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-(FIRST_ODDS + odds)))


def _log_likelihood(x: float, changed: bool) -> float:
    return math.log(max(-math.expm1(-x), 1e-9)) if changed else -x

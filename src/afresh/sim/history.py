"""Histories: when each page changed, and what was heard of it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class History:
    """The changes of some pages between `start` and `end`, sorted by page and time: those of page i are
    times[first[i] : first[i + 1]]."""

    times: Floats
    first: Integers
    weight: Floats  # of each page: how much it is asked for
    start: float
    end: float
    names: tuple[str, ...] = ()  # addresses, where they are known: pages of one folder may change together
    ends: Floats | None = None  # when each page was gone; infinity: it never was; None: none ever was
    births: Floats | None = None  # when each page came to be; −infinity: it was always there; None: all were

    @property
    def pages(self) -> int:
        """How many."""
        return len(self.first) - 1

    def rates(self, start: float | None = None, end: float | None = None) -> Floats:
        """Mean change rate of each page over a part of the time; by default, over all of it."""
        begin, stop = self.start if start is None else start, self.end if end is None else end
        inside = (self.times > begin) & (self.times <= stop)
        pages = np.repeat(np.arange(self.pages), np.diff(self.first))
        return np.asarray(
            np.bincount(pages[inside], minlength=self.pages) / np.maximum(self.lived(begin, stop), 1e-300)
        )

    def lived(self, begin: float, stop: float) -> Floats:
        """How long each page was there in a part of the time."""
        return np.maximum(self._until(stop) - self._since(begin), 0.0)

    def _since(self, begin: float) -> Floats:
        return np.full(self.pages, begin) if self.births is None else np.maximum(begin, self.births)

    def _until(self, stop: float) -> Floats:
        return np.full(self.pages, stop) if self.ends is None else np.minimum(stop, self.ends)

    def moments_within(self, pages: Integers, shares: Floats) -> Floats:
        """For each of some pages, the moment at which it has lived a share of its time."""
        since, lived = self._since(self.start), self.lived(self.start, self.end)
        return np.asarray(since[pages] + lived[pages] * shares)


@dataclass(frozen=True, slots=True)
class Heard:
    """Signals in the order in which they arrive."""

    time: Floats
    page: Integers
    sender: Integers | None = None  # of each, from 0 on; None: all are taken to be alike, and never late


SILENCE = Heard(np.empty(0), np.empty(0, np.int64))


def make_history(
    page: NDArray[np.integer],
    time: Floats,
    *,
    weight: Floats,
    start: float,
    end: float,
    names: tuple[str, ...] = (),
    ends: Floats | None = None,
    births: Floats | None = None,
) -> History:
    """A history from one row a change; rows before `start` or a page's birth, or after `end`, are left out."""
    inside = (time > start) & (time <= end)
    if births is not None:
        inside &= time > births[page]
    page, time = page[inside].astype(np.int64), time[inside]
    order = np.lexsort((time, page))
    counts = np.bincount(page, minlength=len(weight))
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    times, weights = time[order].astype(np.float64), weight.astype(np.float64)
    return History(times, first, weights, float(start), float(end), names, ends, births)


def draw_history(
    rng: np.random.Generator, change_rate: Floats, *, weight: Floats, start: float, end: float, clumping: float = 0.0
) -> History:
    """Changes at random: Poisson, or with `clumping` above 0 in bursts that long, as a share of the mean gap.

    A share of the changes comes shortly after another one, with the page's mean rate kept; real pages do so.
    """
    if not 0 <= clumping < 1:
        raise ValueError(f"clumping must be at least 0 and less than 1, not {clumping}")
    span = end - start
    leaders = rng.poisson(change_rate * (1 - clumping) * span)
    page = np.repeat(np.arange(len(change_rate)), leaders)
    time = start + span * rng.random(len(page))
    if clumping:
        followers = rng.geometric(1 - clumping, len(page)) - 1
        gaps = rng.standard_exponential(int(followers.sum()))
        behind = np.repeat(np.arange(len(page)), followers)
        late = gaps * 0.1 / change_rate[page[behind]]
        page, time = np.concatenate([page, page[behind]]), np.concatenate([time, time[behind] + late])
    return make_history(page, time, weight=weight, start=start, end=end)


def draw_signals(
    rng: np.random.Generator, history: History, *, recall: float, precision: float, delay: float = 0.0
) -> Heard:
    """Signals as a sender of this recall and precision would have sent them, `delay` seconds late on average."""
    if not 0 <= recall <= 1:
        raise ValueError(f"recall must lie between 0 and 1, not {recall}")
    if not 0 < precision <= 1:
        raise ValueError(f"precision must be more than 0 and at most 1, not {precision}")
    if not 0 <= delay < np.inf:
        raise ValueError(f"delay must be at least 0 seconds, not {delay}")
    pages = np.repeat(np.arange(history.pages), np.diff(history.first))
    told = rng.random(len(pages)) < recall
    false_rate = recall * history.rates() * (1 - precision) / precision
    false = np.repeat(np.arange(history.pages), rng.poisson(false_rate * history.lived(history.start, history.end)))
    page = np.concatenate([pages[told], false])
    invented = history.moments_within(false, rng.random(len(false)))
    time = np.concatenate([history.times[told], invented])
    if delay:
        time = time + delay * rng.standard_exponential(len(time))
    order = np.argsort(time, kind="stable")
    return Heard(time[order], page[order].astype(np.int64), np.zeros(len(order), np.int64))

"""When each page changes: Poisson, in bursts, or with the rhythm of the day.

Every process is a unit-rate Poisson process on a warped clock. The n-th change happens when the warped clock shows
S_n = E_1 + … + E_n with exponential E_i; what differs is how the warped clock runs:

- Poisson: at the page's change rate, always;
- rhythm: faster by day than by night, in the shape of `DAY_SHAPE`, with the page's rate on average over a day;
- bursts: quickly in bursts and slowly between them, again with the page's rate on average.

Changes are drawn when somebody asks, block by block, from numbers that depend on (seed, page, n) only, so the
order of the questions cannot alter the answers.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import IntEnum
from math import inf

import numpy as np
from numpy.typing import NDArray

from afresh.sim.web import dice

BLOCK = 16  # changes drawn at first; then as many again as there are, up to
MOST = 1024  # this many

# How busy the hours of a day are; the mean is 1 so that a page keeps its rate over whole days.
_HOURS = np.array([1, 1, 1, 1, 1, 2, 4, 7, 9, 9, 8, 8, 7, 8, 8, 8, 7, 7, 6, 5, 5, 4, 3, 2], dtype=np.float64)
DAY_SHAPE: NDArray[np.float64] = _HOURS / _HOURS.mean()
_DAY_KNOTS = np.linspace(0.0, 1.0, len(_HOURS) + 1)
_DAY_DONE = np.concatenate([[0.0], np.cumsum(DAY_SHAPE) / len(_HOURS)])

BURST_TIME = 0.1  # share of the time spent in bursts
BURST_CHANGES = 0.8  # share of the changes that fall into them
BURST_LENGTH = 5.0  # changes in a mean burst


class Process(IntEnum):
    """The law by which a page changes."""

    POISSON = 0
    RHYTHM = 1
    BURSTS = 2


class _Warp:
    """The warped clock of one bursting page: knots (time, clock) of a piecewise linear function, drawn as needed."""

    def __init__(self, stream_key: int, page: int, rate: float) -> None:
        self._key, self._page = stream_key, page
        self._speed = (rate * (1 - BURST_CHANGES) / (1 - BURST_TIME), rate * BURST_CHANGES / BURST_TIME)
        in_burst = BURST_LENGTH / self._speed[1]
        self._stay = (in_burst * (1 - BURST_TIME) / BURST_TIME, in_burst)
        # Exponential stays forget the past, so this start is the stationary one.
        self._state = int(dice.uniform(stream_key, page, 0) < BURST_TIME)
        self._drawn = 1
        self._time, self._clock = [0.0], [0.0]

    def times(self, clock: NDArray[np.float64]) -> NDArray[np.float64]:
        while self._clock[-1] < clock[-1]:
            stay = self._stay[self._state] * -np.log1p(-dice.uniform(self._key, self._page, self._drawn))
            self._time.append(self._time[-1] + stay)
            self._clock.append(self._clock[-1] + stay * self._speed[self._state])
            self._state = 1 - self._state
            self._drawn += 1
        return np.interp(clock, self._clock, self._time)


class Timeline:
    """All changes of all pages, past and future; times are seconds since the site started.

    >>> line = Timeline(7, [0.5, 0.0])
    >>> line.version(0, 100.0) == len(line.changes(0, 0.0, 100.0)), line.version(1, 1e9)
    (True, 0)
    """

    def __init__(
        self,
        seed: int,
        rates: Sequence[float] | NDArray[np.float64],
        *,
        processes: Sequence[int] | NDArray[np.int8] | None = None,
        day: float = 86400.0,
        phases: Sequence[float] | NDArray[np.float64] | None = None,
        stream: int = dice.Stream.CHANGE,
    ) -> None:
        self.rates = np.asarray(rates, dtype=np.float64)
        if not (np.isfinite(self.rates).all() and (self.rates >= 0).all()):
            raise ValueError("rates must be finite and not negative")
        count = len(self.rates)
        self.processes = np.zeros(count, np.int8) if processes is None else np.asarray(processes, np.int8)
        self.phases = np.zeros(count) if phases is None else np.asarray(phases, np.float64)
        self.day = day
        self._key = dice.key(seed, stream)
        self._burst_key = dice.key(seed, (stream << 8) + dice.Stream.BURST)
        ages = dice.exponential_many(dice.key(seed, (stream << 8) + dice.Stream.START), np.arange(count))
        with np.errstate(divide="ignore", over="ignore"):
            # A page that never changes is as old as the site's first ten years.
            self._start = -np.minimum(ages / self.rates, 3652.5 * day)
        self._times: list[list[float]] = [[] if rate > 0 else [inf] for rate in self.rates.tolist()]
        self._clock = [0.0] * count
        self._warps: dict[int, _Warp] = {}

    def _extend(self, page: int) -> list[float]:
        """Draw one more block of changes."""
        times = self._times[page]
        size = min(max(len(times), BLOCK), MOST)
        draws = dice.exponential_row(self._key, page, len(times), size)
        draws[0] += self._clock[page]
        clock = np.cumsum(draws)
        self._clock[page] = float(clock[-1])
        times.extend(self._to_time(page, clock).tolist())
        return times

    def _to_time(self, page: int, clock: NDArray[np.float64]) -> NDArray[np.float64]:
        rate, process = float(self.rates[page]), self.processes[page]
        if process == Process.BURSTS:
            if page not in self._warps:
                self._warps[page] = _Warp(self._burst_key, page, rate)
            return self._warps[page].times(clock)
        if process == Process.RHYTHM:
            phase = float(self.phases[page])
            days = clock / (rate * self.day) + np.interp(phase, _DAY_KNOTS, _DAY_DONE)
            whole = np.floor(days)
            return np.asarray((whole + np.interp(days - whole, _DAY_DONE, _DAY_KNOTS) - phase) * self.day)
        return clock / rate

    def _until(self, page: int, t: float) -> list[float]:
        """The page's changes, at least as far as the first one after `t`."""
        times = self._times[page]
        while not times or times[-1] <= t:
            times = self._extend(page)
        return times

    def version(self, page: int, t: float) -> int:
        """How often the page has changed up to and including `t`."""
        return bisect_right(self._until(page, t), t)

    def change_time(self, page: int, version: int) -> float:
        """When the page takes this version (infinity: never); version 0 is older than the site's start."""
        if version <= 0:
            return float(self._start[page])
        if self.rates[page] == 0:
            return inf
        times = self._times[page]
        while len(times) < version:
            times = self._extend(page)
        return times[version - 1]

    def last_change(self, page: int, t: float) -> float:
        """When the version of moment `t` began."""
        return self.change_time(page, self.version(page, t))

    def next_change(self, page: int, t: float) -> float:
        """The first change after `t`; infinity if there is none."""
        times = self._until(page, t)
        return times[bisect_right(times, t)]

    def changes(self, page: int, t0: float, t1: float) -> list[float]:
        """The moments in [t0, t1) at which the page changes."""
        times = self._until(page, t1)
        return times[bisect_left(times, t0) : bisect_left(times, t1)]

    def versions(self, t: float) -> NDArray[np.int64]:
        """`version` of all pages at once."""
        return np.fromiter((self.version(page, t) for page in range(len(self.rates))), np.int64, len(self.rates))


class Cursor:
    """Walks along a timeline: which pages have changed since the last look. Time never goes back."""

    def __init__(self, timeline: Timeline, t: float = 0.0) -> None:
        self._line = timeline
        self.time = t
        pages = range(len(timeline.rates))
        self._next = np.fromiter((timeline.next_change(page, t) for page in pages), np.float64, len(pages))

    def advance(self, t: float) -> list[tuple[float, int]]:
        """The changes in (last time, t], as (time, page), in order."""
        found = []
        for page in np.flatnonzero(self._next <= t).tolist():
            moment = float(self._next[page])
            while moment <= t:
                found.append((moment, page))
                moment = self._line.next_change(page, moment)
            self._next[page] = moment
        self.time = t
        return sorted(found)

"""What publishers say of their changes: some changes are announced, some are not, and some announcements are false.

Each change is announced with the page's recall; false announcements come at the page's false rate, and in storms that
announce a whole host at once.
"""

import heapq

import numpy as np
from numpy.typing import NDArray

from afresh.sim.web import dice
from afresh.sim.web.changes import Cursor, Timeline
from afresh.sim.web.dice import Stream


class Announcer:
    """The announcements of all pages through one channel (the sitemap, or pings)."""

    def __init__(
        self,
        timeline: Timeline,
        *,
        seed: int,
        stream: Stream,
        recall: NDArray[np.float64],
        false_rate: NDArray[np.float64],
        delay: float = 0.0,
        member: NDArray[np.bool_],
        storm_rate: float,
        host_of: NDArray[np.int32],
        gone_at: NDArray[np.float64],
    ) -> None:
        self.timeline = timeline
        self.recall = recall
        self.false_rate = false_rate
        self.member = member  # hosts that use this channel
        storm_rates = np.where(member, storm_rate, 0.0)
        self.all_false_rate: NDArray[np.float64] = false_rate + storm_rates[host_of]
        self.delay = delay  # mean seconds from change to announcement
        self.host_of = host_of
        self.gone_at = gone_at  # nothing is announced of a deleted page
        self._key = dice.key(seed, stream)
        self._delay_key = dice.key(seed, (stream << 8) + Stream.DELAY)
        self.false = Timeline(seed, false_rate, stream=(stream << 8) + Stream.FALSE)
        self.storms = Timeline(seed, storm_rates, stream=(stream << 8) + Stream.STORM)

    def announced(self, page: int, version: int) -> bool:
        """Whether the change to this version is announced at all."""
        return dice.uniform(self._key, page, version) < float(self.recall[page])

    def delay_of(self, page: int, version: int) -> float:
        """Seconds between this change and its announcement: uniform up to twice the mean."""
        return 2.0 * self.delay * dice.uniform(self._delay_key, page, version) if self.delay > 0 else 0.0

    def last(self, page: int, t: float) -> float:
        """When the page was last announced (before 0: when its first version began)."""
        moment = max(
            self._last_true(page, t),
            self._last_of(self.false, page, t),
            self._last_of(self.storms, int(self.host_of[page]), t),
        )
        return moment if moment > 0 else self.timeline.change_time(page, 0)

    def _last_true(self, page: int, t: float) -> float:
        newest = self.timeline.version(page, t)
        if not self.recall[page] > 0:
            return 0.0
        best = 0.0
        for version in range(newest, 0, -1):
            change = self.timeline.change_time(page, version)
            if change + 2.0 * self.delay < best:
                break  # nothing older can have been announced later
            if self.announced(page, version):
                moment = change + self.delay_of(page, version)
                if moment <= t:
                    best = max(best, moment)
                    if self.delay == 0:
                        break
        return best

    @staticmethod
    def _last_of(line: Timeline, item: int, t: float) -> float:
        return max(line.last_change(item, t), 0.0)

    def between(self, page: int, t0: float, t1: float) -> list[tuple[float, bool]]:
        """The page's announcements in [t0, t1), in order, each with whether it is true."""
        first = self.timeline.version(page, t0 - 2.0 * self.delay)
        found = [(t, False) for t in self.false.changes(page, t0, t1)]
        found += [(t, False) for t in self.storms.changes(int(self.host_of[page]), t0, t1)]
        version = max(first, 1)
        while (change := self.timeline.change_time(page, version)) < t1:
            if self.announced(page, version):
                moment = change + self.delay_of(page, version)
                if t0 <= moment < t1:
                    found.append((moment, True))
            version += 1
        return sorted(item for item in found if item[0] < self.gone_at[page])


class Listing:
    """Walks along all announcements of a channel in time order; time never goes back."""

    def __init__(self, announcer: Announcer, t: float = 0.0) -> None:
        self._of = announcer
        self._changes = Cursor(announcer.timeline, t)
        self._false = Cursor(announcer.false, t)
        self._storms = Cursor(announcer.storms, t)
        self._waiting: list[tuple[float, int]] = []  # a heap: announced changes whose delay is not over
        hosts = announcer.host_of
        self._pages_of = [np.flatnonzero(hosts == host).tolist() for host in range(len(announcer.storms.rates))]

    def advance(self, t: float) -> list[tuple[float, int]]:
        """The announcements in (last time, t], as (time, page), in order."""
        found = self._false.advance(t)
        for moment, host in self._storms.advance(t):
            found += [(moment, page) for page in self._pages_of[host]]
        for moment, page in self._changes.advance(t):
            version = self._of.timeline.version(page, moment)
            if self._of.announced(page, version):
                heapq.heappush(self._waiting, (moment + self._of.delay_of(page, version), page))
        while self._waiting and self._waiting[0][0] <= t:
            found.append(heapq.heappop(self._waiting))
        gone_at = self._of.gone_at
        return sorted(item for item in found if item[0] < gone_at[item[1]])

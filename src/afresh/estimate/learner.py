"""The estimator that the live engine uses: `online` behind the small interface of `base`."""

from math import inf

import numpy as np
from numpy.typing import NDArray

from afresh.checks import moment, number, require_kinds, whole
from afresh.estimate.base import BY_LEARNER, MAX_RATE, amount, bounded, check_wanted, checked_rate
from afresh.estimate.online import (
    DEFAULT_MEMORY,
    GLANCES,
    GROUP,
    PAGE,
    USED,
    beliefs_of,
    fresh_probability_of,
    glance,
    hear_signals,
    learn_crawl,
    new_table,
    sweep,
)
from afresh.estimate.popularity import Popularity
from afresh.estimate.requests import MEMORY, Memory, faded, ordinary_share, request_rate
from afresh.types import Beliefs, Importance

MOST_GROUPS = 65_536
MAX_REQUESTS = 1e15  # in one piece of evidence; more would not fit into what is kept of a page
MAX_SIGNALS = 1e9
MAX_WATCHED = 1e15  # seconds that a page was watched: no moment is later, whatever a sender says
MIN_MEMORY = 1e-6  # typical intervals
MAX_SLOT = 1_000_000_000
MAX_KEPT = 1e30  # of any number in what is kept of a page
_MARK = BY_LEARNER
_OLD_BYTES = 64  # of a page, before signals faded


class Learner:
    """Change rate, signal quality and request rate of each page, with priors that kin share.

    Invariants: what it learns does not depend on how crawls are batched; beliefs are always finite, whatever comes in;
    a page takes 72 bytes, and there are at most `MOST_GROUPS` groups. `typical_rate` is the first guess of how often a
    page changes: any guess within an order of magnitude or two will do. What was learned fades with `memory` of its
    intervals.
    """

    def __init__(
        self,
        *,
        typical_rate: float = 1 / 86400,
        memory: float = DEFAULT_MEMORY,
        requests: Memory = MEMORY,
    ) -> None:
        self.typical_rate = typical_rate = checked_rate(typical_rate)
        memory = number("memory", memory, least=MIN_MEMORY, infinite=True)
        self.table = new_table(0, typical_rate=typical_rate, now=0.0, memory=memory)
        self._groups: dict[str, int] = {}
        self._room = self.table.groups  # for more groups than there are
        self._given: dict[int, Importance] = {}  # by the operator
        self._reported: dict[int, float] = {}  # popularity, by others
        self._live = np.zeros(0, np.bool_)
        self._pages = 0
        self._memory = requests
        self._popularity = Popularity(requests.slow)
        self._counted_since = np.inf  # where logs reach further back than pages are watched
        self._groups_of_requests: list[int] = [0]  # the group in `_popularity` of each group
        self._restored = 0  # pages read back since the priors were last learned from all of them

    def add(
        self,
        slot: int,
        *,
        now: float,
        importance: Importance | None = None,
        popularity: float | None = None,
        learned: bytes = b"",
        kin: tuple[str, ...] = (),
    ) -> None:
        """Start to learn about a page, or go on from what `learned` of it before; `kin` names its groups."""
        slot, now = whole("slot", slot, most=MAX_SLOT), moment("now", now)
        require_kinds((learned, bytes, "learned"))
        self._make_room(slot)
        record = np.zeros(1, PAGE)
        record["since"] = now
        kept = learned.removeprefix(_MARK)
        if len(kept) in (_OLD_BYTES, PAGE.itemsize) and learned.startswith(_MARK):
            restored = np.frombuffer(kept.ljust(PAGE.itemsize, b"\0"), PAGE).copy()
            if len(kept) == _OLD_BYTES:
                # Signals did not fade then: the count is used as a rate since the page was first watched.
                restored["heard_at"] = max(now - float(restored["since"][0]), 0.0)
            if _makes_sense(restored):
                record = restored
                self._restored += 1
        record["group"] = self._group(kin)
        self.table.pages[slot] = record[0]
        self._pages += not self._live[slot]
        self._live[slot] = True
        requests = float(record["requests"][0])
        self._popularity.add(
            self._popular(slot),
            now,
            since=self._since(slot),
            requests=faded(requests, now - self._asked(slot), self._memory.slow),
        )
        self.told(slot, importance=importance, popularity=popularity)

    def told(self, slot: int, *, importance: Importance | None, popularity: float | None) -> None:
        """The operator says something else of the page from now on."""
        check_wanted(importance, popularity)
        self._given.pop(slot, None)
        self._reported.pop(slot, None)
        if importance is not None:
            self._given[slot] = importance
        if popularity is not None:
            self._reported[slot] = popularity

    def crawled(self, slot: int, *, elapsed: float, signals: float, changed: bool) -> None:
        """One checked interval: the copy was `elapsed` old, had heard `signals`, and had or had not changed."""
        slot = self._known(slot)
        elapsed, signals = number("elapsed", elapsed), number("signals", signals)
        self._learn_from_restored()
        learn_crawl(self.table, slot, min(max(float(elapsed), 0.0), 1e15), float(min(signals, 10**9)), bool(changed))
        for _ in range(int(self.table.control[GLANCES])):
            glance(self.table)

    def signalled(self, slot: int, count: float = 1.0, now: float | None = None) -> None:
        """A hint arrived; without `now`, at about the moment when the last one did."""
        slot, count, now = self._known(slot), amount("count", count), None if now is None else amount("now", now)
        record = self.table.pages[slot]
        since = float(record["since"])
        at = since + float(record["heard_at"]) if now is None else min(float(now), since + MAX_WATCHED)
        hear_signals(self.table, slot, float(min(count, MAX_SIGNALS)) if count > 0.0 else 0.0, at)

    def requested(self, slot: int, count: float = 1.0, now: float | None = None) -> None:
        """Somebody asked for the page."""
        slot, count, now = self._known(slot), amount("count", count), None if now is None else bounded("now", now)
        record = self.table.pages[slot]
        late, count = 0.0, min(count, MAX_REQUESTS) if count > 0.0 else 0.0
        if now is not None:
            self._fade(slot, now)
            late = max(self._asked(slot) - now, 0.0)  # what came before others that are counted has faded since
        record["burst"] += faded(count, late, self._memory.fast)
        count = faded(count, late, self._memory.slow)
        watched = self._asked(slot) - self._since(slot)
        count *= ordinary_share(float(record["requests"]), float(record["burst"]), watched, self._memory)
        record["requests"] += count
        self._popularity.ask(self._popular(slot), count, self._asked(slot))

    def requests_since(self, moment: float) -> None:
        """Requests are counted since this moment, also those of pages that were added later."""
        moment = bounded("moment", moment)
        if moment >= self._counted_since:
            return
        self._counted_since = moment
        for slot in np.flatnonzero(self._live).tolist():  # their groups were watched for longer, too
            since, asked = float(self.table.pages["since"][slot]), self._asked(slot)
            requests = float(self.table.pages["requests"][slot])
            self._popularity.remove(self._popular(slot), asked, since=since, requests=requests)
            self._popularity.add(self._popular(slot), asked, since=self._since(slot), requests=requests)

    def _since(self, slot: int) -> float:
        """Since when requests for the page are counted."""
        return min(float(self.table.pages["since"][slot]), self._counted_since)

    def beliefs(self, slot: int, now: float) -> Beliefs:
        """What is believed of the page now."""
        self._learn_from_restored()
        slot, now = self._known(slot), bounded("now", now)  # a whole number would be compiled for anew
        change_rate, recall, false_rate, shape = beliefs_of(self.table, slot, now)
        return Beliefs(
            request_rate=self._request_rate(slot, now),
            change_rate=change_rate,
            recall=recall,
            false_rate=false_rate,
            shape=shape,
            observations=int(self.table.pages["observations"][slot]),
        )

    def fresh_probability(self, slot: int, elapsed: float, signals: float) -> float:
        """How likely a copy of this age is to be current, over all rates that the page may have."""
        elapsed, signals = number("elapsed", elapsed, least=-inf), number("signals", signals)
        elapsed, signals = min(max(elapsed, 0.0), MAX_WATCHED), min(signals, MAX_SIGNALS)
        return float(fresh_probability_of(self.table, self._known(slot), elapsed, signals))

    def learned(self, slot: int) -> bytes:
        """All that was learned of the page, for `add` after a restart."""
        record = self.table.pages[slot : slot + 1].copy()
        record["group"] = 0  # it follows from the page's kin and from what others send
        return _MARK + bytes(record.tobytes())

    def remove(self, slot: int) -> None:
        """Forget the page."""
        record = self.table.pages[slot]
        requests = float(record["requests"])
        self._popularity.remove(self._popular(slot), self._asked(slot), since=self._since(slot), requests=requests)
        self.table.pages[slot] = np.zeros((), PAGE)
        self._pages -= bool(self._live[slot])
        self._live[slot] = False
        self.told(slot, importance=None, popularity=None)

    def _known(self, slot: int) -> int:
        if type(slot) is not int or not 0 <= slot < len(self._live):
            whole("slot", slot, most=len(self._live) - 1)
        return slot

    def _make_room(self, slot: int) -> None:
        pages = self.table.pages
        if slot >= len(pages):
            more = np.zeros(max(64, slot + 1, len(pages) * 5 // 4), PAGE)
            more[: len(pages)] = pages
            self.table = self.table._replace(pages=more)
            self._live = np.concatenate([self._live, np.zeros(len(more) - len(self._live), np.bool_)])
        self.table.control[USED] = max(self.table.control[USED], slot + 1)

    def _group(self, kin: tuple[str, ...]) -> int:
        """The narrowest group of these names; new ones believe what their parents do."""
        number = 0
        for nth, name in enumerate(kin):
            known = self._groups.get(name)
            if known is None:
                if len(self.table.groups) >= MOST_GROUPS:
                    return number
                known = self._new_group(name, number)
                self._groups_of_requests.append(self._popularity.group(kin[: nth + 1]))
            number = known
        return number

    def _new_group(self, name: str, parent: int) -> int:
        groups = self.table.groups
        count = len(groups)
        new = np.zeros(1, GROUP)
        for column in ("rates", "weights"):
            new[column] = groups[parent][column]
        new["parent"] = parent
        if count >= len(self._room):
            more = np.zeros(min(2 * count, MOST_GROUPS), GROUP)
            more[:count] = groups
            self._room = more
        self._room[count] = new[0]
        self.table = self.table._replace(groups=self._room[: count + 1])
        self._groups[name] = count
        return count

    def _popular(self, slot: int) -> int:
        return self._groups_of_requests[int(self.table.pages["group"][slot])]

    def _learn_from_restored(self) -> None:
        """Priors are not kept on disk: they follow from the pages, and are learned again when many were read back."""
        if self._restored * 8 >= max(self._pages, 1):
            self._restored = 0
            sweep(self.table, 5)

    def _asked(self, slot: int) -> float:
        """When the page's counts of requests were last brought up to date."""
        record = self.table.pages[slot]
        return float(record["since"]) + float(record["asked"])

    def _fade(self, slot: int, now: float) -> None:
        record = self.table.pages[slot]
        asked = np.float32(now - record["since"])  # to a few seconds, after years: the same seconds must not fade twice
        elapsed = float(asked) - float(record["asked"])
        if elapsed > 0:
            record["requests"] = faded(float(record["requests"]), elapsed, self._memory.slow)
            record["burst"] = faded(float(record["burst"]), elapsed, self._memory.fast)
            record["asked"] = asked

    def _request_rate(self, slot: int, now: float) -> float:
        given = self._given.get(slot)
        if given is not None and not given.times:
            return given.value
        record = self.table.pages[slot]
        elapsed = max(0.0, now - self._asked(slot))
        rate = request_rate(
            faded(float(record["requests"]), elapsed, self._memory.slow),
            faded(float(record["burst"]), elapsed, self._memory.fast),
            now - self._since(slot),
            self._popularity.average(self._popular(slot), now),
            self._memory,
            self._reported.get(slot, 1.0),
        )
        return min(rate if given is None else given.of(rate), MAX_RATE)


def _makes_sense(record: NDArray[np.void]) -> bool:
    """Whether a record that was read back can be one of ours: a damaged one must not spoil what others are taught."""
    numbers = [record[name] for name in ("asked", "sums", "heard", "requests", "burst", "heard_at")]
    within = all(bool(((each >= 0.0) & (each <= MAX_KEPT)).all()) for each in numbers)
    return within and bool(np.abs(record["since"]) <= MAX_KEPT)


def compile_ahead() -> None:
    """Compile all that a `Learner` calls, so that no crawl waits for it: seconds once on a machine, then hardly any."""
    learner = Learner()
    learner.add(0, now=0.0, kin=("host", "host/*"))
    restored = learner.learned(0)
    learner.crawled(0, elapsed=1.0, signals=1.0, changed=True)
    learner.signalled(0)
    learner.beliefs(0, 1.0)
    learner.fresh_probability(0, 1.0, 0.0)
    learner.add(0, now=1.0, learned=restored)
    learner.beliefs(0, 1.0)  # sweeps, as a page was read back

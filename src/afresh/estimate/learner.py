"""The estimator that the live engine uses: `online` behind the small interface of `base`."""

import math
from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.checks import moment, number, require_kinds, whole
from afresh.estimate.base import BY_LEARNER, amount, bounded, check_wanted, checked_rate
from afresh.estimate.courses import new_courses
from afresh.estimate.dates import POWER
from afresh.estimate.kinds import GIVEN, GUESSES, MAX_KINDS, MAX_SPREAD, MIN_SPREAD, give, guessed
from afresh.estimate.kinds_learned import KindsLearned, kinds_learned
from afresh.estimate.online import (
    CRAWL_MEMORY,
    DEFAULT_MEMORY,
    GLANCES,
    GROUP,
    OF_DATES,
    OF_KINDS,
    PAGE,
    USED,
    Table,
    new_table,
)
from afresh.estimate.opened import (
    Known,
    ask,
    asking_nobody,
    beliefs_of,
    fresh_probability_of,
    glance,
    hear_signals,
    learn_crawl,
    request_rate_of,
    sweep,
    tell_age,
    tell_last_change,
)
from afresh.estimate.popularity import Popularity
from afresh.estimate.requests import MEMORY, Memory, exposure, faded
from afresh.estimate.wanted import WEIGHED, Asking, nothing_said
from afresh.types import Beliefs, Importance
from afresh.value.views import written

MOST_GROUPS = 65_536
MAX_SIGNALS = 1e9
MOVED_SHARE = 0.1  # of a weight; less is not told to the schedule
MAX_VALUE = 1e6  # of a kind, in times other pages
MAX_FORETOLD = 14.0  # of the logarithm of how much a page is foretold to be asked for, in times pages alike
MAX_WATCHED = 1e15  # seconds that a page was watched: no moment is later, whatever a sender says
MIN_MEMORY = 1e-6  # typical intervals
MAX_SLOT = 1_000_000_000
MAX_KEPT = 1e30  # of any number in what is kept of a page
SWEEPS = 5  # turns over all pages, after many were read back; fewer over more than some,
SWEPT = 2_000_000  # since crawls go on with that: a glance takes about a microsecond
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
        crawl_memory: float = CRAWL_MEMORY,
        glances: int = 2,
        spread: float | None = None,
    ) -> None:
        """`spread`: the factor that the rates of two thirds of all things are within; None: one order of magnitude or
        two.
        """
        self.typical_rate = typical_rate = checked_rate(typical_rate)
        memory = number("memory", memory, least=MIN_MEMORY, infinite=True)
        self.table = new_table(
            0,
            typical_rate=typical_rate,
            now=0.0,
            memory=memory,
            crawl_memory=crawl_memory,
            glances=glances,
            spread=None if spread is None else number("spread", spread, least=MIN_SPREAD, most=MAX_SPREAD),
        )
        self._groups: dict[str, int] = {}
        self._room = self.table.groups  # for more groups than there are
        self._live = np.zeros(0, np.bool_)
        self._pages = 0
        self._memory = requests
        self._popularity = Popularity(requests.slow)
        # What is known of requests, with room for more groups than there are; logs may reach further back than pages
        # are watched.
        self.asking = asking_nobody()._replace(
            groups=self._popularity.groups, memory=requests, courses=new_courses(requests.fast)
        )
        self._written_of: tuple[Table, Asking] | None = None
        self._words, self._at = np.zeros(0, np.int64), 0
        self._restored = 0  # pages read back since the priors were last learned from all of them

    @property
    def at(self) -> int:
        """The address by which compiled functions find all that."""
        of = self._written_of
        if of is None or of[0] is not self.table or of[1] is not self.asking:
            self._written_of = self.table, self.asking
            self._words = written(Known(self.table, self.asking))
            self._at = self._words.ctypes.data  # numpy takes longer to say that than most of what it is asked for
        return self._at

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
        record = _read_one(learned, now)
        if record is not None and _make_sense(record)[0]:
            self._restored += 1
        else:
            record = np.zeros(1, PAGE)
            record["since"] = now
        record["group"] = self._group(kin)
        self.table.pages[slot] = record[0]
        self._pages += not self._live[slot]
        self._live[slot] = True
        requests = faded(float(record["requests"][0]), now - self._asked_at(slot), self._memory.slow)
        self._popularity.add(self._popular(slot), now, since=self._since(slot), requests=requests)
        self.told(slot, importance=importance, popularity=popularity)

    def add_many(
        self,
        slots: NDArray[np.int64],
        *,
        now: float,
        group: NDArray[np.int64],
        importance: NDArray[np.float64] | None = None,
        learned: NDArray[np.void] | None = None,
        times: NDArray[np.int64] | None = None,
        popularity: NDArray[np.float64] | None = None,
    ) -> None:
        """Start to learn about many pages; `group` is that of their kin (`group_of`), `importance` what operators say.

        `learned` holds a record of each (`read_back`), one of zeros where nothing was learned. `times`: 1 where the
        importance multiplies what is learned. `popularity` is that of reports, NaN where there is none.
        """
        now = moment("now", now)
        self._make_room(int(slots.max(initial=-1)))
        records = np.zeros(len(slots), PAGE)
        records["since"] = now
        if learned is not None:
            known = _make_sense(learned) & (learned["since"] != 0.0)
            records[known] = learned[known]
            self._restored += int(known.sum())
        records["group"] = group
        self.table.pages[slots] = records
        self._pages += len(slots) - int(self._live[slots].sum())
        self._live[slots] = True
        self.asking.wanted[slots] = nothing_said(len(slots))
        if importance is not None:
            self.asking.wanted["importance"][slots] = importance
        if times is not None:
            self.asking.wanted["times"][slots] = times
        if popularity is not None:
            self.asking.wanted["popularity"][slots] = np.where(np.isnan(popularity), 1.0, popularity)
            self.table.pages["foretold"][slots[~np.isnan(popularity)]] = 0.0
        asked = records["since"] + records["asked"]
        since = np.minimum(records["since"], self.asking.counted_since[0])
        requests = records["requests"] * np.exp(-np.maximum(now - asked, 0.0) / self._memory.slow)
        lacked = np.exp(-np.maximum(now - since, 0.0) / self._memory.slow)
        popular = self.asking.group_of[group]
        pages, asked_for = np.bincount(popular), np.bincount(popular, requests)
        lacking = np.bincount(popular, lacked)
        for each in np.flatnonzero(pages).tolist():
            self._popularity.add_many(each, now, pages[each], asked_for[each], lacking[each])

    def read_back(self, kept: Sequence[bytes], now: float) -> NDArray[np.void]:
        """Records of what was `learned` of pages, for `add_many`; zeros where nothing was, or it cannot be read."""
        whole = len(_MARK) + PAGE.itemsize
        if kept and all(len(each) == whole for each in kept):
            table = np.frombuffer(b"".join(kept), np.uint8).reshape(-1, whole)
            records = np.ascontiguousarray(table[:, len(_MARK) :]).reshape(-1).view(PAGE)
            if (table[:, : len(_MARK)] == np.frombuffer(_MARK, np.uint8)).all():
                return records
        records = np.zeros(len(kept), PAGE)
        for nth, each in enumerate(kept):
            if each and (record := _read_one(each, now)) is not None:
                records[nth] = record[0]
        return records

    def group_of(self, kin: tuple[str, ...]) -> int:
        """The number of the narrowest group of these names, for `add_many`."""
        return self._group(kin)

    def told(self, slot: int, *, importance: Importance | None, popularity: float | None) -> None:
        """The operator says something else of the page from now on."""
        check_wanted(importance, popularity)
        self.asking.wanted[slot] = (
            np.nan if importance is None else importance.value,
            1.0 if popularity is None else popularity,
            importance is not None and importance.times,
        )
        if popularity is not None:
            self.table.pages["foretold"][slot] = 0.0

    def told_popularity(self, slot: int, popularity: float) -> None:
        """A page is taken to be asked for so many times as often as pages alike, until requests say more."""
        log = math.log(max(number("popularity", popularity), math.exp(-MAX_FORETOLD)))
        self.table.pages["foretold"][self._known(slot)] = min(log, MAX_FORETOLD)

    def foretold(self, slot: int) -> float | None:
        """What was told so of a page that nobody has asked for yet; None: nothing."""
        return _foretold(self.table.pages[self._known(slot)])

    def average_request_rate(self, slot: int, now: float) -> float:
        """How often pages like this one are asked for; 0 while nobody asked for anything."""
        return self._popularity.average(self._popular(self._known(slot)), bounded("now", now))

    def requests_beside(self, slot: int, now: float) -> tuple[float, float]:
        """The requests that a page has had, and those that a page alike would have had; both fade."""
        average, watched = self.average_request_rate(slot, now), max(now - self._since(slot), 0.0)
        requests = faded(float(self.table.pages["requests"][slot]), now - self._asked_at(slot), self._memory.slow)
        return requests, average * exposure(watched, self._memory.slow)

    def weigh(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """What a stale copy costs a second, by slot, where no operator names an importance; whose moved much."""
        wanted, live = self.asking.wanted, np.flatnonzero(self._live[: len(weights)])
        free = live[np.isnan(wanted["importance"][live]) | (wanted["times"][live] == WEIGHED)]
        before, now = wanted["importance"][free], weights[free]
        differ = np.isnan(before) | (np.abs(now - before) > MOVED_SHARE * np.maximum(now, before))
        moved: NDArray[np.int64] = free[differ]
        wanted["importance"][moved], wanted["times"][moved] = weights[moved], WEIGHED
        return moved

    def told_kind(self, slot: int, kind: int) -> None:
        """The kinds of a page, as `kinds.pack` gives them; 0: unknown."""
        self.table.pages["kind"][self._known(slot)] = kind

    def kind_of(self, slot: int) -> int:
        """The kinds of a page, packed."""
        return int(self.table.pages["kind"][self._known(slot)])

    def describe_kind(
        self, kind: int, *, rate: float | None = None, spread: float | None = None, value: float = 1.0
    ) -> None:
        """What an operator says of a kind: how often its pages change, and how much more they are wanted than others.

        `spread`: the rates of two thirds of them differ by this factor at most from that.
        """
        kind = whole("kind", kind, least=1, most=MAX_KINDS)
        own, guess = self.table.groups[kind], self.table.groups[GUESSES + kind]
        own["value"] = number("value", value, most=MAX_VALUE)
        own["parent"] = 0
        if rate is not None:
            known = None if spread is None else number("spread", spread, least=MIN_SPREAD, most=MAX_SPREAD)
            give(self._of_kinds)
            own["parent"] = GUESSES + kind
            own["rates"] = guess["rates"] = guessed(checked_rate(rate), self.typical_rate, known)

    def scores_of_kinds(self) -> list[float]:
        """What kinds have proved to be worth, for `recall_kinds` after a restart."""
        return [float(score) for score in self._of_kinds.tolist()]

    def recall_kinds(self, scores: Sequence[float]) -> None:
        """What kinds had proved to be worth before a restart."""
        control = self._of_kinds
        if len(scores) == len(control) and np.isfinite(scores).all():
            given = control[GIVEN]
            control[:GIVEN] = scores[:GIVEN]
            control[GIVEN] = given

    @property
    def _of_kinds(self) -> NDArray[np.float64]:
        return self.table.control[OF_KINDS:OF_DATES]

    def of_kinds(self) -> KindsLearned:
        """What is known of each kind, and what kinds are worth here."""
        return kinds_learned(self.table, self._live)

    def told_age(self, slot: int, age: float, trust: float) -> None:
        """A new page's content is so old, with this much trust in its date."""
        tell_age(self.at, self._known(slot), number("age", age), number("trust", trust, most=1.0))

    def told_last_change(self, slot: int, since: float, elapsed: float, trust: float) -> None:
        """A page that was found changed after `elapsed` last changed so long ago."""
        since, elapsed, trust = number("since", since), number("elapsed", elapsed), number("trust", trust, most=1.0)
        tell_last_change(self.at, self._known(slot), since, elapsed, trust)

    def worth_of_first_said(self) -> list[float]:
        """What has proved to be worth to hear at first crawls, for `recall_first_said` after a restart."""
        return [float(score) for score in self.table.control[OF_DATES:].tolist()]

    def recall_first_said(self, scores: Sequence[float]) -> None:
        """What was worth to hear before a restart."""
        control = self.table.control[OF_DATES:]
        if len(scores) == len(control) and np.isfinite(scores).all() and 0.0 < scores[POWER] <= 1.0:
            control[:] = scores

    def crawled(self, slot: int, *, elapsed: float, signals: float, changed: bool) -> None:
        """One checked interval: the copy was `elapsed` old, had heard `signals`, and had or had not changed."""
        slot = self._known(slot)
        elapsed, signals = number("elapsed", elapsed), number("signals", signals)
        self.learn_from_restored()
        learn_crawl(self.at, slot, min(max(float(elapsed), 0.0), 1e15), float(min(signals, 10**9)), bool(changed))

    def glance(self) -> list[int]:
        """Look at the pages whose turn it is, for their groups' sake; which they were."""
        seen = [glance(self.at) for _ in range(int(self.table.control[GLANCES]))] if self._pages else []
        return [slot for slot in seen if self._live[slot]]

    def signalled(self, slot: int, count: float = 1.0, now: float | None = None) -> None:
        """A hint arrived; without `now`, at about the moment when the last one did."""
        slot, count, now = self._known(slot), amount("count", count), None if now is None else amount("now", now)
        record = self.table.pages[slot]
        since = float(record["since"])
        at = since + float(record["heard_at"]) if now is None else min(float(now), since + MAX_WATCHED)
        hear_signals(self.at, slot, float(min(count, MAX_SIGNALS)) if count > 0.0 else 0.0, at)

    def requested(self, slot: int, count: float = 1.0, now: float | None = None) -> None:
        """Somebody asked for the page."""
        slot, count, now = self._known(slot), amount("count", count), None if now is None else bounded("now", now)
        ask(self.at, slot, float(count), np.nan if now is None else now)

    def requests_since(self, moment: float) -> None:
        """Requests are counted since this moment, also those of pages that were added later."""
        moment = bounded("moment", moment)
        if moment >= self.asking.counted_since[0]:
            return
        self.asking.counted_since[0] = moment
        for slot in np.flatnonzero(self._live).tolist():  # their groups were watched for longer, too
            since, asked = float(self.table.pages["since"][slot]), self._asked_at(slot)
            requests = float(self.table.pages["requests"][slot])
            self._popularity.remove(self._popular(slot), asked, since=since, requests=requests)
            self._popularity.add(self._popular(slot), asked, since=self._since(slot), requests=requests)

    def _since(self, slot: int) -> float:
        """Since when requests for the page are counted."""
        return min(float(self.table.pages["since"][slot]), float(self.asking.counted_since[0]))

    def _asked_at(self, slot: int) -> float:
        """When the counts of requests for the page were last brought up to date."""
        page = self.table.pages[slot]
        return float(page["since"]) + float(page["asked"])

    def beliefs(self, slot: int, now: float) -> Beliefs:
        """What is believed of the page now."""
        self.learn_from_restored()
        slot, now = self._known(slot), bounded("now", now)  # a whole number would be compiled for anew
        change_rate, recall, false_rate, shape = beliefs_of(self.at, slot, now)
        return Beliefs(
            request_rate=request_rate_of(self.at, slot, now),
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
        return float(fresh_probability_of(self.at, self._known(slot), elapsed, signals))

    def learned(self, slot: int) -> bytes:
        """All that was learned of the page, for `add` after a restart."""
        record = self.table.pages[slot : slot + 1].copy()
        record["group"] = 0  # it follows from the page's kin and from what others send
        return _MARK + bytes(record.tobytes())

    def remove(self, slot: int) -> None:
        """Forget the page."""
        record = self.table.pages[slot]
        requests = float(record["requests"])
        asked = self._asked_at(slot)
        self._popularity.remove(self._popular(slot), asked, since=self._since(slot), requests=requests)
        self.table.pages[slot] = np.zeros((), PAGE)
        self._pages -= bool(self._live[slot])
        self._live[slot] = False
        self.told(slot, importance=None, popularity=None)

    def _known(self, slot: int) -> int:
        if type(slot) is not int or not 0 <= slot < len(self._live):
            whole("slot", slot, most=len(self._live) - 1)
        return slot

    def reserve(self, pages: int) -> None:
        """Make room for this many pages at once, and not for a quarter more."""
        if pages > len(self.table.pages):
            self._grow(pages)

    def _make_room(self, slot: int) -> None:
        pages = self.table.pages
        if slot >= len(pages):
            self._grow(max(64, slot + 1, len(pages) * 5 // 4))
        self.table.control[USED] = max(self.table.control[USED], slot + 1)

    def _grow(self, size: int) -> None:
        pages = self.table.pages
        more = np.zeros(size, PAGE)
        more[: len(pages)] = pages
        self.table = self.table._replace(pages=more)
        self._live = np.concatenate([self._live, np.zeros(len(more) - len(self._live), np.bool_)])
        wanted = nothing_said(len(more))
        wanted[: len(pages)] = self.asking.wanted
        self.asking = self.asking._replace(wanted=wanted)

    def _group(self, kin: tuple[str, ...]) -> int:
        """The narrowest group of these names; new ones believe what their parents do."""
        number = 0
        for nth, name in enumerate(kin):
            known = self._groups.get(name)
            if known is None:
                if len(self.table.groups) >= MOST_GROUPS:
                    return number
                known = self._new_group(name, number)
                self._note_requests_of(known, kin[: nth + 1])
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

    def _note_requests_of(self, group: int, kin: tuple[str, ...]) -> None:
        """Requests for pages of a new group are counted in one of their own."""
        group_of = self.asking.group_of
        if group >= len(group_of):
            group_of = np.concatenate([group_of, np.zeros_like(group_of)])
        group_of[group] = self._popularity.group(kin)
        self.asking = self.asking._replace(group_of=group_of, groups=self._popularity.groups)

    def _popular(self, slot: int) -> int:
        return int(self.asking.group_of[self.table.pages["group"][slot]])

    def learn_from_restored(self) -> None:
        """Priors are not kept on disk: they follow from the pages, and are learned again when many were read back."""
        if self._restored and self._restored * 8 >= max(self._pages, 1):
            self._restored = 0
            sweep(self.at, max(1, min(SWEEPS, SWEPT // max(self._pages, 1))))


def _read_one(learned: bytes, now: float) -> NDArray[np.void] | None:
    """The record that was kept of a page; None where there is none."""
    kept = learned.removeprefix(_MARK)
    if len(kept) not in (_OLD_BYTES, PAGE.itemsize) or not learned.startswith(_MARK):
        return None
    record = np.frombuffer(kept.ljust(PAGE.itemsize, b"\0"), PAGE).copy()
    if len(kept) == _OLD_BYTES:
        # Signals did not fade then: the count is used as a rate since the page was first watched.
        record["heard_at"] = max(now - float(record["since"][0]), 0.0)
    return record


def kind_in(learned: bytes) -> int:
    """The kinds of a page in what was `learned` of it, packed; 0: unknown."""
    record = _read_one(learned, 0.0)
    return 0 if record is None else int(record["kind"][0])


def foretold_in(learned: bytes) -> float | None:
    """How much a page will be asked for, by what was `learned`, if nobody has yet and that was foretold."""
    record = _read_one(learned, 0.0)
    return None if record is None or not _make_sense(record)[0] else _foretold(record[0])


def _foretold(record: Any) -> float | None:
    asked = record["requests"] > 0.0 or record["burst"] > 0.0
    return None if asked or record["foretold"] == 0.0 else math.exp(float(record["foretold"]))


def _make_sense(records: NDArray[np.void]) -> NDArray[np.bool_]:
    """Whether records that were read back can be ours: a damaged one must not spoil what others are taught."""
    fine = (np.abs(records["since"]) <= MAX_KEPT) & (np.abs(records["foretold"]) <= MAX_FORETOLD)
    for name in ("asked", "sums", "heard", "requests", "burst", "heard_at"):
        within = (records[name] >= 0.0) & (records[name] <= MAX_KEPT)
        fine &= within if within.ndim == 1 else within.all(axis=1)
    return np.asarray(fine)


def compile_ahead() -> None:
    """Compile all that a `Learner` calls, so that no crawl waits for it: seconds once on a machine, then hardly any."""
    learner = Learner()
    learner.add(0, now=0.0, kin=("host", "host/*"))
    restored = learner.learned(0)
    learner.crawled(0, elapsed=1.0, signals=1.0, changed=True)
    learner.glance()
    learner.signalled(0)
    learner.beliefs(0, 1.0)
    learner.fresh_probability(0, 1.0, 0.0)
    learner.add(0, now=1.0, learned=restored)
    learner.beliefs(0, 1.0)  # sweeps, as a page was read back

"""The two forms of the heart: `PlainHeart`, for any scheduler and estimator, and `CompiledHeart`, for many pages.

Both keep the same columns and answer the same questions; `heart_for` says which one serves. See `heart` for what they
do, and in which order.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.engine.columns import (
    BRANCHES,
    FOUND,
    OUT_OF_PLAY,
    OUTDATED,
    SENDERS,
    TOGETHER,
    Columns,
    Integers,
    Records,
    forget_heard,
    hear_out,
    leave,
    mark_ordered,
    note_heard,
    spare,
)
from afresh.estimate import Activity, Estimator, Senders, branches_of, kin_of
from afresh.estimate.activity import TOLD_OF_A_CHANGE
from afresh.estimate.senders import NOT_EARLY, octave
from afresh.schedule import Scheduler, Schedules

if TYPE_CHECKING:
    from afresh.engine.heart import Heart
    from afresh.estimate import Learner

ABOUT = 0.1  # an age that is off by less is right enough
LEAST = 1e-300  # a chance whose logarithm is finite
DEEPEST = 16  # branches that a page can be on

Floats = NDArray[np.float64]


class Rough(NamedTuple):
    """How fresh copies are, by what the schedule takes to be true of them."""

    weight: float  # the requests for all pages
    fresh: float  # those of them that would find a fresh copy
    some: Floats  # how likely the copies of some pages are to be current


class Entries(NamedTuple):
    """Pages that come in together, a column each."""

    host: Integers
    branch: Integers  # the narrowest; −1: none
    group: Integers  # of kin
    current: Floats  # NaN: there is no copy
    importance: Floats  # NaN: nobody said anything
    failures: Integers
    flags: Integers
    learned: Records | None = None  # by the estimator, before a restart
    times: Integers | None = None  # 1: the importance multiplies what is learned
    popularity: Floats | None = None  # by reports of others


class PlainHeart:
    """One page at a time, in the interpreter: the specification, and what other people's rules run on."""

    def __init__(
        self, scheduler: Schedules, estimator: Estimator, activity: Activity | None, senders: Senders | None
    ) -> None:
        self.scheduler, self.estimator = scheduler, estimator
        self.activity = activity  # None: every page changes on its own
        self.senders = Senders() if senders is None else senders  # what signals are worth
        self.columns = Columns()

    # --- what is kept of pages ---

    def enter(
        self,
        slot: int,
        *,
        host: int,
        branches: tuple[int, ...],
        current: float | None,
        failures: int = 0,
        flags: int = 0,
    ) -> None:
        """A page comes in."""
        branch = branches[-1] if branches else -1
        since = math.nan if current is None else current
        self.columns.enter(slot, host=host, branch=branch, current=since, failures=failures, flags=flags)

    def recall(self, slot: int, sender: int, pair: int, count: int) -> None:
        """So many signals were heard, and counted by the estimator, before a restart."""
        columns = self.columns
        columns.room_for_heard(1)
        note_heard(columns.pages, columns.heard, columns.control, slot, sender, pair, NOT_EARLY, count)

    def forget(self, slot: int) -> None:
        """A page goes."""
        columns = self.columns
        forget_heard(columns.pages, columns.heard, columns.control, slot)
        leave(columns.pages, columns.turn, slot)

    def current(self, slot: int) -> float | None:
        """The moment that the copy of a page is as of; None if there is none."""
        current = float(self.columns.pages[slot]["current"])
        return None if math.isnan(current) else current

    def has(self, slot: int, flag: int) -> bool:
        """Whether this is so of a page."""
        return bool(self.columns.pages[slot]["flags"] & flag)

    def mark(self, slot: int, flag: int, is_so: bool) -> None:
        """Say whether this is so of a page."""
        page = self.columns.pages[slot]
        page["flags"] = int(page["flags"]) & ~flag | flag * is_so

    def signals(self, slot: int) -> int:
        """How many were heard since the copy was current."""
        return int(self.columns.pages[slot]["signals"])

    # --- evidence ---

    def hear(self, slot: int, sender: int, pair: int, time: float) -> None:
        """A signal arrived; `believe` or `heard` tells the schedule."""
        columns, current = self.columns, self.current(slot)
        columns.room_for_heard(1)
        # It may be about the change that was fetched.
        early = octave(time - current) if current is not None and self.has(slot, FOUND) else NOT_EARLY
        note_heard(columns.pages, columns.heard, columns.control, slot, sender, pair, early, 1)
        self.estimator.signalled(slot, self.senders.weight_by_row(sender, pair, early), time)

    def heard(self, slot: int, now: float) -> None:
        """Tell the schedule that signals of a page were heard."""
        self.believe(slot, now)

    def believe(self, slot: int, now: float) -> None:
        """Tell the schedule what is believed of a page and its copy."""
        believed = self.estimator.beliefs(slot, now)
        age = self.age(slot, now) if self._ranks and self.current(slot) is not None else None
        current, page = self.current(slot), self.columns.pages[slot]
        page["assumed"] = now - age if age is not None else math.inf if current is None else current
        page["request_rate"] = believed.request_rate
        self.scheduler.update(
            slot,
            now=now,
            request_rate=believed.request_rate,
            change_rate=believed.change_rate,
            recall=believed.recall,
            false_rate=believed.false_rate,
            shape=believed.shape,
            age=age,
            signals=self.count(slot),
        )

    # --- crawls ---

    def close(
        self, slot: int, started: float, now: float, *, learns: bool, changed: bool, found: bool, gap: float
    ) -> float:
        """A crawl has confirmed or replaced the copy: learn from it, and the page is in play again.

        `learns`: it was not the first one, which shows nothing. `found`: signals for what it found may yet come. The
        host rests for `gap`. How likely the copy was to be current until then is what comes back.
        """
        said = self.fresh_probability(slot, started)
        self.check(slot, started, now, learns=learns, changed=changed, found=found)
        self.scheduler.finish(slot, now, crawled=started, changed=changed, gap=gap)
        self.look_round(slot, now, changed=changed)
        return said

    def order(self, slot: int) -> None:
        """An order is given."""
        mark_ordered(self.columns.pages, self.columns.heard, slot)

    def run_elsewhere(self, slot: int, later: Sequence[int]) -> None:
        """What was heard may be about what somebody else has found, but for signals of these senders, which came
        after that was begun."""
        self.order(slot)
        spare(self.columns, slot, later)

    def check(self, slot: int, started: float, now: float, *, learns: bool, changed: bool, found: bool) -> None:
        """A crawl has confirmed or replaced the copy: learn from it, and let its age start again."""
        if learns:
            self._learn(slot, started, changed)
        columns = self.columns
        page = columns.pages[slot]
        page["current"], page["failures"] = started, 0
        page["flags"] = int(page["flags"]) & OUT_OF_PLAY | FOUND * found
        hear_out(columns.pages, columns.heard, columns.control, slot)

    def look_round(self, slot: int, now: float, *, changed: bool) -> None:
        """The schedule has the page back: pass on what was learned, to siblings if it had changed, and to others."""
        self.believe(slot, now)
        if changed and self._ranks:
            self._look_at_siblings(int(self.columns.pages[slot]["branch"]), now)
        for other in self.estimator.glance():
            self.believe(other, now)

    def _learn(self, slot: int, started: float, changed: bool) -> None:
        current = self.current(slot) or 0.0
        elapsed = max(started - current, 0.0)
        ordered = [(sender, pair, early, before) for sender, pair, early, _, before in self.columns.entries(slot)]
        signals = math.fsum(count * self.senders.weight_by_row(*kind) for *kind, count in ordered if count > 0)
        by_time = self._stale(slot, elapsed, 0.0)
        told = self._stale(slot, elapsed, signals) - by_time if signals else 0.0
        if signals:
            stretched = self._stale(slot, self.age(slot, started), 0.0)
            weight = self.estimator.beliefs(slot, started).signal_weight
            self.senders.learn_by_row(ordered, by_time=stretched, weight=weight, changed=changed)
        if self.activity is not None:
            self.activity.learn(
                self.line(slot), current, current + elapsed, expected=by_time, told=told, changed=changed
            )
        self.estimator.crawled(slot, elapsed=elapsed, signals=signals, changed=changed)

    def _look_at_siblings(self, branch: int, now: float) -> None:
        pages, turn = self.columns.pages, self.columns.turn
        first = turn[branch]
        for _ in range(TOLD_OF_A_CHANGE if branch >= 0 else 0):
            sibling = int(turn[branch])
            turn[branch] = pages[sibling]["following"]
            if self.current(sibling) is not None:
                age = self.age(sibling, now)
                if abs(now - pages[sibling]["assumed"] - age) > ABOUT * age:
                    self.believe(sibling, now)
            if turn[branch] == first:
                return

    # --- what is said ---

    def fresh_probability(self, slot: int, now: float) -> float:
        """How likely the copy of a page is to be current; 0 where there is none."""
        current = self.current(slot)
        if current is None or self.has(slot, OUTDATED):
            return 0.0
        elapsed, signals = max(now - current, 0.0), self.count(slot)
        if self.activity is None:
            return self.estimator.fresh_probability(slot, elapsed, signals)
        by_time = self._stale(slot, elapsed, 0.0)
        told = self._stale(slot, elapsed, signals) - by_time if signals else 0.0
        return self.activity.fresh(self.line(slot), current, now, by_time) * math.exp(-told)

    def snapshot(self, slots: Integers, now: float) -> Callable[[], Floats]:
        """What says how likely these copies are to be current now, when it is called, in any thread."""
        said = np.array([self.fresh_probability(slot, now) for slot in slots.tolist()])  # these parts have few pages
        return lambda: said

    def rough(self, some: Integers, used: NDArray[np.bool_], now: float) -> Callable[[], Rough] | None:
        """What says the same roughly of all pages in use; None where that would be no faster."""
        return None

    def count(self, slot: int) -> float:
        """Signals since the copy was current, as a number of good ones."""
        entries = self.columns.entries(slot) if self.columns.pages[slot]["heard"] >= 0 else []
        return math.fsum(
            count * self.senders.weight_by_row(sender, pair, early) for sender, pair, early, count, _ in entries
        )

    def age(self, slot: int, now: float) -> float:
        """How old a copy is, in seconds as long as what happened in them makes them."""
        current = self.current(slot)
        if current is None:
            return math.inf
        if self.activity is None or not self._ranks:
            # What happens on the only branch concerns all alike: it counts for what is said, and not for the order.
            return max(now - current, 0.0)
        return self.activity.stretched(self.line(slot), current, now)

    def line(self, slot: int) -> tuple[int, ...]:
        """The branches that a page is on, from its host to the narrowest."""
        found, branch = [], int(self.columns.pages[slot]["branch"])
        while branch >= 0 and self.activity is not None:
            found.append(branch)
            branch = int(self.activity.wider[branch])
        return tuple(reversed(found))

    @property
    def _ranks(self) -> bool:
        """Whether what happens on branches tells pages apart: there are several."""
        return self.activity is not None and bool(self.columns.control[BRANCHES] > 1)

    def _stale(self, slot: int, elapsed: float, signals: float) -> float:
        """x of a copy, by the estimator: it is fresh with probability exp(−x)."""
        return -math.log(max(self.estimator.fresh_probability(slot, elapsed, signals), LEAST))


class CompiledHeart(PlainHeart):
    """The same by compiled functions, over the arrays of a `Scheduler` and a `Learner`."""

    def __init__(
        self, scheduler: Scheduler, estimator: "Learner", activity: Activity | None, senders: Senders | None
    ) -> None:
        from afresh.engine import heart, opened  # compiled code takes a while to load

        super().__init__(scheduler, estimator, activity, senders)
        self._does, self._by_address = heart, opened
        self._wheel, self.learner = scheduler, estimator
        self._without = Activity(width=1.0)  # where pages change each on their own
        self._line = np.zeros(DEEPEST, np.int64)
        self._bound: Heart | None = None
        self._at = 0
        self._bound_to: tuple[object, ...] = ()

    @property
    def heart(self) -> "Heart":
        """What the compiled functions read and write; arrays that have grown since are found anew."""
        columns, activity, to, learner = self.columns, self.activity or self._without, self._bound_to, self.learner
        learner.learn_from_restored()
        columns.control[SENDERS] = self.senders.known
        if not (
            self._bound is not None
            and self._wheel.state is to[0]
            and learner.table is to[1]
            and learner.asking is to[2]
            and activity.found is to[3]
            and activity.wider is to[4]
            and columns.pages is to[5]
            and columns.heard is to[6]
            and columns.turn is to[7]
            and self.senders is to[8]
        ):
            from afresh.estimate.activity_online import slices_of
            from afresh.value.views import written

            self._bound_to = (
                *(self._wheel.state, learner.table, learner.asking, activity.found, activity.wider),
                *(columns.pages, columns.heard, columns.turn, self.senders),
            )
            columns.control[TOGETHER] = self.activity is not None
            self._bound = self._does.Heart(
                core=self._wheel.state.core,
                table=self.learner.table,
                asking=self.learner.asking,
                slices=slices_of(activity),
                wider=activity.wider,
                line=self._line,
                pages=columns.pages,
                heard=columns.heard,
                turn=columns.turn,
                control=columns.control,
                credit=self.senders.credit,
                due=self.senders.due,
                checked=self.senders.checked,
            )
            self._written = written(self._bound)
            self._at = self._written.ctypes.data
        return self._bound

    @property
    def at(self) -> int:
        """The address by which the functions of `opened` find all that."""
        _ = self.heart
        return self._at

    def place(self, url: str, host: str) -> tuple[int, int]:
        """(branch, group of kin) of a page, for `Entries`."""
        branch = -1 if self.activity is None else self.activity.branches(branches_of(url, host))[-1]
        return branch, self.learner.group_of(kin_of(url, host))

    def reserve(self, pages: int) -> None:
        """Make room for this many pages in all."""
        self._wheel.reserve(pages - len(self._wheel))
        self.learner.reserve(pages)
        self.columns.reserve(pages)

    def enter_many(self, now: float, entries: Entries) -> Integers:
        """Pages come in, out of play until `settle_many`; their slots."""
        age = np.where(np.isnan(entries.current), math.inf, np.maximum(now - entries.current, 0.0))
        slots = self._wheel.enter_many(host=entries.host, now=now, age=age)
        self.columns.enter_many(
            slots,
            host=entries.host,
            branch=entries.branch,
            current=entries.current,
            failures=entries.failures,
            flags=entries.flags,
        )
        self.learner.add_many(
            slots,
            now=now,
            group=entries.group,
            importance=entries.importance,
            learned=entries.learned,
            times=entries.times,
            popularity=entries.popularity,
        )
        columns = self.columns
        self._does.join_all(columns.pages, columns.turn, columns.control, slots)
        return slots

    def believe_many(self, slots: Integers, now: float) -> None:
        """Write what is believed of pages that are not in play."""
        self._by_address.believe_all(self.at, slots, now)

    def settle_many(self, slots: Integers, now: float) -> None:
        """Pages that came in are in play, but for those that are kept out of it."""
        self._wheel.place_many(slots[(self.columns.pages["flags"][slots] & OUT_OF_PLAY) == 0], now)

    def hear_many(self, slots: Integers, senders: Integers, pairs: Integers, times: Floats, now: float) -> None:
        """Signals arrived, in this order; the schedule is told."""
        self.columns.room_for_heard(len(slots))
        self._by_address.hear_all(self.at, slots, senders, pairs, times, now)
        self._wheel.changed(0, now)

    def ask_many(self, slots: Integers, counts: Floats, times: Floats, now: float) -> None:
        """Requests arrived, in this order; the schedule is told."""
        self._by_address.ask_all(self.at, slots, counts, times, now)
        self._wheel.changed(len(slots), now)

    def forget(self, slot: int) -> None:
        """A page goes."""
        self._by_address.forget(self.at, slot)

    def hear(self, slot: int, sender: int, pair: int, time: float) -> None:
        """A signal arrived; `believe` or `heard` tells the schedule."""
        self.columns.room_for_heard(1)
        self._by_address.hear(self.at, slot, sender, pair, time)

    def heard(self, slot: int, now: float) -> None:
        """Tell the schedule that signals of a page were heard."""
        self._by_address.heard(self.at, slot, now)

    def believe(self, slot: int, now: float) -> None:
        """Tell the schedule what is believed of a page and its copy."""
        self._by_address.believe(self.at, slot, now)
        self._wheel.changed(1, now)

    def close(
        self, slot: int, started: float, now: float, *, learns: bool, changed: bool, found: bool, gap: float
    ) -> float:
        """A crawl has confirmed or replaced the copy: learn from it, and the page is in play again."""
        self._wheel.may_go_again(slot, now)
        said = self._by_address.close(self.at, slot, started, now, learns, changed, found, gap)
        if learns and self.activity is not None:
            self.activity.learned += 1
        return float(said)

    def fresh_probability(self, slot: int, now: float) -> float:
        """How likely the copy of a page is to be current; 0 where there is none."""
        return float(self._by_address.fresh_probability(self.at, slot, now))

    def snapshot(self, slots: Integers, now: float) -> Callable[[], Floats]:
        """What says how likely these copies are to be current now, when it is called, in any thread.

        All that it reads is copied here, where nothing changes meanwhile.
        """
        from afresh.value.views import written

        heart, numbers = self.heart, slots
        table = heart.table
        copied = heart._replace(
            table=table._replace(
                pages=table.pages[numbers],
                groups=table.groups.copy(),
                control=table.control.copy(),
                chance=table.chance.copy(),
                pairs=table.pairs.copy(),
            ),
            slices=heart.slices._replace(
                **{name: getattr(heart.slices, name).copy() for name in heart.slices._fields[1:]}
            ),
            wider=heart.wider.copy(),
            line=heart.line.copy(),
            pages=heart.pages[numbers],
            heard=heart.heard.copy(),
            control=heart.control.copy(),
            credit=heart.credit.copy(),
            due=heart.due.copy(),
        )

        words = written(copied)

        def said() -> Floats:
            found = np.zeros(len(numbers))
            self._by_address.state_all(words.ctypes.data, np.arange(len(numbers)), now, found)
            assert copied is not None  # noqa: S101 (it is kept: the words say where its arrays are)
            return found

        return said

    def rough(self, some: Integers, used: NDArray[np.bool_], now: float) -> Callable[[], Rough] | None:
        """What says the same roughly of all pages in use: by the schedule's records, as they are while it runs.

        A page that changes meanwhile counts as before or after that. The arrays stay, even if the tables grow.
        """
        pages, records = self.columns.pages, self._wheel.state.pages

        def said() -> Rough:
            each = np.zeros(len(some))
            self._does.state_roughly(pages, records, some, now, each)
            weight, fresh = self._does.sum_roughly(pages, records, used, now)
            return Rough(weight, fresh, each)

        return said

    def count(self, slot: int) -> float:
        """Signals since the copy was current, as a number of good ones."""
        return float(self._by_address.count_heard(self.at, slot))

    def age(self, slot: int, now: float) -> float:
        """How old a copy is, in seconds as long as what happened in them makes them."""
        return math.inf if self.current(slot) is None else float(self._by_address.age_of(self.at, slot, now))


def heart_for(
    scheduler: Schedules, estimator: Estimator, activity: Activity | None, senders: Senders | None
) -> PlainHeart:
    """The form that serves these parts: compiled for these two alone, not for what is derived from them."""
    if type(scheduler) is Scheduler:
        from afresh.estimate import Learner  # compiled code, as that scheduler is

        if type(estimator) is Learner:
            return CompiledHeart(scheduler, estimator, activity, senders)
    return PlainHeart(scheduler, estimator, activity, senders)

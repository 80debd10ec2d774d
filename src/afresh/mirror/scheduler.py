"""ASYNCMIRRORSYNC in the product: a scheduler that learns each page's refresh rate from the costs that crawls find.

When a page is due is said by the `Timetable` of its rate; `Appointments` hands it out, with leases, hosts and limits.
Rates are relative to their mean, so a budget that changes changes them all alike. As in the published algorithm, an
update is about the pages that have new samples, and these keep the sum of their rates.

An interval counts as it really was: one that a lease, a host or an operator held up or cut short is measured by the
clock, or gives no sample where that would favour some costs.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from afresh.checks import number
from afresh.mirror.appointments import Appointments
from afresh.mirror.kept import KEPT, NOTHING, Head, cost_in, mark_of, read_learned, text_of
from afresh.mirror.learners import EPSILON, LARGEST_SHARE, LEAST_SHARE
from afresh.mirror.step import check_set, mirror_step
from afresh.mirror.timetable import Timetable
from afresh.schedule.base import CostsLearned, Explanation, LearnedRate, Pick
from afresh.types import Wait

if TYPE_CHECKING:
    Machine = Appointments
else:
    Machine = object

ETA = 0.02  # a page, for costs with a mean of 1: about the published value for polynomial costs
UPDATE_EVERY = 8.0  # refreshes a page: half of a round, as published
_MEMORY = 64  # refreshes a page, in which the mean cost is forgotten by half
_SMOOTH = 0.3  # the weight of the newest slope in what is shown
_SURE = 100  # costs, from which on a single one can no longer do with their mean what it likes:
_MOST_OF_MEAN = 1e4  # it counts for at most so many times the mean
_STEEPEST = 1e9  # slope, in mean costs: whatever is steeper has the largest rate already


class CostLearning(Machine):
    """What learns, for any machine that hands out pages by a `Timetable`: `Appointments`, or `Plain` in tests."""

    timetable: Timetable

    def learns(self, *, eta: float, update_every: float, least: float, largest: float, cost: str) -> None:
        """How to learn; `least` and `largest` bound a page's rate, in times the mean one."""
        self.epsilon = self.timetable.epsilon
        self.eta = number("eta", eta)
        self.update_every = number("update_every", update_every, above=True)
        check_set(1, least, largest, 1.0, ("least", "largest", "the mean rate, 1"))
        self.least, self.largest = least, largest
        self.cost = cost  # by name: what was learned from one is no use for another
        self._samples = 0.0  # since the last update
        self._updates = 0.0
        self._cost, self._refreshes = 0.0, 0.0  # their sum and number, the older the less
        self._probes = 0  # that showed a cost, since the start
        self._recalled = NOTHING

    @property
    def budget(self) -> float:
        """Crawls (or cost) per second; may be set while running."""
        return self._pace.budget

    @budget.setter
    def budget(self, budget: float) -> None:
        self._pace.budget = self.timetable.budget = budget

    @property
    def price(self) -> float:
        """There is none: pages are due by their rates."""
        return 0.0

    @price.setter
    def price(self, price: float) -> None:
        """Nothing to set."""

    def resume_price(self, price: float) -> None:
        """Nothing to do."""

    def next(self, now: float) -> Pick | Wait:
        """The page that has been due longest among those that may go; `probe` says that its copy is to stay."""
        pick = super().next(now)
        if isinstance(pick, Wait):
            return pick
        page = self._pages[pick.slot]
        ahead = page["urgent"] or (page["longest"] < np.inf and now - page["crawled"] >= page["longest"])
        if ahead:
            self.timetable.spoil(pick.slot)
        probe = bool(page["current"] > -np.inf) and not ahead and self.timetable.probes(pick.slot)
        if page["current"] > -np.inf and not ahead:
            self.timetable.picked(pick.slot, now)
        return replace(pick, value=self._phase(pick.slot, now), price=1.0, probe=probe)

    def _phase(self, slot: int, now: float) -> float:
        """How much of its interval has passed; from 1 on a refresh is due. Infinity: it has no copy."""
        if not self._pages[slot]["current"] > -np.inf:
            return math.inf
        return (self.timetable.clock(now) - float(self.timetable.rows[slot]["base"])) / self.timetable.interval(slot)

    def saw(self, slot: int, cost: float | None, time: float, *, probe: bool) -> None:
        """What a fetch that began at `time` found the copy to have cost; None: it could not tell."""
        row = self.timetable.rows[slot]
        if cost is None:
            self.timetable.spoil(slot)
            return
        if probe:
            row["seen"] = row["probe"] = cost
            self._probes += 1
            return
        row["cost"] = cost
        self._count_cost(cost)
        probed, missed = not math.isnan(row["seen"]), not math.isnan(row["phase"])
        if row["whole"] and probed == missed:  # a probe that was planned has been made
            if probed:
                elapsed = max(time - float(row["since"]), 0.0)
                row["sum"] += (row["seen"] - cost) * elapsed / (self.epsilon * self.timetable.unit)
            row["count"] += 1
        self._samples += 1
        if self._samples >= self.update_every * max(len(self), 1):
            self._update()

    def _count_cost(self, cost: float) -> None:
        if self._refreshes >= _SURE and self._cost > 0.0:
            cost = min(cost, _MOST_OF_MEAN * self._cost / self._refreshes)
        self._cost, self._refreshes = self._cost + cost, self._refreshes + 1.0
        if self._refreshes > 2 * _MEMORY * max(len(self), 1):
            self._cost, self._refreshes = 0.5 * self._cost, 0.5 * self._refreshes

    def _update(self) -> None:
        """A mirror-descent step for the pages with new samples; their present intervals are bridges."""
        self._samples = 0.0
        rows = self.timetable.rows
        some = np.flatnonzero(rows["count"])
        if not some.size or self._cost <= 0.0:
            return
        mine = rows[some]
        slope = mine["sum"] / mine["count"]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            scaled = np.clip(np.nan_to_num(slope * (self._refreshes / self._cost)), -_STEEPEST, _STEEPEST)
        high = self.largest / (1.0 + self.epsilon)
        before = mine["slope"]
        rows["slope"][some] = np.where(np.isnan(before), slope, before + _SMOOTH * (slope - before))
        rows["rate"][some] = mirror_step(mine["rate"], scaled, eta=self.eta, low=self.least, high=high)
        rows["sum"][some], rows["count"][some] = 0.0, 0
        rows["whole"][some], rows["phase"][some], rows["seen"][some] = False, math.nan, math.nan
        self._updates += 1
        self.rekey(some)

    def remove(self, slot: int) -> None:
        """Forget the page."""
        super().remove(slot)
        self.timetable.rows[slot]["count"] = 0

    def explain(self, slot: int, now: float, turn: float = 0.0) -> Explanation:
        """How much of its interval has passed, when its next refresh or probe is due, and what holds it back."""
        why = super().explain(slot, now, turn)
        held_by = why.held_by
        if held_by in ("", "below the price"):
            held_by = "below the price" if why.due > now else ""
        return replace(why, value=self._phase(slot, now), price=1.0, held_by=held_by)

    def learned_rate(self, slot: int) -> LearnedRate:
        """What the costs of a page have taught."""
        row = self.timetable.rows[slot]
        slope = float(row["slope"]) * self.timetable.unit
        return LearnedRate(1.0 / self.timetable.interval(slot), slope, float(row["cost"]), float(row["probe"]))

    def costs_learned(self) -> CostsLearned:
        """How far learning is, over all pages."""
        mean = self._cost / self._refreshes if self._refreshes else math.nan
        needed = self.update_every * max(len(self), 1)
        return CostsLearned(self.cost, mean, int(self._updates), int(self._samples), math.ceil(needed), self._probes)

    # --- over a restart ---

    def named(self, slot: int, url: str) -> None:
        """The URL of a page that was added: what was learned of it before a restart is taken up."""
        row = self.timetable.rows[slot]
        row["mark"] = mark = mark_of(url)
        at = int(np.searchsorted(self._recalled["mark"], np.uint64(mark))) if len(self._recalled) else 0
        if at < len(self._recalled) and int(self._recalled[at]["mark"]) == mark:
            kept = self._recalled[at]
            row["rate"] = min(max(float(kept["rate"]), self.least), self.largest / (1.0 + self.epsilon))
            for name in ("slope", "cost", "probe", "sum", "count"):
                row[name] = kept[name]
            self.rekey(np.array([slot]))

    def to_text(self) -> str:
        """All that was learned, for `recall` after a restart; 32 bytes a page before they are written as text."""
        rows = self.timetable.rows[: self._count][self._pages[: self._count]["active"]]
        kept = np.zeros(len(rows), KEPT)
        for name in KEPT.names or ():
            kept[name] = rows[name]
        head = Head(self._cost, self._refreshes, self._samples, self._updates)
        return text_of(self.cost, head, kept[kept["mark"] != 0])

    def recall(self, text: str) -> bool:
        """Go on from what was learned before a restart, once the pages are `named`; False if from another cost."""
        head, rows = read_learned(text)
        if cost_in(text) != self.cost:
            return False
        self._recalled = rows
        self._cost, self._refreshes, self._samples, self._updates = head
        return True


class ByCosts(CostLearning, Appointments):
    """Spends the budget at rates learned from costs; a share ε of the refreshes has a probe before it."""

    def __init__(
        self,
        *,
        budget: float,
        rng: np.random.Generator,
        lease: float = 120.0,
        epsilon: float = EPSILON,
        eta: float = ETA,
        update_every: float = UPDATE_EVERY,
        least: float = LEAST_SHARE,
        largest: float = LARGEST_SHARE,
        cost: str = "significance",
    ) -> None:
        """`least` and `largest` bound a page's rate, in times the mean one; `update_every` is in refreshes a page."""
        number("epsilon", epsilon, above=True, most=1.0)
        timetable = Timetable(budget=budget, epsilon=epsilon, rng=rng)
        Appointments.__init__(self, timetable, budget=budget, lease=lease)
        self.learns(eta=eta, update_every=update_every, least=least, largest=largest, cost=cost)

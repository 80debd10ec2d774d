"""Pages handed out from heaps, against the scheduler that looks at every page at every tick."""

import math

import numpy as np
import pytest

from afresh.mirror.heaps import NODE, put, put_all, take
from afresh.mirror.learners import LARGEST_SHARE, LEAST_SHARE
from afresh.mirror.scheduler import ByCosts, CostLearning
from afresh.mirror.timetable import Timetable
from afresh.schedule import Pick, Plain
from afresh.types import Wait

HOSTS = 4


class Oracle(CostLearning, Plain):  # type: ignore[misc]
    """The same learning, on the machine that looks at every page."""

    def __init__(self, *, budget: float, rng: np.random.Generator, lease: float, epsilon: float) -> None:
        self.timetable = Timetable(budget=budget, epsilon=epsilon, rng=rng)
        Plain.__init__(self, self.timetable, budget=budget, lease=lease)
        self.learns(eta=0.2, update_every=2.0, least=LEAST_SHARE, largest=LARGEST_SHARE, cost="age")

    def rekey(self, slots: np.ndarray) -> None:
        """What looks at every page need not be told."""


def both(seed: int) -> tuple[ByCosts, Oracle]:
    settings = {"budget": 5.0, "lease": 3.0, "epsilon": 0.3}
    fast = ByCosts(rng=np.random.default_rng(seed), eta=0.2, update_every=2.0, cost="age", **settings)  # type: ignore[arg-type]
    return fast, Oracle(rng=np.random.default_rng(seed), **settings)


class Both:
    """The same is done to both, and both say the same."""

    def __init__(self, seed: int) -> None:
        self.fast, self.plain = both(seed)
        self.rng = np.random.default_rng([seed, 7])
        self.pages: list[int] = []
        self.out: dict[int, bool] = {}
        self.now, self.picks = 0.0, 0

    def do(self, name: str, *given: object, **named: object) -> set[object]:
        """Call a method of both."""
        return {getattr(scheduler, name)(*given, **named) for scheduler in (self.fast, self.plain)}

    def add(self) -> None:
        """A page, with a copy or without."""
        age = math.inf if self.rng.random() < 0.5 else self.seconds()
        host = int(self.rng.integers(HOSTS))
        slots = self.do("add", request_rate=1.0, change_rate=0.1, host=host, now=self.now, age=age)
        assert len(slots) == 1
        self.pages.append(slots.pop())  # type: ignore[arg-type]

    def seconds(self) -> float:
        """Some."""
        return float(self.rng.exponential(4.0))

    def wish(self, some: int) -> None:
        """What operators and hosts may do; pages on their way are neither removed nor put off."""
        rng, now, seconds = self.rng, self.now, self.seconds()
        host, limited = int(rng.integers(HOSTS)), seconds > 2.0
        wishes = [
            ("pause", some),
            *[("resume", some, now)] * 3,
            ("crawl_now", some, now),
            ("not_more_often_than", some, seconds if limited else 0.0, now),
            # Of one length, since here pages that are overdue by it go in the order of their moments.
            ("at_least_every", some, 9.0 if limited else math.inf, now),
            ("host_rests", host, now + seconds),
        ]
        if some not in self.out:
            wishes += [("put_off", some, now + seconds, now), ("remove", some)]
        name, *given = wishes[int(rng.integers(len(wishes)))]
        self.do(name, *given)
        if name == "remove":
            self.pages.remove(some)
        if rng.random() < 0.2:
            self.do("set_host", host, budget=float(rng.choice([0.3, 2.0, math.inf])))
            self.fast.budget = self.plain.budget = float(rng.choice([2.0, 5.0, 20.0]))

    def end_one(self) -> None:
        """An order is carried out, or fails; its lease may have ended."""
        rng, slot = self.rng, int(self.rng.choice(list(self.out)))
        probe, cost = self.out.pop(slot), None if rng.random() < 0.1 else self.seconds() * (slot % 5)
        crawled = self.now if not probe and rng.random() < 0.9 else None
        gap, put_off = float(rng.choice([0.0, 0.4])), float(rng.choice([0.0, 0.0, 0.0, 5.0]))
        self.do("saw", slot, cost, self.now, probe=probe)
        self.do("finish", slot, self.now, crawled=crawled, gap=gap, put_off=put_off if crawled is None else 0.0)

    def next(self) -> None:
        """Both pick the same, or wait."""
        found, wanted = self.fast.next(self.now), self.plain.next(self.now)
        if isinstance(wanted, Wait):
            assert isinstance(found, Wait)
            assert found.until <= wanted.until
            return
        assert isinstance(found, Pick)
        assert (found.slot, found.probe) == (wanted.slot, wanted.probe)
        assert found.value == pytest.approx(wanted.value)
        self.out[found.slot], self.picks = found.probe, self.picks + 1

    def explain(self, some: int) -> None:
        """How far in its interval it is, and what holds it back."""
        told, expected = self.fast.explain(some, self.now), self.plain.explain(some, self.now)
        assert told.value == pytest.approx(expected.value)
        assert told.held_by.replace("below the price", "") == expected.held_by.replace("below the price", "")


@pytest.mark.parametrize("seed", range(6))
def test_the_picks_are_those_of_looking_at_every_page(seed: int) -> None:
    both = Both(seed)
    for _ in range(1_500):
        both.now += float(both.rng.exponential(0.15))
        what, some = int(both.rng.integers(40)), int(both.rng.choice(both.pages)) if both.pages else -1
        if what < 2 or len(both.pages) < 5:
            both.add()
        elif what < 14:
            both.wish(some)
        elif what < 25 and both.out:
            both.end_one()
        else:
            both.next()
        if some in both.pages:
            both.explain(some)
    fast, plain = both.fast, both.plain
    assert both.picks > 150
    assert fast._updates == plain._updates >= 3
    assert fast.timetable.rows["rate"][both.pages] == pytest.approx(plain.timetable.rows["rate"][both.pages])


def test_heaps_give_their_least_whatever_is_taken_out() -> None:
    rng = np.random.default_rng(1)
    nodes, tops = np.zeros(200, NODE), np.full(3, -1, np.int64)
    inside: dict[int, tuple[int, float]] = {}
    for step in range(6_000):
        slot = int(rng.integers(200))
        if slot in inside:
            take(nodes, tops, inside.pop(slot)[0], slot)
        else:
            inside[slot] = int(rng.integers(3)), float(rng.integers(40))
            put(nodes, tops, inside[slot][0], slot, inside[slot][1])
        if step % 1_000 == 999:
            slots = np.array(sorted(inside))
            put_all(nodes, tops, *(np.array(column) for column in ([inside[each][0] for each in slots], slots)),
                    np.array([inside[each][1] for each in slots]))  # fmt: skip
        for host in range(3):
            mine = [(key, each) for each, (where, key) in inside.items() if where == host]
            assert tops[host] == (min(mine)[1] if mine else -1)


def test_pages_that_wait_for_nothing_are_named_as_such() -> None:
    fast, _ = both(1)
    assert fast.next(0.0) == Wait(math.inf, "no pages")
    slot = fast.add(request_rate=1.0, change_rate=0.0, now=0.0)
    fast.pause(slot)
    assert fast.next(1.0) == Wait(math.inf, "hosts")
    fast.budget = 0.0
    fast.resume(slot, 2.0)
    assert fast.next(2.0) == Wait(math.inf, "budget")
    fast.explain(slot, 2.0)
    assert fast.learned_rate(slot).rate < 1e-9

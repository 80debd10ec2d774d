"""The scheduler for some thousands of pages, against the plain one that it must agree with."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.errors import ConfigError
from afresh.schedule import Few, Greedy, Pick, Plain
from afresh.types import Wait

SEEDS = st.integers(min_value=0, max_value=2**32)
LEASE = 3.0


def random_page(rng: np.random.Generator) -> dict[str, float]:
    """A page of any kind, also the limits: no signals, only true ones, only false ones, every change signalled."""
    return {
        "request_rate": float(rng.choice([0.0, 1.0, 1.0, rng.uniform()])),
        "change_rate": float(rng.choice([0.0, 0.5, rng.uniform(0.01, 2), rng.uniform(0.01, 2)])),
        "recall": float(rng.choice([0.0, 0.0, 1.0, rng.uniform()])),
        "false_rate": float(rng.choice([0.0, 0.0, rng.uniform(0.1, 0.6)])),
        "shape": float(rng.choice([math.inf, rng.uniform(0.05, 1.0), rng.uniform(1.0, 5.0), rng.uniform(5.0, 50.0)])),
    }


@dataclass
class Both:
    """The same operations on both; hosts, budget and steps of time are such that every sort of wait occurs."""

    rng: np.random.Generator
    hosts: int
    now: float = 1e9
    slots: list[int] = field(default_factory=list)
    out: list[int] = field(default_factory=list)
    picked: int = 0
    waited: int = 0

    def __post_init__(self) -> None:
        budget = float(self.rng.choice([1.0, 10.0, 1e4]))
        sweep = float(self.rng.choice([0.0, 0.0, 0.1, 0.5]))
        self.few = Few(budget=budget, lease=LEASE, sweep=sweep)
        self.plain = Plain(Greedy(), budget=budget, lease=LEASE, sweep=sweep)

    def add(self) -> None:
        options = {
            **random_page(self.rng),
            "cost": float(self.rng.choice([1.0, 1.0, 2.0])),
            "host": int(self.rng.integers(self.hosts)),
            "now": self.now,
            "age": float(self.rng.choice([math.inf, math.inf, 0.0, 2.0, 10 * self.rng.uniform()])),
            "signals": float(self.rng.choice([0.0, 1.0, 2.0, 0.5])),
        }
        slot = self.few.add(**options)  # type: ignore[arg-type]
        assert self.plain.add(**options) == slot  # type: ignore[arg-type]
        self.slots.append(slot)

    def some(self) -> int | None:
        return int(self.rng.choice(self.slots)) if self.slots else None

    def remove(self) -> None:
        slot = self.some()
        if slot is not None:
            self.slots.remove(slot)
            self.out = [each for each in self.out if each != slot]
            self.few.remove(slot)
            self.plain.remove(slot)

    def signal(self) -> None:
        slot, count = self.some(), int(self.rng.integers(1, 3))
        if slot is not None:
            self.few.signal(slot, self.now, count)
            self.plain.signal(slot, self.now, count)

    def update(self) -> None:
        slot = self.some()
        if slot is not None:
            believed = {name: value for name, value in random_page(self.rng).items() if self.rng.uniform() < 0.7}
            if self.rng.uniform() < 0.3:
                believed["age"] = float(self.rng.uniform(0, 5))
            if self.rng.uniform() < 0.3:
                believed["signals"] = float(self.rng.exponential(1.0))
            self.few.update(slot, now=self.now, **believed)
            self.plain.update(slot, now=self.now, **believed)

    def rest(self) -> None:
        host, until = int(self.rng.integers(self.hosts + 3)), self.now + float(self.rng.uniform(0, 2))
        self.few.host_rests(host, until)
        self.plain.host_rests(host, until)

    def spend(self) -> None:
        self.few.budget = self.plain.budget = float(self.rng.choice([0.0, 2.0, 50.0, 1e4]))

    def finish(self) -> None:
        if self.out:
            slot = self.out.pop(int(self.rng.integers(len(self.out))))
            options = {
                "crawled": None if self.rng.uniform() < 0.2 else self.now - 0.1 * self.rng.uniform(),
                "gap": float(self.rng.choice([0.0, self.rng.uniform()])),
                "put_off": float(self.rng.choice([0.0, 0.0, self.rng.uniform(0, 3)])),
            }
            self.few.finish(slot, self.now, **options)  # type: ignore[arg-type]
            self.plain.finish(slot, self.now, **options)  # type: ignore[arg-type]

    def explain(self) -> None:
        slot = self.some()
        if slot is not None:
            mine, theirs = self.few.explain(slot, self.now), self.plain.explain(slot, self.now)
            assert (mine.value, mine.price, mine.held_by) == (theirs.value, theirs.price, theirs.held_by)
            assert mine.due == pytest.approx(theirs.due)

    def next(self) -> None:
        self.now += float(self.rng.choice([0.0, 1e-4, 0.05, 0.1, 0.4]))
        mine, theirs = self.few.next(self.now), self.plain.next(self.now)
        if isinstance(theirs, Wait):
            assert isinstance(mine, Wait)
            assert mine.reason == theirs.reason
            assert self.now < mine.until <= theirs.until
            self.waited += 1
        else:
            assert mine == theirs
            self.out.append(theirs.slot)
            self.picked += 1
        assert len(self.few) == len(self.plain) == len(self.slots)


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.sampled_from([1, 3, 1000]))
def test_it_picks_what_the_plain_scheduler_picks(seed: int, hosts: int) -> None:
    rng = np.random.default_rng(seed)
    both = Both(rng, hosts)
    for _ in range(int(rng.integers(60))):
        both.add()
    moves = [both.add, both.remove, both.signal, both.update, both.rest, both.finish, both.finish, both.finish]
    moves += [both.spend, both.explain]
    for _ in range(150):
        both.next()
        moves[int(rng.integers(len(moves)))]()


def test_both_picks_and_waits_occur_in_these_comparisons() -> None:
    both = Both(np.random.default_rng(5), 3)
    for _ in range(400):
        both.add()
        both.next()
        both.finish()
    assert both.picked > 50
    assert both.waited > 50


@pytest.mark.parametrize("signals", [True, False])
@pytest.mark.parametrize("copies", [True, False])
def test_it_follows_the_plain_scheduler_tick_for_tick(copies: bool, signals: bool) -> None:
    """Long enough for horizons to be reached many times, at a steady pace."""
    rng = np.random.default_rng(3)
    few, plain = Few(budget=100.0), Plain(Greedy(), budget=100.0)
    for host in range(200):
        options = {**random_page(rng), "host": host % 20, "now": 0.0, "age": 0.0 if copies else math.inf}
        options |= {} if signals else {"recall": 0.0, "false_rate": 0.0}
        few.add(**options)  # type: ignore[arg-type]
        plain.add(**options)  # type: ignore[arg-type]
    for tick in range(1, 1500):
        now = tick / 100
        slot = int(rng.integers(200))
        if signals and slot < 20:
            few.signal(slot, now)
            plain.signal(slot, now)
        pick = plain.next(now)
        assert few.next(now) == pick
        assert isinstance(pick, Pick)
        few.finish(pick.slot, now, crawled=now, gap=0.05)
        plain.finish(pick.slot, now, crawled=now, gap=0.05)


def test_it_says_what_is_wrong_with_a_rate() -> None:
    few = Few(budget=1.0)
    with pytest.raises(ConfigError, match=r"change_rate must be a finite number of at least 0 .* not nan"):
        few.add(request_rate=1.0, change_rate=math.nan, now=0.0)


def test_it_waits_for_ever_without_pages() -> None:
    few = Few(budget=1.0)
    assert few.next(0.0) == Wait(math.inf, "no pages")
    few.remove(few.add(request_rate=1.0, change_rate=1.0, now=0.0))
    assert few.next(0.0) == Wait(math.inf, "no pages")


def test_values_are_looked_up_for_few_pages_at_a_pick(monkeypatch: pytest.MonkeyPatch) -> None:
    few = Few(budget=1000.0)
    for host in range(4000):
        few.add(request_rate=1.0, change_rate=0.1, host=host, now=0.0, age=host / 1000)
    valued = 0
    worth = Few._worth

    def counted(self: Few, which: slice | np.ndarray, now: float) -> np.ndarray:
        nonlocal valued
        found = worth(self, which, now)
        valued += len(found)
        return found

    monkeypatch.setattr(Few, "_worth", counted)
    for tick in range(1, 4001):
        now = tick / 1000
        pick = few.next(now)
        assert isinstance(pick, Pick)
        few.finish(pick.slot, now, crawled=now)
    assert valued / 4000 < 4 * math.sqrt(4000)


def either(kind: type) -> Few | Plain:
    return Few(budget=1.0, lease=LEASE) if kind is Few else Plain(Greedy(), budget=1.0, lease=LEASE)


EITHER = pytest.mark.parametrize("kind", [Few, Plain])


@EITHER
def test_a_removed_page_does_not_hinder_the_others(kind: type) -> None:
    scheduler = either(kind)
    gone = scheduler.add(request_rate=1.0, change_rate=1.0, shape=0.5, host=0, now=0.0, age=1.0)
    kept = scheduler.add(request_rate=1.0, change_rate=1.0, shape=0.5, host=1, now=0.0, age=1.0)
    scheduler.remove(gone)
    pick = scheduler.next(1.0)
    assert isinstance(pick, Pick)
    assert pick.slot == kept
    assert scheduler.explain(kept, 1.0).value > 0


@EITHER
@pytest.mark.parametrize("price", [1e-3, 1e4])
def test_when_a_page_without_a_copy_is_due_is_found(kind: type, price: float) -> None:
    scheduler = either(kind)
    slot = scheduler.add(request_rate=1.0, change_rate=1.0, shape=0.3, now=0.0)
    scheduler.price = price
    assert scheduler.explain(slot, 1.0).due == (1.0 if price < 1 else math.inf)


@EITHER
def test_fewer_signals_than_the_lease_began_with_are_none_afterwards(kind: type) -> None:
    scheduler = either(kind)
    believed = {"request_rate": 1.0, "change_rate": 1.0, "recall": 0.5, "false_rate": 0.2, "shape": 2.0}
    slot = scheduler.add(**believed, host=0, now=0.0, age=1.0, signals=3.0)  # type: ignore[arg-type]
    assert isinstance(scheduler.next(1.0), Pick)
    scheduler.update(slot, now=1.5, signals=0.5)
    scheduler.finish(slot, 2.0, crawled=1.0)
    fresh = either(kind)
    other = fresh.add(**believed, host=0, now=2.0, age=1.0)  # type: ignore[arg-type]
    assert scheduler.explain(slot, 3.0).value == fresh.explain(other, 3.0).value > 0
    assert isinstance(scheduler.next(3.0), Pick)


def test_a_value_above_its_bound_by_rounding_stops_nobody() -> None:
    """With signals of which little is known, a value is found to within some thousandths, and may seem to fall."""
    scheduler = Few(budget=1 / 19.855)  # the horizon is so many seconds away
    scheduler.add(
        request_rate=1.0,
        change_rate=10.0414445655972,
        recall=0.010117707829298772,
        false_rate=3.0677099978217175,
        shape=1.8262216837569818,
        signals=15.378674915812477,
        now=0.0,
        age=19.785894690697887,
    )
    assert isinstance(scheduler.next(0.0), Pick)

"""Random interleavings of all operations: exact mode against the plain scheduler, the fast one against its rules."""

import io
import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.schedule import Greedy, Pick, Plain, Scheduler
from afresh.types import Wait
from afresh.value.predictive import predictive_staleness
from checks import check

POLICIES = ("greedy", "greedy-cis", "greedy-ncis")
SEEDS = st.integers(min_value=0, max_value=2**32)


def random_page(rng: np.random.Generator) -> dict[str, float]:
    """A page of any kind, also the limits: no signals, only true ones, only false ones, every change signalled."""
    return {
        "request_rate": float(np.float32(rng.uniform() if rng.uniform() < 0.9 else 0.0)),
        "change_rate": float(rng.uniform(0.05, 1)),
        "recall": float(rng.choice([0.0, 1.0, rng.uniform(), rng.uniform()])),
        "false_rate": float(rng.choice([0.0, rng.uniform(0.1, 0.6)])),
        "shape": float(rng.choice([np.inf, rng.uniform(0.05, 1.0), rng.uniform(1.0, 5.0), rng.uniform(5.0, 50.0)])),
    }


def silent_page(rng: np.random.Generator) -> dict[str, float]:
    """A page that sends no signals."""
    return {**random_page(rng), "recall": 0.0, "false_rate": 0.0}


@dataclass
class Both:
    """The same operations on the fast scheduler in exact mode and on the plain one."""

    rng: np.random.Generator
    policy: str
    hosts: int
    now: float = 0.0
    slots: list[int] = field(default_factory=list)
    out: dict[int, float] = field(default_factory=dict)  # leased slots, with the end of the lease
    picked: int = 0

    def __post_init__(self) -> None:
        self.fast = Scheduler(budget=10.0, policy=self.policy, exact=True, lease=3.0)
        self.plain = Plain(Greedy(self.policy), budget=10.0, lease=3.0)

    def kept(self, slot: int) -> dict[str, float]:
        """What the fast one keeps of a page: both must work on the same numbers, to the last digit."""
        return {name: float(values[0]) for name, values in self.fast.beliefs(slot).items()}

    def add(self) -> None:
        more = {
            "host": int(self.rng.integers(self.hosts)),
            "now": self.now,
            "age": float(self.rng.choice([np.inf, 0.0, 2.0, 10 * self.rng.uniform()])),
            "signals": float(self.rng.choice([0.0, 1.0, 2.0, 0.5])),
        }
        cost = float(self.rng.choice([1.0, 1.0, 2.0]))
        slot = self.fast.add(**random_page(self.rng), cost=cost, **more)  # type: ignore[arg-type]
        assert self.plain.add(**self.kept(slot), **more) == slot  # type: ignore[arg-type]
        self.slots.append(slot)

    def remove(self) -> None:
        if not self.slots:
            return
        slot = self.slots.pop(int(self.rng.integers(len(self.slots))))
        self.out.pop(slot, None)
        self.fast.remove(slot)
        self.plain.remove(slot)

    def signal(self) -> None:
        if self.slots:
            slot, count = int(self.rng.choice(self.slots)), int(self.rng.integers(1, 3))
            self.fast.signal(slot, self.now, count)
            self.plain.signal(slot, self.now, count)

    def update(self) -> None:
        if self.slots:
            slot = int(self.rng.choice(self.slots))
            heard = {"signals": float(self.rng.choice([0.0, 0.5, 2.0]))} if self.rng.uniform() < 0.3 else {}
            self.fast.update(slot, now=self.now, **random_page(self.rng), **heard)
            kept = self.kept(slot)
            kept.pop("cost")
            self.plain.update(slot, now=self.now, **kept, **heard)

    def rest(self) -> None:
        host, until = int(self.rng.integers(self.hosts)), self.now + float(self.rng.uniform(0, 2))
        self.fast.host_rests(host, until)
        self.plain.host_rests(host, until)

    def finish(self) -> None:
        if self.out:
            slot = int(self.rng.choice(sorted(self.out)))
            del self.out[slot]
            options = {
                "crawled": None if self.rng.uniform() < 0.2 else self.now - 0.1 * self.rng.uniform(),
                "gap": float(self.rng.choice([0.0, self.rng.uniform()])),
                "put_off": float(self.rng.choice([0.0, 0.0, self.rng.uniform(0, 3)])),
            }
            self.fast.finish(slot, self.now, **options)  # type: ignore[arg-type]
            self.plain.finish(slot, self.now, **options)  # type: ignore[arg-type]

    def next(self) -> None:
        self.now += float(self.rng.choice([0.1, 0.1, 0.1, 0.05, 0.4]))
        self.out = {slot: end for slot, end in self.out.items() if end > self.now}
        mine, theirs = self.fast.next(self.now), self.plain.next(self.now)
        if isinstance(theirs, Wait):
            assert isinstance(mine, Wait)
            assert (mine.reason, mine.until) == (theirs.reason, pytest.approx(theirs.until))
            return
        assert isinstance(mine, Pick)
        assert mine.value == pytest.approx(theirs.value, rel=1e-9)
        assert mine.slot == theirs.slot
        self.out[mine.slot] = self.now + 3.0
        self.picked += 1


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from(POLICIES), st.sampled_from([3, 1000]))
def test_exact_mode_picks_what_the_plain_scheduler_picks(seed: int, policy: str, hosts: int) -> None:
    rng = np.random.default_rng(seed)
    both = Both(rng, policy, hosts)
    for _ in range(20):
        both.add()
    moves = [both.add, both.remove, both.signal, both.signal, both.update, both.rest, both.finish, both.finish]
    for _ in range(120):
        both.next()
        moves[int(rng.integers(len(moves)))]()
    check(both.fast)
    assert both.picked > 10


@pytest.mark.parametrize("signals", [True, False])
def test_exact_mode_follows_the_plain_scheduler_tick_for_tick(signals: bool) -> None:
    rng = np.random.default_rng(3)
    fast = Scheduler(budget=10.0, exact=True)
    plain = Plain(Greedy(), budget=10.0)
    for host in range(150):
        slot = fast.add(**(random_page(rng) if signals else silent_page(rng)), host=host, now=0.0, age=0.0)
        known = {name: float(values[0]) for name, values in fast.beliefs(slot).items()}
        plain.add(**known, host=host, now=0.0, age=0.0)
    for tick in range(1, 1500):
        now = tick / 10
        slot = int(rng.integers(150))
        if signals:
            fast.signal(slot, now)
            plain.signal(slot, now)
        mine, theirs = fast.next(now), plain.next(now)
        assert isinstance(mine, Pick)
        assert isinstance(theirs, Pick)
        assert mine.slot == theirs.slot
        plain.finish(theirs.slot, now, crawled=now)


def freshness(pages: np.ndarray, current: np.ndarray, heard: np.ndarray, now: float) -> float:
    """Of all requests, those that find a fresh copy, over all rates that the pages may have."""
    weighed = (
        page["request_rate"]
        * math.exp(
            -predictive_staleness(
                now - current[slot], heard[slot], page["silent_rate"], page["weight"], float(page["shape"])
            )
        )
        for slot, page in enumerate(pages)
    )
    return float(sum(weighed) / pages["request_rate"].sum())


@pytest.mark.parametrize("signals", [True, False])
def test_the_fast_scheduler_gains_what_the_plain_one_gains(signals: bool) -> None:
    """It may pick in another order, but pages are as fresh, and nearly the same ones are visited."""
    rng = np.random.default_rng(4)
    fast, plain = Scheduler(budget=20.0), Plain(Greedy(), budget=20.0)
    count, ticks = 400, 6000
    for host in range(count):
        slot = fast.add(**(random_page(rng) if signals else silent_page(rng)), host=host, now=0.0, age=0.0)
        known = {name: float(values[0]) for name, values in fast.beliefs(slot).items()}
        plain.add(**known, host=host, now=0.0, age=0.0)
    often, fresh = np.zeros((2, count)), []
    pages, kept = fast.state.pages[:count], plain._pages[:count]
    for tick in range(1, ticks + 1):
        now = tick / 20
        for slot in np.flatnonzero(rng.poisson(pages["signal_rate"] / 20)).tolist():
            fast.signal(slot, now)
            plain.signal(slot, now)
        for number, pick in enumerate((fast.next(now), plain.next(now))):
            assert isinstance(pick, Pick)
            often[number, pick.slot] += tick > ticks // 3
            if number == 1:
                plain.finish(pick.slot, now, crawled=now)
        if tick > ticks // 3 and tick % 50 == 0:
            fresh.append([freshness(pages, each["current"], each["signals"], now) for each in (pages, kept)])
    mine, theirs = np.mean(fresh, axis=0)
    assert mine == pytest.approx(theirs, abs=0.004)
    assert np.abs(often[0] - often[1]).sum() < 0.12 * often[1].sum()


class Life:
    """Random operations on the fast scheduler, with a plain account of what may not happen."""

    def __init__(self, seed: int, lease: float | None) -> None:
        self.rng = np.random.default_rng(seed)
        floor, sweep = float(self.rng.choice([0.0, 0.01])), float(self.rng.choice([0.0, 0.3]))
        self.machine = Scheduler(budget=10.0, lease=lease, floor=floor, sweep=sweep)
        self.now = 0.0
        self.lease = lease
        self.slots: set[int] = set()
        self.paused: set[int] = set()
        self.out: dict[int, float] = {}
        self.hosts: dict[int, int] = {}

    def any_slot(self) -> int | None:
        return int(self.rng.choice(sorted(self.slots))) if self.slots else None

    def add(self) -> None:
        count = int(self.rng.integers(1, 6))
        pages = [random_page(self.rng) for _ in range(count)]
        hosts = self.rng.integers(-1, 4, count)
        columns = {name: np.array([page[name] for page in pages]) for name in pages[0]}
        age = self.rng.choice([np.inf, 0.0, 5.0], count)
        for slot, host in zip(self.machine.add_many(**columns, host=hosts, now=self.now, age=age), hosts, strict=True):
            assert slot not in self.slots
            self.slots.add(int(slot))
            self.hosts[int(slot)] = int(host)

    def remove(self) -> None:
        slot = self.any_slot()
        if slot is not None:
            self.machine.remove(slot)
            self.slots.discard(slot)
            self.paused.discard(slot)
            self.out.pop(slot, None)

    def touch(self) -> None:
        slot = self.any_slot()
        if slot is None:
            return
        machine, now, rng = self.machine, self.now, self.rng
        choice = int(rng.integers(8))
        if choice <= 1:
            machine.signal(slot, now)
        elif choice == 2:
            machine.update(slot, now=now, **random_page(rng))
        elif choice == 3:
            machine.pause(slot)
            self.paused.add(slot)
        elif choice == 4:
            machine.resume(slot, now)
            self.paused.discard(slot)
        elif choice == 5:
            machine.crawl_now(slot, now)
        elif choice == 6:
            machine.at_least_every(slot, float(rng.uniform(1, 20)), now)
        else:
            machine.not_more_often_than(slot, float(rng.uniform(0, 2)), now)

    def tune(self) -> None:
        choice = int(self.rng.integers(3))
        if choice == 0:
            self.machine.budget = float(self.rng.uniform(5, 50))
        elif choice == 1:
            self.machine.set_host(int(self.rng.integers(4)), gap=float(self.rng.uniform(0, 0.5)))
        else:
            self.machine.set_host(int(self.rng.integers(4)), budget=float(self.rng.uniform(0.5, 5)))

    def finish(self) -> None:
        if self.out:
            slot = int(self.rng.choice(sorted(self.out)))
            crawled = None if self.rng.uniform() < 0.3 else self.now
            put_off = float(self.rng.choice([0.0, self.rng.uniform()]))
            self.machine.finish(slot, self.now, crawled=crawled, gap=0.1, put_off=put_off)
            del self.out[slot]

    def next(self) -> object:
        self.now += float(self.rng.uniform(0, 0.3))
        pick = self.machine.next(self.now)
        self.out = {slot: end for slot, end in self.out.items() if end > self.now}
        if isinstance(pick, Wait):
            return pick
        assert pick.slot in self.slots
        assert pick.slot not in self.paused
        assert pick.slot not in self.out
        if self.lease is not None:
            host = self.hosts[pick.slot]
            assert host < 0 or all(self.hosts[slot] != host for slot in self.out)
            self.out[pick.slot] = self.now + self.lease
        return pick

    def step(self) -> object:
        moves = [self.add, self.remove, self.touch, self.touch, self.touch, self.tune, self.finish, self.finish]
        moves[int(self.rng.integers(len(moves)))]()
        return self.next()


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from([None, 2.0]))
def test_no_page_is_lost_and_none_is_picked_that_may_not_be(seed: int, lease: float | None) -> None:
    life = Life(seed, lease)
    for _ in range(4):
        for _ in range(30):
            life.step()
        check(life.machine)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from([None, 2.0]))
def test_a_saved_scheduler_goes_on_as_if_nothing_had_happened(seed: int, lease: float | None) -> None:
    life = Life(seed, lease)
    for _ in range(60):
        life.step()
    file = io.BytesIO()
    life.machine.save(file)
    file.seek(0)
    other = Scheduler.load(file)
    check(other)
    assert other.policy == life.machine.policy
    for tick in range(60):
        now = life.now + 0.11 * (tick + 1)
        assert life.machine.next(now) == other.next(now)

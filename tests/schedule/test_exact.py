"""The scheduler of a live crawl while there are some thousands of pages, against the plain one."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.schedule import Greedy, Pick, Plain, Scheduler
from afresh.types import Wait
from checks import check

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


def kept(live: Scheduler, slot: int) -> dict[str, float]:
    """What the live one keeps of a page: both must work on the same numbers, to the last digit."""
    return {name: float(values[0]) for name, values in live.beliefs(slot).items()}


@dataclass
class Both:
    """The same operations on both; hosts, budget and steps of time are such that every sort of wait occurs."""

    rng: np.random.Generator
    hosts: int
    now: float = 1e9
    slots: list[int] = field(default_factory=list)
    out: dict[int, float] = field(default_factory=dict)  # leased slots, with the end of the lease
    picked: int = 0
    waited: int = 0

    def __post_init__(self) -> None:
        budget = float(self.rng.choice([1.0, 10.0, 1e4]))
        sweep = float(self.rng.choice([0.0, 0.0, 0.1, 0.5]))
        self.live = Scheduler.live(budget=budget, lease=LEASE, sweep=sweep)
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
        slot = self.live.add(**options)  # type: ignore[arg-type]
        assert self.plain.add(**{**options, **kept(self.live, slot)}) == slot  # type: ignore[arg-type]
        self.slots.append(slot)

    def some(self) -> int | None:
        return int(self.rng.choice(self.slots)) if self.slots else None

    def remove(self) -> None:
        slot = self.some()
        if slot is not None:
            self.slots.remove(slot)
            self.out.pop(slot, None)
            self.live.remove(slot)
            self.plain.remove(slot)

    def signal(self) -> None:
        slot, count = self.some(), int(self.rng.integers(1, 3))
        if slot is not None:
            self.live.signal(slot, self.now, count)
            self.plain.signal(slot, self.now, count)

    def update(self) -> None:
        slot = self.some()
        if slot is not None:
            believed = {name: value for name, value in random_page(self.rng).items() if self.rng.uniform() < 0.7}
            if self.rng.uniform() < 0.3:
                believed["age"] = float(self.rng.uniform(0, 5))
            if self.rng.uniform() < 0.3:
                believed["signals"] = float(self.rng.exponential(1.0))
            self.live.update(slot, now=self.now, **believed)
            known = kept(self.live, slot)
            del known["cost"]
            if "signals" in believed:
                known["signals"] = float(self.live.state.pages[slot]["signals"])
            self.plain.update(slot, now=self.now, **{**believed, **known})

    def rest(self) -> None:
        host, until = int(self.rng.integers(self.hosts + 3)), self.now + float(self.rng.uniform(0, 2))
        self.live.host_rests(host, until)
        self.plain.host_rests(host, until)

    def spend(self) -> None:
        self.live.budget = self.plain.budget = float(self.rng.choice([0.0, 2.0, 50.0, 1e4]))

    def finish(self) -> None:
        if self.out:
            slot = int(self.rng.choice(list(self.out)))
            del self.out[slot]
            options = {
                "crawled": None if self.rng.uniform() < 0.2 else self.now - 0.1 * self.rng.uniform(),
                "gap": float(self.rng.choice([0.0, self.rng.uniform()])),
                "put_off": float(self.rng.choice([0.0, 0.0, self.rng.uniform(0, 3)])),
            }
            self.live.finish(slot, self.now, **options)  # type: ignore[arg-type]
            self.plain.finish(slot, self.now, **options)  # type: ignore[arg-type]

    def explain(self) -> None:
        slot = self.some()
        if slot is not None:
            mine, theirs = self.live.explain(slot, self.now), self.plain.explain(slot, self.now)
            assert (mine.held_by, mine.first_crawls) == (theirs.held_by, theirs.first_crawls)
            assert (mine.value, mine.price) == pytest.approx((theirs.value, theirs.price), rel=1e-6)
            waits = [min(each.due - self.now, 1e6) for each in (mine, theirs)]  # beyond, nobody counts seconds
            if waits[0] != pytest.approx(waits[1], rel=1e-3, abs=1e-3):  # a value that hardly grows any more
                then = [self.live.value(slot, self.now + wait) for wait in waits]
                assert then[0] == pytest.approx(then[1], rel=1e-3)

    def next(self) -> None:
        self.now += float(self.rng.choice([0.0, 1e-4, 0.05, 0.1, 0.4]))
        mine, theirs = self.live.next(self.now), self.plain.next(self.now)
        if isinstance(theirs, Wait):
            assert isinstance(mine, Wait)
            assert mine.reason == theirs.reason
            assert self.now < mine.until <= theirs.until
            self.waited += 1
        else:
            assert isinstance(mine, Pick)
            assert mine.slot == theirs.slot
            assert (mine.value, mine.price) == pytest.approx((theirs.value, theirs.price), rel=1e-6)
            self.out[theirs.slot] = self.now + LEASE
            self.picked += 1
        assert len(self.live) == len(self.plain) == len(self.slots)


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
    live, plain = Scheduler.live(budget=100.0), Plain(Greedy(), budget=100.0)
    for host in range(200):
        options = {**random_page(rng), "host": host % 20, "now": 0.0, "age": 0.0 if copies else math.inf}
        options |= {} if signals else {"recall": 0.0, "false_rate": 0.0}
        slot = live.add(**options)  # type: ignore[arg-type]
        plain.add(**{**options, **kept(live, slot)})  # type: ignore[arg-type]
    for tick in range(1, 1500):
        now = tick / 100
        slot = int(rng.integers(200))
        if signals and slot < 20:
            live.signal(slot, now)
            plain.signal(slot, now)
        pick = plain.next(now)
        mine = live.next(now)
        assert isinstance(pick, Pick)
        assert isinstance(mine, Pick)
        assert mine.slot == pick.slot
        assert mine.value == pytest.approx(pick.value, rel=1e-6)
        live.finish(pick.slot, now, crawled=now, gap=0.05)
        plain.finish(pick.slot, now, crawled=now, gap=0.05)


def test_it_waits_for_ever_without_pages() -> None:
    live = Scheduler.live(budget=1.0)
    assert live.next(0.0) == Wait(math.inf, "no pages")
    live.remove(live.add(request_rate=1.0, change_rate=1.0, now=0.0))
    assert live.next(0.0) == Wait(math.inf, "no pages")


def either(kind: type) -> Scheduler | Plain:
    live = kind is Scheduler
    return Scheduler.live(budget=1.0, lease=LEASE) if live else Plain(Greedy(), budget=1.0, lease=LEASE)


EITHER = pytest.mark.parametrize("kind", [Scheduler, Plain])


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
    scheduler.resume_price(price)
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
    scheduler = Scheduler.live(budget=1 / 19.855)  # the horizon is so many seconds away
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


# --- wishes, and pages until there are too many for this ---


def wanted(scheduler: Scheduler, pages: int, *, hosts: int = 1) -> list[int]:
    columns = {"request_rate": np.linspace(1.0, 2.0, pages), "host": np.arange(pages) % hosts}
    return scheduler.add_many(change_rate=0.01, now=0.0, age=50.0, **columns).tolist()  # type: ignore[arg-type]


def in_turn(scheduler: Scheduler, start: float, end: float, step: float) -> list[int]:
    found = []
    for now in np.arange(start, end, step).tolist():
        if isinstance(pick := scheduler.next(now), Pick):
            found.append(pick.slot)
            scheduler.finish(pick.slot, now, crawled=now)
    check(scheduler)
    return found


@pytest.mark.parametrize("grows", [False, True])
def test_urgent_pages_go_in_the_order_in_which_they_were_asked_for(grows: bool) -> None:
    scheduler = Scheduler(budget=10.0, lease=10.0, exact_up_to=40)
    slots = wanted(scheduler, 40, hosts=40)
    asked = [slots[nth] for nth in (7, 31, 2, 19, 11)]
    for slot in asked:
        scheduler.crawl_now(slot, 1.0)
    scheduler.crawl_now(asked[0], 1.0)  # asked for twice: it keeps its place
    if grows:
        wanted(scheduler, 20)
    assert in_turn(scheduler, 2.0, 3.0, 0.1)[:5] == asked


def test_a_page_left_alone_for_longer_than_it_may_goes_before_first_crawls() -> None:
    scheduler = Scheduler.live(budget=1.0)
    scheduler.add_many(request_rate=100.0, change_rate=1.0, host=np.arange(50), now=0.0)
    poor, poorer = (scheduler.add(request_rate=1e-9, change_rate=1e-6, host=50 + n, now=0.0, age=0.0) for n in range(2))
    scheduler.at_least_every(poor, 20.0, 0.0)
    scheduler.at_least_every(poorer, 15.0, 0.0)
    found = in_turn(scheduler, 1.0, 30.0, 1.0)
    assert (found.index(poorer), found.index(poor)) == (14, 19)


@pytest.mark.parametrize("kind", [Scheduler, Plain])
def test_limits_count_from_the_last_crawl_by_the_clock(kind: type) -> None:
    """Where siblings were busy a copy is believed to be older than it is: limits do not follow that."""
    scheduler = either(kind)
    slot = scheduler.add(request_rate=1.0, change_rate=0.1, host=0, now=0.0, age=0.0)
    scheduler.not_more_often_than(slot, 50.0, 0.0)
    scheduler.update(slot, now=10.0, age=1000.0)
    assert scheduler.next(20.0) == Wait(50.0, "hosts")
    assert isinstance(scheduler.next(51.0), Pick)


def visits_while_growing(exact_up_to: int) -> np.ndarray:
    """Of 600 pages that are found one by one, many of them first crawls."""
    rng = np.random.default_rng(5)
    scheduler = Scheduler(budget=20.0, lease=10.0, exact_up_to=exact_up_to)
    often, checks = np.zeros(600), 0
    for now in np.arange(1.0, 400.0, 0.05).tolist():
        if len(scheduler) < 600 and rng.uniform() < 0.2:
            host, age = int(rng.integers(30)), float(rng.choice([math.inf, 5.0]))
            slot = scheduler.add(**random_page(rng), host=host, now=now, age=age)  # type: ignore[arg-type]
            if slot % 50 == 0:
                scheduler.at_least_every(slot, 30.0, now)
        if len(scheduler) and rng.uniform() < 0.1:
            scheduler.signal(int(rng.integers(len(scheduler))), now)
        assert scheduler.state.control[0]["exact"] == (len(scheduler) <= exact_up_to)
        if isinstance(pick := scheduler.next(now), Pick):
            often[pick.slot] += 1
            scheduler.finish(pick.slot, now, crawled=now, gap=0.1)
        if len(scheduler) in (exact_up_to, exact_up_to + 1) and checks < 50:
            check(scheduler)
            checks += 1
    check(scheduler)
    assert len(scheduler) == 600
    return often


def test_a_crawl_that_grows_goes_on_with_the_same_machine() -> None:
    """From some number of pages on, others than the very best may be picked, but nearly the same ones are visited."""
    mine, exact = visits_while_growing(300), visits_while_growing(600)
    assert np.abs(mine - exact).sum() / 2 < 0.15 * exact.sum()


@pytest.mark.parametrize("pages", [300, 301])
def test_what_is_due_is_foretold_on_either_side_of_the_change(pages: int) -> None:
    scheduler = Scheduler(budget=5.0, lease=10.0, exact_up_to=300)
    slots = wanted(scheduler, pages, hosts=pages)
    in_turn(scheduler, 1.0, 200.0, 0.2)
    told = {slot: scheduler.explain(slot, 200.0, 0.1) for slot in slots}
    off = []
    for now in np.arange(200.0, 250.0, 0.2).tolist():
        if isinstance(pick := scheduler.next(now), Pick):
            scheduler.finish(pick.slot, now, crawled=now)
            if pick.slot in told:
                off.append(abs(told.pop(pick.slot).due - now))
    assert len(off) > 200
    assert np.median(off) < 3.0


# --- beyond that number of pages: what an operator wants, and hosts that rest ---


def test_many_pages_overdue_ones_go_before_first_crawls() -> None:
    scheduler = Scheduler(budget=10.0, lease=10.0)
    scheduler.add_many(request_rate=np.linspace(50.0, 150.0, 400), change_rate=1.0, host=np.arange(400), now=0.0)
    poor = [scheduler.add(request_rate=1e-9, change_rate=1e-6, host=400 + n, now=0.0, age=0.0) for n in range(10)]
    for nth, slot in enumerate(poor):
        scheduler.at_least_every(slot, 15.0 + nth, 0.0)
    found = in_turn(scheduler, 1.0, 30.0, 0.1)
    # One that the wheel had brought forward is looked at again some picks later.
    late = [found.index(slot) / 10.0 + 1.0 - (15.0 + nth) for nth, slot in enumerate(poor)]
    assert min(late) >= -0.2
    assert max(late) < 2.0


def test_many_pages_an_urgent_one_goes_next_on_its_busy_host() -> None:
    """All pages of a host are due and wait for it; few of them are compared when it is ready."""
    scheduler = Scheduler(budget=10.0, lease=10.0)
    slots = wanted(scheduler, 40)
    found: list[int] = []
    for now in np.arange(1.0, 30.0, 0.1).tolist():
        if isinstance(pick := scheduler.next(now), Pick):
            found.append(pick.slot)
            scheduler.finish(pick.slot, now, crawled=now, gap=1.0)
            if len(found) == 5:
                last = next(slot for slot in reversed(slots) if slot not in found)
                scheduler.crawl_now(last, now)
    # One may have been sent for already.
    assert last in found[5:7]


@pytest.mark.parametrize("exact_up_to", [0, 100])
@pytest.mark.parametrize("paused", [False, True])
def test_a_crawl_that_outlives_its_lease_lets_its_host_rest(exact_up_to: int, paused: bool) -> None:
    scheduler = Scheduler(budget=10.0, lease=1.0, exact_up_to=exact_up_to)
    slot = scheduler.add(request_rate=1.0, change_rate=1.0, host=0, now=0.0, age=1.0)
    scheduler.add(request_rate=1e-3, change_rate=1.0, host=0, now=0.0, age=1.0)
    scheduler.crawl_now(slot, 0.5)
    assert isinstance(pick := scheduler.next(1.0), Pick)
    assert pick.slot == slot
    if paused:
        scheduler.pause(slot)
    scheduler.host_rests(0, 10.0)
    assert isinstance(scheduler.next(2.2), Wait)
    scheduler.finish(slot, 2.6, crawled=2.6, gap=50.0)
    assert isinstance(scheduler.next(20.0), Wait)
    assert isinstance(scheduler.next(53.0), Pick)


def test_many_pages_of_hosts_that_rest_are_not_passed_over() -> None:
    """Many that are worth more cannot go, so nothing is due: each page of the others has its turn all the same."""
    scheduler = Scheduler(budget=15.0, lease=10.0)
    slots = scheduler.add_many(request_rate=1.0, change_rate=1e-3, host=np.arange(450) % 15, now=0.0, age=100.0)
    scheduler.add_many(request_rate=1.0, change_rate=1e-2, host=100 + np.arange(5000), now=0.0)
    for host in range(100, 5100):
        scheduler.host_rests(host, 1e6)
    often = np.zeros(len(scheduler), np.int64)
    for now in np.arange(1.0, 91.0, 1 / 60).tolist():
        if isinstance(pick := scheduler.next(now), Pick):
            often[pick.slot] += 1
            scheduler.finish(pick.slot, now, crawled=now, gap=1.0)
    assert often[slots].sum() > 0.9 * 90 * 15
    assert often[slots].max() <= 5
    assert (often[slots] > 0).all()
    check(scheduler)

"""A share of the picks goes to the copies that were left alone longest, whatever a crawl of them is worth."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from afresh.config import CrawlSettings
from afresh.schedule import DEFAULT_SWEEP, Greedy, Pick, Plain, Scheduler
from afresh.schedule.wheel.turn import _WINDOW
from afresh.types import Wait
from checks import check

Make = Callable[..., Scheduler | Plain]
SHARE = 0.25


def plain(**options: float) -> Plain:
    return Plain(Greedy(), **options)


SIMPLE = pytest.mark.parametrize("make", [plain, Scheduler.live])


def add(
    scheduler: Scheduler | Plain, *, host: int, age: float, request_rate: float = 1.0, change_rate: float = 1.0
) -> int:
    return scheduler.add(request_rate=request_rate, change_rate=change_rate, host=host, now=0.0, age=age)


def picked(scheduler: Scheduler | Plain, now: float) -> int:
    pick = scheduler.next(now)
    assert isinstance(pick, Pick)
    scheduler.finish(pick.slot, now, crawled=now)
    return pick.slot


@SIMPLE
def test_every_fourth_pick_is_the_oldest_copy_that_may_go(make: Make) -> None:
    scheduler = make(budget=1.0, sweep=SHARE)
    ages = [50.0, 90.0, 70.0, 80.0]
    for host, age in enumerate(ages):
        add(scheduler, host=host, age=age, change_rate=1e-9)  # believed never to change
    busy = [add(scheduler, host=10 + k, age=0.0) for k in range(3)]
    found = [picked(scheduler, float(now)) for now in range(1, 25)]
    assert found[3::4] == [1, 3, 2, 0, *found[19::4]]
    assert all(slot in busy for k, slot in enumerate(found) if k % 4 != 3)


@SIMPLE
def test_without_a_share_the_worthless_are_left_alone(make: Make) -> None:
    scheduler = make(budget=1.0)
    idle = add(scheduler, host=0, age=90.0, change_rate=1e-9)
    for k in range(3):
        add(scheduler, host=10 + k, age=0.0)
    assert idle not in [picked(scheduler, float(now)) for now in range(1, 100)]


@SIMPLE
def test_the_oldest_that_may_not_go_is_passed_over(make: Make) -> None:
    scheduler = make(budget=1.0, sweep=1.0)
    resting, leased, unwanted, other, young = (
        add(scheduler, host=host, age=age, request_rate=wanted)
        for host, age, wanted in ((0, 90.0, 1.0), (1, 80.0, 1.0), (2, 70.0, 0.0), (3, 60.0, 1.0), (4, 0.0, 1.0))
    )
    scheduler.host_rests(0, 10.0)
    first, second, third = (scheduler.next(now) for now in (1.0, 2.0, 3.0))
    assert [pick.slot for pick in (first, second, third) if isinstance(pick, Pick)] == [leased, other, young]
    assert isinstance(scheduler.next(4.0), Wait)
    late = scheduler.next(11.0)
    assert isinstance(late, Pick)
    assert late.slot == resting
    assert unwanted not in (first, second)


@SIMPLE
def test_the_price_does_not_follow_what_is_swept(make: Make) -> None:
    prices = []
    for sweep in (0.0, SHARE):
        scheduler = make(budget=1.0, sweep=sweep)
        for k in range(40):
            add(scheduler, host=k, age=0.0)
        if sweep:
            for k in range(40):
                add(scheduler, host=100 + k, age=5.0, change_rate=1e-9)
        now = 0.0
        for _ in range(40):
            now += 1.0
            pick = scheduler.next(now)
            assert isinstance(pick, Pick)
            scheduler.finish(pick.slot, now, crawled=now)
        prices.append(scheduler.price)
    # A quarter of the crawls, worth nothing, would have pulled it down by a quarter; copies are older, so it rises.
    assert prices[0] * 0.97 < prices[1] < prices[0] * 1.2


@pytest.mark.parametrize("share", [-0.01, 1.01, math.nan])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    for make in (plain, Scheduler.live, Scheduler):
        with pytest.raises(ValueError, match="sweep"):
            make(budget=1.0, sweep=share)


def test_the_default_share_is_one_in_fifty() -> None:
    assert DEFAULT_SWEEP == CrawlSettings().sweep == 0.02
    assert int(Scheduler(budget=1.0, sweep=DEFAULT_SWEEP).state.control[0]["oldest_every"]) == 50


@pytest.mark.parametrize("make", [plain, Scheduler.live, Scheduler])
def test_every_second_sweep_goes_by_the_square_root_of_requests(make: Make) -> None:
    """Four pages, one of them wanted by far more: it gets the sweeps that count requests, the others the rest."""
    scheduler = make(budget=1.0, sweep=1.0)
    for host, request_rate in enumerate([1.0, 10_000.0, 1.0, 1.0]):
        scheduler.add(request_rate=request_rate, change_rate=1e-9, host=host, now=0.0, age=0.0)
    visits = np.bincount([picked(scheduler, float(now)) for now in range(1, 601)])
    assert visits == pytest.approx([100, 300, 100, 100], abs=6)


@pytest.mark.parametrize("absurd", [1e9, 1e30])
@pytest.mark.parametrize("count", [5, _WINDOW + 1, _WINDOW + _WINDOW // 2, 4 * _WINDOW])
@pytest.mark.parametrize("make", [plain, Scheduler.live, Scheduler, lambda **options: Scheduler(exact=True, **options)])
def test_no_number_of_requests_keeps_the_sweep_from_the_other_pages(make: Make, count: int, absurd: float) -> None:
    scheduler = make(budget=1.0, sweep=SHARE)
    for host in range(count):
        wanted = absurd if host == count // 3 else 1.0
        scheduler.add(request_rate=wanted, change_rate=1e-3, host=host, now=0.0, age=0.0)
    ticks = int(2.2 * count / SHARE) + 20
    visits = np.bincount([picked(scheduler, float(now)) for now in range(1, ticks)], minlength=count)
    assert visits.min() >= 1, visits


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.25])
def test_pages_believed_never_to_change_are_still_visited(share: float, exact: bool) -> None:
    """Each sweep takes the oldest of some neighbours, and the next ones the next time: all have been after a round."""
    count = 4 * _WINDOW
    scheduler = Scheduler(budget=1.0, sweep=share, exact=exact)
    idle = np.arange(count) % 2 == 0
    scheduler.add_many(request_rate=1.0, change_rate=np.where(idle, 1e-12, 2.0 / count), now=0.0, age=0.0)
    ticks = int(1.3 * count / share)
    slots = scheduler.next_many(float(ticks), ticks)
    assert len(slots) == ticks
    visits = np.bincount(slots, minlength=count)
    assert visits[idle].min() >= 1
    # No more than its share: all else goes to pages that change.
    assert visits[idle].sum() <= share * ticks + 1
    check(scheduler)
    alone = Scheduler(budget=1.0, exact=exact)
    alone.add_many(request_rate=1.0, change_rate=np.where(idle, 1e-12, 2.0 / count), now=0.0, age=0.0)
    assert np.bincount(alone.next_many(float(ticks), ticks), minlength=count)[idle].sum() == 0


@pytest.mark.parametrize("lease", [None, 30.0])
def test_a_host_that_rests_is_not_disturbed(lease: float | None) -> None:
    scheduler = Scheduler(budget=1.0, sweep=0.5, lease=lease)
    resting = scheduler.add_many(request_rate=1.0, change_rate=1e-12, host=0, now=0.0, age=np.arange(100.0, 120.0))
    others = scheduler.add_many(request_rate=1.0, change_rate=0.1, host=np.arange(1, 11), now=0.0, age=0.0)
    scheduler.host_rests(0, 200.0)
    found = {}
    for now in range(1, 400):
        pick = scheduler.next(float(now))
        if isinstance(pick, Pick):
            found[now] = pick.slot
            if lease:
                scheduler.finish(pick.slot, float(now), crawled=float(now))
        check(scheduler)
    assert {found[now] for now in found if now < 200} <= set(others.tolist())
    assert {found[now] for now in found if now >= 200} >= set(resting.tolist())


def test_a_page_that_is_leased_or_paused_or_put_off_is_not_swept() -> None:
    scheduler = Scheduler(budget=1.0, sweep=1.0, lease=1000.0)
    ages = [90.0, 80.0, 70.0, 60.0, 50.0]
    slots = scheduler.add_many(request_rate=1.0, change_rate=0.01, now=0.0, age=ages).tolist()
    scheduler.pause(slots[1])
    first = scheduler.next(1.0)
    assert isinstance(first, Pick)
    assert first.slot == slots[0]
    second = scheduler.next(2.0)
    assert isinstance(second, Pick)
    assert second.slot == slots[2]
    scheduler.finish(slots[2], 3.0, crawled=None, put_off=100.0)
    third, fourth = scheduler.next(4.0), scheduler.next(5.0)
    assert isinstance(third, Pick)
    assert isinstance(fourth, Pick)
    assert [third.slot, fourth.slot] == slots[3:]
    assert isinstance(scheduler.next(6.0), Wait)
    check(scheduler)


def test_the_fast_price_does_not_follow_what_is_swept() -> None:
    """A tenth of the budget goes to pages worth nothing; the price is that of the rest of it, not of those pages."""
    count, share = 1000, 0.1
    prices = {}
    for name, sweep, budget in (("all", 0.0, 100.0), ("swept", share, 100.0), ("less", 0.0, (1 - share) * 100.0)):
        scheduler = Scheduler(budget=budget, sweep=sweep)
        idle = np.arange(count) % 2 == 0
        scheduler.add_many(request_rate=1.0, change_rate=np.where(idle, 1e-12, 0.3), now=0.0, age=0.0)
        scheduler.next_many(200.0, int(200 * budget))
        prices[name] = scheduler.price
    assert prices["swept"] == pytest.approx(prices["less"], rel=0.25)
    assert prices["swept"] > 0.9 * prices["all"]


def test_a_shape_of_nothing_is_refused() -> None:
    scheduler = Scheduler(budget=1.0)
    slot = scheduler.add(request_rate=1.0, change_rate=1.0, now=0.0)
    with pytest.raises(ValueError, match="shape must be at least"):
        scheduler.update(slot, now=0.0, shape=0.0)


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("make", [plain, Scheduler.live, lambda **options: Scheduler(lease=100.0, **options)])
def test_a_host_that_is_free_only_when_it_is_swept_gets_all_its_pages_crawled(make: Make, share: float) -> None:
    """As many hosts as picks between two sweeps, each free again after just that time: its turn is always a sweep."""
    hosts = round(1.0 / share)
    scheduler = make(budget=float(hosts), sweep=share)
    for nth in range(5 * hosts):
        add(scheduler, host=nth % hosts, age=math.inf)
    visits = np.zeros(5 * hosts, int)
    for tick in range(1, 100 * hosts):
        now = tick / hosts
        pick = scheduler.next(now)
        if isinstance(pick, Pick):
            visits[pick.slot] += 1
            scheduler.finish(pick.slot, now, crawled=now, gap=1.0)
    assert visits.min() >= 10, visits

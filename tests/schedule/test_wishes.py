"""What an operator may want of pages and hosts, kept by every scheduler alike."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from afresh.errors import ConfigError
from afresh.schedule import Greedy, Pick, Plain, Scheduler, Schedules
from afresh.types import Wait

MAKERS: list[Callable[..., Schedules]] = [
    lambda budget: Scheduler.live(budget=budget),
    lambda budget: Plain(Greedy(), budget=budget),
    lambda budget: Scheduler(budget=budget, lease=120.0),
]


@pytest.fixture(params=MAKERS, ids=["exact", "plain", "many"])
def make(request: pytest.FixtureRequest) -> Callable[..., Schedules]:
    return request.param  # type: ignore[no-any-return]


def fill(scheduler: Schedules, rates: list[float], *, age: float = 50.0) -> list[int]:
    """Pages of hosts of their own, by their request rates."""
    return [
        scheduler.add(request_rate=rate, change_rate=0.02, host=nth, now=0.0, age=age) for nth, rate in enumerate(rates)
    ]


def run(scheduler: Schedules, until: float, *, start: float = 0.0, carry_out: bool = True) -> list[tuple[float, int]]:
    """The picks up to a moment, each finished at once."""
    now, found = start, []
    while now <= until:
        pick = scheduler.next(now)
        if isinstance(pick, Wait):
            now = max(min(pick.until, now + 0.5), now + 0.01)
            continue
        found.append((now, pick.slot))
        scheduler.finish(pick.slot, now, crawled=now if carry_out else None)
    return found


def test_a_paused_page_is_left_alone_until_it_is_resumed(make: Callable[..., Schedules]) -> None:
    scheduler = make(1.0)
    slots = fill(scheduler, [1.0, 1.0, 100.0])
    scheduler.pause(slots[2])
    assert scheduler.explain(slots[2], 0.0).held_by == "paused"
    assert slots[2] not in {slot for _, slot in run(scheduler, 20.0)}
    scheduler.resume(slots[2], 20.0)
    assert slots[2] in {slot for _, slot in run(scheduler, 25.0, start=20.0)}


def test_a_page_that_is_paused_while_it_is_fetched_does_not_come_back(make: Callable[..., Schedules]) -> None:
    scheduler = make(1.0)
    slots = fill(scheduler, [1.0, 1.0, 100.0])
    pick = scheduler.next(1.0)
    assert isinstance(pick, Pick)
    scheduler.pause(pick.slot)
    scheduler.finish(pick.slot, 1.1, crawled=1.0)
    assert pick.slot not in {slot for _, slot in run(scheduler, 30.0, start=2.0)}
    assert len(slots) == 3


def test_the_page_that_is_wanted_now_goes_first_even_if_it_is_put_off(make: Callable[..., Schedules]) -> None:
    scheduler = make(1.0)
    slots = fill(scheduler, [100.0, 100.0, 0.001])
    run(scheduler, 5.0)
    scheduler.finish(slots[2], 5.0, crawled=None, put_off=1000.0)
    scheduler.crawl_now(slots[2], 5.5)
    assert run(scheduler, 8.0, start=5.6)[0][1] == slots[2]
    later = [slot for _, slot in run(scheduler, 12.0, start=8.1)]
    assert later.count(slots[2]) == 0, "once is enough"


def test_an_urgent_order_that_was_given_back_comes_again(make: Callable[..., Schedules]) -> None:
    scheduler = make(1.0)
    slots = fill(scheduler, [100.0, 100.0, 0.001])
    run(scheduler, 5.0)
    scheduler.crawl_now(slots[2], 5.5)
    assert [slot for _, slot in run(scheduler, 7.5, start=5.6, carry_out=False)][:2] == [slots[2], slots[2]]


def test_no_more_often_than_that(make: Callable[..., Schedules]) -> None:
    scheduler = make(2.0)
    slots = fill(scheduler, [1.0, 1.0, 1000.0])
    scheduler.not_more_often_than(slots[2], 10.0, 0.0)
    times = [when for when, slot in run(scheduler, 60.0) if slot == slots[2]]
    assert len(times) >= 4
    assert min(b - a for a, b in pairwise(times)) >= 10.0


def test_at_least_every(make: Callable[..., Schedules]) -> None:
    scheduler = make(2.0)
    slots = fill(scheduler, [100.0, 100.0, 0.0001], age=0.0)
    without = [slot for _, slot in run(make_filled(make), 60.0)].count(slots[2])
    scheduler.at_least_every(slots[2], 10.0, 0.0)
    times = [0.0, *(when for when, slot in run(scheduler, 60.0) if slot == slots[2])]
    assert without <= 1
    assert max(b - a for a, b in pairwise(times)) <= 13.0
    assert len(times) >= 5


def make_filled(make: Callable[..., Schedules]) -> Schedules:
    scheduler = make(2.0)
    fill(scheduler, [100.0, 100.0, 0.0001], age=0.0)
    return scheduler


def test_a_host_keeps_to_its_own_budget_and_has_a_price_of_its_own(make: Callable[..., Schedules]) -> None:
    scheduler = make(4.0)
    for nth in range(40):
        host = nth % 2
        scheduler.add(request_rate=50.0 if host == 0 else 1.0, change_rate=0.05, host=host, now=0.0, age=30.0)
    scheduler.set_host(0, budget=0.5)
    picks = run(scheduler, 120.0)
    by_host = [sum(slot % 2 == host for _, slot in picks) for host in (0, 1)]
    assert 0.4 * 120 <= by_host[0] <= 0.5 * 120 + 5, by_host
    assert by_host[1] > 300, "what the one host may not take goes elsewhere"
    assert scheduler.host_price(0) > scheduler.price
    assert scheduler.host_price(1) == 0.0
    scheduler.set_host(0, budget=float("inf"))
    later = run(scheduler, 180.0, start=120.0)
    assert sum(slot % 2 == 0 for _, slot in later) > 100


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_limits_that_are_none_are_refused(make: Callable[..., Schedules], seconds: float) -> None:
    scheduler = make(1.0)
    (slot,) = fill(scheduler, [1.0])
    with pytest.raises(ConfigError, match="seconds must be"):
        scheduler.not_more_often_than(slot, seconds, 0.0)
    with pytest.raises(ConfigError, match="seconds must be"):
        scheduler.at_least_every(slot, seconds, 0.0)
    with pytest.raises(ConfigError, match="budget must be"):
        scheduler.set_host(0, budget=0.0)


def test_a_page_is_put_off_and_brought_back_while_another_of_its_host_is_out(make: Callable[..., Schedules]) -> None:
    scheduler = make(budget=10.0)
    first, second = (
        scheduler.add(request_rate=rate, change_rate=0.01, host=0, now=0.0, age=50.0) for rate in (2.0, 1.0)
    )
    scheduler.put_off(first, 1000.0, 0.0)
    picked = scheduler.next(0.0)
    assert isinstance(picked, Pick)
    assert picked.slot == second
    scheduler.put_off(first, 0.2, 0.2)
    assert not isinstance(scheduler.next(0.5), Pick), "its host is still being asked"
    scheduler.finish(second, 1.0, crawled=1.0)
    again = scheduler.next(1.5)
    assert isinstance(again, Pick)
    assert again.slot == first


def test_a_page_that_is_put_off_is_due_then(make: Callable[..., Schedules]) -> None:
    scheduler = make(1.0)
    slots = [scheduler.add(request_rate=1.0, change_rate=0.02, host=0, now=0.0, age=50.0) for _ in range(5)]
    run(scheduler, 20.0)
    scheduler.put_off(slots[2], 90_000.0, 20.0)
    for turn in (0.0, 1.06):
        why = scheduler.explain(slots[2], 20.0, turn)
        assert why.held_by == "put off"
        assert why.due == 90_000.0

"""The fast scheduler's interface: same contract as the plain one, batch forms, and what an operator may want."""

import copy
import io
import math

import numpy as np
import pytest

from afresh.schedule import Pick, Scheduler
from afresh.types import Wait
from afresh.value import crawl_value
from checks import check


def leased(budget: float = 10.0, **options: object) -> Scheduler:
    return Scheduler(budget=budget, lease=30.0, **options)  # type: ignore[arg-type]


def pick_at(machine: Scheduler, now: float) -> int:
    pick = machine.next(now)
    assert isinstance(pick, Pick), pick
    return pick.slot


def many(count: int, seed: int = 0, **fields: object) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    return {
        "request_rate": rng.uniform(0, 1, count),
        "change_rate": rng.uniform(0, 1, count),
        "recall": rng.beta(0.25, 0.25, count),
        "false_rate": rng.uniform(0.1, 0.6, count),
        "now": 0.0,
        "age": 0.0,
    } | fields


def test_a_record_takes_72_bytes_and_the_first_begins_a_cache_line() -> None:
    machine = Scheduler(budget=1.0)
    machine.add_many(**many(1000))  # type: ignore[arg-type]
    assert machine.state.pages.itemsize == 72
    assert machine.state.pages.ctypes.data % 64 == 0


def test_the_most_valuable_page_goes_first_and_says_why() -> None:
    machine = leased()
    machine.add(request_rate=1, change_rate=1, now=0, age=5)
    best = machine.add(request_rate=9, change_rate=1, now=0, age=5)
    pick = machine.next(0.0)
    assert isinstance(pick, Pick)
    assert pick.slot == best
    assert pick.value == pytest.approx(float(crawl_value(5.0, 0, change_rate=1.0, request_rate=9.0)), rel=1e-6)


def test_exactly_one_pick_a_tick() -> None:
    machine = Scheduler(budget=100.0)
    machine.add_many(**many(500))  # type: ignore[arg-type]
    for window in range(1, 60):
        assert len(machine.next_many(float(window), 10_000)) == 100


def test_more_budget_than_there_is_to_gain_still_picks_at_every_tick() -> None:
    machine = Scheduler(budget=50.0)
    machine.add_many(request_rate=[1.0, 2.0, 3.0], change_rate=0.1, now=0.0, age=0.0)
    for window in range(1, 40):
        picked = machine.next_many(float(window), 1000)
        assert len(picked) == 50
    assert set(picked) == {0, 1, 2}


def test_a_page_that_costs_more_takes_more_ticks() -> None:
    machine = Scheduler(budget=100.0)
    machine.add_many(request_rate=1.0, change_rate=np.full(50, 0.5), cost=4.0, now=0.0, age=0.0)
    assert len(machine.next_many(10.0, 10_000)) == pytest.approx(250, abs=1)


def test_a_leased_page_is_not_handed_out_again_until_the_lease_ends() -> None:
    machine = leased()
    slot = machine.add(request_rate=1, change_rate=1, host=0, now=0)
    assert pick_at(machine, 0.0) == slot
    assert machine.next(1.0) == Wait(30.0, "hosts")
    assert machine.explain(slot, 1.0).held_by == "leased"
    assert pick_at(machine, 30.0) == slot


def test_a_crawl_that_outlives_its_lease_still_counts() -> None:
    machine = leased()
    slot = machine.add(request_rate=1, change_rate=1, host=0, now=0, age=9.0)
    assert pick_at(machine, 0.0) == slot
    assert machine.peek(31.0) == slot
    machine.finish(slot, 32.0, crawled=0.0)
    assert machine.explain(slot, 32.0).value == pytest.approx(float(crawl_value(32.0, 0, change_rate=1.0)), rel=1e-6)
    check(machine)
    assert pick_at(machine, 33.0) == slot


def test_one_page_of_a_host_at_a_time_and_a_gap_between() -> None:
    machine = leased()
    first, second = (machine.add(request_rate=1, change_rate=1, host=7, now=0) for _ in range(2))
    assert pick_at(machine, 0.0) == first
    assert isinstance(machine.next(1.0), Wait)
    assert machine.explain(second, 1.0).held_by == "host busy"
    machine.finish(first, 2.0, crawled=1.0, gap=5.0)
    assert machine.next(3.0) == Wait(7.0, "hosts")
    assert pick_at(machine, 7.0) == second


def test_the_gap_of_a_host_is_kept_without_leases_too() -> None:
    machine = Scheduler(budget=10.0)
    machine.set_host(0, gap=2.0)
    machine.add_many(request_rate=1.0, change_rate=np.full(20, 1.0), host=0, now=0.0)
    assert len(machine.next_many(20.0, 1000)) == 10


def test_pages_without_a_host_do_not_wait_for_each_other() -> None:
    machine = leased()
    machine.add_many(request_rate=1.0, change_rate=np.full(5, 1.0), now=0.0)
    assert sorted(pick_at(machine, 0.1 * tick) for tick in range(5)) == [0, 1, 2, 3, 4]


def test_a_failed_page_is_put_off_and_keeps_its_age() -> None:
    machine = leased()
    slot = machine.add(request_rate=1, change_rate=1, host=0, now=0, age=10)
    before = machine.explain(slot, 0.0).value
    assert pick_at(machine, 0.0) == slot
    machine.finish(slot, 0.0, crawled=None, put_off=60.0)
    assert machine.explain(slot, 0.0).value == before
    assert machine.explain(slot, 0.0).held_by == "put off"
    assert machine.next(1.0) == Wait(60.0, "hosts")
    machine.signal(slot, 2.0)
    assert machine.next(3.0) == Wait(60.0, "hosts")
    assert pick_at(machine, 60.0) == slot


def test_a_signal_during_the_fetch_counts_for_the_next_crawl() -> None:
    machine = leased()
    slot = machine.add(request_rate=1, change_rate=1, recall=0.5, false_rate=0.1, host=0, now=0, age=1, signals=2)
    assert pick_at(machine, 0.0) == slot
    machine.signal(slot, 0.5)
    machine.finish(slot, 1.0, crawled=0.4)
    expected = crawl_value(0.6, 1, change_rate=1.0, recall=0.5, false_rate=0.1)
    assert machine.explain(slot, 1.0).value == pytest.approx(float(expected), rel=1e-5)


def test_a_removed_page_is_gone_and_its_slot_used_again() -> None:
    machine = leased()
    slot = machine.add(request_rate=1, change_rate=1, host=0, now=0)
    machine.remove(slot)
    assert len(machine) == 0
    assert machine.next(0.0) == Wait(math.inf, "no pages")
    with pytest.raises(ValueError, match="slot"):
        machine.signal(slot, 0.0)
    assert machine.add(request_rate=1, change_rate=1, host=3, now=0) == slot


def test_explain_says_when_the_value_reaches_the_price() -> None:
    machine = Scheduler(budget=1.0)
    machine.add_many(**many(50))  # type: ignore[arg-type]
    machine.next_many(100.0, 100)
    for slot in range(50):
        told = machine.explain(slot, 100.0)
        if math.isinf(told.due) or told.due == 100.0:
            continue
        assert told.held_by == "below the price"
        known = {name: float(values[0]) for name, values in machine.beliefs(slot).items() if name != "cost"}
        page = machine.state.pages[slot]
        reached = crawl_value(told.due - page["current"], int(page["signals"]), **known)  # type: ignore[arg-type]
        assert float(reached) == pytest.approx(told.price, rel=1e-3)


def test_a_paused_page_stays_out_until_it_is_resumed() -> None:
    machine = Scheduler(budget=10.0)
    slots = machine.add_many(request_rate=[9.0, 1.0, 1.0], change_rate=0.5, now=0.0, age=1.0)
    machine.pause(0)
    machine.signal(0, 0.0)
    assert machine.explain(0, 0.0).held_by == "paused"
    assert set(machine.next_many(5.0, 100)) == {1, 2}
    machine.resume(0, 5.0)
    assert set(machine.next_many(10.0, 100)) == set(slots)


def test_a_page_paused_while_it_is_fetched_stays_out_afterwards() -> None:
    machine = leased()
    machine.add_many(request_rate=[9.0, 1.0], change_rate=0.5, now=0.0, age=1.0)
    assert pick_at(machine, 0.0) == 0
    machine.pause(0)
    machine.finish(0, 0.05, crawled=0.0)
    assert machine.explain(0, 5.0).held_by == "paused"
    assert pick_at(machine, 5.0) == 1


def test_crawl_now_goes_before_all_others() -> None:
    machine = Scheduler(budget=10.0)
    machine.add_many(**many(200))  # type: ignore[arg-type]
    worst = machine.add(request_rate=0.0, change_rate=0.1, now=0.0, age=0.0)
    machine.next_many(3.0, 30)
    machine.crawl_now(worst, 3.0)
    assert machine.peek(3.1) == worst
    assert machine.next_many(3.1, 1).tolist() == [worst]
    assert worst not in machine.next_many(30.0, 1000)


def test_never_more_often_than() -> None:
    machine = Scheduler(budget=10.0)
    machine.add_many(request_rate=[100.0, 1.0, 1.0, 1.0], change_rate=0.5, now=0.0, age=1.0)
    machine.not_more_often_than(0, 5.0, 0.0)
    assert (machine.next_many(50.0, 1000) == 0).sum() <= 11


def test_at_least_every() -> None:
    machine = Scheduler(budget=10.0)
    machine.add_many(**many(200))  # type: ignore[arg-type]
    dull = machine.add(request_rate=0.0, change_rate=0.1, now=0.0, age=0.0)
    assert dull not in machine.next_many(50.0, 1000)
    machine.at_least_every(dull, 4.0, 50.0)
    assert (machine.next_many(90.0, 1000) == dull).sum() == pytest.approx(10, abs=1)


def test_a_floor_rate_holds_for_all_pages() -> None:
    machine = Scheduler(budget=100.0, floor=0.05)
    machine.add_many(**many(1000))  # type: ignore[arg-type]
    picked = np.bincount(machine.next_many(200.0, 100_000), minlength=1000)
    assert picked.min() >= 8


def test_signals_shortly_after_a_crawl_are_dropped_with_a_delay_window() -> None:
    plain, patient = Scheduler(budget=1.0), Scheduler(budget=1.0, policy="greedy-ncis-d", delay=2.0)
    for machine in (plain, patient):
        machine.add(request_rate=1, change_rate=1, recall=0.5, false_rate=0.1, now=0, age=0)
        machine.signal(0, 1.0)
    assert patient.explain(0, 1.0).value < plain.explain(0, 1.0).value
    patient.signal(0, 2.5)
    assert patient.explain(0, 2.5).value == pytest.approx(plain.explain(0, 2.5).value)


@pytest.mark.parametrize("name", ["request_rate", "change_rate", "recall", "false_rate", "cost", "age"])
def test_bad_arguments_are_named(name: str) -> None:
    machine = Scheduler(budget=1.0)
    with pytest.raises(ValueError, match=name):
        machine.add_many(**(many(3) | {name: -1.0}))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=name):
        machine.add_many(**(many(3) | {name: math.nan}))  # type: ignore[arg-type]
    assert len(machine) == 0


def test_unknown_policies_are_refused() -> None:
    with pytest.raises(ValueError, match="greedy-ncis"):
        Scheduler(budget=1.0, policy="best")


def test_the_same_seed_gives_the_same_picks() -> None:
    runs = []
    for _ in range(2):
        machine = Scheduler(budget=50.0)
        machine.add_many(**many(300))  # type: ignore[arg-type]
        rng = np.random.default_rng(5)
        picked = []
        for second in range(1, 30):
            picked += machine.next_many(float(second), 1000).tolist()
            machine.signal_many(rng.integers(0, 300, 40), float(second))
        runs.append(picked)
    assert runs[0] == runs[1]


def test_a_copy_goes_its_own_way() -> None:
    machine = Scheduler(budget=100.0)
    machine.add_many(**many(300))  # type: ignore[arg-type]
    twin = copy.deepcopy(machine)
    picked = machine.next_many(5.0, 1000)
    assert len(twin.next_many(0.001, 1000)) == 0
    check(twin)
    assert twin.next_many(5.0, 1000).tolist() == picked.tolist()


def test_equal_states_are_saved_as_equal_files() -> None:
    files = []
    for _ in range(2):
        machine = Scheduler(budget=100.0)
        machine.add_many(**many(300))  # type: ignore[arg-type]
        machine.next_many(5.0, 1000)
        files.append(io.BytesIO())
        machine.save(files[-1])
    assert files[0].getvalue() == files[1].getvalue()


def test_reserved_room_is_used_without_a_copy() -> None:
    machine = Scheduler(budget=10.0)
    machine.reserve(1000)
    room = machine.state.pages
    for first in range(0, 1000, 250):
        assert machine.add_many(**many(250, first)).tolist() == list(range(first, first + 250))  # type: ignore[arg-type]
    assert machine.state.pages is room
    check(machine)


def test_the_price_of_very_many_pages_is_solved_on_some_of_them() -> None:
    machine = Scheduler(budget=1000.0)
    machine.add_many(**many(330_000, age=50.0))  # type: ignore[arg-type]
    assert machine.demand == pytest.approx(1000.0, rel=0.05)
    for slot in range(1000):
        machine.pause(slot)
    machine.budget = 4000.0
    few = Scheduler(budget=200.0)
    few.add_many(**many(16_500, age=50.0))  # type: ignore[arg-type]
    assert machine.price == pytest.approx(few.price, rel=0.03)


@pytest.mark.parametrize("age", [1000.0, math.inf])
@pytest.mark.parametrize("together", [True, False])
def test_of_equal_pages_that_come_up_together_the_lower_slot_goes_first(together: bool, age: float) -> None:
    machine = Scheduler(budget=10.0)
    if together:
        machine.add_many(request_rate=1.0, change_rate=np.full(25, 0.5), now=0.0, age=age)
        # Slots that are used again are not handed out in their order.
        machine.remove_many(np.random.default_rng(1).permutation(25))
        slots = machine.add_many(request_rate=1.0, change_rate=np.full(25, 0.5), now=0.0, age=age)
        assert slots.tolist() != list(range(25))
    else:
        for _ in range(25):
            machine.add(request_rate=1.0, change_rate=0.5, now=0.0, age=age)
    assert machine.next_many(10.0, 25).tolist() == list(range(25))


def test_of_equal_pages_on_the_wheel_the_lower_slot_comes_up_first() -> None:
    machine = Scheduler(budget=10.0)
    machine.add_many(request_rate=1.0, change_rate=np.full(25, 0.5), now=0.0, age=0.0)
    assert machine.next_many(10.0, 12).tolist() == list(range(12))


def alike_pages(count: int) -> Scheduler:
    """Equal pages whose copies are fresh, and which one signal brings up."""
    machine = Scheduler(budget=10.0)
    given = {"request_rate": 1.0, "recall": 0.9, "false_rate": 0.002, "now": 0.0, "age": 0.0}
    machine.add_many(change_rate=np.full(count, 0.05), **given)  # type: ignore[arg-type]
    return machine


def test_of_equal_pages_that_signals_bring_up_the_lower_slot_goes_first() -> None:
    machine = alike_pages(100)
    heard = np.random.default_rng(2).permutation(100)[:30]
    machine.signal_many(heard, now=0.01)
    assert machine.next_many(3.01, 30).tolist() == sorted(heard.tolist())


def test_of_a_few_equal_pages_the_lower_slot_goes_first_in_whatever_order_they_came_up() -> None:
    machine = alike_pages(100)
    heard = np.random.default_rng(3).permutation(100)[:9]
    for turn, slot in enumerate(heard.tolist()):
        machine.signal(slot, now=0.001 * (turn + 1))
    assert machine.next_many(1.0, 9).tolist() == sorted(heard.tolist())

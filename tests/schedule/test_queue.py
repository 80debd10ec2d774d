"""When a page is crawled where its host, and not the budget, is what limits: as foretold, and as it comes."""

import math

import numpy as np
import pytest

from afresh.schedule import Pick, Scheduler

GAP, TOOK = 1.0, 0.2
TURN = GAP + TOOK


def followed(few: Scheduler, begin: float, end: float, hosts: int) -> dict[int, float]:
    """When each page is first picked in this time, by a crawler that asks each host for one page at a time."""
    rng, now, picked = np.random.default_rng(2), begin, dict[int, float]()
    out: list[tuple[float, int]] = []
    while now < end:
        for done in sorted(each for each in out if each[0] <= now):
            out.remove(done)
            few.finish(done[1], now, crawled=now - TOOK, changed=bool(rng.uniform() < 0.5), gap=GAP)
        while isinstance(pick := few.next(now), Pick):
            picked.setdefault(pick.slot, now)
            out.append((now + TOOK, pick.slot))
        now += 0.01
    for _, slot in out:
        few.finish(slot, end, crawled=end - TOOK, gap=GAP)
    return picked


def scene(budget: float, counts: tuple[int, ...], age: float) -> tuple[Scheduler, list[int]]:
    rng = np.random.default_rng(1)
    few = Scheduler.live(budget=budget)
    slots = [
        few.add(
            request_rate=float(rng.lognormal(0, 1)),
            change_rate=float(rng.lognormal(-5, 1)),
            host=host,
            now=0.0,
            age=age,
        )
        for host, count in enumerate(counts)
        for _ in range(count)
    ]
    return few, slots


@pytest.mark.parametrize(("age", "settles"), [(math.inf, 0.0), (math.inf, 30.0), (math.inf, 400.0), (60.0, 100.0)])
def test_a_page_of_a_crowded_host_goes_when_its_turn_comes(age: float, settles: float) -> None:
    few, slots = scene(20.0, (100, 5), age)
    followed(few, 0.0, settles, 2)
    told = {slot: few.explain(slot, settles, TURN) for slot in slots}
    picked = followed(few, settles, settles + 400.0, 2)
    crowded = [slot for slot in slots[:100] if math.isfinite(told[slot].due) and slot in picked]
    assert len(crowded) > 60  # others are worth too little to have a turn soon
    off = np.array([abs(told[slot].due - picked[slot]) for slot in crowded])
    waits = np.array([picked[slot] - settles for slot in crowded])
    assert (off <= 5.0 + 0.25 * waits).mean() > 0.9
    behind = [told[slot] for slot in crowded if told[slot].due > settles + 50.0]
    assert all(each.ahead >= 20 and each.turn == TURN for each in behind)


def test_a_page_that_others_always_outbid_has_no_time_foretold() -> None:
    few, _ = scene(20.0, (30,), 5.0)
    left_out = few.add(request_rate=1e-9, change_rate=1e-6, host=0, now=0.0, age=5.0)
    followed(few, 0.0, 60.0, 1)
    assert few.spare
    assert math.isinf(few.explain(left_out, 60.0, TURN).due)


def test_a_budget_that_hosts_can_take_is_not_said_to_be_spare() -> None:
    few, slots = scene(0.5, (20, 20, 20), 60.0)
    followed(few, 0.0, 800.0, 3)
    assert not few.spare
    told = {slot: few.explain(slot, 800.0, TURN) for slot in slots}
    picked = followed(few, 800.0, 920.0, 3)
    off = [abs(told[slot].due - when) for slot, when in picked.items()]
    assert np.median(off) < 30.0  # of the 120 s that a round takes


def settled(few: Scheduler, change: str) -> None:
    """Let it run for two minutes; then something changes that its price does not know of yet."""
    followed(few, 0.0, 120.0, 50)
    if change == "budget":
        few.budget = 20.0
    if change == "requests":
        rng = np.random.default_rng(3)
        for slot in range(len(few)):
            few.update(slot, now=120.0, request_rate=float(rng.lognormal(-6, 1)))


@pytest.mark.parametrize(("before", "change"), [(20.0, ""), (5.0, "budget"), (20.0, "requests")])
def test_a_page_below_the_price_goes_as_foretold_while_the_price_settles(before: float, change: str) -> None:
    few, slots = scene(before, (10,) * 50, math.inf)
    settled(few, change)
    told = {slot: few.explain(slot, 120.0, TURN) for slot in slots}
    below = [slot for slot in slots if told[slot].held_by == "below the price"]
    picked = followed(few, 120.0, 160.0, 50)
    waits = [picked[slot] - 120.0 for slot in below if slot in picked]
    off = [abs(told[slot].due - picked[slot]) for slot in below if slot in picked]
    assert len(off) > 200
    assert np.median(waits) > 5.0
    assert np.median(off) < 1.0
    assert np.quantile(off, 0.8) < 3.0


def test_intervals_that_a_host_cannot_keep_are_told_as_they_come() -> None:
    few, slots = scene(20.0, (21,), 60.0)
    for slot in slots:
        few.at_least_every(slot, 5.0, 0.0)
    followed(few, 0.0, 60.0, 1)
    told = {slot: few.explain(slot, 60.0, TURN) for slot in slots}
    picked = followed(few, 60.0, 60.0 + 22 * TURN, 1)
    leased = {slot for slot in slots if told[slot].held_by == "leased"}
    assert set(picked) == set(slots)
    assert max(abs(told[slot].due - picked[slot]) for slot in picked if slot not in leased) < 3 * TURN
    assert all(each.due >= 60.0 + (each.ahead - 1) * TURN for each in told.values())
    assert all(each.every == pytest.approx(21 * TURN) for each in told.values())
    few.at_least_every(slots[0], 1000.0, 60.0)
    for slot in slots[1:]:
        few.at_least_every(slot, math.inf, 60.0)
    assert few.explain(slots[0], 60.0, TURN).every == 0.0


def test_the_budget_of_a_host_makes_its_turns_longer() -> None:
    few, slots = scene(20.0, (12, 30, 30), 60.0)
    few.set_host(0, budget=10 / 60)
    followed(few, 0.0, 200.0, 3)
    told = {slot: few.explain(slot, 200.0, TURN) for slot in slots[:12]}
    picked = followed(few, 200.0, 290.0, 3)
    both = [slot for slot in picked if slot in told and math.isfinite(told[slot].due)]
    assert len(both) > 5
    assert all(told[slot].turn == pytest.approx(6.0) for slot in both)
    assert np.median([abs(told[slot].due - picked[slot]) for slot in both]) < 6.0

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.schedule import Greedy, NutchAdaptive, Pick, Plain, Scheduler, Uniform
from afresh.types import Wait
from afresh.value import crawl_value


def scheduler(rule: object = None, budget: float = 10.0, **options: float) -> Plain:
    return Plain(rule or Greedy(), budget=budget, **options)  # type: ignore[arg-type]


def picks(machine: Plain, count: int, *, start: float = 0.0, finish: bool = True) -> list[int]:
    """Slots of the next orders, each finished at once."""
    now, found = start, []
    while len(found) < count:
        pick = machine.next(now)
        if isinstance(pick, Wait):
            assert pick.until > now
            now = pick.until
            continue
        found.append(pick.slot)
        if finish:
            machine.finish(pick.slot, now, crawled=now)
    return found


def test_the_most_valuable_page_goes_first() -> None:
    machine = scheduler()
    machine.add(request_rate=1, change_rate=1, host=0, now=0, age=5)
    best = machine.add(request_rate=9, change_rate=1, host=1, now=0, age=5)
    pick = machine.next(0.0)
    assert isinstance(pick, Pick)
    assert pick.slot == best
    assert pick.value == pytest.approx(float(crawl_value(5.0, 0, change_rate=1.0, request_rate=9.0)))


@given(st.integers(min_value=0, max_value=2**32), st.sampled_from(["greedy", "greedy-cis", "greedy-ncis"]))
def test_every_pick_is_the_argmax(seed: int, policy: str) -> None:
    rng = np.random.default_rng(seed)
    machine = scheduler(Greedy(policy))
    count = 12
    pages = [
        {
            "request_rate": rng.uniform(),
            "change_rate": rng.uniform(),
            "recall": rng.uniform(),
            "false_rate": rng.uniform(0.1, 0.6),
        }
        for _ in range(count)
    ]
    current, signals = np.zeros(count), np.zeros(count, int)
    for index, page in enumerate(pages):
        machine.add(**page, host=index, now=0, age=0)
    assume = {"greedy": "none", "greedy-cis": "perfect", "greedy-ncis": "noisy"}[policy]
    now = 0.0
    for _ in range(25):
        now += 0.1
        if rng.uniform() < 0.5:
            slot = int(rng.integers(count))
            machine.signal(slot, now)
            signals[slot] += 1
        expected = [
            crawl_value(now - current[i], int(signals[i]), **page, assume=assume)  # type: ignore[arg-type]
            for i, page in enumerate(pages)
        ]
        pick = machine.next(now)
        assert isinstance(pick, Pick)
        assert pick.value == pytest.approx(max(expected), rel=1e-9)
        machine.finish(pick.slot, now, crawled=now)
        current[pick.slot], signals[pick.slot] = now, 0


def test_pages_without_a_copy_come_before_equal_pages_with_one() -> None:
    machine = scheduler()
    machine.add(request_rate=1, change_rate=0.1, host=0, now=0, age=3)
    new = machine.add(request_rate=1, change_rate=0.1, host=1, now=0)
    assert picks(machine, 1) == [new]


def test_among_pages_without_a_copy_the_most_wanted_goes_first() -> None:
    machine = scheduler()
    slots = [machine.add(request_rate=rate, change_rate=0.1, host=rate, now=0) for rate in (1, 5, 3)]
    assert picks(machine, 3) == [slots[1], slots[2], slots[0]]


def test_a_leased_page_is_not_handed_out_again_until_the_lease_ends() -> None:
    machine = scheduler(lease=30.0)
    machine.add(request_rate=1, change_rate=1, host=0, now=0)
    assert isinstance(machine.next(0.0), Pick)
    wait = machine.next(1.0)
    assert wait == Wait(30.0, "hosts")
    assert isinstance(machine.next(30.0), Pick)


def test_one_page_of_a_host_at_a_time_and_a_gap_between() -> None:
    machine = scheduler()
    first, second = (machine.add(request_rate=1, change_rate=1, host=7, now=0) for _ in range(2))
    assert picks(machine, 1, finish=False) == [first]
    assert isinstance(machine.next(1.0), Wait)
    machine.finish(first, 2.0, crawled=1.0, gap=5.0)
    assert machine.next(3.0) == Wait(7.0, "hosts")
    pick = machine.next(7.0)
    assert isinstance(pick, Pick)
    assert pick.slot == second


def test_a_failed_page_is_put_off_and_keeps_its_age() -> None:
    machine = scheduler()
    slot = machine.add(request_rate=1, change_rate=1, host=0, now=0, age=10)
    before = machine.explain(slot, 0.0).value
    assert picks(machine, 1, finish=False) == [slot]
    machine.finish(slot, 0.0, crawled=None, put_off=60.0)
    assert machine.explain(slot, 0.0).value == before
    assert machine.explain(slot, 0.0).held_by == "put off"
    assert machine.next(1.0) == Wait(60.0, "hosts")


def test_a_signal_during_the_fetch_counts_for_the_next_crawl() -> None:
    machine = scheduler()
    slot = machine.add(request_rate=1, change_rate=1, recall=0.5, false_rate=0.1, host=0, now=0, age=1, signals=2)
    assert picks(machine, 1, finish=False) == [slot]
    machine.signal(slot, 0.5)
    machine.finish(slot, 1.0, crawled=0.4)
    expected = crawl_value(0.6, 1, change_rate=1.0, recall=0.5, false_rate=0.1)
    assert machine.explain(slot, 1.0).value == pytest.approx(float(expected))


def test_a_removed_page_is_gone_and_its_slot_used_again() -> None:
    machine = scheduler()
    slot = machine.add(request_rate=1, change_rate=1, host=0, now=0)
    assert len(machine) == 1
    machine.remove(slot)
    assert len(machine) == 0
    assert machine.next(0.0) == Wait(math.inf, "no pages")
    assert machine.add(request_rate=1, change_rate=1, host=3, now=0) == slot


def test_explain_says_when_the_value_reaches_the_price() -> None:
    machine = scheduler()
    slot = machine.add(request_rate=1, change_rate=0.01, host=0, now=100, age=0)
    machine.price = 20.0
    explained = machine.explain(slot, 100.0)
    assert explained.held_by == "below the price"
    reached = crawl_value(explained.due - 100, 0, change_rate=0.01)
    assert float(reached) == pytest.approx(20.0, rel=1e-4)
    machine.price = 101.0  # more than the page can ever gain: request_rate / change_rate
    assert math.isinf(machine.explain(slot, 100.0).due)


def test_the_price_is_what_picked_pages_are_worth() -> None:
    rng = np.random.default_rng(1)
    machine = scheduler(budget=100.0)
    for host in range(200):
        machine.add(request_rate=rng.uniform(), change_rate=rng.uniform(0.05, 1), host=host, now=0, age=0)
    picks(machine, 3000)
    pick = machine.next(30.02)
    assert isinstance(pick, Pick)
    assert machine.price == pytest.approx(pick.value, rel=0.5)


def test_uniform_goes_round() -> None:
    machine = scheduler(Uniform())
    slots = [machine.add(request_rate=host, change_rate=1, host=host, now=0) for host in range(5)]
    assert picks(machine, 10) == slots + slots


def test_uniform_takes_pages_without_a_copy_first() -> None:
    machine = scheduler(Uniform())
    machine.add(request_rate=1, change_rate=1, host=0, now=0, age=1000)
    new = machine.add(request_rate=1, change_rate=1, host=1, now=0)
    assert picks(machine, 1) == [new]


def nutch_after(changes: list[bool], *, visit_every: float) -> tuple[NutchAdaptive, float]:
    """A page visited at fixed times with given outcomes; the rule and the time of the last visit."""
    rule = NutchAdaptive(day=1.0)
    machine = scheduler(rule)
    slot = machine.add(request_rate=1, change_rate=1, host=0, now=0)
    now = 0.0
    for changed in changes:
        assert isinstance(machine.next(now), Pick)
        machine.finish(slot, now, crawled=now, changed=changed)
        now += visit_every
    return rule, now - visit_every


def test_nutch_shortens_by_a_fifth_and_lengthens_by_two_fifths() -> None:
    # The first visit has no earlier copy, so the interval stays 30 days; its change time is that visit.
    rule, last = nutch_after([False, True], visit_every=1.0)
    assert rule.due(0, np.zeros(1)[0], price=0, now=last) == pytest.approx(last + 30 * 0.8)
    # Unchanged after 1 day: 30 × 1.4, moved 0.3 of the one day since the change back.
    rule, last = nutch_after([False, False], visit_every=1.0)
    assert rule.due(0, np.zeros(1)[0], price=0, now=last) == pytest.approx(last + 42 - 0.3)


def test_nutch_keeps_within_its_bounds() -> None:
    rule, last = nutch_after([False] * 40, visit_every=1.0)
    assert rule.due(0, np.zeros(1)[0], price=0, now=last) == pytest.approx(last + 90 - 0.3 * 39)
    rule, last = nutch_after([False] + [True] * 60, visit_every=1.0)
    assert rule.due(0, np.zeros(1)[0], price=0, now=last) == pytest.approx(last + 60 / 86400)


def test_nutch_takes_the_longest_due_first_and_spends_what_is_left() -> None:
    machine = scheduler(NutchAdaptive(day=1.0))
    slots = [machine.add(request_rate=1, change_rate=1, host=host, now=host) for host in range(4)]
    found = picks(machine, 8, start=4.0)
    assert found[:4] == slots
    assert sorted(found[4:]) == slots


@pytest.mark.parametrize("kind", ["plain", "live"])
def test_first_crawls_do_not_move_the_price_and_are_waited_for(kind: str) -> None:
    """While pages have no copy they are picked; what copies are refreshed at before and after is another value."""
    machine = Scheduler.live(budget=1.0) if kind == "live" else Plain(Greedy(), budget=1.0)
    copied = [machine.add(request_rate=1.0, change_rate=0.01, host=n, now=0.0, age=50.0) for n in range(4)]
    machine.resume_price(3.0)
    fresh = machine.add(request_rate=1.0, change_rate=0.01, host=9, now=0.0, age=1.0)
    before = machine.explain(fresh, 0.0)
    assert before.first_crawls == 0
    empty = [machine.add(request_rate=1.0, change_rate=0.01, host=10 + n, now=0.0) for n in range(30)]
    explained = machine.explain(fresh, 0.0)
    assert (explained.first_crawls, explained.price) == (30, 3.0)
    assert explained.due == max(before.due, 30.0)
    for tick in range(30):
        pick = machine.next(float(tick))
        assert isinstance(pick, Pick)
        assert pick.slot in empty
        machine.finish(pick.slot, float(tick), crawled=float(tick))
    assert machine.price == 3.0
    pick = machine.next(30.0)
    assert isinstance(pick, Pick)
    assert pick.slot in copied
    assert machine.price == pytest.approx(3.0 + (pick.value - 3.0) / 20)  # what it was counts as learned

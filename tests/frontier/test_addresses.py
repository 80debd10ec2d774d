import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from afresh.frontier import Addresses, AddressLimits, Politeness

HERE = "192.0.2.1"


def test_t5_a_million_names_on_one_address_get_its_one_share() -> None:
    addresses = Addresses(AddressLimits(names=500, at_once=3))
    tracemalloc.start()
    admitted = sum(addresses.admit(f"h{nth}", HERE) for nth in range(1_000_000))
    assert admitted == 500
    assert sum(addresses.start(HERE, now=0.0) for _ in range(1_000)) == 3
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000
    assert len(addresses) == 1
    assert addresses.admit("other", "192.0.2.2")


def test_an_address_rests_after_an_answer() -> None:
    addresses = Addresses(AddressLimits(at_once=2, gap_share=0.5), Politeness(factor=10, shortest_gap=1))
    assert addresses.start(HERE, 0.0)
    addresses.finish(HERE, now=4.0, took=2.0)
    assert addresses.ready(HERE) == 14.0
    assert not addresses.start(HERE, 13.9)
    assert addresses.start(HERE, 14.0)
    assert addresses.start(HERE, 14.0)
    assert not addresses.start(HERE, 20.0)


def test_memory_is_bounded_and_what_is_running_is_not_forgotten() -> None:
    addresses = Addresses(AddressLimits(addresses=1_000, hosts=1_000, at_once=1))
    assert addresses.start("busy", 0.0)
    tracemalloc.start()
    for nth in range(100_000):
        addresses.admit(f"h{nth}", f"10.{nth}")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(addresses) == 1_000
    assert peak < 2e6
    assert not addresses.start("busy", 10.0), "it was forgotten while a request was running"


def test_a_host_is_counted_once_where_it_is_and_no_longer_where_it_was() -> None:
    addresses = Addresses(AddressLimits(names=2, hosts=3))
    assert [addresses.admit(host, HERE) for host in "aabbc"] == [True, True, True, True, False]
    assert addresses.admit("a", "192.0.2.2"), "it moved"
    assert addresses.admit("c", HERE)
    assert not addresses.admit("d", HERE)
    assert [addresses.admit(host, "192.0.2.2") for host in "ad"] == [True, True], "b, found longest ago, is forgotten"
    assert addresses.admit("e", HERE), "and so it is counted no more"
    assert not addresses.admit("b", HERE)


def test_where_a_host_is_is_believed_for_a_minute() -> None:
    addresses = Addresses()
    assert addresses.where("a", 0.0) is None
    assert addresses.found("a", HERE, 0.0) == addresses.where("a", 59.0) == addresses.of("a") == HERE
    assert addresses.where("a", 60.0) is None
    assert addresses.found("a", "127.0.0.1", 60.0) == addresses.where("a", 61.0) == "", "no limits hold on this machine"


STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.floats(0, 3)), max_size=60)


@given(STEPS, st.integers(1, 3))
def test_no_address_ever_has_more_than_its_share(steps: list[tuple[str, bool, float]], at_once: int) -> None:
    addresses, running, rests, now = Addresses(AddressLimits(at_once=at_once)), dict.fromkeys("abc", 0), {}, 0.0
    for address, begin, wait in steps:
        now += wait
        if begin:
            may = running[address] < at_once and now >= rests.get(address, 0.0)
            assert addresses.start(address, now) == may
            running[address] += may
        elif running[address]:
            addresses.finish(address, now=now, took=0.5)
            running[address] -= 1
            rests[address] = max(rests.get(address, 0.0), now + 0.5)

"""What is put off while the event loop is late."""

from afresh.daemon.shedding import LET_THROUGH, Shedding
from afresh.frontier import Lanes, Links, Politeness
from afresh.frontier.effort import MAX_REST, rest_after
from afresh.types import Fetched


def busy() -> Shedding:
    shedding = Shedding()
    for _ in range(100):
        shedding.late(0.05)
        shedding.puts_off(1.0)
    return shedding


def test_a_busy_event_loop_puts_off_what_gains_little_and_nothing_else() -> None:
    shedding = busy()
    assert not shedding.puts_off(1.0)
    assert not shedding.puts_off(0.5)
    assert shedding.puts_off(0.01)


def test_nothing_is_put_off_for_ever() -> None:
    shedding = busy()
    put_off = []
    for _ in range(10 * LET_THROUGH):
        shedding.puts_off(10.0)
        put_off.append(shedding.puts_off(0.001))
    assert put_off.count(False) == 10


def test_pages_that_all_gain_little_are_not_put_off() -> None:
    shedding = busy()
    for _ in range(200):
        shedding.puts_off(0.001)
    assert not any(shedding.puts_off(0.001) for _ in range(50))


def test_nothing_is_put_off_once_the_event_loop_is_in_time_again() -> None:
    shedding = busy()
    for _ in range(100):
        shedding.late(0.0)
    assert not shedding.puts_off(0.001)


def test_a_host_rests_in_proportion_to_what_its_pages_cost_us_and_not_for_ever() -> None:
    def rest(size: int, links: int) -> float:
        return rest_after(Fetched("", 0.0, 0.0, body=bytes(size)), Links(tuple(map(str, range(links)))))

    assert rest(100_000, 50) == 0.0
    assert rest(2_000_000, 0) > 2 * rest(1_000_000, 0) > 0.0
    assert rest(1_000, 5_000) > 10.0
    assert rest(16_000_000, 5_000) == MAX_REST


def test_long_links_do_not_cost_a_host_as_little_as_short_ones() -> None:
    def rest(length: int) -> float:
        return rest_after(Fetched("", 0.0, 0.0), Links(("x" * length,) * 100))

    assert rest(20) == rest(100) == 0.0
    assert rest(2_000) > 5.0


def test_a_rest_for_our_own_sake_holds_beside_those_for_the_hosts() -> None:
    hosts = Lanes(Politeness(factor=0.0, shortest_gap=1.0))
    assert hosts.answered("a.example", failed=False, now=0.0, took=0.0, at_least=7.0) == 7.0
    assert hosts.state("a.example").ready == 7.0
    assert hosts.answered("a.example", failed=False, now=0.0, took=0.0, at_least=0.5) == 1.0

from afresh.frontier import Hosts, Politeness
from afresh.types import HostState, Outcome


def test_a_slow_host_rests_longer() -> None:
    rule = Politeness(factor=10, shortest_gap=1, longest_gap=60)
    assert rule.gap(0.01) == 1
    assert rule.gap(2.0) == 20
    assert rule.gap(100.0) == 60


def test_failures_in_a_row_double_the_rest_up_to_a_bound() -> None:
    hosts = Hosts(Politeness(first_back_off=10, longest_back_off=100))
    rests = [hosts.answered("a", Outcome.FAILED, now=0, took=0.1) for _ in range(6)]
    assert rests == [10, 20, 40, 80, 100, 100]
    assert hosts.state("a") == HostState("a", 100, 6)
    assert hosts.answered("a", Outcome.UNCHANGED, now=0, took=0.1) == 1
    assert hosts.state("a").failures == 0


def test_retry_after_is_obeyed_within_bounds() -> None:
    rule = Politeness(longest_back_off=600)
    assert rule.gap(0.1, retry_after=120) == 120
    assert rule.gap(0.1, retry_after=1e9) == 600
    assert rule.gap(0.1, retry_after=-5) == 1


def test_a_missing_page_is_no_fault_of_the_host() -> None:
    hosts = Hosts()
    hosts.answered("a", Outcome.GONE, now=0, took=0.1)
    assert hosts.state("a").failures == 0


def test_numbers_are_stable_and_states_restored() -> None:
    hosts = Hosts()
    assert [hosts.number(name) for name in ("a", "b", "a")] == [0, 1, 0]
    hosts.restore(HostState("b", 50.0, 2))
    assert hosts.answered("b", Outcome.FAILED, now=0, took=0.1) == 40

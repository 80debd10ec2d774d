from afresh.frontier import Lanes, Politeness, host_failed
from afresh.types import Fetched, HostState, Outcome, Verdict


def test_a_slow_host_rests_longer() -> None:
    rule = Politeness(factor=10, shortest_gap=1, longest_gap=60)
    assert rule.gap(0.01) == 1
    assert rule.gap(2.0) == 20
    assert rule.gap(100.0) == 60


def test_failures_in_a_row_double_the_rest_up_to_a_bound() -> None:
    hosts = Lanes(Politeness(first_back_off=10, longest_back_off=100))
    rests = [hosts.answered("a", failed=True, now=0, took=0.1) for _ in range(6)]
    assert rests == [10, 20, 40, 80, 100, 100]
    state = hosts.state("a")
    assert (state.ready, state.failures, state.since) == (100, 6, 0)
    assert hosts.answered("a", failed=False, now=0, took=0.1) == 1
    assert hosts.state("a").failures == 0


def test_a_host_has_been_resting_since_its_answer_ended_while_we_read_it() -> None:
    hosts = Lanes(Politeness(factor=10, shortest_gap=1))
    assert hosts.answered("a", failed=False, now=10.0, took=0.2, ended=9.5) == 1.5
    assert hosts.state("a").ready == 11.5
    assert hosts.answered("a", failed=False, now=20.0, took=0.2, ended=10.0) == 0.0
    assert hosts.answered("a", failed=False, now=20.0, took=0.2, ended=30.0) == 2.0  # a clock that went backwards
    assert hosts.answered("a", failed=False, now=20.0, took=0.2, ended=10.0, at_least=5.0) == 5.0


def test_retry_after_is_obeyed_within_bounds() -> None:
    rule = Politeness(longest_back_off=600)
    assert rule.gap(0.1, retry_after=120) == 120
    assert rule.gap(0.1, retry_after=1e9) == 600
    assert rule.gap(0.1, retry_after=-5) == 1


def test_a_missing_page_is_no_fault_of_the_host() -> None:
    def blamed(outcome: Outcome, status: int, reason: str = "") -> bool | None:
        return host_failed("a", Fetched("", 0.0, 0.1, status=status), Verdict(outcome, reason=reason).reason)

    assert blamed(Outcome.GONE, 404) is False
    assert blamed(Outcome.FAILED, 403) is False
    assert blamed(Outcome.FAILED, 0, "too_large") is False
    assert blamed(Outcome.FAILED, 0, "timeout") is True
    assert blamed(Outcome.FAILED, 500) is True
    assert blamed(Outcome.BUSY, 429) is True


def test_a_host_that_was_not_asked_is_neither_better_nor_worse() -> None:
    hosts = Lanes(Politeness(first_back_off=10))
    hosts.answered("a", failed=True, now=0, took=0.1)
    assert host_failed("a", Fetched("", 0.0, 0.0, reason="robots")) is None
    hosts.answered("a", failed=None, now=0, took=0.0)
    assert hosts.state("a").failures == 1


def test_numbers_are_stable_and_states_restored() -> None:
    hosts = Lanes()
    assert [hosts.number(name) for name in ("a", "b", "a")] == [0, 1, 0]
    hosts.restore(HostState("b", 50.0, 2))
    assert hosts.answered("b", failed=True, now=0, took=0.1) == 40

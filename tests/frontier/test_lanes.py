import math

from hypothesis import given
from hypothesis import strategies as st

from afresh.engine import Engine
from afresh.estimate import Grid
from afresh.frontier import Lanes, Politeness, host_failed, retry_after
from afresh.schedule import Greedy, Plain
from afresh.types import STORE_FULL, Fetched, HostState, Order, Outcome, Page, Verdict, Wait


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


def test_a_host_is_not_blamed_for_what_another_did_to_which_it_had_pointed() -> None:
    there = Fetched("http://a/", 0.0, 0.1, status=503, retry_after=60.0, location="http://b/", hops=("http://b/",))
    assert (host_failed("a", there), host_failed("b", there)) == (False, True)
    assert (retry_after("a", there), retry_after("b", there)) == (None, 60.0)
    unreachable = Fetched("http://a/", 0.0, 0.1, reason="dns", location="http://b/", hops=("http://b/",))
    assert host_failed("a", unreachable) is False
    forbidden = Fetched("http://a/1", 0.0, 0.1, reason="robots", location="http://a/2", hops=("http://a/2",))
    assert host_failed("a", forbidden) is False, "it was asked for the page that pointed there"


def test_what_there_was_no_room_for_says_nothing_against_the_host_that_sent_it() -> None:
    assert host_failed("a", Fetched("http://a/", 0.0, 0.1, status=200), STORE_FULL) is False
    assert host_failed("a", Fetched("http://a/", 0.0, 0.0, reason=STORE_FULL)) is None, "it was not asked"


def test_a_turn_is_measured_without_the_time_in_which_nobody_asked() -> None:
    lanes = Lanes(Politeness(shortest_gap=0.0))
    lane, order = lanes.lane("a"), Order(0, "http://a/", "a", 0.0)
    lane.ended(0.0, 1.0, refreshed=True)
    lane.began(order, 5.0)  # four seconds late, for reasons of our own
    lane.ended(5.5, 6.5, refreshed=True)
    assert (lanes.turn("a"), lanes.turn("b")) == (1.5, 0.0)


STEP = st.tuples(
    st.sampled_from("ab"),
    st.sampled_from([None, False, True]),
    st.floats(0, 100),  # seconds since the step before
    st.floats(0, 20),  # that the answer took
    st.none() | st.floats(-5, 1e5),  # Retry-After
    st.none() | st.floats(0, 1e4),  # Crawl-delay
)


@given(st.lists(STEP, max_size=30))
def test_no_rest_is_ever_cut_short_and_the_schedule_is_told_of_each(
    steps: list[tuple[str, bool | None, float, float, float | None, float | None]],
) -> None:
    polite = Politeness()
    engine = Engine(scheduler=Plain(Greedy(), budget=1e6), estimator=Grid(), lanes=Lanes(polite))
    lanes, now, ready = engine.lanes, 0.0, {"a": 0.0, "b": 0.0}
    for host in ready:
        engine.add(Page(f"http://{host}/", host), 0.0)
    for host, failed, later, took, asked, delay in steps:
        now += later
        lanes.wants(host, delay)
        lanes.answered(host, failed=failed, now=now, took=took, retry_after=asked)
        least = max(polite.shortest_gap, min(polite.factor * took, polite.longest_gap), min(delay or 0.0, 300.0))
        least = max(least, min(asked or 0.0, polite.longest_back_off), polite.first_back_off if failed else 0.0)
        assert lanes.lane(host).ready >= max(ready[host], now + least)
        ready[host] = lanes.lane(host).ready
    first = engine.next(now)
    assert isinstance(first, Wait if min(ready.values()) > now else Order)
    if isinstance(first, Wait):
        assert first.until == min(ready.values())


def test_a_lane_is_taken_until_its_order_ends_even_if_the_page_is_removed_meanwhile() -> None:
    engine = Engine(scheduler=Plain(Greedy(), budget=10.0), estimator=Grid())
    engine.add(Page("http://a/", "a"), 0.0)
    order = engine.next(1.0)
    assert isinstance(order, Order)
    lane = engine.lanes.lane("a")
    assert lane.order is order
    engine.remove("http://a/")
    assert not lane.is_free
    assert lane.ready == 11.0
    engine.release(order, 30.0)
    assert lane.is_free


def test_an_order_that_is_given_back_lets_its_lane_rest() -> None:
    engine = Engine(scheduler=Plain(Greedy(), budget=10.0), estimator=Grid())
    engine.add(Page("http://a/", "a"), 0.0)
    order = engine.next(1.0)
    assert isinstance(order, Order)
    engine.release(order, 2.0, gap=5.0)
    assert engine.lanes.lane("a").ready == 7.0
    waits = engine.next(2.0)
    assert isinstance(waits, Wait)
    assert waits.until == 7.0


def test_a_page_whose_redirect_leads_to_a_busy_host_waits_itself() -> None:
    engine = Engine(scheduler=Plain(Greedy(), budget=10.0), estimator=Grid())
    engine.add(Page("http://a/", "a"), 0.0)
    order = engine.next(1.0)
    assert isinstance(order, Order)
    there = Fetched("http://a/", 1.0, 0.1, status=503, retry_after=900.0, location="http://b/", hops=("http://b/",))
    engine.finish(order, there, Verdict(Outcome.BUSY, reason="status_503"), 2.0)
    assert engine.lanes.state("a").failures == 0
    assert engine.lanes.lane("a").ready < 4.0
    assert engine.explain("http://a/", 2.0).due >= 62.0


def test_a_clock_that_was_wrong_lets_no_host_rest_for_ever() -> None:
    lanes = Lanes(Politeness(longest_back_off=600.0))
    for ready in (4e9, math.inf, math.nan):
        lanes.restore(HostState(f"h{ready}", ready, 2), now=1000.0)
        assert lanes.lane(f"h{ready}").ready == 1600.0
    lanes.restore(HostState("a", 1100.0, 2), now=1000.0)
    assert lanes.state("a") == HostState("a", 1100.0, 2)

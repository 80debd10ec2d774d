import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.frontier import Robots, RobotsState
from afresh.frontier.permission import HOUR, Access, Patience, Permission, access

PAGE = "https://example.org/page"
OPEN, CLOSED = Robots(), Robots("User-agent: *\nDisallow: /")


def verdict(state: RobotsState, now: float) -> Permission:
    return state.verdict(PAGE, now)


def test_nothing_is_sent_before_robots_was_asked_for() -> None:
    assert RobotsState().due(0.0)
    assert verdict(RobotsState(), 0.0) is Permission.ASK


def test_t4_5xx_then_404_then_200() -> None:
    state = RobotsState().answered(503, now=0.0)
    assert verdict(state, 1.0) is Permission.REFUSED
    assert verdict(state, state.next_try) is Permission.ASK
    state = state.answered(404, now=state.next_try)
    assert verdict(state, state.confirmed + 1) is Permission.ALLOWED
    state = state.answered(200, CLOSED, now=state.next_try)
    assert verdict(state, state.confirmed + 1) is Permission.REFUSED


def test_t4_a_redirect_loop_is_no_file_and_a_dead_host_no_permission() -> None:
    assert verdict(RobotsState().answered(0, now=0.0, reason="too_many_redirects"), 1.0) is Permission.ALLOWED
    for reason in ("timeout", "dns", "refused_address", "truncated", "too_large"):
        assert verdict(RobotsState().answered(200, now=0.0, reason=reason), 1.0) is Permission.REFUSED


def test_t4_a_rule_that_appears_holds_for_pages_already_queued() -> None:
    state = RobotsState().answered(200, OPEN, now=0.0)
    assert verdict(state, 1.0) is Permission.ALLOWED
    assert verdict(state.answered(200, CLOSED, now=2.0), 2.0) is Permission.REFUSED


def test_a_failed_refresh_keeps_the_old_rules_for_a_day_and_no_longer() -> None:
    state = RobotsState().answered(200, Robots("User-agent: *\nDisallow: /private\nCrawl-delay: 3"), now=0.0)
    assert not state.due(11 * HOUR)
    assert state.due(12 * HOUR)
    for _ in range(30):
        state = state.answered(500, now=max(state.next_try, 12 * HOUR))
    assert verdict(state, 24 * HOUR) is Permission.ALLOWED
    assert state.crawl_delay(24 * HOUR) == 3.0
    assert verdict(state, 24 * HOUR + 1) is not Permission.ALLOWED
    assert state.crawl_delay(24 * HOUR + 1) is None


def test_retries_come_ever_later_up_to_a_bound() -> None:
    state, waits = RobotsState(), []
    for _ in range(10):
        state = state.answered(503, now=0.0)
        waits.append(state.next_try)
    assert waits[:3] == [60.0, 120.0, 240.0]
    assert waits[-1] == Patience().longest_retry
    assert state.answered(200, OPEN, now=0.0).failures == 0


def test_not_modified_renews_what_is_there() -> None:
    state = RobotsState().answered(200, CLOSED, now=0.0).answered(304, now=20 * HOUR)
    assert verdict(state, 40 * HOUR) is Permission.REFUSED
    assert not state.due(31 * HOUR)
    assert verdict(RobotsState().answered(304, now=0.0), 1.0) is Permission.REFUSED


@pytest.mark.parametrize(
    ("expected", "statuses"),
    [("rules", (200, 204)), ("free", (301, 400, 401, 403, 404, 410)), ("closed", (429, 500, 503, 599, 0, 101, 999))],
)
def test_every_status_has_its_meaning(expected: str, statuses: tuple[int, ...]) -> None:
    assert {str(access(status)) for status in statuses} == {expected}


STEPS = st.lists(
    st.tuples(st.floats(0, 30 * HOUR), st.sampled_from([200, 304, 404, 429, 500, 0]), st.sampled_from([OPEN, CLOSED])),
    max_size=8,
)


@given(STEPS, st.floats(0, 60 * HOUR))
def test_no_page_is_fetched_on_knowledge_older_than_a_day(steps: list[tuple[float, int, Robots]], later: float) -> None:
    state, now, said, permits = RobotsState(), 0.0, None, False
    for wait, status, rules in steps:
        now += wait
        state = state.answered(status, rules, now=now)
        found = access(status)
        if found is Access.UNCHANGED and said is not None:
            said = now
        elif found in (Access.RULES, Access.FREE):
            said, permits = now, found is Access.FREE or rules is OPEN
    now += later
    fresh = said is not None and now - said <= 24 * HOUR
    assert (verdict(state, now) is Permission.ALLOWED) == (fresh and permits)

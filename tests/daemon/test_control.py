"""Pauses, hours, rules of sites, budgets: by a clock that the test moves."""

import asyncio
from typing import Any

import pytest

from afresh.daemon.control import Control
from afresh.engine import Engine
from afresh.errors import ConfigError
from afresh.estimate import Grid
from afresh.frontier import SiteRule, SiteRules
from afresh.hours import hours
from afresh.schedule import Scheduler
from afresh.store import Memory
from afresh.store.messages import Pauses
from afresh.types import Fetched, Importance, Order, Outcome, Page, Verdict

HOUR = 3600.0
MONDAY = 4 * 24 * HOUR  # 1970 began on a Thursday


class Clock:
    def __init__(self) -> None:
        self.now = MONDAY

    def __call__(self) -> float:
        return self.now


def page(name: str, host: str = "a.example", **said: Any) -> Page:
    return Page(f"https://{host}/{name}", host, **said)


def control_of(pages: list[Page], rules: list[SiteRule], **more: Any) -> tuple[Control, Clock]:
    clock = Clock()
    engine = Engine(scheduler=Scheduler.live(budget=5.0), estimator=Grid(typical_rate=0.01), rules=SiteRules(rules))
    control = Control(engine=engine, store=Memory(), clock=clock, **more)
    control.begin()
    for each in pages:
        engine.add(each, clock.now)
        control.entered(each)
    return control, clock


def held(control: Control, clock: Clock) -> list[bool]:
    return [control.engine.explain(each.url, clock.now).held_by == "paused" for each in control.engine.pages()]


def at(control: Control, clock: Clock, hour: float) -> list[bool]:
    clock.now = MONDAY + hour * HOUR
    control.tick(clock.now)
    return held(control, clock)


def test_pages_are_held_outside_their_hours() -> None:
    rules = [SiteRule("a.example", "/news/*", hours="22:00-06:00")]
    control, clock = control_of([page("news/1"), page("other", hours="mon 08:00-18:00"), page("free")], rules)
    assert at(control, clock, 1) == [False, True, False]
    assert at(control, clock, 7) == [True, True, False]
    assert at(control, clock, 9) == [True, False, False]
    assert at(control, clock, 33) == [True, True, False], "tuesday"


def test_a_page_is_held_while_it_its_host_or_its_hours_are_paused() -> None:
    control, clock = control_of([page("1", paused=True), page("2"), page("3", host="b.example")], [])
    assert held(control, clock) == [True, False, False]
    control.paused(Pauses(hosts=frozenset({"a.example"})))
    assert held(control, clock) == [True, True, False]
    control.paused(Pauses())
    assert held(control, clock) == [True, False, False]
    control.engine.tell(page("1"), clock.now)
    control.entered(page("1"))
    assert held(control, clock) == [False, False, False]


def test_the_budget_follows_the_clock() -> None:
    control, clock = control_of(
        [page("1")], [], budget_hours=[(hours("08:00-18:00"), 1.0), (hours("sat-sun 00:00-24:00"), 0.0)]
    )
    for hour, expected in ((1, 5.0), (8, 1.0), (17.9, 1.0), (18.1, 5.0), (5 * 24 + 7, 0.0)):
        at(control, clock, hour)
        assert control.engine.scheduler.budget == expected


def test_the_most_specific_rule_wins() -> None:
    rules = SiteRules(
        [
            SiteRule("*.example", shortest=60.0, importance=Importance(1.0)),
            SiteRule("a.example", shortest=120.0),
            SiteRule("a.example", "/news/*", shortest=30.0),
            SiteRule("a.example", "/news/today*", longest=600.0),
        ]
    )
    found = [rules.applied(each) for each in (page("news/today/1"), page("x"), page("x", host="b.example"))]
    assert [each.shortest for each in found] == [30.0, 120.0, 60.0]
    assert [each.longest for each in found] == [600.0, None, None]
    assert {each.importance for each in found} == {Importance(1.0)}
    own = rules.applied(page("news/today/1", shortest=1.0, importance=Importance(9.0)))
    assert (own.shortest, own.importance) == (1.0, Importance(9.0)), "what is said of the page itself comes first"
    assert rules.applied(page("x", host="other.test")) == page("x", host="other.test")


def test_other_rules_hold_at_once() -> None:
    control, clock = control_of([page("1"), page("2", host="b.example")], [SiteRule("a.example", budget=0.5)])
    assert [(each["host"], each["budget"]) for each in control.budgets()] == [("a.example", 0.5)]
    new = SiteRules(
        [SiteRule("*.example", budget=2.0, importance=Importance(7.0)), SiteRule("b.example", hours="00:00-00:01")]
    )
    clock.now += HOUR
    asyncio.run(control.set(rules=new, budget=3.0, budget_hours=()))
    assert [(each["host"], each["budget"]) for each in control.budgets()] == [("a.example", 2.0), ("b.example", 2.0)]
    assert control.engine.scheduler.budget == 3.0
    assert control.engine.beliefs(page("1").url, clock.now).request_rate == 7.0
    assert held(control, clock) == [False, True]
    asyncio.run(control.set(rules=SiteRules(), budget=3.0, budget_hours=()))
    assert control.budgets() == []
    assert held(control, clock) == [False, False]


@pytest.mark.parametrize("rule", ["*.example", "*.example:8700", "a.example", "a.example:8700"])
def test_a_path_budget_that_is_taken_up_while_it_runs_holds_at_once_and_is_listed(rule: str) -> None:
    pages = [page(f"wiki/{nth}", host="a.example:8700") for nth in range(20)]
    control, clock = control_of(pages, [])
    crawled_for(control, clock, 60.0)
    new = SiteRules([SiteRule(rule, "/wiki/*", budget=2 / 60)])
    asyncio.run(control.set(rules=new, budget=5.0, budget_hours=()))
    (listed,) = control.budgets()
    assert (listed["host"], listed["path"], listed["waiting"]) == (rule, "/wiki/*", 0)
    assert 6 <= crawled_for(control, clock, 195.0) <= 8
    (listed,) = control.budgets()
    assert (listed["host"], listed["budget"]) == ("a.example:8700", 2 / 60)


def crawled_for(control: Control, clock: Clock, seconds: float) -> int:
    """How many crawls, of fetches that take no time, there are in so long."""
    crawls, end = 0, clock.now + seconds
    while clock.now < end:
        order = control.engine.next(clock.now)
        if isinstance(order, Order):
            crawls += 1
            fetched = Fetched(order.url, clock.now, 0.1, status=200, body=b"x")
            control.engine.finish(order, fetched, Verdict(Outcome.CHANGED), clock.now)
        clock.now += 0.1
    return crawls


@pytest.mark.parametrize(
    ("text", "moments"),
    [
        ("08:00-18:00", [(7.99, False), (8.0, True), (17.99, True), (18.0, False)]),
        ("mon-fri 22:00-06:00", [(21.0, False), (23.0, True), (29.0, True), (31.0, False)]),
        ("fri-mon 00:00-24:00", [(0.0, True), (24.0, False), (4 * 24.0, True)]),
        ("tue 10:00-11:00, mon 12:00-13:00", [(12.5, True), (34.5, True), (10.5, False)]),
        ("08:00-09:00 Europe/Berlin", [(7.5, True), (8.5, False)]),
        ("08:00-09:00 utc", [(8.5, True)]),
    ],
)
def test_hours_are_open_when_they_say(text: str, moments: list[tuple[float, bool]]) -> None:
    said = hours(text)
    assert [said.are_open(MONDAY + hour * HOUR) for hour, _ in moments] == [expected for _, expected in moments]


@pytest.mark.parametrize(
    "text", ["", "8-18", "08:00", "24:00-25:00", "08:00-08:00", "xyz 08:00-09:00", "08:00-09:00,", "9" * 500]
)
def test_what_are_no_hours_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        hours(text)

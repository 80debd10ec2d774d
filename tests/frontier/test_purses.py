"""Budgets of paths: what a rule allows is not exceeded, nothing is lost by it, and operators come first."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest

from afresh.engine import Engine
from afresh.estimate import Grid
from afresh.frontier import Lanes, Politeness, SiteRule, SiteRules
from afresh.schedule import Greedy, Plain, Scheduler, Schedules
from afresh.types import Fetched, Order, Outcome, Page, Verdict

NEWS, ELSEWHERE = "http://a.example/news/", "http://b.example/"
MAKERS: list[Callable[[], Schedules]] = [
    lambda: Scheduler.live(budget=10.0),
    lambda: Plain(Greedy(), budget=10.0),
    lambda: Scheduler(budget=10.0, lease=60.0),
]


@pytest.fixture(params=MAKERS, ids=["exact", "plain", "many"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """Forty pages that want to be crawled all the time, half of them news."""
    rules = SiteRules([SiteRule("a.example", "/news/*", budget=0.5)])
    free = Lanes(Politeness(factor=0, shortest_gap=0, longest_gap=0))
    made = Engine(scheduler=request.param(), estimator=Grid(typical_rate=1.0), lanes=free, rules=rules)
    for nth in range(20):
        made.add(Page(f"{NEWS}{nth}", "a.example"), 0.0)
        made.add(Page(f"{ELSEWHERE}{nth}", "b.example"), 0.0)
    return made


def crawl(engine: Engine, start: float, end: float) -> list[tuple[float, str]]:
    """All that is crawled meanwhile: every crawl finds a change, and takes no time."""
    now, made = start, []
    while now < end:
        decision = engine.next(now)
        if isinstance(decision, Order):
            made.append((now, decision.url))
            fetched = Fetched(decision.url, now, 0.0, 200, b"x")
            engine.finish(
                decision, fetched, Verdict(Outcome.CHANGED if engine.current(decision.url) else Outcome.NEW), now
            )
        else:
            now = min(max(decision.until, now + 1e-3), now + 0.1)
    return made


def test_a_path_gets_its_budget_and_no_more_and_others_get_the_rest(engine: Engine) -> None:
    made = crawl(engine, 0.0, 100.0)
    news = [(time, url) for time, url in made if url.startswith(NEWS)]
    assert 48 <= len(news) <= 51
    assert all(later[0] - earlier[0] >= 1.9 for earlier, later in pairwise(news))
    assert max(Counter(url for _, url in news).values()) <= 4, "they take turns"
    assert len(made) >= 950, "what the path may not spend is spent elsewhere"


def test_a_refresh_goes_ahead_and_counts(engine: Engine) -> None:
    crawl(engine, 0.0, 20.0)
    waiting = next(f"{NEWS}{nth}" for nth in range(20) if engine.explain(f"{NEWS}{nth}", 20.0).held_by == "path budget")
    assert engine.explain(waiting, 20.0).due > 20.0
    engine.crawl_now(waiting, 20.0)
    assert waiting in [url for _, url in crawl(engine, 20.0, 20.5)]
    assert 38 <= len([url for _, url in crawl(engine, 20.5, 100.0) if url.startswith(NEWS)]) <= 41


def test_other_rules_hold_at_once(engine: Engine) -> None:
    crawl(engine, 0.0, 20.0)
    assert engine.purses.summary() == [
        {"host": "a.example", "path": "/news/*", "budget": 0.5, "waiting": pytest.approx(20, abs=2)}
    ]
    engine.obey(SiteRules(), 20.0)
    for page in engine.pages():
        engine.tell(page, 20.0)
    assert len([url for _, url in crawl(engine, 20.0, 30.0) if url.startswith(NEWS)]) > 20
    assert engine.purses.summary() == []


def test_the_most_specific_path_has_the_say() -> None:
    rules = SiteRules([SiteRule("*.example", "/news/*", budget=1.0), SiteRule("a.example", "/news/live/*", budget=2.0)])
    said = [
        rules.path_budget(Page(f"http://a.example{path}", "a.example")) for path in ("/news/live/1", "/news/1", "/")
    ]
    assert [rule and rule.budget for rule in said] == [2.0, 1.0, None]
    assert not rules.have_budgets
    assert rules.budget("a.example") is None

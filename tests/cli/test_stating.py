"""What is said of copies from a store: what the runner said, or would say if it started now."""

import pytest

from afresh.cli.stating import FEW_SIBLINGS, some_states, stated_freshness, stated_of
from afresh.engine import Engine
from afresh.estimate import Activity, Estimator, Grid, Learner
from afresh.frontier import Hosts, Politeness
from afresh.schedule import Few
from afresh.store import Memory, PageState, Record
from afresh.types import Fetched, Outcome, Page, Signal, Verdict, Wait

DAY = 86400.0
NO_GAPS = Politeness(factor=0.0, shortest_gap=0.0, longest_gap=0.0)
PAGES, VISITS = 60, 40
BUDGET = PAGES / DAY


def written(engine: Engine, url: str, page: Page) -> Record:
    state = PageState(
        page,
        engine.beliefs(url, 0.0),
        checked=engine.current(url),
        signals=engine.signals(url),
        crawls=VISITS,
        learned=engine.learned(url),
    )
    return Record(None, state, None)


def run(estimator: Estimator) -> tuple[Engine, Memory, float]:
    """A site whose folder is edited as a whole every third day, crawled for some weeks, and its store."""
    engine = Engine(
        scheduler=Few(budget=BUDGET), estimator=estimator, hosts=Hosts(NO_GAPS), activity=Activity(width=DAY / 16)
    )
    pages = [Page(f"https://example.com/{'docs' if n % 2 else 'blog'}/{n}", "example.com") for n in range(PAGES)]
    for page in pages:
        engine.add(page, 0.0, current=0.0)
    now = 0.0
    for tick in range(PAGES * VISITS):
        now = tick / BUDGET
        order = engine.next(now)
        if not isinstance(order, Wait):
            before = engine.current(order.url)
            assert before is not None
            changed = "docs" in order.url and now // (3 * DAY) > before // (3 * DAY)
            fetched = Fetched(order.url, started=now, took=0.0, status=200)
            engine.finish(order, fetched, Verdict(Outcome.CHANGED if changed else Outcome.UNCHANGED), now)
    engine.observe(Signal(pages[0].url, now, "sitemap"))
    store = Memory()
    store.add(pages)
    store.write([written(engine, page.url, page) for page in pages])
    store.put({"budget": repr(BUDGET), "sources": engine.sources.to_text()})
    if engine.activity is not None:
        store.put({"activity": engine.activity.to_text()})
    return engine, store, now


@pytest.mark.parametrize("kind", [Grid, Learner])
def test_a_store_says_of_copies_what_the_runner_said(kind: type) -> None:
    engine, store, now = run(kind(typical_rate=1 / DAY))
    later = now + 0.7 * DAY
    said = {}
    for _, state in store.states():
        url = state.page.url
        stated = stated_of(store, state, 1e-9, later)
        said[url] = stated.fresh
        assert stated.fresh == pytest.approx(engine.fresh_probability(url, later), abs=0.03)
        assert stated.beliefs is not None
    assert max(said.values()) > min(said.values()) + 0.2
    share = stated_freshness(store, later)
    weights = [engine.beliefs(url, later).request_rate for url in said]
    true = sum(weight * fresh for weight, fresh in zip(weights, said.values(), strict=True)) / sum(weights)
    assert share == pytest.approx(true, abs=0.02)
    # It is over all rates that a page may have, and counts what happened to siblings: beliefs alone say another thing.
    for _, state in store.states():
        assert state.beliefs is not None
        assert state.checked is not None
    plain = [state.beliefs.freshness(later - state.checked, state.signals) for _, state in store.states()]  # type: ignore[union-attr,operator]
    assert max(abs(one - two) for one, two in zip(plain, said.values(), strict=True)) > 0.03


def test_a_page_that_was_never_crawled_has_nothing_said_of_it() -> None:
    store = Memory()
    store.add([Page("https://example.com/", "example.com")])
    ((_, state),) = store.states()
    stated = stated_of(store, state, 0.0, 5.0)
    assert (stated.beliefs, stated.fresh, stated.value, stated.due) == (None, 0.0, None, 5.0)
    assert stated_freshness(store, 5.0) == 0.0
    assert stated_freshness(Memory(), 5.0) is None


def test_of_a_large_store_some_pages_stand_for_all() -> None:
    store = Memory()
    store.add(Page(f"https://example.com/{n}", "example.com") for n in range(3 * FEW_SIBLINGS))
    states = some_states(store, FEW_SIBLINGS)
    assert FEW_SIBLINGS // 2 <= len(states) <= 2 * FEW_SIBLINGS
    numbers = sorted(int(state.page.url.rsplit("/", 1)[1]) for state in states)
    assert numbers[0] < 100
    assert numbers[-1] > 3 * FEW_SIBLINGS - 400


def test_what_a_crawl_would_teach_is_told() -> None:
    engine = Engine(scheduler=Few(budget=BUDGET), estimator=Learner(typical_rate=1 / DAY), hosts=Hosts(NO_GAPS))
    page, store, price = Page("https://example.com/", "example.com", importance=1.0), Memory(), 1e4
    engine.scheduler.price = price  # type: ignore[misc]
    engine.add(page, 0.0, current=0.0)
    assert engine.interest(page.url) == 1.0
    engine.observe(Signal(page.url, 0.1 * DAY, "sitemap"))
    assert engine.interest(page.url) > 1.5
    store.add([page])
    store.write([written(engine, page.url, page)])
    store.put({"budget": repr(BUDGET)})
    ((_, state),) = store.states()
    stated = stated_of(store, state, price, 0.1 * DAY)
    assert stated.teaches == pytest.approx(engine.interest(page.url), rel=0.2)

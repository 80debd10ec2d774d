"""What is said of copies from a store: what the runner said, or would say if it started now."""

import pytest

from afresh.cli.stated import SAMPLE, some_states, stated_freshness, stated_of
from afresh.engine import Engine
from afresh.estimate import Activity, Grid, Learner
from afresh.estimate.activity import SLICES_PER_ROUND
from afresh.estimate.activity_kept import to_text
from afresh.estimate.base import typical_rate
from afresh.frontier import Lanes, Politeness
from afresh.schedule import Scheduler
from afresh.store import Memory, PageState, Record
from afresh.types import Copy, Fetched, Importance, Outcome, Page, Signal, Verdict, Wait

DAY = 86400.0
NO_GAPS = Politeness(factor=0.0, shortest_gap=0.0, longest_gap=0.0)
PAGES, VISITS = 60, 40
NONE_GIVEN: dict[str, Importance] = {}


def written(engine: Engine, url: str, page: Page) -> Record:
    state = PageState(
        page,
        engine.beliefs(url, 0.0),
        fetched=engine.current(url),
        checked=engine.current(url),
        signals=engine.signals(url),
        crawls=VISITS,
        learned=engine.learned(url),
    )
    if state.checked is None:
        return Record(None, state, None)
    return Record(None, state, Copy(url, b"<p>", "text/html", state.checked, state.checked))


def run(
    kind: type[Grid] | type[Learner], day: float = DAY, importance: dict[str, Importance] = NONE_GIVEN
) -> tuple[Engine, Memory, float]:
    """A site of which one folder is edited as a whole every third day, visited once a day, and its store."""
    budget = PAGES / day
    typical = typical_rate(budget, PAGES)
    engine = Engine(
        scheduler=Scheduler.live(budget=budget),
        estimator=kind(typical_rate=typical),
        lanes=Lanes(NO_GAPS),
        activity=Activity(width=1 / (SLICES_PER_ROUND * typical)),
        importance=importance,
    )
    pages = [Page(f"https://example.com/{'docs' if n % 2 else 'blog'}/{n}", "example.com") for n in range(PAGES)]
    for page in pages:
        engine.add(page, 0.0, current=0.0)
    now = 0.0
    for tick in range(PAGES * VISITS):
        now = tick / budget
        order = engine.next(now)
        if not isinstance(order, Wait):
            before = engine.current(order.url)
            assert before is not None
            changed = "docs" in order.url and now // (3 * day) > before // (3 * day)
            fetched = Fetched(order.url, started=now, took=0.0, status=200)
            engine.finish(order, fetched, Verdict(Outcome.CHANGED if changed else Outcome.UNCHANGED), now)
    engine.observe(Signal(pages[0].url, now, "sitemap"))
    store = Memory()
    store.add(pages)
    store.write([written(engine, page.url, page) for page in pages])
    assert engine.activity is not None
    store.put({"budget": repr(budget), "senders": engine.senders.to_text(), "activity": to_text(engine.activity)})
    return engine, store, now


# A day of which a minute would do is as in a demo: the first guess of how often pages change is another one then.
@pytest.mark.parametrize("day", [DAY, 10.0])
@pytest.mark.parametrize("kind", [Grid, Learner])
def test_a_store_says_of_copies_what_the_runner_said(kind: type[Grid] | type[Learner], day: float) -> None:
    engine, store, now = run(kind, day)
    later = now + 0.7 * day
    said = {}
    for _, state in store.states():
        url = state.page.url
        stated = stated_of(store, state, 1e-9, later, NONE_GIVEN)
        said[url] = stated.fresh
        assert stated.fresh == pytest.approx(engine.fresh_probability(url, later), abs=0.03)
        assert stated.beliefs is not None
    assert max(said.values()) > min(said.values()) + 0.2
    share, by_requests = stated_freshness(store, later, NONE_GIVEN) or (0.0, None)
    assert by_requests is False
    weights = [engine.beliefs(url, later).request_rate for url in said]
    true = sum(weight * fresh for weight, fresh in zip(weights, said.values(), strict=True)) / sum(weights)
    assert share == pytest.approx(true, abs=0.02)
    # It is over all rates that a page may have, and counts what happened to siblings: beliefs alone say another thing.
    plain = [state.beliefs.freshness(later - state.checked, state.signals) for _, state in store.states()]  # type: ignore[union-attr,operator]
    assert max(abs(one - two) for one, two in zip(plain, said.values(), strict=True)) > 0.03


def test_importance_from_the_settings_counts() -> None:
    given = {"example.com": Importance(5.0)}
    engine, store, now = run(Learner, importance=given)
    ((_, state),) = list(store.states())[:1]
    stated, without = (stated_of(store, state, 1e-9, now, each) for each in (given, NONE_GIVEN))
    assert stated.beliefs is not None
    assert stated.beliefs.request_rate == 5.0 == engine.beliefs(state.page.url, now).request_rate
    assert stated.value is not None
    assert without.value is not None
    assert stated.value > 2 * without.value


def test_a_page_of_a_large_store_is_taken_to_be_like_those_of_its_host() -> None:
    learner, hosts, each = Learner(typical_rate=1 / DAY), 60, 50
    engine = Engine(scheduler=Scheduler.live(budget=hosts * each / DAY), estimator=learner, lanes=Lanes(NO_GAPS))
    store, pages = Memory(), []
    for host in range(hosts):
        for number in range(each):
            page = Page(f"https://h{host}.org/a/{number}", f"h{host}.org")
            pages.append(page)
            engine.add(page, 0.0, current=0.0)
            for _ in range(1 if number == 0 else 10):
                learner.crawled(len(pages) - 1, elapsed=DAY, signals=0.0, changed=host % 2 > 0)
                learner.glance()
    store.add(pages)
    store.write([written(engine, page.url, page) for page in pages])
    store.put({"budget": repr(hosts * each / DAY)})
    for host, least, most in ((20, 0.9, 1.0), (21, 0.0, 0.3)):
        state = store.state(f"https://h{host}.org/a/0")
        assert state is not None
        assert least < stated_of(store, state, 1e-9, DAY, NONE_GIVEN).fresh < most


def test_a_runner_without_a_budget_has_something_said_of_its_copies_too() -> None:
    _, store, now = run(Learner)
    store.put({"budget": "0.0"})
    ((_, state),) = list(store.states())[:1]
    assert 0 < stated_of(store, state, 0.0, now + 1.0, NONE_GIVEN).fresh <= 1
    assert 0 < (stated_freshness(store, now + 1.0, NONE_GIVEN) or [0])[0] <= 1


def test_a_page_that_was_never_crawled_has_nothing_said_of_it() -> None:
    store = Memory()
    store.add([Page("https://example.com/", "example.com")])
    ((_, state),) = store.states()
    stated = stated_of(store, state, 0.0, 5.0, NONE_GIVEN)
    assert (stated.beliefs, stated.fresh, stated.value, stated.due) == (None, 0.0, None, 5.0)
    assert stated_freshness(store, 5.0, NONE_GIVEN) == (0.0, False)
    assert stated_freshness(Memory(), 5.0, NONE_GIVEN) is None


def test_of_a_large_store_some_pages_stand_for_all() -> None:
    store, most = Memory(), 2_000
    store.add(Page(f"https://example.com/{n}", "example.com") for n in range(3 * most))
    states = some_states(store, most)
    assert most // 2 <= len(states) <= 2 * most < SAMPLE
    numbers = sorted(int(state.page.url.rsplit("/", 1)[1]) for state in states)
    assert numbers[0] < 100
    assert numbers[-1] > 3 * most - 400


def test_how_surely_a_rate_is_known_is_part_of_what_is_stated() -> None:
    engine, store, now = run(Learner)
    ((_, state),) = list(store.states())[:1]
    stated = stated_of(store, state, 1e-9, now, NONE_GIVEN)
    assert stated.beliefs is not None
    assert stated.beliefs.shape == pytest.approx(engine.beliefs(state.page.url, now).shape, rel=0.3)
    assert stated.beliefs.shape < 50.0

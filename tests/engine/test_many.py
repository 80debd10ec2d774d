"""Many pages and much evidence at once: the same as one after the other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.engine import Arrivals, Engine
from afresh.errors import ConfigError
from afresh.estimate import Activity, Learner
from afresh.estimate.online import sweep
from afresh.frontier import Hosts, Politeness, SiteRule, SiteRules
from afresh.schedule import Scheduler
from afresh.types import Crawl, Fetched, Importance, Order, Outcome, Page, Request, Signal, Verdict

NO_GAPS = Politeness(factor=0.0, shortest_gap=0.0, first_back_off=0.0, longest_back_off=0.0)
RULES = SiteRules([SiteRule("b.example", importance=Importance(3.0), shortest=5.0)])


def made(rules: SiteRules | None = None) -> Engine:
    return Engine(
        scheduler=Scheduler(budget=1.0, lease=60.0, exact=True),
        estimator=Learner(typical_rate=0.05),
        activity=Activity(width=5.0),
        hosts=Hosts(NO_GAPS),
        rules=rules,
    )


def page(number: int, *, said: bool = False) -> Page:
    host = "ab"[number % 2] + ".example"
    url = f"https://{host}/{'docs' if number % 3 else 'news'}/{number}.html"
    if not said:
        return Page(url, host)
    kinds = (
        {"importance": Importance(0.5 + number)},
        {"importance": Importance(2.0, times=True)},
        {"popularity": 3.0},
        {"shortest": 2.0, "longest": 50.0},
    )
    return Page(url, host, **kinds[number % 4])


def learned_of(numbers: list[int]) -> list[bytes]:
    """What an engine remembers of pages that it has crawled some times."""
    engine, kept = made(), {}
    for number in numbers:
        engine.add(page(number), 0.5)
    for step in range(1, 60):
        now = float(step)
        engine.observe(Signal(page(numbers[step % len(numbers)]).url, now, "feed"))
        order = engine.next(now)
        if isinstance(order, Order):
            outcome = (Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED)[min(step // 10, 1) + step % 2]
            engine.finish(order, Fetched(order.url, now, 0.0, status=200), Verdict(outcome), now)
            kept[order.url] = engine.learned(order.url)
    return [kept.get(page(number).url, b"") for number in numbers]


def facts(engine: Engine, now: float) -> dict[str, tuple[float, ...]]:
    found = {}
    for each in engine.pages():
        believed = engine.beliefs(each.url, now)
        found[each.url] = (
            believed.change_rate,
            believed.request_rate,
            believed.shape,
            engine.fresh_probability(each.url, now),
            engine.signals(each.url),
            engine.failures(each.url),
            engine.explain(each.url, now).value,
        )
    return found


def run(engine: Engine, begin: float, steps: int) -> list[str]:
    asked = []
    for step in range(steps):
        now = begin + step
        order = engine.next(now)
        if isinstance(order, Order):
            asked.append(order.url)
            verdict = Verdict(Outcome.CHANGED if step % 3 else Outcome.UNCHANGED)
            engine.finish(order, Fetched(order.url, now, 0.0, status=200), verdict, now)
    return asked


@pytest.mark.parametrize("rules", [None, RULES], ids=["no rules", "rules"])
def test_pages_that_come_in_together_are_as_those_that_come_one_by_one(rules: SiteRules | None) -> None:
    numbers = list(range(24))
    learned = learned_of(numbers)
    current = [None if number % 5 == 0 else 50.0 + number for number in numbers]
    pages = [page(number, said=number >= 12) for number in numbers]
    one, many = made(rules), made(rules)
    for number in numbers:
        one.add(pages[number], 100.0, current=current[number], signals=number % 3, learned=learned[number])
    for half in (slice(0, 10), slice(10, 24)):
        some = Arrivals.of(pages[half])
        many.add_many(
            Arrivals(
                urls=some.urls,
                hosts=some.hosts,
                importance=some.importance,
                times=some.times,
                popularity=some.popularity,
                pages=some.pages,
                current=current[half],
                signals=[number % 3 for number in numbers[half]],
                learned=learned[half],
            ),
            100.0,
            settle=False,
        )
    for _ in many.settle(100.0):
        pass
    for engine in (one, many):
        # What groups of pages are like was learned more often where they came one by one: until nothing is new.
        engine.beliefs(pages[0].url, 100.0)
        sweep(engine.estimator.table, 1000)
        for each in pages:
            engine.believe(each.url, 100.0)
    mine, theirs = facts(one, 101.0), facts(many, 101.0)
    assert mine.keys() == theirs.keys()
    for url, expected in mine.items():
        np.testing.assert_allclose(theirs[url], expected, rtol=1e-3, err_msg=url)
    assert run(many, 102.0, 30) == run(one, 102.0, 30)


def test_a_page_that_comes_twice_is_kept_once() -> None:
    engine = made()
    assert engine.add_many([page(1), page(2), page(1)], 0.0).tolist() == [0, 1, -1]
    assert engine.add_many([page(2), page(3)], 0.0).tolist() == [-1, 2]
    assert len(engine) == 3
    assert engine.remove_many([page(1).url, page(9).url]) == 1
    assert len(engine) == 2


def test_columns_that_do_not_fit_are_refused_and_nothing_comes_in() -> None:
    engine = made()
    for wrong in ({"signals": [1]}, {"current": [1e300, 1.0]}, {"failures": [-1, 0]}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            engine.add_many(Arrivals(urls=["http://a/", "http://b/"], hosts=["a", "b"], numbers=[1, 2], **wrong), 0.0)
        assert len(engine) == 0
    assert engine.add_many([page(1)], 0.0).tolist() == [0]


EVIDENCE = st.lists(
    st.tuples(st.integers(0, 11), st.sampled_from(["feed", "ping", "request"]), st.floats(0.0, 20.0)), max_size=40
)


@settings(deadline=None, max_examples=25)
@given(EVIDENCE)
def test_evidence_heard_together_is_as_evidence_heard_one_by_one(given: list[tuple[int, str, float]]) -> None:
    one, many = made(), made()
    for engine in (one, many):
        engine.add_many([page(number) for number in range(10)], 0.0)
        run(engine, 1.0, 12)
    heard = [
        Request(page(number).url, time, 2.0) if kind == "request" else Signal(page(number).url, time, kind)
        for number, kind, time in given
    ]
    heard.sort(key=lambda each: (isinstance(each, Request), each.time))
    ours = sum(one.observe(each, 20.0) for each in heard)
    assert many.observe_many(heard, 20.0) == ours
    for number in range(10):
        for engine in (one, many):
            engine.believe(page(number).url, 20.0)
    mine, theirs = facts(one, 21.0), facts(many, 21.0)
    for url, expected in mine.items():
        np.testing.assert_allclose(theirs[url], expected, rtol=1e-5, err_msg=url)


def test_pages_that_wait_or_are_held_are_not_crawled_until_both_are_over() -> None:
    engine = made()
    slots = engine.add_many([page(0), page(1), page(2)], 0.0, settle=False)
    engine.wait_many(slots[1:])
    for _ in engine.settle(0.0):
        pass
    assert set(run(engine, 1.0, 5)) == {page(0).url}
    assert engine.waiting == 2
    engine.pause(page(1).url)
    engine.let_in(int(slots[1]), 10.0)
    engine.let_in(int(slots[2]), 10.0)
    assert page(1).url not in run(engine, 10.0, 10)
    engine.resume(page(1).url, 30.0)
    assert page(1).url in run(engine, 30.0, 10)
    assert engine.waiting == 0
    engine.remove(page(1).url)
    assert engine.waiting == 0


def test_a_page_that_failed_before_a_restart_stays_put_off() -> None:
    engine = made()
    slots = engine.add_many([page(0)], 0.0)
    last = Crawl(page(0).url, -10.0, Outcome.FAILED, reason="status_500")
    engine.failed_before(int(slots[0]), last, 1, 0.0)
    assert not run(engine, 1.0, 40)
    assert run(engine, 60.0, 5)


def test_what_is_said_of_very_many_pages_is_about_what_a_close_look_at_all_says() -> None:
    engine = made()
    engine.add_many([page(number) for number in range(1_000)], 0.0)
    for number in range(0, 1_000, 7):
        engine.observe(Request(page(number).url, 1.0, float(number % 5)))
    run(engine, 2.0, 600)
    exact, rough = engine.survey(610.0).carry_out(), engine.survey(610.0, 250).carry_out()
    assert exact is not None
    assert rough is not None
    assert (rough.pages, rough.time, rough.by_requests) == (1_000, 610.0, True)
    total = fresh = 0.0
    for each in engine.pages():
        weight = float(engine.heart.columns.pages[engine.names.slot(each.url)]["request_rate"])
        total, fresh = total + weight, fresh + weight * engine.fresh_probability(each.url, 610.0)
    assert exact.share == pytest.approx(fresh / total, rel=0.02)
    assert rough.share == pytest.approx(exact.share, abs=0.02)

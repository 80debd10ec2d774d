"""What a runner counts: rows of figures that go on after a restart, and answers of serving caches, each once."""

from collections.abc import Callable

import pytest

from afresh.daemon.counting import Counting
from afresh.daemon.events import Finished, Ordered, Released, Stored
from afresh.engine import Engine, Stated
from afresh.errors import InputError
from afresh.estimate import Grid
from afresh.schedule import Greedy, Plain
from afresh.store import Memory
from afresh.store.figures import UNFINISHED, Figures, figures_in, figures_kept, name_of, to_text, together
from afresh.types import Crawl, Order, Outcome, Page

URL = "https://e.org/"


@pytest.fixture
def clock() -> list[float]:
    return [1_700_000_000.0]


def counting(store: Memory, clock: list[float]) -> Counting:
    scheduler = Plain(Greedy(), budget=5.0)
    scheduler.price = 2.0
    engine = Engine(scheduler=scheduler, estimator=Grid(typical_rate=1.0))
    engine.add(Page(URL, "e.org"), clock[0])
    made = Counting(engine=engine, store=store, clock=lambda: clock[0])
    made.stated = lambda: Stated(0.9, clock[0], 1, by_requests=False)
    made.begin()
    return made


def crawl(outcome: Outcome, fresh: float | None = None, reason: str = "") -> Finished:
    return Finished(Crawl(URL, 0.0, outcome, reason=reason, fresh_probability=fresh))


def test_rows_hold_what_was_counted_and_go_on_after_a_restart(clock: list[float]) -> None:
    store = Memory()
    one = counting(store, clock)
    for event in (
        Ordered(Order(0, URL, "e.org", 0.0)),
        crawl(Outcome.NEW),
        crawl(Outcome.UNCHANGED, 0.8),
        crawl(Outcome.CHANGED, 0.4),
        crawl(Outcome.FAILED, reason="timeout"),
        Released(Order(0, URL, "e.org", 0.0)),
        Stored((Crawl(URL, 0.0, Outcome.NEW),)),
    ):
        one.hear(event)
    clock[0] += 10.0
    one.tick()
    store.put(one.values())
    clock[0] += 5.0
    again = counting(store, clock)
    again.hear(crawl(Outcome.GONE))
    clock[0] += 10.0
    again.tick()
    store.put(again.values())
    first, second = figures_kept(store, 0.0)
    assert (first.crawls, first.changes, first.failures, first.seconds) == (4, 2, 1, 10.0)
    assert (first.freshness, first.found, first.said) == (0.9, 0.5, pytest.approx(0.6))
    assert (first.budget, first.price, first.pages) == (5.0, 2.0, 1)
    assert (second.crawls, second.changes, second.found) == (1, 1, None)
    summary = one.summary({})
    assert (summary["ordered"], summary["released"], summary["stored"]) == (1, 1, 1)
    assert summary["failures"] == {"timeout": 1}


def test_rows_come_once_a_minute_in_the_long_run(clock: list[float]) -> None:
    made = counting(Memory(), clock)
    for _ in range(7200):
        clock[0] += 1.0
        made.tick()
    store = Memory()
    store.put(made.values())
    gaps = [row.seconds for row in figures_kept(store, 0.0)]
    assert set(gaps) == {60.0}
    assert len(gaps) <= 61  # of this hour alone


def test_an_end_loses_nothing_of_the_minute_that_is_not_over(clock: list[float]) -> None:
    store, told = Memory(), 0
    clock[0] = 3600.0 * 472_222 - 95.0  # within this, an hour ends
    for seconds in 6 * (4, 4, 4, 13):
        one = counting(store, clock)
        for _ in range(seconds):
            clock[0] += 1.0
            one.hear(crawl(Outcome.NEW))
            told += 1
            one.tick()
            store.put(one.latest())  # and then it is killed
            kept = figures_kept(store, 0.0)
            assert sum(row.crawls for row in kept) == told
            assert [row.time for row in kept] == sorted({row.time for row in kept})
        clock[0] += 2.0
    assert sum(row.seconds for row in kept) == told
    assert len(kept) < 20, "ends in one minute share a row"
    before = clock[0]
    clock[0] += 7200.0
    counting(store, clock)
    assert sum(row.crawls for row in figures_kept(store, before - 3600.0)) == told, (
        "read alike while the next run begins"
    )


def test_a_row_that_makes_no_sense_does_not_keep_a_run_from_its_start(clock: list[float]) -> None:
    store = Memory()
    for wrong in ("NaN", "1e999", "1" + "0" * 400, '"x"', "null"):
        store.put({UNFINISHED: f'{{"fields": ["time"], "rows": [[{wrong}]]}}'})
        made = counting(store, clock)
        made.hear(crawl(Outcome.NEW))
        clock[0] += 1.0
        store.put(made.latest())
        assert sum(row.crawls for row in figures_kept(store, 0.0)) == 1


def test_workers_that_go_on_with_what_one_process_left_count_it_once(clock: list[float]) -> None:
    left = Figures(clock[0] - 5.0, crawls=7, seconds=5.0)
    alone = {name_of(clock[0]): to_text([Figures(clock[0] - 10.0, crawls=3, seconds=9.0)]), UNFINISHED: to_text([left])}
    parts = [alone]
    for _ in range(2):
        store = Memory()
        store.put(alone)
        worker = counting(store, clock)
        store.put(worker.latest())
        parts.append({name: store.get(name) for name, _ in store.names("figures ")})
    assert sum(row.crawls for row in together([figures_in(part, 0.0) for part in parts])) == 10


def test_what_caches_tell_is_counted_once_and_bounded(clock: list[float]) -> None:
    made = counting(Memory(), clock)
    tell: Callable[[str, dict[str, object]], object] = lambda who, counts: made.served({"who": who, "counts": counts})  # noqa: E731
    tell("a", {"hit": 5, "miss": 1})
    tell("a", {"hit": 8, "miss": 1})
    tell("b", {"hit": 2})  # another process
    tell("a", {"hit": 3})  # makes no sense: it only grows
    tell("b", {"hit": float("inf"), "x": "y"})
    assert made.summary({})["answers"] == {"hit": 10, "miss": 1}
    for nth in range(100):
        tell(f"c{nth}", {f"way{nth}": 1})
    assert len(made.summary({})["answers"]) == 20
    for wrong in (None, [], {str(nth): 1 for nth in range(99)}):
        with pytest.raises(InputError):
            made.served({"who": "a", "counts": wrong})

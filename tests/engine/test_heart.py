"""The compiled heart against the plain one, which is the specification."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from afresh.engine import Engine
from afresh.engine.columns import Columns, forget_heard, hear_out, leave, mark_ordered, note_heard
from afresh.engine.hearts import CompiledHeart, PlainHeart
from afresh.estimate import Activity, Learner
from afresh.frontier import Hosts, Politeness
from afresh.schedule import Scheduler
from afresh.types import Fetched, Importance, Order, Outcome, Page, Request, Signal, Verdict

NO_GAPS = Politeness(factor=0.0, shortest_gap=0.0, first_back_off=0.0, longest_back_off=0.0)
OUTCOMES = (Outcome.CHANGED, Outcome.UNCHANGED, Outcome.UNCHANGED, Outcome.FAILED, Outcome.GONE)
FOLDERS = ("a.example/docs", "a.example/news", "b.example/docs")


class Interpreted(Learner):
    """The same, but not the class that the compiled heart is for."""


def made(kind: type[Learner], *, together: bool) -> Engine:
    return Engine(
        scheduler=Scheduler(budget=1.0, lease=60.0, exact=True),
        estimator=kind(typical_rate=0.05),
        activity=Activity(width=5.0) if together else None,
        hosts=Hosts(NO_GAPS),
    )


def url_of(number: int) -> str:
    return f"https://{FOLDERS[number % 3]}/{number}"


def close(one: object, other: object) -> None:
    np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5, atol=1e-9)


def compare(one: Engine, other: Engine, now: float) -> None:
    assert sorted(page.url for page in one.pages()) == sorted(page.url for page in other.pages())
    close(one.senders.credit, other.senders.credit)
    close(one.senders.checked, other.senders.checked)
    if one.activity is not None and other.activity is not None:
        close(one.activity.found, other.activity.found)
    for page in one.pages():
        slot = one.names.slot(page.url)
        assert one.heart.signals(slot) == other.heart.signals(slot)
        assert one.failures(page.url) == other.failures(page.url)
        close(one.heart.count(slot), other.heart.count(slot))
        close(one.heart.age(slot, now), other.heart.age(slot, now))
        close(one.fresh_probability(page.url, now), other.fresh_probability(page.url, now))
        mine, theirs = one.beliefs(page.url, now), other.beliefs(page.url, now)
        close(
            (mine.change_rate, mine.recall, mine.request_rate), (theirs.change_rate, theirs.recall, theirs.request_rate)
        )
        close(one.explain(page.url, now).value, other.explain(page.url, now).value)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), together=st.booleans())
def test_both_hearts_learn_believe_and_order_the_same(seed: int, together: bool) -> None:
    rng = np.random.default_rng(seed)
    both = made(Learner, together=together), made(Interpreted, together=together)
    assert type(both[0].heart) is CompiledHeart
    assert type(both[1].heart) is PlainHeart
    for number in range(8):
        for engine in both:
            engine.add(Page(url_of(number), url_of(number).split("/")[2], importance=Importance(1.0 + number)), 0.0)
    now, orders = 0.0, 0
    for _ in range(60):
        now += float(rng.exponential(0.8))
        what, url, sender = int(rng.integers(0, 8)), url_of(int(rng.integers(0, 12))), str(rng.integers(0, 3))
        outcome = OUTCOMES[int(rng.integers(0, len(OUTCOMES)))]
        if what >= 4:
            one, other = (crawled(engine, outcome, sender, now) for engine in both)
            assert one[:2] == other[:2]
            close(one[2], other[2])
            orders += one[0] != ""
        else:
            for engine in both:
                happen(engine, what, url, sender, now)
        compare(*both, now)
    assert orders > 5


def happen(engine: Engine, what: int, url: str, sender: str, now: float) -> None:
    if what == 0 and engine.hear(Signal(url, now, sender)):
        engine.believe(url, now)
    elif what == 1:
        engine.observe(Request(url, now, 2.0), now)
    elif what == 2 and url in engine:
        engine.remove(url)
    elif what == 3:
        engine.add(Page(url, url.split("/")[2]), now, current=now - 3.0, signals=2, failures=1)


def crawled(engine: Engine, outcome: Outcome, sender: str, now: float) -> tuple[str, int, float]:
    """Carry out the next order, if there is one: its page, the signals before it, and what was said of the copy."""
    order = engine.next(now)
    if not isinstance(order, Order):
        return "", 0, 0.0
    if engine.current(order.url) is None:
        outcome = Outcome.NEW
    engine.hear(Signal(order.url, now, sender))  # while it is fetched
    fetched = Fetched(order.url, started=now, took=0.0, status=200)
    crawl = engine.finish(order, fetched, Verdict(outcome), now)
    return order.url, order.signals, crawl.fresh_probability or 0.0


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["hear", "order", "out", "forget"]), st.integers(0, 2))))
def test_what_was_heard_is_counted_by_page_and_kind(steps: list[tuple[int, str, int]]) -> None:
    columns = Columns()
    for slot in range(4):
        columns.enter(slot, host=0, branch=-1, current=0.0, failures=0, flags=0)
    plain: list[dict[int, list[int]]] = [{} for _ in range(4)]
    for slot, what, sender in steps:
        if what == "hear":
            columns.room_for_heard(1)
            note_heard(columns.pages, columns.heard, columns.control, slot, sender, 0, -1, 1)
            plain[slot].setdefault(sender, [0, 0])[0] += 1
        elif what == "order":
            mark_ordered(columns.pages, columns.heard, slot)
            for each in plain[slot].values():
                each[1] = each[0]
        elif what == "out":
            hear_out(columns.pages, columns.heard, columns.control, slot)
            plain[slot] = {kind: [all_ - done, 0] for kind, (all_, done) in plain[slot].items() if all_ > done}
        else:
            forget_heard(columns.pages, columns.heard, columns.control, slot)
            plain[slot] = {}
        for number in range(4):
            entries = columns.entries(number)
            assert {each[0]: [each[3], each[4]] for each in entries} == plain[number]
            assert columns.pages[number]["signals"] == sum(each[0] for each in plain[number].values())


def test_pages_of_a_branch_are_looked_at_in_turn() -> None:
    columns = Columns()
    for slot in range(6):
        columns.enter(slot, host=0, branch=slot % 2, current=0.0, failures=0, flags=0)
    leave(columns.pages, columns.turn, 2)
    seen, at = [], int(columns.turn[0])
    for _ in range(4):
        seen.append(at)
        at = int(columns.pages[at]["following"])
    assert seen == [0, 4, 0, 4]
    leave(columns.pages, columns.turn, 0)
    leave(columns.pages, columns.turn, 4)
    assert columns.turn[0] < 0
    columns.enter(2, host=0, branch=0, current=0.0, failures=0, flags=0)
    assert columns.turn[0] == 2


LIVE = """
from afresh.engine import Engine
from afresh.engine.ahead import compile_ahead
from afresh.estimate import Activity, Learner
from afresh.schedule import Scheduler
from afresh.types import Fetched, Outcome, Page, Request, Signal, Verdict, Wait
from afresh.value.compiled import heard

compile_ahead()
with heard(lambda name: compiled.append(name)):
    compiled, learned = [], b""
    for _ in range(2):
        engine = Engine(scheduler=Scheduler(budget=1.0, lease=60.0), estimator=Learner(), activity=Activity(width=1.0))
        for number in range(3):
            engine.add(Page(f"http://h{number}/", f"h{number}"), 0.0, current=0.0 if learned else None, learned=learned)
        for now in range(1, 20):
            order = engine.next(float(now))
            if not isinstance(order, Wait):
                outcome = (Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED, Outcome.FAILED)[min(now // 4, 3)]
                fetched = Fetched(order.url, started=float(now), took=0.0, status=200)
                engine.finish(order, fetched, Verdict(outcome), now)
            engine.observe(Signal("http://h1/", now, "feed"))
            engine.observe(Request("http://h1/", now, 2))
            engine.fresh_probability("http://h1/", now)
        engine.survey(20.0).carry_out()
        learned = engine.learned("http://h1/")
        engine.remove("http://h1/")
assert not compiled, compiled
"""


def test_a_live_engine_has_nothing_left_to_compile() -> None:
    # In a process of its own: here other tests have compiled all there is.
    done = subprocess.run([sys.executable, "-c", LIVE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("together", [False, True])
def test_a_snapshot_states_what_is_said_of_each_page(together: bool) -> None:
    engine = made(Learner, together=together)
    for number in range(9):
        engine.add(Page(url_of(number), url_of(number).split("/")[2]), 0.0, current=-float(number))
    for number in range(5):
        engine.observe(Signal(url_of(number), 1.0, "feed"))
    said = engine.heart.snapshot(list(range(9)), 4.0)
    expected = [engine.heart.fresh_probability(slot, 4.0) for slot in range(9)]
    for number in range(9):
        engine.observe(Signal(url_of(number), 5.0, "feed"))  # after it was taken
    close(said(), expected)


def test_the_first_signal_of_a_page_that_was_just_added_waits_for_its_turn_and_a_later_one_counts_at_once() -> None:
    engine = made(Learner, together=False)  # a round is 20 seconds
    new, old = url_of(0), url_of(3)
    for url in (new, old):
        engine.add(Page(url, url.split("/")[2]), 0.0, current=0.0)
    before = engine.explain(new, 4.0).value
    assert engine.observe(Signal(new, 4.0, "feed"))
    assert engine.explain(new, 4.0).value == before
    before = engine.explain(old, 6.0).value
    assert engine.observe(Signal(old, 6.0, "feed"))
    assert engine.explain(old, 6.0).value > before

    before = engine.explain(new, 6.0).value
    engine.crawl_now(old, 6.0)
    order = engine.next(6.0)
    assert isinstance(order, Order)
    assert order.url == old
    engine.finish(order, Fetched(old, started=6.0, took=0.0, status=200), Verdict(Outcome.UNCHANGED), 6.0)
    assert engine.explain(new, 6.0).value > before  # it was looked at in turn

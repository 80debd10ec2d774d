import math

import pytest

from afresh.engine import Engine
from afresh.estimate import Activity, Grid, Learner
from afresh.frontier import Lanes, Politeness
from afresh.schedule import Greedy, Plain, Scheduler
from afresh.types import (
    STORE_FULL,
    Crawl,
    Fetched,
    Importance,
    Order,
    Outcome,
    Page,
    Request,
    Signal,
    Verdict,
    Wait,
)
from afresh.value import crawl_value

NO_GAPS = Politeness(factor=0, shortest_gap=0, longest_gap=0)


MACHINES = {
    "plain": lambda budget: Plain(Greedy(), budget=budget),
    "live": lambda budget: Scheduler.live(budget=budget),
    "many": lambda budget: Scheduler(budget=budget, lease=120.0),
}
kind = "plain"


@pytest.fixture(autouse=True, params=list(MACHINES))
def every_scheduler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "kind", request.param)


def engine(budget: float = 1.0, typical_rate: float = 0.01, politeness: Politeness = NO_GAPS) -> Engine:
    return Engine(
        scheduler=MACHINES[kind](budget),
        estimator=Grid(typical_rate=typical_rate),
        lanes=Lanes(politeness),
    )


def page(name: str, **fields: Importance) -> Page:
    return Page(f"http://{name}.example/", f"{name}.example", **fields)


def order_at(machine: Engine, now: float) -> Order:
    order = machine.next(now)
    assert isinstance(order, Order)
    return order


def carry_out(machine: Engine, order: Order, outcome: Outcome, now: float, **fields: Importance) -> Crawl:
    fetched = Fetched(order.url, started=now, took=0.01, status=200, **fields)  # type: ignore[arg-type]
    return machine.finish(order, fetched, Verdict(outcome), now)


def test_the_first_crawl_is_new_and_teaches_no_interval() -> None:
    machine = engine()
    machine.add(page("a"), 0.0)
    assert machine.fresh_probability("http://a.example/", 0.0) == 0.0
    crawl = carry_out(machine, order_at(machine, 0.0), Outcome.NEW, 5.0)
    assert (crawl.elapsed, crawl.signals, crawl.fresh_probability) == (None, 0, None)
    assert machine.beliefs("http://a.example/", 5.0).observations == 0
    assert machine.fresh_probability("http://a.example/", 5.0) == 1.0


def test_every_check_teaches() -> None:
    machine = engine()
    machine.add(page("a"), 0.0, current=0.0)
    before = machine.beliefs("http://a.example/", 10.0).change_rate
    crawl = carry_out(machine, order_at(machine, 10.0), Outcome.CHANGED, 10.0)
    assert crawl.elapsed == 10.0
    assert 0 < (crawl.fresh_probability or 0) < 1
    assert machine.beliefs("http://a.example/", 10.0).change_rate > before
    for step in range(1, 60):
        carry_out(machine, order_at(machine, 10.0 + 50 * step), Outcome.UNCHANGED, 10.0 + 50 * step)
    assert machine.beliefs("http://a.example/", 3000.0).change_rate < before


def test_every_check_tests_what_was_said() -> None:
    machine = engine()
    machine.add(page("a"), 0.0)
    carry_out(machine, order_at(machine, 1.0), Outcome.NEW, 1.0)
    assert machine.calibration.statements == 0  # of a page without a copy nothing was said
    crawl = carry_out(machine, order_at(machine, 50.0), Outcome.CHANGED, 50.0)
    (row,) = machine.calibration.rows()
    assert row.stated == pytest.approx(crawl.fresh_probability)
    assert row.fresh == 0
    carry_out(machine, order_at(machine, 60.0), Outcome.FAILED, 60.0)
    assert machine.calibration.statements == pytest.approx(1)  # a failure tells nothing


def test_a_popular_page_is_crawled_more_often() -> None:
    machine = engine(budget=1.0)
    for name in "abcde":
        machine.add(page(name), 0.0, current=0.0)
    machine.observe(Request("http://a.example/", 1.0, 500))
    seen = []
    for step in range(100):
        now = 2.0 + step
        order = order_at(machine, now)
        seen.append(order.url)
        carry_out(machine, order, Outcome.CHANGED, now)
        machine.observe(Request("http://a.example/", now, 50))
    counts = {url: seen.count(url) for url in set(seen)}
    assert max(counts, key=lambda url: counts[url]) == "http://a.example/"


def test_a_signal_makes_a_page_look_stale() -> None:
    machine = engine()
    machine.add(page("a"), 0.0, current=0.0)
    for step in range(1, 40):  # signals that always mean a change, and silence that means none
        now = 10.0 * step
        told = step % 3 > 0
        assert not told or machine.observe(Signal("http://a.example/", now - 1))
        carry_out(machine, order_at(machine, now), Outcome.CHANGED if told else Outcome.UNCHANGED, now)
    quiet = machine.fresh_probability("http://a.example/", 400.0)
    machine.observe(Signal("http://a.example/", 400.0))
    assert machine.signals("http://a.example/") == 1
    assert machine.fresh_probability("http://a.example/", 400.0) < 0.3 < quiet


def test_evidence_on_unknown_pages_is_refused() -> None:
    assert not engine().observe(Signal("http://nowhere.example/", 0.0))


def test_a_failure_is_put_off_longer_each_time_and_keeps_the_copy_age() -> None:
    machine = engine()
    machine.add(page("a"), 0.0, current=0.0)
    now, waits = 100.0, []
    for _ in range(4):
        carry_out(machine, order_at(machine, now), Outcome.FAILED, now)
        wait = machine.next(now + 1.0)
        assert isinstance(wait, Wait)
        waits.append(wait.until - now)
        now = wait.until
    assert waits == pytest.approx([60, 120, 240, 480])
    assert machine.failures("http://a.example/") == 4
    crawl = carry_out(machine, order_at(machine, now), Outcome.UNCHANGED, now)
    assert crawl.elapsed == now
    assert machine.failures("http://a.example/") == 0


def test_a_busy_host_rests_as_it_asks() -> None:
    machine = engine(politeness=Politeness(longest_back_off=600))
    machine.add(page("a"), 0.0)
    machine.add(Page("http://a.example/2", "a.example"), 0.0)
    carry_out(machine, order_at(machine, 0.0), Outcome.BUSY, 0.0, retry_after=120.0)
    wait = machine.next(1.0)
    assert isinstance(wait, Wait)
    assert wait.until == 120.0
    assert machine.lanes.state("a.example").ready == 120.0


def test_a_page_on_a_host_that_cannot_be_reached_waits_for_its_host_alone() -> None:
    machine, now = engine(), 10.0
    machine.add(page("a"), 0.0)
    for _ in range(30):
        order = order_at(machine, now)
        fetched = Fetched(order.url, now, 0.0, reason="dns")
        machine.finish(order, fetched, Verdict(Outcome.FAILED, reason="dns"), now)
        wait = machine.next(now + 1.5)
        assert isinstance(wait, Wait)
        assert wait.until - now <= 3600.0, "a week of failures must not put the page off for another"
        now = wait.until
    state = machine.lanes.state(page("a").host)
    assert (state.failures, state.reason, state.since) == (30, "dns", 10.0)
    assert 0.5 / 3600 < state.rate(now) < 3 / 3600


def test_a_page_that_is_gone_is_checked_after_an_hour_and_then_twice_as_late_each_time() -> None:
    machine, now = engine(), 10.0
    machine.add(page("a"), 0.0, current=0.0)
    waits = []
    for outcome in (Outcome.FAILED, Outcome.FAILED, Outcome.GONE, Outcome.GONE, Outcome.GONE):
        carry_out(machine, order_at(machine, now), outcome, now)
        wait = machine.next(now + 1.5)
        assert isinstance(wait, Wait)
        waits.append(wait.until - now)
        now = wait.until
    assert waits == [60.0, 120.0, 3600.0, 7200.0, 14400.0], "failures of other kinds do not count"


def test_a_gone_page_is_left_alone_for_long() -> None:
    machine = engine()
    machine.add(page("a"), 0.0, current=0.0)
    carry_out(machine, order_at(machine, 10.0), Outcome.GONE, 10.0)
    wait = machine.next(11.0)
    assert isinstance(wait, Wait)
    assert wait.until == 10.0 + 3600


def test_a_gone_page_counts_as_not_fresh_until_it_is_back() -> None:
    machine = engine()
    for name in ("a", "b"):
        machine.add(page(name), 0.0, current=0.0)
    order = order_at(machine, 10.0)
    other = next(f"http://{name}.example/" for name in ("a", "b") if name not in order.url[7:8])
    carry_out(machine, order, Outcome.GONE, 10.0)
    assert machine.is_gone(order.url)
    assert not machine.is_gone(other)
    assert machine.survey(10.1).carry_out().share == pytest.approx(machine.fresh_probability(other, 10.1) / 2)
    back = order_at(machine, 10.0 + 30 * 86400.0)
    if back.url != order.url:
        carry_out(machine, back, Outcome.UNCHANGED, back.time)
        back = order_at(machine, back.time + 2.0)
    carry_out(machine, back, Outcome.UNCHANGED, back.time)
    assert back.url == order.url
    assert not machine.is_gone(order.url)
    said = [machine.fresh_probability(url, back.time) for url in (order.url, other)]
    assert machine.survey(back.time).carry_out().share == pytest.approx(sum(said) / 2) != max(said) / 2


def test_a_copy_for_whose_successor_there_was_no_room_is_not_said_to_be_fresh() -> None:
    machine, url = engine(), "http://a.example/"
    machine.add(page("a"), 0.0, current=0.0)
    order = order_at(machine, 10.0)
    fetched = Fetched(order.url, started=10.0, took=0.01, status=200, body=b"newer")
    machine.finish(order, fetched, Verdict(Outcome.REFUSED, reason=STORE_FULL), 10.0)
    assert machine.fresh_probability(url, 10.1) == 0.0
    assert machine.survey(10.1).carry_out().share == 0.0
    order = order_at(machine, 10.0 + 30 * 86400.0)
    carry_out(machine, order, Outcome.CHANGED, order.time)
    assert machine.fresh_probability(url, order.time) > 0.9


def test_a_released_order_is_as_if_never_given() -> None:
    machine = engine()
    machine.add(page("a"), 0.0)
    order = order_at(machine, 0.0)
    assert isinstance(machine.next(1.0), Wait)
    machine.release(order, 1.0)
    assert order_at(machine, 1.0).url == order.url
    assert machine.failures(order.url) == 0


def test_a_restart_goes_on_where_it_was() -> None:
    first = engine()
    first.add(page("a"), 0.0, current=0.0)
    for step in range(1, 30):
        carry_out(first, order_at(first, 20.0 * step), Outcome.CHANGED if step % 3 else Outcome.UNCHANGED, 20.0 * step)
    url = "http://a.example/"
    second = engine()
    second.add(page("a"), 600.0, current=580.0, learned=first.learned(url))
    assert second.beliefs(url, 600.0).change_rate == pytest.approx(first.beliefs(url, 600.0).change_rate, rel=1e-3)
    assert second.fresh_probability(url, 600.0) == pytest.approx(first.fresh_probability(url, 600.0), rel=1e-3)


def test_importance_given_by_the_operator_stays() -> None:
    machine = engine()
    machine.add(page("a", importance=Importance(7.0)), 0.0)
    machine.observe(Request("http://a.example/", 1.0, 1000))
    assert machine.beliefs("http://a.example/", 2.0).request_rate == 7.0


def test_removed_pages_are_forgotten() -> None:
    machine = engine()
    machine.add(page("a"), 0.0)
    machine.remove("http://a.example/")
    assert len(machine) == 0
    assert "http://a.example/" not in machine
    wait = machine.next(0.0)
    assert isinstance(wait, Wait)
    assert math.isinf(wait.until)


def test_a_late_finish_changes_nothing() -> None:
    """The lease ended, the page went out again, and then both came back."""
    machine = Engine(scheduler=Plain(Greedy(), budget=1.0, lease=10.0), estimator=Grid(), lanes=Lanes(NO_GAPS))
    machine.add(page("a"), 0.0, current=0.0, signals=2)
    late = order_at(machine, 5.0)
    second = order_at(machine, 20.0)
    carry_out(machine, second, Outcome.CHANGED, 21.0)
    learned = machine.beliefs(second.url, 22.0)
    crawl = carry_out(machine, late, Outcome.CHANGED, 22.0)
    assert crawl.outcome is Outcome.CHANGED
    assert machine.signals(second.url) == 0
    assert machine.beliefs(second.url, 22.0) == learned
    machine.release(second, 23.0)
    machine.remove(second.url)
    carry_out(machine, second, Outcome.CHANGED, 24.0)
    assert len(machine) == 0


def test_a_change_makes_the_siblings_of_a_page_urgent() -> None:
    machine = Engine(
        scheduler=MACHINES[kind](1.0),
        estimator=Learner(typical_rate=1e-4),
        lanes=Lanes(NO_GAPS),
        activity=Activity(width=100.0),
    )
    names = [f"http://a.example/docs/{i}" for i in range(12)] + ["http://b.example/docs/other"]
    for url in names:
        machine.add(Page(url, url.split("/")[2]), 0.0, current=0.0)
    before = {url: machine.explain(url, 1000.0).value for url in names}
    for step in range(4):  # whichever pages come first, they have all changed
        order = order_at(machine, 1000.0 + step)
        carry_out(machine, order, Outcome.CHANGED if "a.example" in order.url else Outcome.UNCHANGED, 1000.0 + step)
    siblings = [url for url in names[:-1] if machine.beliefs(url, 1004.0).observations == 0]
    assert len(siblings) >= 8
    for url in siblings:
        assert machine.fresh_probability(url, 1004.0) < machine.fresh_probability(names[-1], 1004.0)
    risen = [url for url in siblings if machine.explain(url, 1004.0).value > 1.5 * before[url]]
    assert len(risen) >= 8
    machine.remove(siblings[0])
    machine.add(Page(siblings[0], "a.example"), 1005.0)


def test_a_signal_takes_as_much_from_a_copy_where_siblings_count() -> None:
    alone, together = engine(), engine()
    together.activity = Activity(width=100.0)
    shares = []
    for machine in (alone, together):
        machine.add(page("a"), 0.0, current=0.0)
        before = machine.fresh_probability("http://a.example/", 500.0)
        assert machine.observe(Signal("http://a.example/", 400.0))
        shares.append(machine.fresh_probability("http://a.example/", 500.0) / before)
    assert shares[0] < 0.9
    assert shares[1] == pytest.approx(shares[0])


def test_age_that_is_told_counts_like_age_that_passed() -> None:
    told, passed = engine(), engine()
    told.add(page("a"), 0.0, current=0.0)
    passed.add(page("a"), 0.0, current=-500.0)
    told.scheduler.update(0, now=0.0, age=500.0)
    assert told.explain("http://a.example/", 10.0).value == pytest.approx(
        passed.explain("http://a.example/", 10.0).value, rel=1e-6
    )


def hear_and_crawl(machine: Engine, url: str, step: int, *, sender: str, outcome: Outcome) -> None:
    now = 100.0 * step
    machine.observe(Signal(url, now - 1.0, sender))
    carry_out(machine, order_at(machine, now), outcome, now)


def test_signals_of_a_good_sender_pull_a_page_forward_and_those_of_a_worthless_one_do_not() -> None:
    machine = engine(typical_rate=0.001)
    url = "http://a.example/"
    machine.add(page("a"), 0.0, current=0.0)
    for step in range(1, 161):
        good = step % 2 == 0
        outcome = Outcome.CHANGED if good else Outcome.UNCHANGED
        hear_and_crawl(machine, url, step, sender="feed" if good else "sitemap", outcome=outcome)
    quiet, before = machine.fresh_probability(url, 16010.0), machine.explain(url, 16010.0).value
    machine.observe(Signal(url, 16010.0, "sitemap"))
    assert machine.fresh_probability(url, 16010.0) > 0.9 * quiet
    assert machine.explain(url, 16010.0).value < 3 * before + 0.1
    machine.observe(Signal(url, 16010.0, "feed"))
    assert machine.fresh_probability(url, 16010.0) < 0.4
    assert machine.explain(url, 16010.0).value > 10 * before
    # A host that was never heard of begins with what the senders are worth elsewhere.
    machine.add(page("b"), 16010.0, current=16010.0)
    machine.observe(Signal("http://b.example/", 16011.0, "sitemap"))
    assert machine.fresh_probability("http://b.example/", 16011.0) > 0.8


def test_late_signals_are_recognised() -> None:
    machine = engine(typical_rate=0.001)
    url = "http://a.example/"
    machine.add(page("a"), 0.0, current=0.0)
    for step in range(1, 200):  # each change is announced before it is fetched, and again a quarter of a minute after
        now = 300.0 * step
        changed = step % 2 == 0
        if changed:
            machine.observe(Signal(url, now - 10.0, "feed"))
        carry_out(machine, order_at(machine, now), Outcome.CHANGED if changed else Outcome.UNCHANGED, now)
        if changed:
            machine.observe(Signal(url, now + 15.0, "feed"))
    assert 16.0 <= machine.senders.delay_of("feed") <= 32.0
    assert machine.senders.weight("a.example", machine.senders.number("feed"), 3) < 0.2
    assert machine.senders.delay_of("never heard of") == 0.0


def test_signals_that_arrive_while_a_page_is_fetched_stay_for_the_next_crawl() -> None:
    machine = engine()
    url = "http://a.example/"
    machine.add(page("a"), 0.0, current=0.0, signals=2)
    assert machine.signals(url) == 2
    order = order_at(machine, 50.0)
    machine.observe(Signal(url, 50.5, "feed"))
    assert order.signals == 2
    carry_out(machine, order, Outcome.UNCHANGED, 51.0)
    assert machine.signals(url) == 1
    assert machine.fresh_probability(url, 51.0) < 1.0


def test_signals_that_arrive_while_somebody_else_runs_a_costly_thing_are_not_about_what_that_found() -> None:
    machine = engine()
    url = "http://a.example/"
    machine.add(page("a"), 0.0, current=0.0)
    for heard in (20.0, 41.0, 42.0):
        assert machine.observe(Signal(url, heard, "feed"))
    fetched = Fetched(url, started=40.0, took=1.5, status=200, body=b"new")
    crawl = machine.receive(fetched, Verdict(Outcome.CHANGED), 43.0)
    assert crawl is not None
    assert crawl.signals == 1
    assert machine.signals(url) == 2
    assert machine.fresh_probability(url, 43.0) < 0.9


def test_what_is_said_of_all_pages_is_the_weighted_mean_of_what_is_said_of_each() -> None:
    machine = engine()
    assert machine.survey(0.0).carry_out() is None
    for number, name in enumerate("abcd"):
        machine.add(page(name, importance=Importance(1.0 + number)), 0.0, current=-50.0 * number)
    machine.add(page("e", importance=Importance(5.0)), 0.0)  # without a copy
    machine.remove("http://b.example/")
    left = {"a": 1.0, "c": 3.0, "d": 4.0, "e": 5.0}
    wanted = sum(rate * machine.fresh_probability(f"http://{name}.example/", 10.0) for name, rate in left.items())
    stated = machine.survey(10.0).carry_out()
    assert stated is not None
    assert stated.share == pytest.approx(wanted / sum(left.values()))
    assert (stated.time, stated.pages, stated.by_requests) == (10.0, 4, True)


@pytest.mark.parametrize("together", [False, True])
def test_a_survey_by_the_compiled_pass_states_what_is_said_of_each_copy(together: bool) -> None:
    """Signals, siblings and pages without a copy included; and it is of one moment, whoever is crawled meanwhile."""
    machine = Engine(
        scheduler=MACHINES[kind](2.0),
        estimator=Learner(typical_rate=0.05),
        lanes=Lanes(NO_GAPS),
        activity=Activity(width=2.0) if together else None,
    )
    pages = [Page(f"http://{n % 3}.example/{n % 4}/{n}", f"{n % 3}.example") for n in range(40)]
    for each in pages:
        machine.add(each, 0.0)
    for step in range(1, 150):
        now = step / 2.0
        if step % 3 == 0:
            machine.observe(Signal(pages[step % 40].url, now, "feed"))
        order = machine.next(now)
        if isinstance(order, Order):
            carry_out(machine, order, Outcome.CHANGED if step // 16 % 2 else Outcome.UNCHANGED, now)
    for each in pages[::7]:
        machine.observe(Signal(each.url, 80.0, "feed"))
    said = [machine.fresh_probability(each.url, 80.0) for each in pages]
    assert max(said) - min(said) > 0.3
    survey = machine.survey(80.0)
    order = machine.next(80.0)
    assert isinstance(order, Order)
    carry_out(machine, order, Outcome.UNCHANGED, 80.0)
    stated = survey.carry_out()
    assert stated is not None
    assert stated.share == pytest.approx(sum(said) / 40, abs=1e-6)
    assert not stated.by_requests
    some = machine.survey(80.0, most=20).carry_out()
    assert some is not None
    assert some.pages == 40
    assert some.share == pytest.approx(stated.share, abs=0.2)


def test_a_crawl_is_worth_its_value_over_all_that_is_believed() -> None:
    estimator = Learner(typical_rate=0.05)
    machine = Engine(scheduler=MACHINES[kind](2.0), estimator=estimator, lanes=Lanes(NO_GAPS))
    for number in range(20):
        machine.add(page(str(number), importance=Importance(0.01 * (number + 1))), 0.0)
    for step in range(1, 120):
        now = step / 2.0
        machine.observe(Signal(page(str(step * 7 % 20)).url, now, "feed"))
        order = machine.next(now)
        if isinstance(order, Order):
            carry_out(machine, order, Outcome.CHANGED if step % 3 else Outcome.UNCHANGED, now)
    for number in range(20):
        machine.believe(page(str(number)).url, 60.0)
    shapes = set()
    for number in range(20):
        url = page(str(number)).url
        believed, current = machine.beliefs(url, 60.0), machine.current(url)
        assert current is not None
        signals = machine.heart.count(machine.names.slot(url))  # as a number of good ones
        assert (signals > 0) == (machine.signals(url) > 0)
        value = crawl_value(
            70.0 - current,
            signals,
            change_rate=believed.change_rate,
            recall=believed.recall,
            false_rate=believed.false_rate,
            shape=believed.shape,
            request_rate=believed.request_rate,
        )
        assert machine.explain(url, 70.0).value == pytest.approx(float(value), rel=1e-4)
        shapes.add(believed.shape)
    assert max(shapes) < 50.0
    assert len(shapes) > 5


@pytest.mark.parametrize("folders", [1, 3])
def test_what_happens_on_the_only_branch_does_not_change_the_order(folders: int) -> None:
    day, budget = 86400.0, 30 / 86400.0
    orders = []
    for activity in (None, Activity(width=day / 16)):
        machine = Engine(
            scheduler=Plain(Greedy(), budget=budget),
            estimator=Grid(typical_rate=1 / day),
            lanes=Lanes(NO_GAPS),
            activity=activity,
        )
        for number in range(30):
            url = f"https://e.org/{number % folders}/{number}"
            machine.add(Page(url, "e.org", importance=Importance(1.0 + number)), 0.0, current=0.0)
        picked = []
        for tick in range(600):
            now = tick / budget
            order = machine.next(now)
            if not isinstance(order, Wait):
                picked.append(order.url)
                before = machine.current(order.url) or 0.0
                swept = "/0/" in order.url and now // (5 * day) > before // (5 * day)
                verdict = Verdict(Outcome.CHANGED if swept else Outcome.UNCHANGED)
                machine.finish(order, Fetched(order.url, started=now, took=0.0, status=200), verdict, now)
        orders.append(picked)
    assert (orders[0] == orders[1]) == (folders == 1)


def test_no_host_is_asked_sooner_because_we_kept_its_answer_waiting() -> None:
    """Seconds of our own are neither the host's, to be multiplied, nor a part of its rest."""
    machine = engine(politeness=Politeness(factor=10.0, shortest_gap=1.0))
    machine.add(page("a"), 0.0)
    order = order_at(machine, 0.0)
    fetched = Fetched(order.url, started=0.0, took=0.01, waited=2.0, status=200)
    machine.finish(order, fetched, Verdict(Outcome.NEW), 2.5)
    assert machine.lanes.state("a.example").ready == pytest.approx(3.01)

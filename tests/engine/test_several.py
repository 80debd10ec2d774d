"""Purses side by side: each spends its own budget; and budgets of what refreshes cost, which is learned."""

import numpy as np
import pytest

from afresh.engine import Costs, Engine, Engines, KindCosts
from afresh.engine.ahead import compile_ahead
from afresh.estimate import Learner
from afresh.estimate.kinds import pack
from afresh.frontier import Lanes, Politeness
from afresh.schedule import Scheduler
from afresh.types import Answer, Fetched, Order, Outcome, Page, Request, Signal, Spent, Validators, Verdict, Wait

NO_REST = Politeness(factor=0.0, shortest_gap=0.0)


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    compile_ahead()


def engine(budget: float, purse: str = "crawl", *, costs: Costs | None = None, lanes: Lanes | None = None) -> Engine:
    crawls = budget if costs is None else budget / costs.typical
    return Engine(
        scheduler=Scheduler.live(budget=crawls, counted=costs is None),
        estimator=Learner(typical_rate=0.01),
        lanes=lanes or Lanes(NO_REST),
        costs=costs,
        purse=purse,
    )


def carried_out(engine: Engine | Engines, order: Order, now: float, took: float, *, changed: bool = True) -> None:
    first = engine.current(order.url) is None
    outcome = Outcome.NEW if first else Outcome.CHANGED if changed else Outcome.UNCHANGED
    answer = Answer.NEW if first or changed else Answer.SAME
    fetched = Fetched(order.url, now, took, answer=answer, spent=Spent(took, 1000))
    engine.finish(order, fetched, Verdict(outcome, validators=Validators(fingerprint=1)), now + took)


def spend(
    parts: list[Engine], engine: Engine | Engines, seconds: float, cost: dict[str, float]
) -> dict[str, list[float]]:
    """What each thing has cost, at each of its refreshes."""
    now, spent = 1000.0, dict[str, list[float]]()
    while now < 1000.0 + seconds:
        decisions = [part.next(now) for part in parts]
        orders = [each for each in decisions if not isinstance(each, Wait)]
        for order in orders:
            carried_out(engine, order, now, cost[order.url])
            spent.setdefault(order.url, []).append(cost[order.url])
        now += max((cost[order.url] for order in orders), default=0.0) + 1e-3
    return spent


def test_a_budget_of_seconds_is_met_whatever_each_costs() -> None:
    """Twenty queries of 2 to 200 ms: a fifth of the time is spent, and cheap ones are refreshed more often."""
    urls = [f"sql:shop/q?n={nth}" for nth in range(20)]
    cost = {url: float(each) for url, each in zip(urls, np.geomspace(0.002, 0.2, 20), strict=True)}
    one = engine(0.2, costs=Costs("seconds"))
    one.add_many([Page(url, "sql:shop") for url in urls], 1000.0)
    spent = spend([one], one, 200.0, cost)
    total = sum(sum(each) for each in spent.values())
    assert total == pytest.approx(0.2 * 200.0, rel=0.05)
    times = [len(spent[url]) for url in urls]
    assert min(times) >= 2  # the dearest ones, too
    assert sum(times[:10]) > 2 * sum(times[10:])
    assert one.costs_of(urls[3])[1] == pytest.approx(cost[urls[3]])
    assert one.budget == pytest.approx(0.2)


def test_same_and_new_are_learned_apart_and_nothing_found_may_count() -> None:
    costs, dear = Costs("bytes"), Costs("bytes", penalty=50_000.0)
    for each in (costs, dear):
        for nth in range(20):
            new = nth % 4 == 0
            each.learn(7, Spent(bytes=40_000 if new else 1_000), new=new)
    assert costs.of(7) == (1_000.0, 40_000.0)
    assert 5_000 < costs.expected(7) < 20_000
    assert dear.expected(7) - costs.expected(7) == pytest.approx(50_000.0, rel=0.35)
    before = costs.expected(7)
    again = Costs("bytes")
    again.enter(np.array([3]), [1_000.0], [40_000.0])
    assert again.of(3) == (1_000.0, 40_000.0)
    assert before < again.expected(3) < 40_000.0  # how often something is new is not known any more
    assert again.expected(99) > 0  # of which nothing is known: like the others


LIGHT, HEAVY = pack([1.0]), pack([0.0, 1.0])


@pytest.mark.parametrize("unit", ["bytes", "calls"])
def test_a_new_page_costs_what_its_kind_costs_until_its_own_crawls_tell(unit: str) -> None:
    one, kinds = engine(20_000.0, costs=Costs(unit)), KindCosts()
    assert one.costs is not None
    kinds.give(1, 4_000.0, "bytes")
    for _ in range(200):
        kinds.learn(HEAVY, Spent(bytes=200_000), new=True)
        kinds.learn(HEAVY, Spent(bytes=1_000), new=False)
    one.use_kinds(kinds, lambda url, before: LIGHT if "light" in url else before)
    urls = ["https://a.example/light", "https://a.example/heavy", "https://a.example/else"]
    one.add_many([Page(url, "a.example") for url in urls], 1000.0)
    one.tell_kind(urls[1], HEAVY, 1000.0)
    slots = [one.slots([url])[0] for url in urls]
    light, heavy, other = (one.scheduler.cost_of(slot) for slot in slots)  # type: ignore[attr-defined]
    if unit == "calls":
        assert (light, heavy, other) == (1.0, 1.0, 1.0)
        return
    assert other == 1.0
    assert light == pytest.approx(0.25, abs=0.06)  # of 20,000 bytes: at once, as an operator has said so
    assert 4.0 < heavy < 7.0  # half of refreshes find something new, as far as is known
    one.costs.learn(int(slots[1]), Spent(bytes=30_000), new=True)
    assert 1_000 < one.costs.expected(int(slots[1]), HEAVY) < 30_000  # its own cost, and of its kind what it lacks
    one.costs.learn(int(slots[1]), Spent(bytes=30_000), new=False)
    assert one.costs.expected(int(slots[1]), HEAVY) == 30_000  # nothing of its kind any more
    assert one.costs.expected(int(slots[2])) == pytest.approx(30_000)


def test_what_kinds_cost_is_kept_and_what_an_operator_says_gives_way() -> None:
    kinds, again = KindCosts(), KindCosts()
    for each in (kinds, again):
        each.give(2, 1_000.0, "bytes")
    assert kinds.mean(2, "bytes") == 1_000.0
    assert kinds.mean(1, "seconds") is None
    for _ in range(100):
        kinds.learn(HEAVY, Spent(seconds=0.5, bytes=50_000), new=True)
    again.recall(2, kinds.learned(2))
    again.recall(0, [[-1.0] * 5] * 2)  # damaged
    again.recall(1, [[1.0]])
    assert again.mean(2, "bytes") == pytest.approx(kinds.mean(2, "bytes"), rel=1e-4)
    assert 40_000 < kinds.expected(HEAVY, "bytes", 7.0, new=True) < 50_000
    assert (again.mean(0, "bytes"), kinds.mean(0, "seconds")) == (None, pytest.approx(0.5))


def test_what_others_ran_is_paid_out_of_the_same_purse() -> None:
    one = engine(0.2, costs=Costs("seconds"))
    one.add_many([Page("sql:shop/a", "sql:shop"), Page("sql:shop/b", "sql:shop")], 1000.0)
    for now in (1001.0, 1002.0):
        order = one.next(now)
        assert isinstance(order, Order)
        carried_out(one, order, now, 0.002)
    got = Fetched("sql:shop/a", 1003.0, 2.0, answer=Answer.NEW, spent=Spent(2.0, 10))
    verdict = Verdict(Outcome.CHANGED, validators=Validators(fingerprint=2))
    assert one.receive(got, verdict, 1005.0) is not None
    waits = one.next(1006.0)
    assert isinstance(waits, Wait)
    assert waits.until == pytest.approx(1005.0 + 2.0 / 0.2, abs=1.0)


def test_each_purse_spends_its_own_and_shares_the_rest() -> None:
    lanes = Lanes(NO_REST)
    made: list[str] = []

    known = {"files"}

    def make(purse: str) -> Engine | None:
        made.append(purse)
        return engine(5.0, purse, lanes=lanes) if purse in known else None

    def purse_of(url: str) -> str:
        return {"file": "files", "odd": "odd"}.get(url.partition(":")[0], "crawl")

    both = Engines(engine(2.0, lanes=lanes), make, purse_of)
    pages = [Page(f"https://a.example/{nth}", "a.example") for nth in range(30)]
    files = [Page(f"file:///{nth}", "file:/") for nth in range(30)]
    for page in [*pages, *files, Page("odd:1", "odd")]:
        part = both.part_of(page.url)
        both.reaches(part, [page.host])
        part.add_many([page], 1000.0)
    assert made == ["files", "odd"]
    known.add("odd")  # too late: what is with the first one stays there, and is found there
    assert "odd:1" in both
    assert [len(part) for part in both.parts] == [31, 30]
    assert len(both) == 61
    assert all(page.url in both for page in pages + files)
    cost = dict.fromkeys((page.url for page in [*pages, *files, Page("odd:1", "odd")]), 0.001)
    spent = spend(list(both.parts), both, 20.0, cost)
    counts = {
        kind: sum(len(times) for url, times in spent.items() if url.startswith(kind)) for kind in ("https", "file")
    }
    assert counts["https"] == pytest.approx(40, abs=5)
    assert counts["file"] == pytest.approx(100, abs=3)
    # One page is in one part, and what is said of it goes there.
    assert both.observe(Signal(files[0].url, 1021.0, "watch"), 1021.0)
    assert both.signals(files[0].url) == 1
    assert both.observe_many([Request(files[0].url, 1021.0), Request(pages[0].url, 1021.0)], 1022.0) == 2
    assert both.parts[1].senders is both.parts[0].senders
    # The rest of a lane is told to the schedule whose lane it is.
    both.lanes.rest_until("file:/", 1100.0)
    now = 1023.0
    waits = both.parts[1].next(now)
    assert isinstance(waits, Wait)
    assert waits.until >= 1100.0
    both.remove(files[0].url)
    assert files[0].url not in both
    assert len(both) == 60

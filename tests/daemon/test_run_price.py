"""What applications run of their own accord: with refreshes it comes to the budget, and each run counts once."""

import numpy as np
import pytest

from afresh.daemon.run_price import RunPrice
from afresh.engine import Costs, Engine
from afresh.engine.ahead import compile_ahead
from afresh.estimate import Learner
from afresh.frontier import Lanes, Politeness
from afresh.schedule import Scheduler
from afresh.sources.sql.allowance import Allowance
from afresh.sources.sql.cache import worth_a_run
from afresh.types import Answer, Fetched, Order, Outcome, Page, Request, Spent, Validators, Verdict, Wait
from afresh.units import Budget

BUDGET, QUERIES, DELAY = 0.2, 40, 0.3


class Simulated:
    """A runner and an application on one clock. What the application runs is heard of somewhat later."""

    def __init__(self, seed: int, asked: float, *, steered: bool = True) -> None:
        self.rng = np.random.default_rng(seed)
        self.urls = [f"sql:shop/q?n={nth}" for nth in range(QUERIES)]
        self.cost = self.rng.permutation(np.geomspace(0.002, 0.2, QUERIES))
        self.rate = np.exp(self.rng.uniform(np.log(0.01), np.log(0.5), QUERIES))
        self.popularity = self.rng.permutation(1.0 / np.arange(1, QUERIES + 1))
        self.asked = asked * self.popularity / self.popularity.sum()
        self.now, self.steered = 1000.0, steered
        self.allowance = Allowance(Budget(BUDGET, "seconds"), lambda: self.now)
        self.price = RunPrice(typical=0.02)
        self.engine = Engine(
            scheduler=Scheduler.live(budget=BUDGET / 0.02, counted=False),
            estimator=Learner(typical_rate=0.05),
            lanes=Lanes(Politeness(factor=0.0, shortest_gap=0.0)),
            costs=Costs("seconds"),
        )
        self.engine.add_many([Page(url, "sql:shop") for url in self.urls], self.now)
        self.stale = np.ones(QUERIES, bool)
        self.known = np.full(QUERIES, -np.inf)
        self.spent: list[tuple[float, float, bool]] = []  # when, what, and whether by the application
        self.told: list[tuple[float, int, bool]] = []

    def got(self, nth: int, stale: bool, started: float) -> tuple[Fetched, Verdict]:
        cost, first = float(self.cost[nth]), self.engine.current(self.urls[nth]) is None
        outcome = Outcome.NEW if first else Outcome.CHANGED if stale else Outcome.UNCHANGED
        fetched = Fetched(self.urls[nth], started, cost, answer=Answer.NEW, spent=Spent(cost, 100))
        return fetched, Verdict(outcome, validators=Validators(fingerprint=1))

    def begin(self, nth: int, by_application: bool) -> bool:
        stale = bool(self.stale[nth])
        self.stale[nth], self.known[nth] = False, self.now
        self.spent.append((self.now, float(self.cost[nth]), by_application))
        return stale

    def ask(self, nth: int, price: float) -> None:
        self.engine.observe(Request(self.urls[nth], self.now), self.now)
        if np.isfinite(self.known[nth]):
            beliefs = self.engine.beliefs(self.urls[nth], self.now)
            fresh = beliefs.freshness(self.now - self.known[nth], 0)
            if not self.allowance.is_left or not worth_a_run(fresh, float(self.cost[nth]), price, beliefs):
                return
        self.told.append((self.now, nth, self.begin(nth, True)))
        self.allowance.ends(0.0, Spent(float(self.cost[nth])))

    def play(self, seconds: float, step: float = 0.05) -> None:
        end, price, moved = self.now + seconds, 0.0, 0.0
        while self.now < end:
            self.stale |= self.rng.random(QUERIES) < self.rate * step
            if self.now - moved >= 1.0:
                moved = self.now
                price = self.price.at(self.now, self.engine.ran, BUDGET) if self.steered else 0.0
            for nth in np.flatnonzero(self.rng.random(QUERIES) < self.asked * step).tolist():
                self.ask(nth, price)
            while isinstance(order := self.engine.next(self.now), Order):
                nth = self.urls.index(order.url)
                fetched, verdict = self.got(nth, self.begin(nth, False), self.now)
                self.engine.finish(order, fetched, verdict, self.now)
            while self.told and self.told[0][0] < self.now - DELAY:
                when, nth, stale = self.told.pop(0)
                self.engine.receive(*self.got(nth, stale, when), self.now)
            self.now += step

    def a_second(self, since: float, by_application: bool | None = None) -> float:
        some = [cost for when, cost, by in self.spent if when >= since and by_application in (None, by)]
        return sum(some) / (self.now - since)


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    compile_ahead()


def test_a_price_is_found_where_applications_leave_nothing_for_refreshes() -> None:
    """Refreshes have no price then: that of runs does not come from it."""
    world = Simulated(6, asked=300.0)
    world.cost = np.full(QUERIES, 0.1)
    world.play(60.0)
    since = world.now
    world.play(60.0)
    assert world.a_second(since) == pytest.approx(BUDGET, rel=0.1)
    assert world.a_second(since, by_application=True) < BUDGET
    assert world.price.at(world.now + 1.0, world.engine.ran, BUDGET) > 10.0


@pytest.mark.parametrize(("seed", "steered"), [(1, True), (2, True), (3, False)])
def test_runs_and_refreshes_together_come_to_the_budget(seed: int, steered: bool) -> None:
    """Also where nobody steers the price, and every run seems to be worth its cost."""
    world = Simulated(seed, asked=40.0, steered=steered)
    world.play(60.0)
    since = world.now
    world.play(60.0)
    assert world.a_second(since) == pytest.approx(BUDGET, rel=0.1)
    if steered:
        assert 0.6 * BUDGET < world.a_second(since, by_application=True) < 1.0 * BUDGET


def test_every_run_counts_once_whatever_else_is_under_way() -> None:
    world = Simulated(4, asked=40.0)
    world.play(20.0)
    world.now += 1.0
    for when, nth, stale in world.told:
        world.engine.receive(*world.got(nth, stale, when), world.now)
    ran = sum(cost for _, cost, by_application in world.spent if by_application)
    assert world.engine.ran == pytest.approx(ran)
    assert ran > 0.0
    # The one that is out, the one that is older than the copy, and the one that brought nothing.
    before, url = world.engine.ran, world.urls[0]
    old, verdict = world.got(0, True, 1000.5)
    assert world.engine.receive(old, verdict, world.now) is None
    world.engine.charge(url, Spent(0.25), world.now)
    assert world.engine.ran - before == pytest.approx(float(world.cost[0]) + 0.25)
    world.now += 100.0
    order = world.engine.next(world.now)
    assert isinstance(order, Order)
    nth = world.urls.index(order.url)
    assert world.engine.receive(*world.got(nth, True, world.now), world.now) is None
    assert world.engine.ran - before == pytest.approx(float(world.cost[0] + world.cost[nth]) + 0.25)


def test_a_budget_of_calls_pays_for_runs_as_well() -> None:
    one = Engine(
        scheduler=Scheduler.live(budget=2.0),
        estimator=Learner(typical_rate=0.5),
        lanes=Lanes(Politeness(factor=0.0, shortest_gap=0.0)),
    )
    one.add_many([Page("sql:shop/a", "sql:shop")], 1000.0)
    assert isinstance(one.next(1000.0), Order)
    for _ in range(6):
        one.charge("sql:shop/a", Spent(), 1000.0)
    waits = one.next(1001.0)
    assert isinstance(waits, Wait)
    assert (one.ran, waits.until) == (6.0, pytest.approx(1003.5))


def test_without_applications_refreshes_have_the_whole_budget() -> None:
    world = Simulated(5, asked=0.0)
    world.play(30.0)
    since = world.now
    world.play(60.0)
    assert world.a_second(since) == pytest.approx(BUDGET, rel=0.1)

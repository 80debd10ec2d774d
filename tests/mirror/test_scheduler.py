"""`policy = "mirror"` without a network: rates, probes, what spoils a sample, politeness, and restarts."""

import base64
import math

import numpy as np
import pytest

from afresh.engine import Engine
from afresh.errors import ConfigError
from afresh.estimate import Grid
from afresh.frontier import Lanes, Politeness
from afresh.mirror.costs import COSTS, Seen
from afresh.mirror.kept import read_learned
from afresh.mirror.scheduler import ByCosts
from afresh.schedule import Pick, SeesCosts
from afresh.types import Fetched, Order, Outcome, Page, Verdict, Wait

BUDGET = 10.0


def made(pages: int, *, seed: int = 1, hosts: int | None = None, **settings: float) -> ByCosts:
    scheduler = ByCosts(budget=BUDGET, rng=np.random.default_rng(seed), lease=60.0, **settings)
    for page in range(pages):
        host = page if hosts is None else page % hosts
        slot = scheduler.add(request_rate=1.0, change_rate=0.1, host=host, now=0.0, age=0.0)
        scheduler.named(slot, f"http://e.org/{page}")
    return scheduler


class Run:
    """A world in which a copy costs weight × age^power; every tick of the budget one fetch."""

    def __init__(self, scheduler: ByCosts, weight: np.ndarray, power: np.ndarray) -> None:
        self.scheduler, self.weight, self.power = scheduler, weight, power
        self.current = np.zeros(len(weight))
        self.refreshes, self.probes = np.zeros((2, len(weight)), np.int64)

    def go(self, begin: float, end: float) -> None:
        for tick in range(int(begin * BUDGET), int(end * BUDGET)):
            now = tick / BUDGET + 1e-9
            pick = self.scheduler.next(now)
            if isinstance(pick, Wait):
                continue
            slot = pick.slot
            cost = self.weight[slot] * (now - self.current[slot]) ** self.power[slot]
            self.scheduler.saw(slot, cost, now, probe=pick.probe)
            self.scheduler.finish(slot, now, crawled=None if pick.probe else now)
            if pick.probe:
                self.probes[slot] += 1
            else:
                self.refreshes[slot] += 1
                self.current[slot] = now

    def cost_of(self, rates: np.ndarray) -> float:
        """J of constant rates."""
        return float(np.mean(self.weight * rates**-self.power / (1 + self.power)))

    def learned(self) -> np.ndarray:
        return np.array([self.scheduler.learned_rate(slot).rate for slot in range(len(self.weight))])


def best_rates(run: Run, total: float) -> np.ndarray:
    """By bisection on the common gain."""
    low, high = 1e-9, 1e9
    for _ in range(200):
        price = math.sqrt(low * high)
        gain = np.maximum(run.weight * run.power, 1e-300) / (1 + run.power)
        mean = total / len(run.weight)
        rates = np.clip((gain / price) ** (1 / (1 + run.power)), mean / 16, 7.5 * mean / 1.05)
        low, high = (price, high) if rates.sum() > total else (low, price)
    return rates


def test_rates_are_learned_from_costs_of_different_shapes() -> None:
    weight = np.array([8.0, 4.0, 4.0, 2.0, 1.0, 1.0, 0.2, 0.2, 0.0, 0.0])
    power = np.array([1.0, 0.5, 1.0, 0.7, 1.0, 0.5, 1.0, 0.5, 1.0, 1.0])
    run = Run(made(10, eta=0.1, epsilon=0.2), weight, power)
    total = BUDGET / 1.2
    start, best = run.cost_of(np.full(10, total / 10)), run.cost_of(best_rates(run, total))
    run.go(0.0, 6000.0)
    rates = run.learned()
    assert rates.sum() == pytest.approx(total, rel=0.01)
    assert (run.cost_of(rates) - best) / (start - best) < 0.1


def test_pages_are_refreshed_evenly_at_their_rates_and_probes_are_paid_for() -> None:
    scheduler = made(8, eta=0.0, epsilon=0.25)
    shares = np.array([4.0, 2.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25])
    scheduler.timetable.rows["rate"][:8] = shares
    run = Run(scheduler, np.ones(8), np.ones(8))
    run.go(0.0, 2000.0)
    assert run.refreshes.sum() + run.probes.sum() == pytest.approx(20_000, abs=2)
    assert run.probes.sum() == pytest.approx(0.25 * run.refreshes.sum(), rel=0.06)
    expected = shares / shares.sum() * run.refreshes.sum()
    assert np.abs(run.refreshes - expected).max() < 4.0  # never more than some refreshes from its share


def test_a_probe_keeps_the_copy_and_a_refresh_that_was_asked_for_is_none() -> None:
    scheduler = made(1, epsilon=1.0)
    pick = scheduler.next(0.3)
    assert isinstance(pick, Pick)
    assert pick.probe
    scheduler.saw(0, 2.0, 0.3, probe=True)
    scheduler.finish(0, 0.3, crawled=None)
    assert scheduler._pages[0]["current"] == 0.0
    assert scheduler.learned_rate(0).probe == 2.0
    second = scheduler.next(5.0)
    assert isinstance(second, Pick)
    assert not second.probe  # one an interval
    scheduler.saw(0, 3.0, 5.0, probe=False)
    scheduler.finish(0, 5.0, crawled=5.0)
    scheduler.crawl_now(0, 5.0)
    wanted = scheduler.next(6.0)
    assert isinstance(wanted, Pick)
    assert not wanted.probe
    assert not scheduler.timetable.rows[0]["whole"]  # it came too early to be a sample


def test_what_could_not_be_told_gives_no_sample() -> None:
    scheduler = made(1, epsilon=1.0)
    for cost in (None, 1.0):
        pick = scheduler.next(1.0 if cost is None else 2.0)
        assert isinstance(pick, Pick)
        scheduler.saw(0, cost, 1.0, probe=pick.probe)
        scheduler.finish(0, 1.0, crawled=None)
    assert scheduler.timetable.rows[0]["count"] == 0


def test_an_update_is_about_pages_with_new_samples() -> None:
    scheduler = made(4, update_every=2.0)
    for nth in range(8):
        slot = nth % 2
        scheduler.timetable.rows[slot]["whole"] = True
        scheduler.timetable.rows[slot]["phase"] = scheduler.timetable.rows[slot]["seen"] = 0.5
        scheduler.saw(slot, 1.0 + 5.0 * slot, 10.0 + nth, probe=False)
    rates = scheduler.timetable.rows["rate"][:4]
    assert rates[2] == rates[3] == 1.0
    assert rates[0] < 1.0 < rates[1]
    assert rates[:2].sum() == pytest.approx(2.0)


def test_hosts_rest_and_have_one_page_under_way() -> None:
    scheduler = made(6, hosts=2)
    first, second = scheduler.next(1.0), scheduler.next(2.0)
    assert isinstance(first, Pick)
    assert isinstance(second, Pick)
    assert first.slot % 2 != second.slot % 2
    assert isinstance(scheduler.next(3.0), Wait)
    scheduler.finish(first.slot, 3.0, crawled=3.0, gap=5.0)
    assert isinstance(scheduler.next(4.0), Wait)
    third = scheduler.next(8.1)
    assert isinstance(third, Pick)
    assert third.slot % 2 == first.slot % 2


def test_a_restart_goes_on_with_the_rates() -> None:
    weight = np.array([8.0, 4.0, 1.0, 0.0])
    run = Run(made(4, eta=0.1, epsilon=0.2), weight, np.ones(4))
    run.go(0.0, 1000.0)
    text, before = run.scheduler.to_text(), run.scheduler.timetable.rows["rate"][:4].copy()
    after = ByCosts(budget=BUDGET, rng=np.random.default_rng(9), epsilon=0.2)
    assert not ByCosts(budget=BUDGET, rng=np.random.default_rng(9), cost="age").recall(text), "it is of another cost"
    assert after.recall(text)
    for page in (3, 1, 0, 2):  # in another order
        slot = after.add(request_rate=1.0, change_rate=0.1, host=page, now=1000.0, age=1.0)
        after.named(slot, f"http://e.org/{page}")
        assert after.timetable.rows[slot]["rate"] == pytest.approx(before[page], rel=1e-6)
        for name in ("sum", "count"):  # samples of an update that is yet to come
            assert after.timetable.rows[slot][name] == pytest.approx(run.scheduler.timetable.rows[page][name])
    assert after._samples == run.scheduler._samples > 0
    assert after.costs_learned().updates == run.scheduler.costs_learned().updates > 0
    assert after._cost / after._refreshes == pytest.approx(run.scheduler._cost / run.scheduler._refreshes)
    new = after.add(request_rate=1.0, change_rate=0.1, now=1000.0)
    after.named(new, "http://e.org/new")
    assert after.timetable.rows[new]["rate"] == 1.0


def test_what_the_first_version_wrote_is_understood() -> None:
    rows = np.array([(7, 2.0, -1.0, 0.5, np.nan)], [("mark", "<u8"), *((name, "<f4") for name in "abcd")])
    head, kept = read_learned(f"age {base64.b64encode(np.array([3.0, 6.0]).tobytes() + rows.tobytes()).decode()}")
    assert head == (3.0, 6.0, 0.0, 0.0)
    assert (kept["mark"][0], kept["rate"][0], kept["slope"][0], kept["count"][0]) == (7, 2.0, -1.0, 0)


def test_a_lie_about_one_page_stops_nobody_elses_learning() -> None:
    weight = np.array([8.0, 4.0, 1.0, 0.0])
    run = Run(made(4, eta=0.1, epsilon=0.2), weight, np.ones(4))
    run.go(0.0, 100.0)
    mean = run.scheduler.costs_learned().mean
    run.scheduler.saw(3, 1e15, 100.0, probe=False)
    assert run.scheduler.costs_learned().mean < 40.0 * mean  # of 330 costs, one counts for 10,000 times the mean
    run.go(101.0, 3000.0)
    rates = run.learned()
    assert rates[0] > rates[1] > rates[2] > rates[3]


@pytest.mark.parametrize("costs", [[1e15] * 9, [1e-300] * 9, [0.0] * 9, [0.0, 1e15, 1e-300] * 3])
def test_no_costs_break_an_update(costs: list[float]) -> None:
    scheduler = made(3, epsilon=1.0, update_every=1.0)
    for nth, cost in enumerate(costs):
        now = 1.0 + nth
        scheduler.timetable.rows[nth % 3]["whole"], scheduler.timetable.rows[nth % 3]["phase"] = True, 0.5
        scheduler.saw(nth % 3, costs[nth - 1], now, probe=True)
        scheduler.saw(nth % 3, cost, now, probe=False)
    rates = scheduler.timetable.rows["rate"][:3]
    assert rates.sum() == pytest.approx(3.0)
    assert np.isfinite(rates).all()


@pytest.mark.parametrize("text", ["x", "AAAA", "!!", ""])
def test_what_cannot_be_read_back_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_learned(text)


def test_arguments_without_sense_are_refused() -> None:
    for settings in ({"epsilon": 0.0}, {"least": 2.0}, {"largest": 0.5}, {"eta": -1.0}):
        with pytest.raises(ConfigError):
            made(1, **settings)


def test_the_engine_passes_costs_on_and_marks_probes() -> None:
    lanes = Lanes(Politeness(factor=0.0, shortest_gap=0.0))
    scheduler = ByCosts(budget=BUDGET, rng=np.random.default_rng(1), epsilon=1.0)
    engine = Engine(scheduler=scheduler, estimator=Grid(), lanes=lanes)
    assert isinstance(scheduler, SeesCosts)
    url = "http://e.org/"
    engine.add(Page(url, "e.org"), 0.0)
    outcomes = []
    for nth, now in enumerate((1.0, 3.0, 5.0)):
        order = engine.next(now)
        assert isinstance(order, Order)
        outcome = Outcome.NEW if not nth else Outcome.PROBED if order.probe else Outcome.CHANGED
        outcomes.append(outcome)
        fetched = Fetched(url, now, 0.1, 200, b"x")
        crawl = engine.finish(order, fetched, Verdict(outcome, 0.5, cost=None if not nth else 0.5), now + 0.1)
        assert crawl.outcome is outcome
    assert outcomes == [Outcome.NEW, Outcome.PROBED, Outcome.CHANGED]
    assert engine.failures(url) == 0
    assert engine.current(url) == 5.0
    learned = engine.learned_rate(url)
    assert learned is not None
    assert (learned.cost, learned.probe) == (0.5, 0.5)
    assert engine.explain(url, 5.1).price == 1.0


def test_costs_are_what_they_say() -> None:
    fetched = Fetched("u", 100.0, 0.1)
    seen = Seen("u", True, 0.25, 4.0, 60.0, 10.0, fetched)
    assert [COSTS[name](seen) for name in ("significance", "staleness", "age")] == [1.0, 1.0, 10.0]
    undated = Seen("u", True, 0.25, 4.0, 60.0, None, fetched)
    assert COSTS["age"](undated) == 30.0
    same = Seen("u", False, 0.0, 4.0, 60.0, 50.0, fetched)
    assert [COSTS[name](same) for name in ("significance", "staleness", "age")] == [0.0, 0.0, 0.0]

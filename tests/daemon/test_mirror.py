"""`policy = "mirror"` over real sockets: rates from nothing, over a restart; probes; functions of operators' own."""

import asyncio
import logging
import math
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from afresh import config
from afresh.daemon import Daemon
from afresh.daemon.costing import Costing
from afresh.engine import Engine
from afresh.estimate import Grid
from afresh.fetch import Guard, Http, Scripted
from afresh.frontier import Lanes, Politeness, host_of
from afresh.mirror.costs import COSTS, Cost, Seen, staleness
from afresh.mirror.scheduler import ByCosts
from afresh.sim.web import Server
from afresh.sources import Sources
from afresh.sources.web import Web
from afresh.store import Memory, PageState, Sqlite, Store
from afresh.types import Copy, Fetched, Order, Outcome, Page, Validators, Verdict
from command_line import synthetic_web

NO_GAPS = Politeness(factor=0, shortest_gap=0, longest_gap=0)
BUDGET, EPSILON = 100.0, 0.25

# Ten pages: what each costs after so many seconds is weight × seconds^power.
WEIGHT = np.array([8.0, 4.0, 4.0, 2.0, 1.0, 1.0, 0.2, 0.2, 0.0, 0.0])
POWER = np.array([1.0, 0.5, 1.0, 0.7, 1.0, 0.5, 1.0, 0.5, 1.0, 1.0])


@pytest.fixture(scope="module")
def site() -> Iterator[Server]:
    with synthetic_web(pages=10, hosts=10, seed=3, day=20.0) as server:
        yield server


def shaped(site: Server) -> Cost:
    """The cost of each page of the site, by its number."""

    def cost(seen: Seen) -> float:
        page = site.site.find(seen.url)
        return float(WEIGHT[page] * seen.elapsed ** POWER[page])

    return cost


def cost_of(rates: np.ndarray) -> float:
    """J of constant rates."""
    return float(np.mean(WEIGHT * rates**-POWER / (1 + POWER)))


def best_cost(total: float) -> float:
    """J of the best rates of this sum within the bounds of the scheduler, by bisection on what each gains."""
    mean, low, high = total / 10, 1e-9, 1e9
    rates = np.full(10, mean)
    for _ in range(200):
        price = math.sqrt(low * high)
        gain = np.maximum(WEIGHT * POWER / (1 + POWER), 1e-300)
        rates = np.clip((gain / price) ** (1 / (1 + POWER)), mean / 16, 7.5 * mean / (1 + EPSILON))
        low, high = (price, high) if rates.sum() > total else (low, price)
    return cost_of(rates)


def left(scheduler: ByCosts, pages: np.ndarray) -> float:
    """(J − J*)/(J0 − J*) of the rates that were learned, as shares of the planned total."""
    shares = scheduler.timetable.rows["rate"][: len(pages)]
    rates = np.empty(len(pages))
    rates[pages] = shares / shares.sum() * BUDGET / (1 + EPSILON)
    total = float(rates.sum())
    start, best = cost_of(np.full(10, total / 10)), best_cost(total)
    return (cost_of(rates) - best) / (start - best)


async def run(
    store: Store, scheduler: ByCosts, cost: Cost, reached: Callable[[Engine], bool], seconds: float
) -> Engine:
    engine = Engine(scheduler=scheduler, estimator=Grid(typical_rate=1.0), lanes=Lanes(NO_GAPS))
    fetcher = Http(user_agent="afresh/test", guard=Guard(allow_private=True))
    daemon = Daemon(engine=engine, fetcher=fetcher, store=store, cost=cost)
    running, end = asyncio.create_task(daemon.run()), time.monotonic() + seconds
    while not running.done() and time.monotonic() < end and not reached(engine):  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    daemon.stop()
    await running
    await fetcher.close()
    return engine


def made(seed: int) -> ByCosts:
    return ByCosts(budget=BUDGET, rng=np.random.default_rng(seed), epsilon=EPSILON, eta=0.3)


def test_it_learns_good_rates_from_nothing_and_over_a_restart(site: Server, tmp_path: Path) -> None:
    numbers: list[float] = []
    with Sqlite(tmp_path / "kept.db", create=True) as store:
        store.add(Page(url, host_of(url)) for url in site.urls())
        for seed, goal in ((1, 0.5), (2, 0.09)):
            scheduler = made(seed)
            taken_up: list[float] = []

            def reached(engine: Engine, scheduler: ByCosts = scheduler, goal: float = goal) -> bool:
                if len(engine) < 10:
                    return False
                pages = np.array([site.site.find(page.url) for page in engine.pages()])
                slots = [engine.names.slot(page.url) for page in engine.pages()]
                gap = left(scheduler, pages[np.argsort(slots)])
                taken_up.append(gap)  # noqa: B023
                numbers.append(gap)
                return gap <= goal

            asyncio.run(run(store, scheduler, shaped(site), reached, 90.0))
            if seed == 1:
                assert taken_up[0] == pytest.approx(1.0)  # from nothing
                before = taken_up[-1]
            else:
                assert taken_up[0] == pytest.approx(before, abs=0.15)  # from there
        assert numbers[-1] <= 0.1, numbers[:: max(1, len(numbers) // 30)]
        history = [crawl for url in site.urls() for crawl in store.history(url, 100)]
        assert {crawl.outcome for crawl in history} >= {Outcome.PROBED, Outcome.UNCHANGED}
        assert not [crawl for crawl in history if crawl.outcome is Outcome.FAILED]


def test_a_probe_is_in_the_history_and_leaves_the_copy() -> None:
    store, asked = Memory(), []
    url = "http://a.example/"
    store.add([Page(url, "a.example")])

    def answer(asked_for: str, known: Validators) -> Fetched:
        asked.append(asked_for)
        return Fetched(url, time.time(), 0.001, 200, b"state %d" % len(asked), "text/plain")

    async def go() -> None:
        scheduler = ByCosts(budget=50.0, rng=np.random.default_rng(1), epsilon=1.0)
        engine = Engine(scheduler=scheduler, estimator=Grid(typical_rate=1.0), lanes=Lanes(NO_GAPS))
        daemon = Daemon(engine=engine, fetcher=Scripted(answer), store=store, cost=staleness)
        running = asyncio.create_task(daemon.run())
        while len(asked) < 8 and not running.done():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        daemon.stop()
        await running
        learned = engine.learned_rate(url)
        assert learned is not None
        assert (learned.cost, learned.probe) == (1.0, 1.0)

    asyncio.run(go())
    crawls = store.history(url, 100)[::-1]
    assert crawls[0].outcome is Outcome.NEW
    probes = [crawl for crawl in crawls if crawl.outcome is Outcome.PROBED]
    assert len(probes) >= 2
    assert {crawl.reason for crawl in probes} == {"changed"}
    assert all(crawl.significance == 1.0 for crawl in probes)
    last = max(nth for nth, crawl in enumerate(crawls) if crawl.outcome in (Outcome.NEW, Outcome.CHANGED))
    copy, state = store.copy(url), store.state(url)
    assert copy is not None
    assert state is not None
    assert copy.body == b"state %d" % (last + 1)
    assert state.failures == 0
    assert state.changes == sum(crawl.outcome is Outcome.CHANGED for crawl in crawls)


WEB = Sources([Web(Scripted({}))])
URL = "http://a.example/"
BEFORE = PageState(Page(URL, "a.example"), fetched=10.0, checked=10.0, validators=Validators(fingerprint=1))
KEPT = Copy(URL, b"old", "text/plain", 10.0, 10.0)


def judged(
    cost: Cost, outcome: Outcome = Outcome.CHANGED, *, probe: bool = False, modified: str = "", status: int = 200
) -> Verdict:
    async def go() -> Verdict:
        costing = Costing(cost, sources=WEB, copy=lambda url: KEPT, importance=lambda url: 2.0)
        order = Order(0, URL, "a.example", 40.0, probe=probe)
        validators = Validators(last_modified=modified)
        body = b"new" if status == 200 else b""
        fetched = Fetched(URL, 1_700_000_000.0, 0.1, status, body, "text/plain", validators)
        before = PageState(BEFORE.page, fetched=1_699_999_900.0, checked=1_699_999_900.0)
        try:
            return await costing.judged(order, before, fetched, Verdict(outcome, 0.5))
        finally:
            costing.close()

    return asyncio.run(go())


def test_a_function_of_ones_own_sees_both_contents_in_a_thread() -> None:
    met: list[Seen] = []

    def cost(seen: Seen) -> float:
        met.append(seen)
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return 3.0

    assert judged(cost).cost == 3.0
    assert met[0].copy is KEPT
    assert met[0].fetched.body == b"new"
    assert (met[0].elapsed, met[0].importance, met[0].significance) == (100.0, 2.0, 0.5)
    assert judged(cost, Outcome.NEW).cost is None
    assert judged(cost, Outcome.FAILED, probe=True) == Verdict(Outcome.FAILED, 0.5)
    probed = judged(cost, Outcome.UNCHANGED, probe=True)
    assert (probed.outcome, probed.reason, probed.cost) == (Outcome.PROBED, "unchanged", 3.0)


def test_what_is_not_modified_is_what_the_copy_holds() -> None:
    assert judged(lambda seen: float(seen.fetched.body != b"old"), Outcome.UNCHANGED, status=304).cost == 0.0


def test_a_function_that_wants_to_end_the_program_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def end(seen: Seen) -> float:
        raise SystemExit(3)

    with caplog.at_level(logging.WARNING, "afresh.costs"):
        assert judged(end).cost is None
    assert "SystemExit" in caplog.text


@pytest.mark.parametrize("date", ["Tue, 14 Nov 2023 22:12:50 GMT", "", "nonsense"])
def test_the_age_follows_from_the_servers_date_if_there_is_one(date: str) -> None:
    from afresh.mirror.costs import age

    assert judged(age, modified=date).cost == (30.0 if date.startswith("Tue") else 50.0)
    assert judged(age, Outcome.UNCHANGED, modified=date).cost == 0.0


@pytest.mark.parametrize("bad", [math.nan, -1.0, math.inf, 1e300, "text", "12", None, 1 / 3 + 2j])
def test_a_function_that_fails_stops_nothing_and_is_told_of(bad: object, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "afresh.costs"):
        assert judged(lambda seen: bad).cost is None  # type: ignore[arg-type,return-value]
    assert len(re.findall("cost of a crawl is not known", caplog.text)) == 1


def test_a_function_that_hangs_is_left_behind_and_not_asked_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.daemon.costing.MOST_SECONDS", 0.05)
    asked: list[float] = []
    comes_back = threading.Event()

    def hang(seen: Seen) -> float:
        asked.append(seen.elapsed)
        comes_back.wait(20.0)
        return 1.0

    async def go() -> None:
        costing = Costing(hang, sources=WEB, copy=lambda url: KEPT, importance=lambda url: 2.0)
        order = Order(0, URL, "a.example", 40.0)
        fetched = Fetched(URL, 30.0, 0.1, 200, b"new", "text/plain")
        for _ in range(4):  # the last ones find it at the first crawl still
            assert (await costing.judged(order, BEFORE, fetched, Verdict(Outcome.CHANGED, 0.5))).cost is None
            await asyncio.sleep(0.03)
        assert len(asked) == 1
        assert costing.summary()["unknown"] == {"too slow": 4}
        comes_back.set()
        await asyncio.sleep(0.05)
        assert (await costing.judged(order, BEFORE, fetched, Verdict(Outcome.CHANGED, 0.5))).cost == 1.0
        assert costing.summary()["known"] == 1
        costing.close()

    began = time.monotonic()
    asyncio.run(go())
    assert time.monotonic() - began < 5.0


def slowly(hosts: int, seconds: float, call: float) -> tuple[int, int, dict[str, Any]]:
    """Crawl hosts again and again with a function that takes so long; crawls, calls, and what is said of them."""
    calls, crawls = 0, 0

    def slow(seen: Seen) -> float:
        nonlocal calls
        calls += 1
        time.sleep(call)
        return 1.0

    async def go() -> dict[str, Any]:
        costing = Costing(slow, sources=WEB, copy=lambda url: KEPT, importance=lambda url: 2.0)
        fetched, end = Fetched(URL, 30.0, 0.1, 200, b"new", "text/plain"), time.monotonic() + seconds

        async def crawl(host: str) -> None:
            nonlocal crawls
            while time.monotonic() < end:
                order = Order(0, URL, host, 40.0)
                await costing.judged(order, BEFORE, fetched, Verdict(Outcome.CHANGED, 0.5))
                crawls += 1
                await asyncio.sleep(0.02)

        await asyncio.gather(*(crawl(f"h{nth}.example") for nth in range(hosts)))
        costing.close()
        return costing.summary()

    said = asyncio.run(go())
    return crawls, calls, said


def test_a_slow_function_is_asked_about_fewer_crawls_and_holds_no_other_up() -> None:
    crawls, calls, said = slowly(hosts=8, seconds=1.5, call=0.25)
    assert crawls > 60  # were they to queue, there would be six
    assert said["known"] == calls >= 3  # and no call was in vain
    assert said["unknown"] == {"busy": crawls - calls}
    assert said["share_asked"] == pytest.approx(calls / crawls)
    assert 0.25 <= said["seconds"] <= said["slowest"] < 0.6  # of the call alone


def test_the_only_host_waits_for_a_slow_function_half_of_the_time() -> None:
    _, calls, said = slowly(hosts=1, seconds=1.5, call=0.25)
    assert 2 <= calls <= 4
    assert said["unknown"]["busy"] > 10


def test_a_probe_and_its_refresh_are_asked_about_both_or_neither() -> None:
    async def go() -> list[tuple[bool, bool]]:
        costing = Costing(
            lambda seen: time.sleep(0.1) or 1.0, sources=WEB, copy=lambda url: KEPT, importance=lambda url: 2.0
        )
        pairs, end = [], time.monotonic() + 1.5

        async def crawl(host: str) -> None:
            while time.monotonic() < end:
                known = []
                for probe in (True, False):
                    order = Order(0, f"http://{host}/", host, 40.0, probe=probe)
                    fetched = Fetched(order.url, 30.0, 0.1, 200, b"new", "text/plain")
                    verdict = await costing.judged(order, BEFORE, fetched, Verdict(Outcome.CHANGED, 0.5))
                    known.append(verdict.cost is not None)
                    await asyncio.sleep(0.02)
                pairs.append((known[0], known[1]))

        await asyncio.gather(*(crawl(f"h{nth}.example") for nth in range(6)))
        costing.close()
        return pairs

    pairs = asyncio.run(go())
    assert all(probe == refresh for probe, refresh in pairs)
    assert 4 <= sum(probe for probe, _ in pairs) < len(pairs) - 4


def test_a_function_that_never_comes_back_lets_the_program_end(tmp_path: Path) -> None:
    program = """
import asyncio, time
from afresh.daemon.apart import Apart
async def go():
    apart = Apart("test")
    try:
        await apart.ask(lambda: time.sleep(1000), 0.1)
    except TimeoutError:
        apart.close()
asyncio.run(go())
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20)


def test_costs_have_the_names_that_settings_take() -> None:
    assert set(config.COSTS) == set(COSTS)

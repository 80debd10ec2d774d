"""A runner that keeps results of queries fresh, with caches of other threads and processes on the same store."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import apsw
import psycopg
import pytest

from afresh import Database, Query, QueryCache
from afresh.daemon import Daemon
from afresh.engine import Costs, Engine
from afresh.engine.ahead import compile_ahead
from afresh.errors import FetchError
from afresh.estimate import Learner
from afresh.schedule import Scheduler
from afresh.sources.sql import Definitions, Sql
from afresh.store import Sqlite
from afresh.store.messages import of_definitions
from afresh.types import Fetched, Outcome
from postgres import Postgres

OF_SHOP = Query("of_shop", "shop", "SELECT id, amount FROM orders WHERE shop = :shop")
TABLES = (
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, shop INTEGER, amount INTEGER)",
    "INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20)",
)


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    compile_ahead()


@asynccontextmanager
async def running(
    path: Path, budget: float = 50.0, costs: Costs | None = None, learner: Learner | None = None
) -> AsyncIterator[Daemon]:
    store = Sqlite(path)
    definitions = Definitions()
    definitions.recall(store)
    source = Sql(definitions, recall=store.get)
    scheduler = Scheduler.live(budget=budget, counted=costs is None)
    engine = Engine(scheduler=scheduler, estimator=learner or Learner(typical_rate=1.0), costs=costs, shortest=0.5)
    daemon = Daemon(engine=engine, sources=source, store=store, socket=Path(f"{path}.sock"), write_every=0.05)
    task = asyncio.create_task(daemon.run())
    try:
        yield daemon
    finally:
        daemon.stop()
        await task
        await source.close()
        store.close()


async def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def test_what_a_reader_gets_is_kept_fresh_by_the_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that nobody added: run for its first reader, kept and refreshed by the runner from then on."""
    monkeypatch.setattr("afresh.sources.sql.notices.LOOK_EVERY", 0.05)
    monkeypatch.setattr("afresh.sources.sql.source.KEEP_EVERY", 0.0)
    connection = apsw.Connection(str(tmp_path / "shop.db"))
    for statement in TABLES:
        connection.execute(statement)
    path, key = tmp_path / "afresh.db", "sql:shop/of_shop?shop=1"

    async def scene() -> None:
        with QueryCache(
            path, databases=[Database("shop", f"sqlite:{tmp_path / 'shop.db'}")], queries=[OF_SHOP]
        ) as cache:
            async with running(path) as daemon:
                first = await cache.aget("of_shop", shop=1)
                assert (list(first), first.kept) == ([(1, 10)], False)
                await until(lambda: daemon.store.copy(key) is not None)
                assert (await cache.aget("of_shop", shop=1)).kept
                for amount in (11, 12, 13):
                    connection.execute("UPDATE orders SET amount = ? WHERE id = 1", (amount,))
                    deadline = time.monotonic() + 20
                    while (await cache.aget("of_shop", shop=1, fresh=0.0))[0] != (1, amount):
                        assert time.monotonic() < deadline
                        await asyncio.sleep(0.02)
                await until(lambda: daemon.engine.senders.summary() != [])
                assert [each["sender"] for each in daemon.engine.senders.summary()] == ["data_version:shop"]
                await until(
                    lambda: (
                        daemon.engine.estimator.counted(daemon.engine.names.slot(key)) > 0
                        if hasattr(daemon.engine.estimator, "counted")
                        else True
                    )
                )
            with Sqlite(path) as store:
                history = store.history(key, 100)
                assert history[-1].outcome is Outcome.NEW
                assert sum(crawl.outcome is Outcome.CHANGED for crawl in history) >= 3
                assert json.loads(store.get("sql tables shop") or "") == {key: ["orders"]}
                await asyncio.to_thread(cache.source.let_go)

    asyncio.run(scene())


def test_what_applications_run_is_counted_each_run_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Many keys in quick succession, one again and again, a result too large to hand over, and one that fails."""
    connection = apsw.Connection(str(tmp_path / "shop.db"))
    for statement in TABLES:
        connection.execute(statement)
    path = tmp_path / "afresh.db"
    queries = [
        OF_SHOP,
        Query("large", "shop", "SELECT hex(randomblob(80000))"),
        Query("bad", "shop", "SELECT * FROM nowhere"),
    ]
    costs, ran = Costs("seconds"), list[Fetched]()

    async def scene() -> None:
        database = Database("shop", f"sqlite:{tmp_path / 'shop.db'}")
        async with running(path, budget=1e-6, costs=costs) as daemon:
            with QueryCache(path, databases=[database], queries=queries) as cache:
                run = cache.source.run

                def noted(key: str) -> Fetched:
                    ran.append(run(key))
                    return ran[-1]

                cache.source.run = noted  # type: ignore[method-assign]
                for shop in range(30):
                    await cache.aget("of_shop", shop=shop)
                    assert (await cache.aget("of_shop", shop=shop)).kept  # though the store may not have it yet
                for _ in range(10):
                    await cache.aget("of_shop", shop=1, fresh=1.0)
                await cache.aget("large")
                with pytest.raises(FetchError):
                    await cache.aget("bad")
                began = time.monotonic()
                await asyncio.to_thread(cache.close)
                assert time.monotonic() - began < 5.0
                assert "cannot be told" not in caplog.text
            assert len(ran) == 42
            await until(lambda: not daemon.store.inbox())
            counted = sum(costs.spent(fetched.cost) for fetched in ran)
            assert daemon.engine.first.ran == pytest.approx(counted, rel=1e-6)

    asyncio.run(scene())


def test_queries_come_and_go_while_it_runs(postgres: Postgres, tmp_path: Path) -> None:
    path, url = tmp_path / "afresh.db", postgres.fresh("comings", *TABLES)

    async def scene() -> None:
        async with running(path) as daemon:
            with QueryCache(path, databases=[Database("shop", url)], queries=[OF_SHOP]) as cache:
                assert (await cache.aget("of_shop", shop=2))[0] == (2, 20)
                await until(lambda: "sql:shop/of_shop?shop=2" in daemon.engine)
            store = daemon.store
            await asyncio.to_thread(store.post, of_definitions({"sql query of_shop": None}, time.time()))
            daemon.wake()
            await until(lambda: "sql:shop/of_shop?shop=2" not in daemon.engine)
            await until(lambda: store.state("sql:shop/of_shop?shop=2") is None)
            assert store.get("sql query of_shop") is None

    asyncio.run(scene())


def test_a_database_that_goes_away_and_comes_back_loses_nothing(postgres: Postgres, tmp_path: Path) -> None:
    path, url = tmp_path / "afresh.db", postgres.fresh("leaving", *TABLES)
    keys = [f"sql:shop/of_shop?shop={shop}" for shop in range(1, 6)]

    async def scene() -> None:
        with QueryCache(path, databases=[Database("shop", url)], queries=[OF_SHOP]) as cache:
            async with running(path) as daemon:
                for shop in range(1, 6):
                    await cache.aget("of_shop", shop=shop)
                await until(lambda: all(daemon.store.copy(key) is not None for key in keys))
                await asyncio.to_thread(postgres.stop)
                lane = daemon.engine.lanes.lane("sql:shop")
                await until(lambda: lane.failures > 0)
                assert lane.reason == "unreachable"
                kept = [await cache.aget("of_shop", shop=shop, fresh=0.0) for shop in range(1, 6)]
                assert all(rows.kept for rows in kept)
                assert kept[1][0] == (2, 20)
                await asyncio.to_thread(postgres.start)
                daemon.engine.lanes.restore(daemon.engine.lanes.state("sql:shop"), 0.0)
            with Sqlite(path) as store:
                assert {crawl.outcome for key in keys for crawl in store.history(key)} <= {
                    *(Outcome.NEW, Outcome.UNCHANGED, Outcome.BUSY),
                }
                assert all(store.copy(key) is not None for key in keys)

    asyncio.run(scene())


SPEEDS = {"slow": 100.0, "medium": 4.0, "very_fast": 0.3}  # seconds between two changes of a row
ROWS = 6


def test_what_is_said_of_answers_is_the_share_that_is_right(postgres: Postgres, tmp_path: Path) -> None:
    """Tables of which rows change by the minute, every few seconds, and several times a second: a query takes 50 ms."""
    tables = [f"CREATE TABLE {name} (n int PRIMARY KEY, value int)" for name in SPEEDS]
    rows = [f"INSERT INTO {name} SELECT n, 0 FROM generate_series(1, {ROWS}) n" for name in SPEEDS]
    path, url = tmp_path / "afresh.db", postgres.fresh("stated", *tables, *rows)
    sql = "SELECT value FROM {} JOIN LATERAL (SELECT pg_sleep(0.05)) p ON true WHERE n = :n"
    queries = [Query(name, "shop", sql.format(name)) for name in SPEEDS]
    truth = {(name, n): 0 for name in SPEEDS for n in range(1, ROWS + 1)}
    said: dict[str, list[tuple[float, bool]]] = {name: [] for name in SPEEDS}
    over = threading.Event()

    def change() -> None:
        rng = random.Random(7)
        due = {each: time.monotonic() + rng.expovariate(1.0 / SPEEDS[each[0]]) for each in truth}
        with psycopg.connect(url, autocommit=True) as connection:
            while not over.is_set():
                each = min(due, key=lambda one: due[one])
                time.sleep(max(due[each] - time.monotonic(), 0.0))
                name, n = each
                connection.execute(f"UPDATE {name} SET value = value + 1 WHERE n = {n}".encode())
                truth[each] += 1
                due[each] = time.monotonic() + rng.expovariate(1.0 / SPEEDS[name])

    def ask(cache: QueryCache, from_then_on: float) -> None:
        rng = random.Random(8)
        while not over.is_set():
            each = rng.choice(list(truth))
            before = truth[each]
            answer = cache.get(each[0], n=each[1], fresh=0.0)  # what is kept, however old
            if answer.kept and time.monotonic() > from_then_on:
                said[each[0]].append((answer.fresh, before <= answer[0][0] <= truth[each]))
            time.sleep(0.005)

    async def scene() -> None:
        with QueryCache(path, databases=[Database("shop", url)], queries=queries) as cache:
            costs, learner = Costs("seconds"), Learner(typical_rate=0.01, spread=30.0)
            async with running(path, budget=0.8 / costs.typical, costs=costs, learner=learner):
                changes = asyncio.create_task(asyncio.to_thread(change))
                asks = asyncio.create_task(asyncio.to_thread(ask, cache, time.monotonic() + 14.0))
                await asyncio.sleep(32.0)
                over.set()
                await asyncio.gather(changes, asks)

    asyncio.run(scene())
    for name, answers in said.items():
        stated = sum(fresh for fresh, _ in answers) / len(answers)
        right = sum(is_right for _, is_right in answers) / len(answers)
        print(f"{name}: {stated:.3f} said, {right:.3f} right")
        assert stated == pytest.approx(right, abs=0.1), f"{name}: {stated:.3f} said, {right:.3f} right"


RUNNER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_sql_live import running
async def main():
    async with running(Path(sys.argv[1])) as daemon:
        print("ready", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


def test_a_runner_that_is_killed_loses_nothing(postgres: Postgres, tmp_path: Path) -> None:
    path, url = tmp_path / "afresh.db", postgres.fresh("killing", *TABLES)

    def start() -> subprocess.Popen[str]:
        here = str(Path(__file__).parent)
        support = f"{here}:{Path(__file__).parent.parent / 'support'}"
        runner = subprocess.Popen(
            [sys.executable, "-c", RUNNER, str(path), here],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": support},
        )
        assert runner.stdout is not None
        assert runner.stdout.readline() == "ready\n"
        return runner

    with QueryCache(path, databases=[Database("shop", url)], queries=[OF_SHOP]) as cache:
        for nth in range(2):
            runner = start()
            for shop in range(10 * nth, 10 * nth + 10):
                cache.get("of_shop", shop=shop)
            runner.send_signal(signal.SIGKILL)
            runner.communicate()
        assert cache.get("of_shop", shop=2, fresh=0.0)[0] == (2, 20)
        # What was handed over and not yet taken in waits in the inbox; whoever comes next takes it in, once.
        cache.get("of_shop", shop=99)
    with Sqlite(path) as store:
        for shop in range(20):
            history = store.history(f"sql:shop/of_shop?shop={shop}", 100)
            assert sum(crawl.outcome is Outcome.NEW for crawl in history) == 1
            assert store.copy(f"sql:shop/of_shop?shop={shop}") is not None

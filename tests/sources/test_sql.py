"""Queries of real databases: SQLite, PostgreSQL, and any driver that keeps to PEP 249."""

import asyncio
import logging
import threading
import time
from pathlib import Path

import apsw
import psycopg
import pytest

from afresh.detect.fingerprint import mark
from afresh.sources.base import Known
from afresh.sources.sql import Database, Definitions, Query, Sql
from afresh.sources.sql.pool import Pool
from afresh.sources.sql.statement import Statement
from afresh.sources.sql.values import from_json
from afresh.testing import SourceWorld, check_source
from afresh.types import Answer, Blame, Fetched, Validators
from postgres import Postgres

ORDERS = "CREATE TABLE orders (id INTEGER PRIMARY KEY, day TEXT, amount INTEGER)"
FILL = "INSERT INTO orders VALUES (1, '2026-11-17', 10), (2, '2026-11-17', 20), (3, '2026-11-18', 30)"
OF_DAY = "SELECT id, amount FROM orders WHERE day = :day AND amount >= :least"
KEY = "sql:shop/of_day?day=2026-11-17&least=0"


def sqlite_at(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(ORDERS)
    connection.execute(FILL)
    return connection


def source_of(url: str, **queries: str) -> Sql:
    made = [Query(name, "shop", sql) for name, sql in queries.items()]
    return Sql(Definitions([Database("shop", url, timeout=2.0, max_rows=1000, max_bytes=100_000)], made))


def got(source: Sql, key: str, known: Known | None = None) -> Fetched:
    async def ask() -> Fetched:
        return await source.get(key, known or Known())

    return asyncio.run(ask())


def known_of(fetched: Fetched) -> Known:
    fingerprint = mark(fetched.body)
    return Known(Validators(fetched.validators.etag, "", fingerprint), fetched.started, fetched.started)


@pytest.mark.parametrize("driver", ["sqlite", "sqlite3"])
def test_the_battery_with_sqlite(driver: str, tmp_path: Path) -> None:
    """As a driver that we know, and as one that keeps to PEP 249."""
    path = tmp_path / "shop.db"
    connection = sqlite_at(path)
    source = source_of(f"{driver}:{path}", of_day=OF_DAY)
    check_source(
        lambda: SourceWorld(
            source,
            text="sql:shop/of_day?least=0&day=2026-11-17",
            foreign="https://example.com/",
            change=lambda: connection.execute("UPDATE orders SET amount = 11 WHERE id = 1"),
            remove=lambda: source.definitions.queries.pop("of_day"),
            missing="sql:shop/nothing",
        )
    )


def test_the_battery_with_postgres(postgres: Postgres) -> None:
    source = source_of(postgres.fresh("battery", ORDERS, FILL), of_day=OF_DAY)
    check_source(
        lambda: SourceWorld(
            source,
            text="sql:shop/of_day?least=0&day=2026-11-17",
            foreign="https://example.com/",
            change=lambda: postgres.run("battery", "UPDATE orders SET amount = 11 WHERE id = 1"),
            remove=lambda: source.definitions.queries.pop("of_day"),
            missing="sql:shop/nothing",
        )
    )


def test_types_tables_and_order_with_postgres(postgres: Postgres) -> None:
    url = postgres.fresh(
        "types",
        "CREATE SCHEMA other",
        "CREATE TABLE other.things (id int8, price numeric(8,2), at timestamptz, tags text[], doc jsonb, raw bytea)",
        "CREATE VIEW things AS SELECT * FROM other.things",
        "CREATE TABLE unused (id int)",
        "INSERT INTO other.things VALUES (2, 1.50, '2026-11-17 10:00+00', '{a,b}', '{\"k\": 1}', 'x')",
        "INSERT INTO other.things (id) VALUES (1)",
    )
    source = source_of(url, all="SELECT * FROM things WHERE id <= :most", down="SELECT id FROM things ORDER BY id DESC")
    columns, rows = from_json(got(source, "sql:shop/all?most=5").body)
    assert [kind for _, kind in columns] == ["int8", "numeric", "timestamptz", "text[]", "jsonb", "bytea"]
    assert rows[0][1:] == (None,) * 5
    assert str(rows[1][1]) == "1.50"
    assert rows[1][2].utcoffset() is not None
    assert rows[1][3:] == (["a", "b"], {"k": 1}, b"x")
    assert source.tables("sql:shop/all?most=5") == {"other.things"}
    assert source.keys_reading("shop", "things") == source.keys_reading("shop", "other.things") != []
    assert source.keys_reading("shop", "unused") == source.keys_reading("elsewhere", "things") == []
    assert from_json(got(source, "sql:shop/down").body)[1] == [(2,), (1,)]
    asyncio.run(source.close())


def test_sqlite_says_what_has_not_changed_without_running_the_query(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    connection = sqlite_at(path)
    source = source_of(f"sqlite:{path}", of_day=OF_DAY, now="SELECT count(*), unixepoch() FROM orders")
    first = got(source, KEY)
    assert source.tables(KEY) == {"orders"}
    assert got(source, KEY, known_of(first)).answered is Answer.SAME
    connection.execute("UPDATE orders SET amount = 5 WHERE id = 3")  # of another day: the same content, read anew
    again = got(source, KEY, known_of(first))
    assert (again.answered, again.body) == (Answer.NEW, first.body)
    clock = got(source, "sql:shop/now")
    assert not clock.validators.etag  # what asks the clock changes although the database does not
    path.with_name("other.db").write_bytes(b"")
    other = sqlite_at(path.with_name("new.db"))
    other.execute("DELETE FROM orders")
    other.close()
    connection.close()
    for name in ("shop.db-wal", "shop.db-shm"):
        path.with_name(name).unlink(missing_ok=True)
    path.with_name("new.db").replace(path)  # another file under its name
    assert from_json(got(source, KEY, known_of(again)).body)[1] == []


SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n WHERE i > :x"


def test_what_takes_too_long_or_too_much_has_one_outcome(postgres: Postgres, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    sqlite_at(path).close()
    queries = {
        "slow": SLOW,
        "many": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
        "wide": "SELECT a.day || a.day || hex(zeroblob(40000)) FROM orders a, orders b",
        "none": "SELECT * FROM nowhere",
    }
    of_postgres = {**queries, "wide": "SELECT repeat('x', 40000) FROM orders a, orders b"}
    for url, texts in ((f"sqlite:{path}", queries), (postgres.fresh("limits", ORDERS, FILL), of_postgres)):
        source = source_of(url, **texts)
        began = time.monotonic()
        reasons = [got(source, f"sql:shop/{key}").reason for key in ("slow?x=1", "many", "wide", "none")]
        assert reasons == ["timeout", "too_many_rows", "result_too_large", "undefined"]
        assert time.monotonic() - began < 8.0
        assert got(source, "sql:shop/none").blame is Blame.KEY
        asyncio.run(source.close())


def test_who_stops_waiting_stops_the_query(postgres: Postgres) -> None:
    url = postgres.fresh("stopping", ORDERS)
    source = source_of(url, sleep="SELECT pg_sleep(:seconds)", quick="SELECT 1")

    async def stop_it() -> None:
        asked = asyncio.create_task(source.get("sql:shop/sleep?seconds=1.9", Known()))
        await asyncio.sleep(0.3)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert (await source.get("sql:shop/quick", Known())).answered is Answer.NEW

    def running() -> int:
        with psycopg.connect(url) as connection:
            row = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%'"
            ).fetchone()
        assert row is not None
        return int(row[0])

    began = time.monotonic()
    asyncio.run(stop_it())
    while running():
        assert time.monotonic() - began < 1.5, "it ran on until it was over"
        time.sleep(0.02)


def test_nothing_is_ever_written(postgres: Postgres, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    connection = sqlite_at(path)
    url = postgres.fresh(
        "writing",
        ORDERS,
        FILL,
        "CREATE FUNCTION wipe() RETURNS int LANGUAGE sql AS 'DELETE FROM orders; SELECT 1'",
    )
    source = source_of(
        url,
        call="SELECT wipe()",
        hidden="WITH gone AS (DELETE FROM orders RETURNING id) SELECT * FROM gone",
        undo="SELECT set_config('transaction_read_only', 'off', true), wipe()",
    )
    for name in source.definitions.queries:
        assert got(source, f"sql:shop/{name}").answered is Answer.FAILED
    with psycopg.connect(url) as check:
        assert check.execute("SELECT count(*) FROM orders").fetchone() == (3,)
    here = source_of(f"sqlite:{path}", hidden="WITH a AS (SELECT 1) DELETE FROM orders RETURNING id")
    assert got(here, "sql:shop/hidden").reason == "not_read_only"
    assert connection.execute("SELECT count(*) FROM orders").fetchone() == (3,)


def test_a_database_that_is_started_again_and_one_that_is_not_there(postgres: Postgres) -> None:
    """Connections that a restart ended are no failure; a server that is away rests as a whole, and comes back."""
    source = source_of(postgres.fresh("restart", ORDERS, FILL), of_day=OF_DAY, sleep="SELECT pg_sleep(1.5)")
    first = got(source, KEY)
    postgres.stop()
    postgres.start()
    assert got(source, KEY).body == first.body

    async def in_the_middle() -> Fetched:
        asked = asyncio.create_task(source.get("sql:shop/sleep", Known()))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(postgres.stop)
        return await asked

    cut = asyncio.run(in_the_middle())
    away = got(source, KEY)
    postgres.start()
    assert [each.answered for each in (cut, away)] == [Answer.BUSY, Answer.BUSY]
    assert [each.blame for each in (cut, away)] == [Blame.LANE, Blame.LANE]
    assert away.reason == "unreachable"
    assert got(source, KEY).body == first.body
    asyncio.run(source.close())


def test_a_password_is_nowhere(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    postgres.fresh("secrets", ORDERS, FILL)
    postgres.run("secrets", "CREATE ROLE reader LOGIN PASSWORD 'hush-hush'", "GRANT SELECT ON orders TO reader")
    right, wrong = (postgres.url_with_password("reader", word, "secrets") for word in ("hush-hush", "wrong-hush"))
    place = tmp_path / "url"
    place.write_text(right + "\n")
    monkeypatch.setenv("SHOP_URL", wrong)
    caplog.set_level(logging.DEBUG)
    assert got(source_of(f"@{place}", of_day=OF_DAY), KEY).answered is Answer.NEW
    source = source_of("$SHOP_URL", of_day=OF_DAY)
    denied = got(source, KEY)
    assert (denied.reason, denied.blame) == ("denied", Blame.LANE)
    assert got(source_of("$NOBODY_SET_THIS", of_day=OF_DAY), KEY).reason == "no_url"
    assert "hush" not in caplog.text + repr(denied) + repr(source.definitions.databases)
    assert "denied" in caplog.text


def test_a_driver_that_hangs_holds_up_neither_us_nor_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hanging.py").write_text(
        "import threading\nparamstyle = 'qmark'\nclass C:\n    def cursor(self): threading.Event().wait()\n"
        "    def rollback(self): pass\n    def close(self): pass\ndef connect(x): return C()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("afresh.sources.sql.pool.GRACE_SECONDS", 0.1)
    database = Database("shop", "hanging:x", timeout=0.1, connections=2)
    source = Sql(Definitions([database], [Query("q", "shop", "select 1")]))
    pool = source.pool("shop")
    assert pool is not None
    pool.limits = type(pool.limits)(seconds=0.1, connect=0.1)
    before = threading.active_count()
    for _ in range(6):
        answer = got(source, "sql:shop/q")
        assert (answer.reason, answer.blame) == ("hangs", Blame.LANE)
    assert threading.active_count() <= before + 2


def test_unknown_modules_and_files(tmp_path: Path) -> None:
    for url, reason in (
        ("no_such_module:x", "no_driver"),
        ("json:x", "no_driver"),
        ("sqlite:/nowhere/x", "no_such_file"),
    ):
        answer = got(source_of(url, q="select 1"), "sql:shop/q")
        assert (answer.reason, answer.blame) == (reason, Blame.LANE)
    (tmp_path / "text.db").write_text("this is no database " * 100)
    assert got(source_of(f"sqlite:{tmp_path / 'text.db'}", q="select 1 from t"), "sql:shop/q").blame is Blame.LANE


def test_a_job_that_comes_as_a_thread_goes_is_carried_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads end as soon as they have nothing to do, in the midst of jobs that come."""
    monkeypatch.setattr("afresh.sources.sql.pool.IDLE_SECONDS", 0.0002)
    pool = Pool(Database("shop", f"sqlite:{tmp_path / 'shop.db'}", connections=1))
    statement = Statement.of("SELECT 1")
    apsw.Connection(str(tmp_path / "shop.db")).execute("CREATE TABLE t (n)")
    for nth in range(300):
        job = pool.submit(statement, {})
        assert job.future.result(5.0).found is not None
        until = time.perf_counter() + 0.0002 * (0.5 + nth % 20 / 20)
        while time.perf_counter() < until:
            pass  # a sleep would be too coarse
    pool.close()
    deadline = time.monotonic() + 5.0
    while pool._threads:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert pool._threads == 0


def test_what_a_database_says_of_a_failure_is_kept_until_the_query_fares_well(tmp_path: Path) -> None:
    connection, kept = sqlite_at(tmp_path / "shop.db"), dict[str, str]()

    def take(source: Sql) -> None:
        for name, text in source.take().items():
            kept.pop(name, None) if text is None else kept.update({name: text})

    definitions = source_of(f"sqlite:{tmp_path / 'shop.db'}", of_tills="SELECT * FROM tills").definitions
    source = Sql(definitions, recall=kept.get)
    assert got(source, "sql:shop/of_tills").reason == "undefined"
    take(source)
    assert kept == {"sql failed sql:shop/of_tills": "no such table: tills"}
    source = Sql(definitions, recall=kept.get)  # after a restart
    connection.execute("CREATE TABLE tills (n INTEGER)")
    assert got(source, "sql:shop/of_tills").answer is Answer.NEW
    take(source)
    assert not [name for name in kept if name.startswith("sql failed ")]

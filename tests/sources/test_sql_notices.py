"""What databases say themselves, and what they say they are asked."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from afresh.errors import InputError
from afresh.sources.sql import Database, Query
from afresh.sources.sql.notices import ALL, Notices, changed_keys
from afresh.sources.sql.suggest import suggested
from postgres import Postgres


class Ear:
    """Collects what is heard."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []
        self._news = threading.Condition()

    def __call__(self, sender: str, said: frozenset[str]) -> None:
        with self._news:
            self.heard += [(sender, word) for word in sorted(said)]
            self._news.notify_all()

    def waits_for(self, *expected: tuple[str, str], seconds: float = 15.0) -> bool:
        with self._news:
            return self._news.wait_for(lambda: set(expected) <= set(self.heard), seconds)


@contextmanager
def listening(database: Database) -> Iterator[Ear]:
    ear = Ear()
    notices = Notices(database, ear)
    notices.start()
    try:
        yield ear
    finally:
        notices.stop()


def test_postgres_notifies_and_counts(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.sources.sql.notices.LOOK_EVERY", 0.1)
    url = postgres.fresh("notices", "CREATE TABLE orders (id int)", "CREATE TABLE quiet (id int)")
    with listening(Database("shop", url, notify="changed")) as ear:
        deadline = time.monotonic() + 15
        while not ear.waits_for(("notify:shop", "orders"), ("tables:shop", "public.orders"), seconds=0.3):
            assert time.monotonic() < deadline, ear.heard
            postgres.run("notices", "INSERT INTO orders VALUES (1)", "NOTIFY changed, 'orders'")
        assert ("tables:shop", "public.quiet") not in ear.heard
        postgres.stop()
        postgres.start()
        ear.heard.clear()
        deadline = time.monotonic() + 20
        while not ear.waits_for(("notify:shop", ALL), seconds=0.3):  # it listens again after a restart
            assert time.monotonic() < deadline, ear.heard
            postgres.run("notices", "NOTIFY changed")


def test_sqlite_says_that_its_file_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("afresh.sources.sql.notices.LOOK_EVERY", 0.05)
    path = tmp_path / "shop.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE t (x)")
    with listening(Database("shop", f"sqlite:{path}")) as ear:
        time.sleep(0.3)
        assert ear.heard == []
        connection.execute("INSERT INTO t VALUES (1)")
        assert ear.waits_for(("data_version:shop", ALL))


def test_what_is_said_of_a_table_is_about_the_queries_that_read_it() -> None:
    keys = dict.fromkeys(["sql:shop/a?x=1", "sql:shop/a?x=2", "sql:shop/b"])
    reading = {"orders": ["sql:shop/a?x=1", "sql:shop/b"]}
    said = {word: changed_keys(frozenset([word]), lambda table: reading.get(table, []), keys) for word in
            ("orders", "a", "sql:shop/b", ALL, "nobody")}  # fmt: skip
    assert said["orders"] == {"sql:shop/a?x=1", "sql:shop/b"}
    assert said["a"] == {"sql:shop/a?x=1", "sql:shop/a?x=2"}
    assert said["sql:shop/b"] == {"sql:shop/b"}
    assert said[ALL] == set(keys)
    assert said["nobody"] == set()


# What the extension shows, for a server that does not come with it.
STATISTICS = (
    "CREATE TABLE pg_stat_statements (query text, calls int8, total_exec_time float8, rows int8, dbid oid)",
    "CREATE TABLE pg_stat_statements_info AS SELECT now() - interval '100 s' AS stats_reset",
    """INSERT INTO pg_stat_statements SELECT query, calls, ms, rows, oid FROM pg_database, (VALUES
      ('SELECT name FROM orders WHERE day = $1 ORDER BY n DESC LIMIT $2', 500, 5000.0, 5000),
      ('UPDATE orders SET n = $1', 10000, 99999.0, 1),
      ('SELECT 1 FROM rare', 3, 90000.0, 3),
      (E'WITH x AS (SELECT "a"\nFROM t) SELECT * FROM x', 20, 100000.0, 20)) AS q (query, calls, ms, rows)
      WHERE datname = current_database()""",
)


def test_it_suggests_what_a_database_is_asked_often(postgres: Postgres, tmp_path: Path) -> None:
    found = suggested(Database("shop", postgres.fresh("suggesting", *STATISTICS)))
    assert [each.name for each in found] == ["t", "orders"]
    assert found[1].rate == pytest.approx(5.0, rel=0.2)
    assert found[1].seconds == pytest.approx(0.01)
    assert found[1].sql == "SELECT name FROM orders WHERE day = :day ORDER BY n DESC LIMIT :p2"
    import tomllib

    written = tomllib.loads("\n".join(each.toml("shop") for each in found))["query"]
    assert [Query(**each).statement.parameters for each in written] == [(), ("day", "p2")]
    with pytest.raises(InputError, match="does not count"):
        suggested(Database("shop", postgres.fresh("uncounted")))
    with pytest.raises(InputError, match="no PostgreSQL"):
        suggested(Database("shop", f"sqlite:{tmp_path / 'x.db'}"))

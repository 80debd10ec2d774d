"""What an application uses in place of running a query, here without a runner on its store."""

import asyncio
import json
import math
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh import Database, Query, QueryCache
from afresh.errors import ConfigError, FetchError
from afresh.sources.sql.cache import runs_on_request, seconds_gained, worth_a_run
from afresh.sources.sql.stated import unheard
from afresh.store import Record, Sqlite
from afresh.store.handed import of_result, result_in
from afresh.types import Beliefs, Fetched, Page, Validators
from postgres import Postgres

TOP = Query("top", "shop", "SELECT name, amount FROM sales WHERE day = :day")


def shop(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE sales (name TEXT, amount INTEGER, day TEXT)")
    connection.execute("INSERT INTO sales VALUES ('ann', 5, '2026-11-17'), ('bo', 7, '2026-11-17')")
    return connection


def test_an_answer_is_run_once_and_then_kept(tmp_path: Path) -> None:
    connection = shop(tmp_path / "shop.db")
    database = Database("shop", f"sqlite:{tmp_path / 'shop.db'}")
    with QueryCache(tmp_path / "afresh.db", databases=[database], queries=[TOP]) as cache:
        first = cache.get("top", day="2026-11-17")
        assert (list(first), first.kept, first.fresh) == ([("ann", 5), ("bo", 7)], False, 1.0)
        assert first.dicts()[0] == {"name": "ann", "amount": 5}
    connection.execute("UPDATE sales SET amount = 6 WHERE name = 'ann'")
    with QueryCache(tmp_path / "afresh.db") as other:  # which finds the definitions in the store
        kept = other.get("top", day="2026-11-17")
        assert (kept[0], kept.kept) == (("ann", 5), True)
        assert 0.0 <= kept.age < 60.0
        assert kept.fresh == 0.0  # nobody watches it
        run = other.get("top", day="2026-11-17", fresh=0.5)
        assert (run[0], run.kept, run.fresh) == (("ann", 6), False, 1.0)
        assert asyncio.run(other.aget("top", day="2026-11-18")).dicts() == []
    with Sqlite(tmp_path / "afresh.db") as store:
        assert [crawl.outcome for crawl in store.history("sql:shop/top?day=2026-11-17")] == ["changed", "new"]
        counted = [entry for entry in store.inbox() if entry.kind == "requests"]
        assert sum(item[2] for entry in counted for item in json.loads(entry.body)) == 4


def test_one_key_is_run_once_however_many_ask(postgres: Postgres, tmp_path: Path) -> None:
    url = postgres.fresh("flights")
    slow = Query("slow", "shop", "SELECT pg_sleep(0.3)::text, :n, clock_timestamp()")
    with QueryCache(tmp_path / "a.db", databases=[Database("shop", url, connections=1)], queries=[slow]) as cache:
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(cache.get("slow", n=1))) for _ in range(8)]
        for thread in threads:
            thread.start()

        async def ask() -> None:
            answers.extend(await asyncio.gather(*(cache.aget("slow", n=1) for _ in range(8))))

        asyncio.run(ask())
        for thread in threads:
            thread.join()
        assert len(answers) == 16
        assert len({answer.json() for answer in answers}) == 1


CHILD = """
import sys
from afresh import QueryCache
with QueryCache(sys.argv[1]) as cache:
    print("ready", flush=True)
    sys.stdin.readline()
    print(cache.get("slow", n=1, fresh=0.9).json(), flush=True)
"""


def test_other_processes_wait_for_the_one_that_runs_it(postgres: Postgres, tmp_path: Path) -> None:
    url = postgres.fresh("processes")
    slow = Query("slow", "shop", "SELECT pg_sleep(0.4)::text, :n, clock_timestamp()")
    with QueryCache(tmp_path / "a.db", databases=[Database("shop", url)], queries=[slow]):
        pass
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path / "a.db")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    said = {child.communicate(timeout=30)[0] for child in children}
    assert len(said) == 1
    assert "pg_sleep" in said.pop()
    with Sqlite(tmp_path / "a.db") as store:
        assert len(store.history("sql:shop/slow?n=1")) == 1


def test_one_that_was_killed_in_its_turn_holds_up_nobody(postgres: Postgres, tmp_path: Path) -> None:
    url = postgres.fresh("killed")
    slow = Query("slow", "shop", "SELECT pg_sleep(1.5)::text, :n")
    with QueryCache(tmp_path / "a.db", databases=[Database("shop", url)], queries=[slow]) as cache:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path / "a.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
        deadline = time.monotonic() + 20
        while cache._shared.turns.take("sql:shop/slow?n=1"):
            cache._shared.turns.end("sql:shop/slow?n=1")
            assert time.monotonic() < deadline
            time.sleep(0.01)
        child.kill()
        child.communicate()
        assert len(cache.get("slow", n=1)) == 1


def test_what_cannot_be_run_says_why(postgres: Postgres, tmp_path: Path) -> None:
    databases = [Database("away", "postgresql://reader@127.0.0.1:1/shop"), Database("here", postgres.fresh("errors"))]
    queries = [Query("far", "away", "SELECT 1"), Query("bad", "here", "SELECT * FROM nowhere")]
    with QueryCache(tmp_path / "a.db", databases=databases, queries=queries) as cache:
        for name, reason in (("far", "unreachable"), ("bad", "undefined .*nowhere")):
            with pytest.raises(FetchError, match=reason):
                cache.get(name)
            with pytest.raises(FetchError, match=reason):
                asyncio.run(cache.aget(name))
        with pytest.raises(ConfigError, match="known are bad, far"):
            cache.get("nothing")
        with pytest.raises(ConfigError, match="needs: "):
            cache.get("far", day=1)
        with pytest.raises(ConfigError, match="no probability"):
            cache.get("far", fresh=1.5)
    with pytest.raises(ConfigError, match="There is no store"):
        QueryCache(tmp_path / "slip.db")
    assert not (tmp_path / "slip.db").exists()


def test_it_answers_by_what_is_believed_of_a_key_and_what_a_run_costs(tmp_path: Path) -> None:
    shop(tmp_path / "shop.db").close()
    path = tmp_path / "afresh.db"
    database = Database("shop", f"sqlite:{tmp_path / 'shop.db'}")
    with QueryCache(path, databases=[database], queries=[TOP]) as cache:
        cache.get("top", day="2026-11-17")
    with Sqlite(path) as store:
        state = store.state("sql:shop/top?day=2026-11-17")
        assert state is not None
        beliefs = Beliefs(request_rate=0.01, change_rate=1000.0, observations=10)
        store.write([Record(None, replace(state, beliefs=beliefs, cost_new=0.05))])
    with QueryCache(path) as cache:
        assert not cache.get("top", day="2026-11-17").kept  # it changes faster than it is asked for
    with Sqlite(path) as store:
        state = store.state("sql:shop/top?day=2026-11-17")
        assert state is not None
        store.write([Record(None, replace(state, beliefs=beliefs, cost_new=0.05))])
        store.put({"price sql:shop": "50.0"})  # a second of the database brings more elsewhere
    with QueryCache(path) as cache:
        rows = cache.get("top", day="2026-11-17")
        assert rows.kept
        assert rows.fresh < 0.1
    with Sqlite(path) as store:
        state = store.state("sql:shop/top?day=2026-11-17")
        assert state is not None
        heard = Beliefs(request_rate=9.0, change_rate=0.1, recall=1.0, observations=10)  # its signals tell everything,
        store.write([Record(None, replace(state, beliefs=heard, cost_new=0.05))])
        age = 60.0
    with QueryCache(path, clock=lambda: time.time() + age) as cache:
        rows = cache.get("top", day="2026-11-17", fresh=0.0)
        assert rows.kept
        assert rows.fresh == pytest.approx(unheard(heard, rows.age, hears=False), rel=1e-6)  # but nobody listens
        assert 0.0 < rows.fresh < math.exp(-0.1 * rows.age)
    assert worth_a_run(0.1, 0.01, 50.0)
    assert not runs_on_request(replace(beliefs, observations=1))


def test_a_result_goes_through_the_inbox_whole_or_not_at_all() -> None:
    body = bytes(range(256)) * 20
    fetched = Fetched("sql:a/b", 5.0, 0.1, body=body, content_type="application/json", validators=Validators("", "", 7))
    entry = of_result(Page("sql:a/b", "sql:a"), fetched, 6.0)
    assert entry is not None
    handed = result_in(entry)
    assert (handed.fetched.body, handed.fingerprint, handed.page.host) == (body, 7, "sql:a")
    assert of_result(Page("sql:a/b", "sql:a"), replace(fetched, body=os.urandom(80_000)), 6.0) is None
    for wrong in ("[]", "[{}]", '[{"body": "x"}]', entry.body.replace('"spent": [', '"spent": [-'), "nonsense"):
        with pytest.raises((ValueError, KeyError, TypeError)):
            result_in(replace(entry, body=wrong))


@given(rate=st.floats(1e-6, 1e3), age=st.floats(0.01, 5.0))
def test_what_a_refresh_gains_is_the_integral_of_what_it_is_more_likely_to_be_fresh(rate: float, age: float) -> None:
    beliefs = Beliefs(change_rate=rate)
    until = age / rate
    fresh = beliefs.freshness(until, 0)
    steps = 4000
    ages = [(nth + 0.5) * until / steps for nth in range(steps)]
    summed = math.fsum(beliefs.freshness(each, 0) - fresh for each in ages) * until / steps
    assert seconds_gained(fresh, beliefs) == pytest.approx(summed, rel=1e-3, abs=1e-9 / rate)
    assert seconds_gained(0.0, replace(beliefs, shape=0.1)) <= 1.0 / rate


def test_an_application_has_its_answers_though_the_disk_is_full(small: Path, tmp_path: Path) -> None:
    shop = apsw.Connection(str(tmp_path / "shop.db"))
    shop.execute("CREATE TABLE sales (n INTEGER)")
    shop.execute("INSERT INTO sales VALUES (1), (2)")
    query = Query("sold", "shop", "SELECT n FROM sales WHERE n >= :least")
    database = Database("shop", f"sqlite:{tmp_path / 'shop.db'}")
    with QueryCache(small / "afresh.db", databases=[database], queries=[query]) as cache:
        assert cache.get("sold", least=1).dicts() == [{"n": 1}, {"n": 2}]
        filler = (small / "filler").open("wb", buffering=0)
        with suppress(OSError):  # until there is no space left
            while True:
                filler.write(bytes(10_000))
        filler.close()
        for least in (1, 2, 3):
            assert len(cache.get("sold", least=least, fresh=1.0)) == 3 - least
    (small / "filler").unlink()
    with QueryCache(small / "afresh.db") as cache:
        assert cache.get("sold", least=1, fresh=0.0).dicts() == [{"n": 1}, {"n": 2}]
        assert len(cache.get("sold", least=2)) == 1

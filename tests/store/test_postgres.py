"""The store in PostgreSQL: the same promises as in a file, and what only a server can do to it.

A server of our own is started, since it is killed as well. The battery runs on the one that AFRESH_POSTGRES names, too,
by its URL: a database `afresh_test_battery` is made in it.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

import afresh
from afresh.cli import app
from afresh.errors import StoreError, StoreLocked
from afresh.store import Entry, KeepVersions, Memory, PageState, Sqlite, Store, carry
from afresh.store.listing import Wanted
from afresh.store.outbox import DEAD, Message, Outbox
from afresh.store.postgres import Postgres, schema
from afresh.testing import check_store
from afresh.testing.store_model import StoreModel, page, record
from afresh.types import Address, Outcome
from postgres import Named
from postgres import Postgres as Server

SOURCE = str(Path(afresh.__file__).parent.parent)
EMPTY = (
    "TRUNCATE afresh.pages, afresh.copies, afresh.crawls, afresh.hosts, afresh.named, afresh.versions_of_pages",
    "TRUNCATE afresh.inbox, afresh.inbox_keys",
    "UPDATE afresh.totals SET pages = 0, copies = 0, crawls = 0, changes = 0, body_bytes = 0, stored_bytes = 0",
    "UPDATE afresh.totals SET removed_crawls = 0 WHERE removed_crawls <> 0",
    "UPDATE afresh.serials SET crawls = 0",
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def url(server: Server) -> str:
    """A database of its own, with nothing in it."""
    return server.fresh("store")


@pytest.mark.parametrize("whose", ["ours", "named"])
def test_passes_the_battery(request: pytest.FixtureRequest, whose: str) -> None:
    """Each store of the battery is the same database, emptied."""
    named = os.environ.get("AFRESH_POSTGRES", "")
    if whose == "named" and not named:
        pytest.skip("AFRESH_POSTGRES names no server")
    server: Server = Named(named) if whose == "named" else request.getfixturevalue("server")
    url = server.fresh("battery")
    Postgres(url).close()

    def make() -> Postgres:
        server.run("battery", *EMPTY)
        return Postgres(url, keep_crawls=5)

    def again(store: Store) -> Store:
        assert isinstance(store, Postgres)
        return Postgres(store.address, keep_crawls=5)

    check_store(make, again)


def encoded(server: Server, encoding: str) -> str:
    """The URL of a new database of this encoding; many a server in a container has SQL_ASCII as its default."""
    name = f"in_{encoding}".lower()
    made = f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    server.run("postgres", f"DROP DATABASE IF EXISTS {name}", made)
    return server.url(name)


def test_a_database_without_an_encoding_passes_the_battery_as_well(server: Server) -> None:
    url = encoded(server, "SQL_ASCII")
    Postgres(url).close()

    def make() -> Postgres:
        server.run("in_sql_ascii", *EMPTY)
        return Postgres(url, keep_crawls=5)

    check_store(make, lambda store: Postgres(url, keep_crawls=5), steps=10)


def test_a_database_that_cannot_hold_every_text_is_refused_before_anything_is_in_it(server: Server) -> None:
    url = encoded(server, "LATIN1")
    with pytest.raises(StoreError, match="its encoding is LATIN1") as caught:
        Postgres(url)
    assert "UTF8" in caught.value.hint
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT to_regnamespace('afresh')").fetchone() == (None,)


def test_a_batch_that_holds_a_page_many_times_leaves_what_the_model_says(url: str) -> None:
    model, memory = StoreModel(3), Memory(keep_crawls=3)
    with Postgres(url, keep_crawls=3) as store:
        for taker in (model, store, memory):
            taker.add([page(1), page(2)])
        outcomes = [Outcome.NEW, *[Outcome.FAILED] * 14, Outcome.CHANGED, Outcome.GONE, Outcome.GONE]
        batch, state = [], PageState(page(1))
        for nth, outcome in enumerate(outcomes):
            body = b"%d" % nth if outcome in (Outcome.NEW, Outcome.CHANGED) else None
            batch.append(record(state, outcome, float(nth), body))
            state = batch[-1].state
        for taker in (model, store, memory):
            taker.write([*batch, record(PageState(page(2)), Outcome.NEW, 30.0, b"other")])
        model.compare(memory)
        model.compare(store)
        assert list(store.problems()) == []


WRITER = """
import random, sys
from itertools import count
from afresh.store import PageState
from afresh.store.postgres import Postgres
from afresh.testing.store_model import page, record
from afresh.types import Outcome

store = Postgres(sys.argv[1], keep_crawls=10, patience=20.0)
store.claim()
start = int(store.get("time") or 0)
print("ready", start, flush=True)
for time in count(start + 1):
    chosen = random.Random(time).sample(range(40), 8)
    store.add([page(nth) for nth in chosen])
    batch = [record(store.state(page(nth).url) or PageState(page(nth)), Outcome.CHANGED, float(time),
             random.Random(f"{nth} {time}").randbytes(500 + nth * 700)) for nth in chosen]
    store.write(batch, values={"time": str(time)})
    print("kept", time, *chosen, flush=True)
"""


def start(url: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.Popen([sys.executable, "-c", WRITER, url], stdout=subprocess.PIPE, text=True, env=environment)


def heard(process: subprocess.Popen[str]) -> list[list[str]]:
    assert process.stdout
    with process.stdout as said:
        return [line.split() for line in said.read().splitlines(keepends=True) if line.endswith("\n")]


def test_what_was_acknowledged_survives_kill_9_of_client_and_server() -> None:
    """The server comes back while the client waits: the client goes on, and no batch is written twice."""
    server = Server()
    try:
        url = server.fresh("store")
        kept: dict[int, int] = {}
        batches, rng = 0, random.Random(3)
        for victim in ("client", "server", "client"):
            process = start(url)
            assert process.stdout
            assert process.stdout.readline().split()[0] == "ready"
            time.sleep(rng.uniform(0.1, 0.4))
            if victim == "server":
                server.kill()
                time.sleep(0.3)
                server.start()
                time.sleep(1.0)
            process.send_signal(signal.SIGKILL)
            lines = [line for line in heard(process) if line[0] == "kept"]
            process.wait()
            batches += len(lines)
            if victim == "server":
                assert len({line[1] for line in lines}) == len(lines), "a batch was written twice"
            kept |= {int(nth): int(moment) for _, moment, *chosen in lines for nth in chosen}
        assert batches > 10, "too few batches to prove anything"
        with Postgres(url, keep_crawls=10) as store:
            store.claim()
            assert list(store.problems()) == []
            for nth, moment in kept.items():
                crawl, *_ = store.history(page(nth).url)
                assert crawl.time >= moment, f"the crawl of page {nth} at {moment} was acknowledged and is lost"
                copy = store.copy(page(nth).url)
                assert copy is not None
                assert copy.body == random.Random(f"{nth} {int(copy.fetched)}").randbytes(500 + nth * 700)
    finally:
        server.close()


def test_a_lost_connection_does_not_stop_a_runner_and_a_taken_claim_does(url: str) -> None:
    with Postgres(url, patience=2.0) as runner:
        runner.add([page(1)])
        runner.claim()
        end_sessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'afresh'"
        with psycopg.connect(url, autocommit=True) as other:
            other.execute(end_sessions)
        assert runner.totals().pages == 1
        runner.write([record(PageState(page(1)), Outcome.NEW, 1.0, b"body")])
        assert runner.is_run()
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("UPDATE afresh.runners SET token = token + 1")
            other.execute(end_sessions)
        with pytest.raises(StoreLocked, match="Another afresh"):
            runner.write([], values={"a": "b"})
        assert runner.get("a") is None


def test_pages_added_by_others_at_once_are_all_seen_by_a_reader_that_goes_by_their_numbers(url: str) -> None:
    with Postgres(url) as store:

        def add(first: int) -> None:
            with Postgres(url) as other:
                for nth in range(first, first + 30):
                    other.add([page(nth)])

        adders = [threading.Thread(target=add, args=(first,)) for first in (1_000, 2_000, 3_000)]
        for adder in adders:
            adder.start()
        known, urls = 0, []
        while len(urls) < 90 and (any(adder.is_alive() for adder in adders) or store.totals().pages > len(urls)):
            for number, state in store.states(after=known):
                known = number
                urls.append(state.page.url)
        for adder in adders:
            adder.join()
        assert len(urls) == len(set(urls)) == 90


def test_every_step_of_the_schema_leads_to_the_newest(url: str) -> None:
    scripts = [*schema.steps(), "CREATE TABLE afresh.later (id integer)"]
    with Postgres(url) as store:
        store.add([page(1)])
        with Postgres(url, scripts=scripts) as newer:
            assert newer.totals().pages == 1
    with psycopg.connect(url) as connection:
        assert schema.version(connection) == len(scripts)
    with pytest.raises(StoreError, match="newer afresh"):
        Postgres(url)


def test_a_store_that_did_not_note_what_is_gone_finds_it_when_it_opens(url: str) -> None:
    Postgres(url, scripts=schema.steps()[:4]).close()
    then = [["new"], ["new", "gone", "failed"], ["gone", "unchanged", "failed"], ["new", "failed", "busy"]]
    with psycopg.connect(url) as connection:
        for nth, outcomes in enumerate(then, start=1):
            failures = int(outcomes[-1] != "new")
            connection.execute(
                "INSERT INTO afresh.pages (slice, key, number, url, host, added, failures, written)"
                " VALUES (7, %s, %s, %s, 'h', 0, %s, %s)",
                (bytes([nth]), nth, f"https://h/{nth}", 2 * failures, len(outcomes)),
            )
            for at, outcome in enumerate(outcomes, start=1):
                connection.execute(
                    "INSERT INTO afresh.crawls (slice, page, nth, time, outcome, signals, took, status, size,"
                    " significance, reason, serial) VALUES (7, %s, %s, %s, %s, 0, 0, 0, 0, 0, '', 0)",
                    (nth, at, 10.0 * at, outcome),
                )
    with Postgres(url) as store:
        assert [state.gone for _, state in store.states()] == [None, 20.0, None, None]
        assert [state.page.url for state in store.listed(Wanted(state="gone")).pages] == ["https://h/2"]
        assert len(store.identity()) == 32
    with psycopg.connect(url) as connection:
        troubles = connection.execute("SELECT trouble FROM afresh.pages ORDER BY number").fetchall()
    assert [each[0] for each in troubles] == [0, 0, 2, 2]


def test_both_kinds_of_store_have_the_columns_that_are_carried_over(url: str, tmp_path: Path) -> None:
    """Who adds a column to one is told here to add it to the other, and to `carry`."""
    unused = {"raw", "signature"}
    with Sqlite(tmp_path / "s.db") as in_file, Postgres(url) as in_server, in_server.session() as connection:
        reader = in_file.reader()
        for table in carry.TABLES:
            there = {row[1] for row in reader.execute(f"PRAGMA table_info({table.name})")} - unused
            query = (
                "SELECT column_name FROM information_schema.columns WHERE table_schema = 'afresh' AND table_name = %s"
            )
            here = {row[0] for row in connection.execute(query, (table.in_server or table.name,))}
            assert set(table.columns) == there, f"a column of {table.name} in a file is not carried over"
            assert set(table.columns) == here - set(carry.BEFORE.get(table.name, ())), f"columns of {table.name} differ"
        reader.close()


def test_passwords_are_not_shown(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    secret = "psst-d0-not-t3ll"
    for address in (
        f"postgresql://me:{secret}@127.0.0.1:1/db",
        f"postgresql://me@127.0.0.1:1/db?password={secret}",
        server.url_with_password("nobody-here", secret),
        f"postgresql://me:{secret}@127.0.0.1:1/db?nonsense=1",
    ):
        with pytest.raises(StoreError) as caught:
            Postgres(address, patience=0.1)
        assert secret not in str(caught.value)
        assert secret not in repr(Address(address))
        shown = CliRunner().invoke(app, ["status", "--store", address])
        assert isinstance(shown.exception, StoreError)
        assert secret not in shown.output + str(shown.exception)
    assert secret not in caplog.text


def test_commands_take_an_address_where_they_take_a_file(url: str, tmp_path: Path) -> None:
    def said(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, [*arguments, "--store", url])
        assert bool(result.exit_code) == bool(code), result.output
        return " ".join(f"{result.output} {result.exception}".split())

    assert "no store" in said("status", code=2)
    said("add", "http://127.0.0.1:9/", "http://127.0.0.1:9/two")
    assert "2 pages, 0 copies (not running)" in said("status")
    said("signal", "http://127.0.0.1:9/")
    assert "http://127.0.0.1:9/two" in said("show", "http://127.0.0.1:9/two")
    assert "in a file" in said("compact", code=2)
    assert "in a file" in said("search", "word", code=2)
    said("check")
    with Postgres(url) as runner:
        runner.claim()
        assert "(running)" in said("status")
        said("refresh", "http://127.0.0.1:9/two")
        assert [entry.kind for entry in runner.inbox()] == ["signals", "refresh"]
        runner.post([Entry("wish", "[]")])


def test_a_store_is_carried_over_and_back_whole(url: str, tmp_path: Path) -> None:
    def migrate(source: str, target: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["migrate", "--from", source, "--to", target])
        assert bool(result.exit_code) == bool(code), result.exception
        return " ".join(f"{result.output} {result.exception}".split())

    first, back = tmp_path / "s.db", tmp_path / "back.db"
    model = StoreModel(100)
    with Sqlite(first, keep_versions=KeepVersions(3)) as store:
        for taker in (model, store):
            taker.add([page(nth) for nth in range(30)])
        for moment in range(12):
            batch = [
                record(
                    model.states[page(nth).url], Outcome.CHANGED, 100.0 * moment + nth, random.Random(nth).randbytes(99)
                )
                for nth in range(moment, 20)
            ]
            for taker in (model, store):
                taker.write(batch)
        store.post([Entry("signals", '[["https://host1.example/1", 5.0, "cms"]]', 5.0, key="k")])
        outbox = Outbox(store)
        outbox.begin(["all"])
        outbox.add([Message("all", f"id {nth}", 1.0, 2.0, "{}") for nth in range(3)], {"all": 7})
        outbox.failed(outbox.messages("all")[0], "odd \0 \udcff", now=3.0, due=None)
        told = outbox.all(), outbox.messages("all"), outbox.messages("all", DEAD)
        store.put({"price": "3.5"})
        model.put("price", "3.5")
        store.title_of = lambda copy: "a title"
        store.write([record(model.states[page(1).url], Outcome.CHANGED, 1e4, b"text")])
        model.write([record(model.states[page(1).url], Outcome.CHANGED, 1e4, b"text")])
        identity = store.identity()
    assert "30 pages" in migrate(str(first), url)
    assert "30 pages" in migrate(str(first), url), "one that was killed while it compared is compared again"
    assert "to itself" in migrate(url, url, code=2)
    assert "to itself" in migrate(str(first), str(first), code=2)
    other = tmp_path / "other.db"
    with Sqlite(other) as store:
        store.add([page(nth) for nth in range(29)])
    assert "not empty" in migrate(str(other), url, code=2)
    migrate(url, str(back))
    for opened in (Postgres(url), Sqlite(back)):
        with opened:
            for url_of_page, state in model.states.items():
                assert opened.state(url_of_page) == state
                assert opened.copy(url_of_page) == model.copy(url_of_page)
                versions = opened.versions(url_of_page)
                assert len(versions) == min(4, len(model.crawls.get(url_of_page, [])))
                assert all(opened.version(url_of_page, each.number) for each in versions)
                assert opened.history(url_of_page, 100) == [
                    crawl for _, crawl in model.history.get(url_of_page, [])[::-1]
                ]
            assert [(each.kind, each.body) for each in opened.inbox()] == [
                ("signals", '[["https://host1.example/1", 5.0, "cms"]]')
            ]
            assert opened.get("price") == "3.5"
            assert (opened.identity(), opened.titles([page(1).url])) == (identity, ["a title"])
            outbox = Outbox(opened)
            assert (outbox.all(), outbox.messages("all"), outbox.messages("all", DEAD)) == told
            outbox.add([Message("all", "later", 1.0, 2.0, "{}")], {})
            assert len(outbox.messages("all", limit=9)) == 3
            assert {host.host: host for host in opened.hosts()} == model.hosts
            assert list(opened.problems()) == []

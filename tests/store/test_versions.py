"""Stores of every form of the schema that ever landed: they open, are brought up to date, and survive a kill meanwhile.

The SQL here is a record of what was: it must not follow the product's own when that changes. To add a version, add what
it was made by to `VERSIONS` before the next one lands.
"""

import shutil
from pathlib import Path

import apsw
import pytest
import xxhash
import zstandard

from afresh.store import Record, Sqlite
from afresh.store.body import signed
from afresh.store.listing import Wanted
from afresh.store.schema import APPLICATION_ID, steps
from afresh.types import Copy, Crawl, Importance, Outcome, Page, Validators
from faulty_disk import killed_at

FIRST = """
CREATE TABLE pages (number INTEGER PRIMARY KEY AUTOINCREMENT, url TEXT NOT NULL UNIQUE, host TEXT NOT NULL,
  added REAL NOT NULL, importance REAL, request_rate REAL, change_rate REAL, recall REAL, false_rate REAL,
  observations INTEGER, etag ANY NOT NULL DEFAULT '', last_modified ANY NOT NULL DEFAULT '',
  fingerprint INTEGER NOT NULL DEFAULT 0, fetched REAL, checked REAL, signals INTEGER NOT NULL DEFAULT 0,
  crawls INTEGER NOT NULL DEFAULT 0, changes INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0,
  learned BLOB NOT NULL DEFAULT x'', written INTEGER NOT NULL DEFAULT 0, body_bytes INTEGER NOT NULL DEFAULT 0,
  stored_bytes INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE copies (page INTEGER PRIMARY KEY REFERENCES pages (number), content_type ANY NOT NULL,
  fetched REAL NOT NULL, etag ANY NOT NULL, last_modified ANY NOT NULL, fingerprint INTEGER NOT NULL,
  size INTEGER NOT NULL, checksum INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE crawls (page INTEGER NOT NULL REFERENCES pages (number), nth INTEGER NOT NULL, time REAL NOT NULL,
  outcome TEXT NOT NULL, elapsed REAL, signals INTEGER NOT NULL, took REAL NOT NULL, status INTEGER NOT NULL,
  size INTEGER NOT NULL, significance REAL NOT NULL, reason ANY NOT NULL, fresh_probability REAL,
  PRIMARY KEY (page, nth)) STRICT, WITHOUT ROWID;
CREATE TABLE hosts (host TEXT PRIMARY KEY, ready REAL NOT NULL, failures INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE named (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE totals (id INTEGER PRIMARY KEY CHECK (id = 1), pages INTEGER NOT NULL DEFAULT 0,
  copies INTEGER NOT NULL DEFAULT 0, crawls INTEGER NOT NULL DEFAULT 0, changes INTEGER NOT NULL DEFAULT 0,
  body_bytes INTEGER NOT NULL DEFAULT 0, stored_bytes INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO totals (id) VALUES (1);
"""
SECOND = """
ALTER TABLE pages ADD COLUMN raw INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pages ADD COLUMN signature INTEGER NOT NULL DEFAULT 0;
ALTER TABLE copies ADD COLUMN raw INTEGER NOT NULL DEFAULT 0;
ALTER TABLE copies ADD COLUMN signature INTEGER NOT NULL DEFAULT 0;
ALTER TABLE crawls ADD COLUMN serial INTEGER NOT NULL DEFAULT 0;
CREATE INDEX changes_by_serial ON crawls (serial) WHERE outcome IN ('new', 'changed', 'gone') AND serial > 0;
"""
NOISE = "ALTER TABLE pages ADD COLUMN noise TEXT NOT NULL DEFAULT '';"
DEPTH = "ALTER TABLE pages ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;"
INBOX = """
CREATE TABLE inbox (number INTEGER PRIMARY KEY AUTOINCREMENT, received REAL NOT NULL, kind TEXT NOT NULL,
  body TEXT NOT NULL) STRICT;
CREATE TABLE inbox_keys (key TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX inbox_keys_by_number ON inbox_keys (number);
ALTER TABLE totals ADD COLUMN inbox_entries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE totals ADD COLUMN inbox_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE totals ADD COLUMN removed_crawls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pages ADD COLUMN importance_factor REAL;
ALTER TABLE pages ADD COLUMN popularity REAL;
ALTER TABLE pages ADD COLUMN shortest REAL;
ALTER TABLE pages ADD COLUMN longest REAL;
ALTER TABLE pages ADD COLUMN hours TEXT NOT NULL DEFAULT '';
ALTER TABLE pages ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pages ADD COLUMN urgent INTEGER NOT NULL DEFAULT 0;
"""
HOSTS = """
ALTER TABLE hosts ADD COLUMN reason ANY NOT NULL DEFAULT '';
ALTER TABLE hosts ADD COLUMN since REAL;
ALTER TABLE hosts ADD COLUMN asked REAL NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN recent_asks REAL NOT NULL DEFAULT 0;
ALTER TABLE hosts ADD COLUMN recent_seconds REAL NOT NULL DEFAULT 0;
CREATE INDEX pages_that_fail ON pages (failures) WHERE failures > 0;
"""
META = """
ALTER TABLE copies ADD COLUMN meta TEXT NOT NULL DEFAULT '';
ALTER TABLE pages ADD COLUMN cost_same REAL;
ALTER TABLE pages ADD COLUMN cost_new REAL;
"""

KEPT = """
ALTER TABLE pages ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
CREATE TABLE versions (id INTEGER PRIMARY KEY AUTOINCREMENT, page INTEGER NOT NULL REFERENCES pages (number),
  number INTEGER NOT NULL, replaced_by INTEGER NOT NULL, replaced REAL NOT NULL, fetched REAL NOT NULL,
  content_type ANY NOT NULL, size INTEGER NOT NULL, checksum INTEGER NOT NULL, stored INTEGER NOT NULL,
  body BLOB NOT NULL) STRICT;
CREATE INDEX versions_by_page ON versions (page, number);
"""
LISTS = """
CREATE INDEX pages_by_checked ON pages (checked) WHERE checked IS NOT NULL;
CREATE INDEX pages_paused ON pages (number) WHERE paused;
CREATE INDEX pages_without_copy ON pages (number) WHERE fetched IS NULL;
"""

TOLD = """
CREATE TABLE notifiers (name TEXT PRIMARY KEY, position INTEGER NOT NULL, delivered INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0, problem ANY NOT NULL DEFAULT '', since REAL, last REAL) STRICT, WITHOUT ROWID;
CREATE TABLE outbox (number INTEGER PRIMARY KEY AUTOINCREMENT, rule TEXT NOT NULL, state TEXT NOT NULL,
  id TEXT NOT NULL, made REAL NOT NULL, due REAL NOT NULL, tries INTEGER NOT NULL DEFAULT 0,
  problem ANY NOT NULL DEFAULT '', body TEXT NOT NULL) STRICT;
CREATE INDEX outbox_by_rule ON outbox (rule, state, number);
"""

SHAPE = "ALTER TABLE pages ADD COLUMN shape REAL;"

VERSIONS = {
    "1": (1, FIRST),
    "2, before pages had a depth": (2, FIRST + SECOND),
    "2": (2, FIRST + SECOND + DEPTH),
    "3": (3, FIRST + SECOND + DEPTH + NOISE),
    "4": (4, FIRST + SECOND + DEPTH + NOISE + INBOX),
    "5": (5, FIRST + SECOND + DEPTH + NOISE + INBOX + HOSTS),
    "6": (6, FIRST + SECOND + DEPTH + NOISE + INBOX + HOSTS + META),
    "7": (7, FIRST + SECOND + DEPTH + NOISE + INBOX + HOSTS + META + KEPT),
    "8": (8, FIRST + SECOND + DEPTH + NOISE + INBOX + HOSTS + META + KEPT + LISTS),
    "9": (9, FIRST + SECOND + DEPTH + NOISE + INBOX + HOSTS + META + KEPT + LISTS + TOLD),
    "10": (10, FIRST + SECOND + DEPTH + NOISE + INBOX + HOSTS + META + KEPT + LISTS + TOLD + SHAPE),
}

GONE = """
ALTER TABLE pages ADD COLUMN gone REAL;
CREATE INDEX pages_gone ON pages (gone) WHERE gone IS NOT NULL;
CREATE INDEX pages_failing ON pages (failures) WHERE failures > 0 AND gone IS NULL;
"""
TITLES = "ALTER TABLE pages ADD COLUMN title TEXT NOT NULL DEFAULT '';"
TROUBLES = """
ALTER TABLE pages ADD COLUMN trouble INTEGER NOT NULL DEFAULT 0;
ALTER TABLE crawls ADD COLUMN trouble INTEGER NOT NULL DEFAULT 0;
CREATE INDEX troubles_by_serial ON crawls (serial) WHERE trouble <> 0;
"""
IDENTITY = "ALTER TABLE totals ADD COLUMN identity TEXT NOT NULL DEFAULT '';"

ALL = FIRST + SECOND + DEPTH + NOISE + INBOX + HOSTS + META + KEPT + LISTS + TOLD + SHAPE
VERSIONS |= {
    "11": (11, ALL + GONE),
    "12": (12, ALL + GONE + TITLES),
    "13": (13, ALL + GONE + TITLES + TROUBLES),
    "14": (14, ALL + GONE + TITLES + TROUBLES + IDENTITY),
}

PAGES = [Page(f"https://h{nth % 3}.example/{nth}", f"h{nth % 3}.example", added=float(nth)) for nth in range(8)]


def body(nth: int) -> bytes:
    return f"<p>page {nth} ".encode() * (50 + nth)


def make(path: Path, version: str) -> None:
    """A store as it was made then, with pages, copies, history, hosts and named values."""
    number, script = VERSIONS[version]
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute(script)
    connection.pragma("user_version", number)
    connection.pragma("application_id", APPLICATION_ID)
    for nth, page in enumerate(PAGES, start=1):
        packed = zstandard.ZstdCompressor().compress(body(nth))
        connection.execute(
            "INSERT INTO pages (number, url, host, added, request_rate, change_rate, recall, false_rate, observations,"
            " etag, fingerprint, fetched, checked, crawls, written, body_bytes, stored_bytes)"
            " VALUES (?, ?, ?, ?, 1.0, 0.5, 0.25, 0.125, 2, '\"7\"', ?, 10.0, 20.0, 2, 2, ?, ?)",
            (nth, page.url, page.host, page.added, nth, len(body(nth)), len(packed)),
        )
        connection.execute(
            "INSERT INTO copies (page, content_type, fetched, etag, last_modified, fingerprint, size, checksum, body)"
            " VALUES (?, 'text/html', 10.0, '\"7\"', '', ?, ?, ?, ?)",
            (nth, nth, len(body(nth)), signed(xxhash.xxh3_64_intdigest(body(nth))), packed),
        )
        for crawl, outcome in enumerate(("new", "unchanged"), start=1):
            connection.execute(
                "INSERT INTO crawls (page, nth, time, outcome, signals, took, status, size, significance, reason)"
                " VALUES (?, ?, ?, ?, 0, 0.5, 200, 7, 0.0, '')",
                (nth, crawl, crawl * 10.0, outcome),
            )
    connection.execute("INSERT INTO hosts (host, ready, failures) VALUES ('h0.example', 30.0, 2)")
    connection.execute("INSERT INTO named VALUES ('price', '0.5')")
    connection.execute(
        "UPDATE totals SET pages = 8, copies = 8, crawls = 16, changes = 0,"
        " body_bytes = (SELECT sum(size) FROM copies), stored_bytes = (SELECT sum(length(body)) FROM copies)"
    )
    connection.close()


def require_all(path: Path) -> None:
    """Everything is there and sound, and the store works as a new one does."""
    with Sqlite(path, create=False) as store:
        assert list(store.problems()) == []
        states = [state for _, state in store.states()]
        assert [state.page for state in states] == PAGES
        assert {(state.checked, state.crawls, state.validators.etag) for state in states} == {(20.0, 2, '"7"')}
        assert all(state.beliefs is not None and state.beliefs.change_rate == 0.5 for state in states)
        for nth, page in enumerate(PAGES, start=1):
            copy = store.copy(page.url)
            assert copy is not None
            assert copy.body == body(nth)
            assert copy.meta == {}
            assert [crawl.outcome for crawl in store.history(page.url)] == [Outcome.UNCHANGED, Outcome.NEW]
        assert [(host.host, host.failures) for host in store.hosts()] == [("h0.example", 2)]
        assert store.get("price") == "0.5"
        assert store.totals().crawls == 16
        assert store.add([Page("https://new.example/", "new.example", depth=3)]) == 1
        state = store.state("https://new.example/")
        assert state is not None
        assert state.page.depth == 3
        crawl = Crawl("https://new.example/", 40.0, Outcome.NEW)
        validators = Validators(fingerprint=5)
        new = Copy(crawl.url, b"new", "text/html", 40.0, 40.0, validators, {":status": "200"})
        kept = type(state)(state.page, validators=validators, fetched=40.0, checked=40.0, crawls=1, cost_new=2.0)
        store.write([Record(crawl, kept, new)])
        assert [crawl.url for _, crawl in store.changes()] == ["https://new.example/"]
        assert store.copy(crawl.url) == new
        assert store.state(crawl.url) == kept
        assert list(store.problems()) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_a_store_of_an_earlier_version_opens_with_all_that_it_had(tmp_path: Path, version: str) -> None:
    make(tmp_path / "s.db", version)
    require_all(tmp_path / "s.db")
    with Sqlite(tmp_path / "s.db") as again:
        assert again.totals().pages == 9


@pytest.mark.parametrize("version", VERSIONS)
def test_a_kill_while_an_earlier_version_is_brought_up_to_date_loses_nothing(tmp_path: Path, version: str) -> None:
    template = tmp_path / "template.db"
    make(template, version)
    for nth in range(1, 200):
        path = tmp_path / f"{nth}.db"
        shutil.copy(template, path)
        killed = killed_at(nth, lambda path=path: Sqlite(path).close())  # type: ignore[misc]
        require_all(path)
        if not killed:
            break
    else:
        raise AssertionError("it never passed untouched")


def test_a_factor_that_was_kept_as_a_negative_number_becomes_one(tmp_path: Path) -> None:
    make(tmp_path / "s.db", "3")
    connection = apsw.Connection(str(tmp_path / "s.db"))
    connection.execute("UPDATE pages SET importance = -5.0 WHERE number = 1")
    connection.execute("UPDATE pages SET importance = 5.0 WHERE number = 2")
    connection.close()
    with Sqlite(tmp_path / "s.db") as store:
        given = [state.page.importance for _, state in store.states()]
    assert given[:3] == [Importance(5.0, times=True), Importance(5.0), None]


def test_pages_that_were_gone_before_a_store_noted_it_are_found(tmp_path: Path) -> None:
    make(tmp_path / "s.db", "10")
    connection = apsw.Connection(str(tmp_path / "s.db"))
    then = {1: ["gone"], 2: ["gone", "failed", "gone"], 3: ["gone", "unchanged", "failed"], 4: ["moved", "busy"]}
    for page, outcomes in then.items():
        connection.execute("UPDATE pages SET failures = 1, written = 2 + ? WHERE number = ?", (len(outcomes), page))
        for nth, outcome in enumerate(outcomes, start=3):
            connection.execute(
                "INSERT INTO crawls (page, nth, time, outcome, signals, took, status, size, significance, reason)"
                " VALUES (?, ?, ?, ?, 0, 0.5, 0, 0, 0.0, '')",
                (page, nth, nth * 10.0, outcome),
            )
    connection.close()
    with Sqlite(tmp_path / "s.db") as store:
        assert [state.gone for _, state in store.states()][:5] == [30.0, 30.0, None, None, None]
        gone = store.listed(Wanted(state="gone")).pages
        assert {state.page.url for state in gone} == {PAGES[0].url, PAGES[1].url}


def test_every_version_but_the_newest_is_here() -> None:
    """And the newest is, too, as soon as it is named above."""
    assert {number for number, _ in VERSIONS.values()} >= set(range(1, len(steps())))


def test_no_two_stores_have_the_same_name_and_each_keeps_its_own(tmp_path: Path) -> None:
    make(tmp_path / "old.db", "13")
    names = []
    for name in ("one.db", "two.db", "old.db"):
        with Sqlite(tmp_path / name) as store:
            names.append(store.identity())
    assert len(set(names)) == 3
    assert all(len(name) == 32 for name in names)
    (tmp_path / "old.db").rename(tmp_path / "moved.db")
    with Sqlite(tmp_path / "moved.db", create=False) as store:
        assert store.identity() == names[2]

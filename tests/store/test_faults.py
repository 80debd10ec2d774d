"""The disk fails, fills up, tears a write, loses power, or the process dies, at every single step in turn."""

import os
import shutil
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

import apsw
import pytest

from afresh.errors import StoreError
from afresh.store import PageState, Sqlite
from afresh.store.schema import steps
from afresh.testing.store_model import StoreModel, page, record
from afresh.types import Outcome
from faulty_disk import disk, killed_at

# Each script must find the tables of the one before, and must not work twice.
NEXT_VERSIONS = [
    "CREATE TABLE extra (x INTEGER) STRICT; ALTER TABLE pages ADD COLUMN colour TEXT; UPDATE pages SET colour = 'red'",
    "ALTER TABLE pages RENAME COLUMN colour TO color; INSERT INTO extra SELECT number FROM pages;",
]


class FailAt:
    """Raises at the n-th operation, and at every later one too if the fault stays."""

    def __init__(self, nth: int, error: type[Exception], *, stays: bool) -> None:
        self.nth, self.error, self.stays, self.count = nth, error, stays, 0

    def __call__(self, operation: str, path: str) -> None:
        self.count += 1
        if self.count == self.nth or (self.stays and self.count > self.nth):
            raise self.error(f"{operation} refused")


def filled(path: Path) -> StoreModel:
    """A store with a few crawls in it, and what it must show."""
    model = StoreModel(3)
    with Sqlite(path, keep_crawls=3) as store:
        for taker in (store, model):
            taker.add([page(nth) for nth in range(4)])
        batch = [record(state, Outcome.NEW, 1.0, os.urandom(9_000)) for state in model.states.values()]
        for taker in (store, model):
            taker.write(batch)
    return model


def requires(path: Path, *models: StoreModel) -> None:
    """The store opens, is sound, and shows exactly what one of the models says."""
    with Sqlite(path, create=False, keep_crawls=3) as store:
        store.claim()
        assert list(store.problems()) == []
        complaints = []
        for model in models:
            try:
                model.compare(store)
                return
            except AssertionError as error:
                complaints.append(error)
        raise complaints[-1]


@pytest.mark.parametrize("stays", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("error", [apsw.IOError, apsw.FullError, OSError])
def test_a_write_that_fails_at_any_step_is_reported_and_loses_nothing(
    tmp_path: Path, error: type[Exception], stays: bool
) -> None:
    template = tmp_path / "template.db"
    old = filled(template)
    batch = [record(state, Outcome.CHANGED, 2.0, os.urandom(20_000)) for state in old.states.values()]
    new = deepcopy(old)
    new.crawls = {url: list(crawls) for url, crawls in old.crawls.items()}
    new.write(batch)
    refused = 0
    for nth in range(1, 500):
        path = tmp_path / f"{nth}.db"
        shutil.copy(template, path)
        fault, acknowledged = FailAt(nth, error, stays=stays), False
        with disk(fault):
            store = None
            with suppress(StoreError):
                store = Sqlite(path, keep_crawls=3)
                store.write(batch)
                acknowledged = True
            with suppress(StoreError):
                if store:
                    store.close()
        refused += not acknowledged
        # What is not acknowledged may have reached the disk all the same; half of it never.
        requires(path, *([new] if acknowledged else [old, new]))
        if fault.count < nth:
            break
    else:
        raise AssertionError("the write never passed untouched")
    assert refused > 5


def test_a_store_goes_on_after_a_write_that_failed(tmp_path: Path) -> None:
    model = filled(tmp_path / "s.db")
    fault = FailAt(10**9, apsw.FullError, stays=False)
    with disk(fault), Sqlite(tmp_path / "s.db", keep_crawls=3) as store:
        store.claim()
        for nth in range(1, 8):
            batch = [record(state, Outcome.CHANGED, 1.0 + nth, os.urandom(5_000)) for state in model.states.values()]
            fault.nth = fault.count + nth
            with suppress(StoreError):
                store.write(batch)
                raise AssertionError("the fault did not strike")
            model.compare(store)
            store.write(batch)
            model.write(batch)
            model.compare(store)


def test_power_may_go_off_at_any_moment(tmp_path: Path) -> None:
    """Only what was synced survives; all that was acknowledged must be in it."""
    path = tmp_path / "s.db"
    durable: dict[str, bytes] = {}
    snapshots: list[tuple[int, dict[str, bytes]]] = []
    acknowledged = 0

    def note(operation: str, file: str) -> None:
        # Before a sync all earlier ones have been done: what they covered is the state that a power cut leaves now.
        snapshots.append((acknowledged, dict(durable)))
        if operation == "sync":
            durable[Path(file).name] = Path(file).read_bytes()
        elif operation == "delete":
            durable.pop(Path(file).name, None)

    filled(path)
    durable[path.name] = path.read_bytes()
    states = [PageState(page(nth)) for nth in range(4)]
    with disk(note), Sqlite(path, keep_crawls=3) as store:
        for nth in range(1, 8):
            store.write([record(state, Outcome.CHANGED, 1.0 + nth, os.urandom(3_000)) for state in states])
            acknowledged = nth
            snapshots.append((acknowledged, dict(durable)))
    seen = set()
    for at, (count, files) in enumerate(snapshots):
        folder = tmp_path / str(at)
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        with Sqlite(folder / path.name, create=False, keep_crawls=3) as store:
            assert list(store.problems()) == []
            times = {crawls[0].time for crawls in (store.history(state.page.url, 1) for state in states)}
            assert len(times) == 1, "half a batch"
            assert times <= {1.0 + count, 2.0 + count}, f"{count} batches acknowledged, found {times}"
            seen |= times
        shutil.rmtree(folder)
    assert seen == {1.0 + nth for nth in range(8)}


def test_a_kill_while_a_store_is_created_leaves_none_or_a_whole_one(tmp_path: Path) -> None:
    for nth in range(1, 200):
        path = tmp_path / str(nth) / "s.db"
        path.parent.mkdir()
        killed = killed_at(nth, lambda path=path: Sqlite(path).close())
        assert not killed or not path.exists() or Sqlite(path, create=False).totals().pages == 0
        with Sqlite(path) as store:
            assert store.add([page(1)]) == 1
        left = {file.name for file in path.parent.iterdir()}
        assert left <= {"s.db", "s.db-lock"}, "the remains of the killed process were not swept away"
        if not killed:
            break
    else:
        raise AssertionError("creating never passed untouched")
    assert nth > 10


def version_of(path: Path) -> int:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return int(connection.pragma("user_version"))
    finally:
        connection.close()


def columns_of(path: Path) -> set[str]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return {row[1] for row in connection.execute("PRAGMA table_info(pages)")}
    finally:
        connection.close()


def test_a_kill_while_a_store_is_upgraded_leaves_a_whole_version(tmp_path: Path) -> None:
    template = tmp_path / "template.db"
    model, scripts = filled(template), [*steps(), *NEXT_VERSIONS]
    found = set()
    for nth in range(1, 500):
        path = tmp_path / f"{nth}.db"
        shutil.copy(template, path)
        killed = killed_at(nth, lambda path=path: Sqlite(path, scripts=scripts).close())
        version = version_of(path)
        found.add(version)
        assert {"colour", "color"} & columns_of(path) == [set(), {"colour"}, {"color"}][version - len(steps())]
        # And the next start takes it the rest of the way.
        with Sqlite(path, scripts=scripts, keep_crawls=3) as store:
            model.compare(store)
            assert list(store.problems()) == []
        assert version_of(path) == len(scripts)
        if not killed:
            break
    else:
        raise AssertionError("upgrading never passed untouched")
    assert found == {len(steps()), len(steps()) + 1, len(steps()) + 2}


def test_an_upgrade_that_fails_keeps_the_old_version(tmp_path: Path) -> None:
    model = filled(tmp_path / "s.db")
    broken = "CREATE TABLE extra (x INTEGER) STRICT; UPDATE pages SET url = 'same'"
    with pytest.raises(StoreError, match="failed"):
        Sqlite(tmp_path / "s.db", scripts=[*steps(), broken])
    assert version_of(tmp_path / "s.db") == len(steps())
    requires(tmp_path / "s.db", model)
    # Nothing of the failed step is left to be in the way of a good one.
    Sqlite(tmp_path / "s.db", scripts=[*steps(), *NEXT_VERSIONS]).close()


def test_an_upgrade_waits_for_no_runner_but_refuses(tmp_path: Path) -> None:
    filled(tmp_path / "s.db")
    with Sqlite(tmp_path / "s.db") as running:
        running.claim()
        with pytest.raises(StoreError, match=r"Another afresh .* runs on "):
            Sqlite(tmp_path / "s.db", scripts=[*steps(), *NEXT_VERSIONS])
    Sqlite(tmp_path / "s.db", scripts=[*steps(), *NEXT_VERSIONS]).close()


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    Sqlite(tmp_path / "s.db", scripts=[*steps(), *NEXT_VERSIONS]).close()
    before = (tmp_path / "s.db").read_bytes()
    known = len(steps())
    with pytest.raises(StoreError, match=rf"newer afresh \(schema {known + 2}, this one knows {known}\)") as caught:
        Sqlite(tmp_path / "s.db")
    assert "Upgrade afresh" in caught.value.hint
    assert (tmp_path / "s.db").read_bytes() == before

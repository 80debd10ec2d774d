"""What only the SQLite store promises: bounded memory, bounded waits, and a check that ends in time."""

import random
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from afresh.errors import StoreError
from afresh.store import KeepVersions, PageState, Sqlite, sqlite
from afresh.testing.store_model import page, record
from afresh.types import Outcome, Page


def test_states_are_streamed(tmp_path: Path) -> None:
    with Sqlite(tmp_path / "s.db") as store:
        assert store.add(page(nth) for nth in range(20_000)) == 20_000
        tracemalloc.start()
        try:
            assert sum(1 for _ in store.states()) == 20_000
            streamed = tracemalloc.get_traced_memory()[1]
            kept = list(store.states())
            whole = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        assert len(kept) == 20_000
        assert streamed < whole / 5


def test_a_large_import_is_taken_in_several_transactions(tmp_path: Path) -> None:
    """So that a runner in another process gets its turn, and a slow source holds nobody up."""
    with Sqlite(tmp_path / "s.db") as store, Sqlite(tmp_path / "s.db", patience=0.2) as runner:
        runner.add([page(0)])

        def source() -> object:
            for nth in range(1, 2 * sqlite.ADD_CHUNK):
                if nth == sqlite.ADD_CHUNK + 10:
                    assert runner.totals().pages == sqlite.ADD_CHUNK + 1
                    runner.write([record(PageState(page(0)), Outcome.NEW, 1.0, b"body")])
                yield page(nth)

        assert store.add(source()) == 2 * sqlite.ADD_CHUNK - 1  # type: ignore[arg-type]
        assert runner.totals().pages == 2 * sqlite.ADD_CHUNK


def test_reading_does_not_wait_for_writing_in_another_thread(tmp_path: Path) -> None:
    with Sqlite(tmp_path / "s.db") as store, Sqlite(tmp_path / "s.db") as other:
        store.add([page(1)])
        began, end = threading.Event(), threading.Event()

        def slow() -> object:
            began.set()
            end.wait(10)
            yield record(PageState(page(1)), Outcome.NEW, 1.0, b"body")

        # Another process's transaction keeps the writing thread waiting inside `write`.
        other._writer.execute("BEGIN IMMEDIATE")
        writer = threading.Thread(target=lambda: store.write(slow()))  # type: ignore[arg-type]
        writer.start()
        assert began.wait(10)
        end.set()
        time.sleep(0.05)
        assert writer.is_alive()
        assert store.copy(page(1).url) is None
        assert store.totals().pages == 1
        assert writer.is_alive()
        other._writer.execute("ROLLBACK")
        writer.join(10)
        assert store.copy(page(1).url)


def test_the_check_for_damage_ends_in_time(tmp_path: Path) -> None:
    with Sqlite(tmp_path / "s.db") as store:
        store.add(page(nth) for nth in range(50_000))
        began = time.perf_counter()
        store._look_for_damage(60.0)
        whole = time.perf_counter() - began
        began = time.perf_counter()
        store._look_for_damage(0.0)
        assert time.perf_counter() - began < whole / 2
        assert store.totals().pages == 50_000  # and nothing stays interrupted


def test_earlier_versions_leave_before_anything_else_where_there_is_no_room(tmp_path: Path) -> None:
    rng = random.Random(1)
    url = "https://e.org/"
    with Sqlite(tmp_path / "s.db", keep_versions=KeepVersions(20, bytes=0)) as store:
        store.add([Page(url, "e.org")])
        state = PageState(Page(url, "e.org"))

        def change(nth: int) -> None:
            batch = [record(state, Outcome.CHANGED, float(nth), rng.randbytes(50_000))]
            store.write(batch)

        for nth in range(1, 11):
            change(nth)
        assert len(store.versions(url)) == 10
        assert list(store.problems()) == []
        store.max_bytes = store.space().used
        change(11)
        assert [each.number for each in store.versions(url)] == [11]  # the copy alone
        assert store.space().used < 0.5 * store.max_bytes
        change(12)  # and there is room again
        assert [each.number for each in store.versions(url)] == [12, 11]
        assert list(store.problems()) == []


def test_a_damaged_version_is_named_and_the_copy_is_not_touched(tmp_path: Path) -> None:
    url = "https://e.org/"
    with Sqlite(tmp_path / "s.db", keep_versions=KeepVersions(2)) as store:
        store.add([Page(url, "e.org")])
        for nth, body in enumerate((b"one" * 99, b"two" * 99), start=1):
            store.write([record(PageState(Page(url, "e.org")), Outcome.CHANGED, float(nth), body)])
        with store.writing() as connection:
            connection.execute("UPDATE versions SET checksum = checksum + 1")
        with pytest.raises(StoreError, match="version 1 of https"):
            store.version(url, 1)
        assert [problem for problem in store.problems() if "version 1" in problem]
        copy = store.copy(url)
        assert copy is not None
        assert copy.body == b"two" * 99


def test_who_reads_versions_beside_others_leaves_nobody_with_an_old_view(tmp_path: Path) -> None:
    url = "https://e.org/"
    with Sqlite(tmp_path / "s.db", keep_versions=KeepVersions(2)) as store:
        store.add([Page(url, "e.org")])
        for nth in (1, 2):
            store.write([record(PageState(Page(url, "e.org")), Outcome.CHANGED, float(nth), b"x" * nth * 9_999)])
        ended = threading.Event()

        def look(work: Callable[[], object]) -> None:
            while not ended.is_set():
                work()

        looks = [lambda: store.version(url, 1), lambda: store.version(url, 2), lambda: store.state(url)]
        threads = [threading.Thread(target=look, args=(each,)) for each in (*looks, *looks)]
        for thread in threads:
            thread.start()
        try:
            for nth in range(100):
                store.put({"n": str(nth)})
                assert store.get("n") == str(nth)
        finally:
            ended.set()
            for thread in threads:
                thread.join()

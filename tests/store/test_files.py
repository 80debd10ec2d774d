"""What is found at a store's path and is not a sound store: one clear sentence, a hint, and nothing touched."""

import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from afresh.errors import StoreError, StoreLocked
from afresh.store import PageState, Sqlite
from afresh.testing.store_model import StoreModel, page, record
from afresh.types import Importance, Outcome


def fill(path: Path, pages: int = 30) -> StoreModel:
    model, rng = StoreModel(100), random.Random(3)
    with Sqlite(path) as store:
        for taker in (store, model):
            taker.add([page(nth) for nth in range(pages)])
        batch = [record(state, Outcome.NEW, 1.0, rng.randbytes(6_000)) for state in model.states.values()]
        for taker in (store, model):
            taker.write(batch)
    return model


def refused(path: Path, match: str, **options: bool) -> StoreError:
    """Opening must fail with a hint, and leave what is there as it is."""
    before = contents(path.parent)
    with pytest.raises(StoreError, match=match) as caught:
        Sqlite(path, **options).claim()
    assert caught.value.hint
    assert str(path) in str(caught.value) or str(path.parent) in str(caught.value)
    assert caught.value.message.endswith(".")
    assert "\n" not in str(caught.value)
    assert contents(path.parent) == before
    return caught.value


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that holds data; not the lock, nor SQLite's shared memory."""
    files = [file for file in folder.iterdir() if file.is_file()] if folder.exists() else []
    return {file.name: file.read_bytes() for file in files if not file.name.endswith(("-shm", "-lock"))}


def test_a_missing_folder(tmp_path: Path) -> None:
    error = refused(tmp_path / "no" / "s.db", "folder .*/no does not exist")
    assert "mkdir" in error.hint


def test_no_store_where_one_must_be(tmp_path: Path) -> None:
    refused(tmp_path / "s.db", "There is no store at", create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "s.db").mkdir()
    refused(tmp_path / "s.db", "not a file")


@pytest.mark.parametrize("content", [b"https://example.org/\n", b"x" * 5_000, b"SQLite format 3\0" + b"x" * 5_000])
def test_a_file_of_another_kind(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s.db").write_bytes(content)
    refused(tmp_path / "s.db", "is not an afresh store")


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_of_another_program(tmp_path: Path, journal: str) -> None:
    other = sqlite3.connect(tmp_path / "s.db")
    other.execute(f"PRAGMA journal_mode={journal}")
    other.execute("CREATE TABLE pages (url)")
    other.commit()
    other.close()
    refused(tmp_path / "s.db", "a SQLite database of another program")


def test_an_empty_file_is_not_a_new_store(tmp_path: Path) -> None:
    (tmp_path / "s.db").touch()
    refused(tmp_path / "s.db", "damaged .*empty")


def test_a_journal_without_its_store_is_not_played_into_a_new_one(tmp_path: Path) -> None:
    store = Sqlite(tmp_path / "s.db")
    store.add([page(1)])
    shutil.copy(tmp_path / "s.db-wal", tmp_path / "kept")
    store.close()
    (tmp_path / "s.db").unlink()
    (tmp_path / "kept").rename(tmp_path / "s.db-wal")
    refused(tmp_path / "s.db", "is missing, but its journal s.db-wal is there")
    (tmp_path / "s.db-wal").unlink()
    with Sqlite(tmp_path / "s.db") as store:
        assert store.totals().pages == 0


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_a_file_cut_short(tmp_path: Path, share: float) -> None:
    fill(tmp_path / "s.db")
    os.truncate(tmp_path / "s.db", int((tmp_path / "s.db").stat().st_size * share))
    refused(tmp_path / "s.db", "damaged|not an afresh store")


def test_garbage_anywhere_in_the_header_never_gives_an_empty_store(tmp_path: Path) -> None:
    model = fill(tmp_path / "s.db")
    whole = (tmp_path / "s.db").read_bytes()
    said: list[StoreError] = []
    for at in range(0, 100, 4):
        path = tmp_path / f"{at}.db"
        path.write_bytes(whole[:at] + b"\xa5\x5a\xff\x01" + whole[at + 4 :])
        try:
            with Sqlite(path) as store:
                store.claim()
                model.compare(store)  # a field that does not matter
        except StoreError as error:
            said.append(error)
    assert len(said) >= 10
    assert all(error.hint for error in said)


def test_a_page_of_the_file_overwritten_is_noticed_wherever_it_is(tmp_path: Path) -> None:
    """Each page in turn: claiming, reading or the full check says so, and nothing but StoreError is ever raised."""
    model = fill(tmp_path / "s.db", pages=8)
    whole, rng, when_claimed = (tmp_path / "s.db").read_bytes(), random.Random(5), 0
    count = len(whole) // 4096
    for at in range(count):
        path = tmp_path / f"{at}.db"
        path.write_bytes(whole[: at * 4096] + rng.randbytes(4096) + whole[(at + 1) * 4096 :])
        noticed = False
        try:
            with Sqlite(path) as store:
                store.claim()
                when_claimed -= 1
                noticed = any(store.problems())
                model.compare(store)
        except StoreError as error:
            noticed = "damaged" in error.message or "not an afresh store" in error.message
        when_claimed += 1
        assert noticed, f"page {at} of {count}"
    assert when_claimed > count // 2


def test_a_body_that_is_not_what_was_stored_is_not_handed_out(tmp_path: Path) -> None:
    fill(tmp_path / "s.db", pages=2)
    path = tmp_path / "s.db"
    body = random.Random(3).randbytes(
        6_000
    )  # the first page's; nothing can compress it, so it lies in the file as it is
    at = path.read_bytes().index(body[1_000:1_100])
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"!")
    with Sqlite(path) as store:
        store.claim()  # the structure is sound
        with pytest.raises(StoreError, match=r"copy of https://host0\.example/0: the body's checksum"):
            store.copy(page(0).url)
        assert store.copy(page(1).url)
        assert [problem for problem in store.problems() if page(0).url in problem]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE copies SET size = size + 1",
        "UPDATE copies SET body = x'28b52ffd'",
        "UPDATE copies SET body = x''",
        # A frame whose header speaks of 2^60 bytes.
        "UPDATE copies SET body = x'28b52ffde00000000000000010010000'",
        "UPDATE copies SET body = substr(body, 1, length(body) - 10)",
    ],
)
def test_a_spoilt_frame_is_not_handed_out(tmp_path: Path, damage: str) -> None:
    fill(tmp_path / "s.db", pages=1)
    connection = apsw.Connection(str(tmp_path / "s.db"))
    connection.execute(damage)
    connection.close()
    with (
        Sqlite(tmp_path / "s.db") as store,
        pytest.raises(StoreError, match=r"copy of https://host0\.example/0: the body"),
    ):
        store.copy(page(0).url)


def test_wrong_totals_are_found(tmp_path: Path) -> None:
    fill(tmp_path / "s.db", pages=1)
    connection = apsw.Connection(str(tmp_path / "s.db"))
    connection.execute("UPDATE totals SET copies = 7")
    connection.close()
    with Sqlite(tmp_path / "s.db") as store:
        assert "the totals are" in next(store.problems())


def test_another_writer_that_does_not_end(tmp_path: Path) -> None:
    model = fill(tmp_path / "s.db")
    other = apsw.Connection(str(tmp_path / "s.db"))
    other.execute("BEGIN IMMEDIATE")
    with Sqlite(tmp_path / "s.db", patience=0.05) as store:
        model.compare(store)  # reading goes on
        with pytest.raises(StoreLocked, match="Another process is writing to the store"):
            store.add([page(99)])
        other.execute("ROLLBACK")
        assert store.add([page(99)]) == 1
    other.close()


def test_a_disk_without_room(tmp_path: Path) -> None:
    model = fill(tmp_path / "s.db")

    def small(connection: apsw.Connection) -> None:
        connection.pragma("max_page_count", connection.pragma("page_count") + 5)

    apsw.connection_hooks.append(small)
    try:
        with Sqlite(tmp_path / "s.db") as store:
            large = [
                record(PageState(page(nth)), Outcome.NEW, 2.0, random.Random(nth).randbytes(9_000)) for nth in range(9)
            ]
            with pytest.raises(StoreError, match="disk is full"):
                store.write(large)
            model.compare(store)
            store.write([record(PageState(page(1)), Outcome.GONE, 2.0)])
    finally:
        apsw.connection_hooks.remove(small)


def test_one_store_by_two_names_is_one_store(tmp_path: Path) -> None:
    fill(tmp_path / "s.db")
    (tmp_path / "link.db").symlink_to("s.db")
    with Sqlite(tmp_path / "s.db") as store, Sqlite(tmp_path / "link.db") as same:
        store.claim()
        with pytest.raises(StoreLocked):
            same.claim()


def test_opening_twice_in_a_process_keeps_the_first_ones_locks(tmp_path: Path) -> None:
    """A second look at the file must not drop the POSIX locks of the first, or others would cut its journal away."""
    with Sqlite(tmp_path / "s.db") as store:
        store.add([page(1)])
        Sqlite(tmp_path / "s.db").close()
        pid = os.fork()
        if pid == 0:
            with suppress(BaseException):
                # The last one out removes the journal; only the first one's lock tells the child that it is not.
                Sqlite(tmp_path / "s.db").close()
            os._exit(0)
        os.waitpid(pid, 0)
        assert (tmp_path / "s.db-wal").exists()
        store.add([page(2)])
    with Sqlite(tmp_path / "s.db") as store:
        assert store.totals().pages == 2


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def as_nobody(work: Callable[[], None]) -> str:
    """What a StoreError says when the work is done by a user without rights; "" if there is none."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = "no StoreError"
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            work()
            said = ""
        except StoreError as error:
            said = str(error)
        finally:
            os.write(writer, said.encode())
            os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    with os.fdopen(reader) as answer:
        return answer.read()


@pytest.mark.parametrize("what", ["file", "folder", "new"])
def test_what_may_not_be_written(open_folder: Path, what: str) -> None:
    path = open_folder / "s.db"
    if what != "new":
        fill(path)
        path.chmod(0o444 if what == "file" else 0o666)
        for left in open_folder.glob("s.db-*"):
            left.unlink()
    open_folder.chmod(0o777 if what == "file" else 0o555)
    said = as_nobody(lambda: Sqlite(path).claim())
    assert "cannot be written: the file or its folder is read-only" in said
    assert "chmod" in said
    open_folder.chmod(0o755)


def test_the_page_in_a_state_is_the_added_one_even_after_the_store_was_opened_anew(tmp_path: Path) -> None:
    told = replace(page(1), importance=Importance(0.5))
    with Sqlite(tmp_path / "s.db") as store:
        store.add([told])
    with Sqlite(str(tmp_path / "s.db")) as store:
        assert [state.page for _, state in store.states()] == [told]

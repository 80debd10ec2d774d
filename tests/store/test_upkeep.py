"""Backups are whole or absent, whoever writes meanwhile and whenever they are killed; compacting loses nothing."""

import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from afresh.errors import StoreError, StoreLocked
from afresh.store import PageState, Record, Sqlite
from afresh.store.files import Claim
from afresh.store.upkeep import back_up, compact
from afresh.types import Copy, Crawl, Outcome, Page, Validators
from faulty_disk import disk, killed_at

PAGES = [Page(f"https://h.example/{nth}", "h.example") for nth in range(20)]


def crawled(state: PageState, time: float, body: bytes) -> Record:
    url, validators = state.page.url, Validators(fingerprint=len(body) + 1)
    after = replace(state, fetched=time, checked=time, validators=validators, crawls=state.crawls + 1)
    return Record(Crawl(url, time, Outcome.CHANGED), after, Copy(url, body, "text/html", time, time, validators))


def fill(path: Path, size: int = 2_000) -> None:
    with Sqlite(path, keep_crawls=5) as store:
        store.add(PAGES)
        store.write([crawled(PageState(page), 1.0, os.urandom(size)) for page in PAGES])
        store.put({"alive": "1.0", "price": "2.0"})


def content(path: Path) -> list[object]:
    with Sqlite(path, create=False) as store:
        assert list(store.problems()) == []
        return [
            (state, store.copy(state.page.url), tuple(store.history(state.page.url))) for _, state in store.states()
        ]


def test_a_backup_is_the_store_of_one_moment_while_it_is_written(tmp_path: Path) -> None:
    path, done = tmp_path / "s.db", threading.Event()
    fill(path, 20_000)

    def write() -> None:
        with Sqlite(path, keep_crawls=5) as store:
            moment = 2.0
            while not done.is_set():
                batch = []
                for page in PAGES:  # all of one moment, or none
                    state = store.state(page.url)
                    assert state is not None
                    batch.append(crawled(state, moment, f"{moment}".encode() * 3_000))
                store.write(batch)
                moment += 1.0

    writer = threading.Thread(target=write)
    writer.start()
    try:
        seen = []
        for nth in range(5):
            steps: list[int] = []
            size = back_up(path, tmp_path / f"{nth}.db", lambda at, of, steps=steps: steps.append(at * 100 // of))  # type: ignore[misc]
            assert size == (tmp_path / f"{nth}.db").stat().st_size
            assert steps[-1] == 100
            with Sqlite(tmp_path / f"{nth}.db", create=False) as store:
                assert list(store.problems()) == []
                moments = {state.checked for _, state in store.states()}
                assert len(moments) == 1, "no batch is torn apart"
                assert (store.get("alive"), store.get("price")) == (None, "2.0"), "nobody runs on a backup"
            seen.append(moments.pop() or 0.0)
    finally:
        done.set()
        writer.join(30)
    assert seen == sorted(seen)
    assert seen[-1] > seen[0], "and the writer was not held up"


def test_a_backup_never_writes_over_anything(tmp_path: Path) -> None:
    path, target = tmp_path / "s.db", tmp_path / "b.db"
    fill(path)
    target.write_bytes(b"precious")
    with pytest.raises(StoreError, match="there already"):
        back_up(path, target)
    assert target.read_bytes() == b"precious"
    target.unlink()
    target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="there already"):
        back_up(path, target)
    target.unlink()
    (tmp_path / "b.db-wal").write_bytes(b"of another store")
    with pytest.raises(StoreError, match="journal"):
        back_up(path, target)
    with pytest.raises(StoreError, match="there already"):
        back_up(path, path)
    late = tmp_path / "late.db"
    with pytest.raises(StoreError, match="there already"):
        back_up(path, late, lambda done, of: late.write_bytes(b"precious"))
    assert late.read_bytes() == b"precious", "also if it appears meanwhile"
    path.chmod(0o600)
    back_up(path, tmp_path / "c.db")
    assert (tmp_path / "c.db").stat().st_mode & 0o777 == 0o600, "nobody else may read it who may not read the store"
    assert content(tmp_path / "c.db") == content(path)


def test_a_killed_backup_leaves_no_half_one_and_is_swept_up(tmp_path: Path) -> None:
    path, target = tmp_path / "s.db", tmp_path / "b.db"
    fill(path)
    expected = content(path)
    for nth in range(1, 400):
        if not killed_at(nth, lambda: back_up(path, target) and None):
            break
        assert not target.exists()
    else:
        raise AssertionError("it never came to its end")
    assert nth > 20
    assert content(target) == expected
    assert content(path) == expected
    assert {file.name for file in tmp_path.iterdir()} <= {
        "s.db",
        "s.db-lock",
        "s.db-wal",
        "s.db-shm",
        "b.db",
        "b.db-lock",
    }


def test_a_full_disk_ends_a_backup_with_a_sentence_and_no_trace(tmp_path: Path) -> None:
    path, target = tmp_path / "s.db", tmp_path / "b.db"
    fill(path)

    def full(operation: str, where: str) -> None:
        if operation == "write" and "b.db" in where:
            raise apsw.FullError("database or disk is full")

    with disk(full), pytest.raises(StoreError, match="The disk is full: the backup"):
        back_up(path, target)
    assert not [file for file in tmp_path.iterdir() if "b.db" in file.name]
    expected = content(path)

    def full_for_all(operation: str, where: str) -> None:
        if operation == "write":
            raise apsw.FullError("database or disk is full")

    with disk(full_for_all), pytest.raises(StoreError, match=r"The disk is full: the store .* was not compacted"):
        compact(path)
    assert content(path) == expected


def shrinkable(path: Path) -> None:
    with Sqlite(path, keep_crawls=5) as store:
        for state in [state for _, state in store.states()]:
            store.write([crawled(state, 3.0, b"small")])


def test_compacting_gives_space_back_and_keeps_everything(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    fill(path, 50_000)
    shrinkable(path)
    expected = content(path)
    with Sqlite(path, create=False) as store:
        used = store.space().used
    before, after = compact(path)
    assert before > 1_000_000
    assert after < before / 5
    assert abs(after - used) < 100_000, "what was unused did not count as used"
    assert content(path) == expected
    claim = Claim(path)
    try:
        with pytest.raises(StoreLocked):
            compact(path)
    finally:
        claim.release()


def test_a_kill_while_compacting_loses_nothing(tmp_path: Path) -> None:
    template = tmp_path / "template.db"
    fill(template, 5_000)
    shrinkable(template)
    expected = content(template)
    for nth in [*range(1, 40), *range(40, 1000, 7)]:
        path = tmp_path / "s.db"
        for left in tmp_path.glob("s.db*"):
            left.unlink()
        shutil.copy(template, path)
        came_to_its_end = not killed_at(nth, lambda path=path: compact(path) and None)  # type: ignore[misc]
        assert content(path) == expected
        if came_to_its_end:
            break
    else:
        raise AssertionError("it never came to its end")
    assert nth > 10


def test_a_backup_killed_by_the_system_is_absent_and_the_next_one_succeeds(tmp_path: Path) -> None:
    path, target = tmp_path / "s.db", tmp_path / "b.db"
    fill(path, 200_000)
    code = (
        "import sys, time; from pathlib import Path; from afresh.store.upkeep import back_up, STEP_PAGES\n"
        "import afresh.store.upkeep as upkeep; upkeep.STEP_PAGES = 5\n"
        "back_up(Path(sys.argv[1]), Path(sys.argv[2]), lambda a, b: (print(a, flush=True), time.sleep(0.02)))"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path), str(target)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(0.05)
        process.kill()
    assert not target.exists()
    assert list(tmp_path.glob("b.db.new-*")), "it was killed in the middle"
    back_up(path, target)
    assert not list(tmp_path.glob("b.db.new-*"))
    assert content(target) == content(path)


def test_a_backup_of_a_damaged_store_does_not_blame_the_backup(tmp_path: Path) -> None:
    path, target = tmp_path / "kept.db", tmp_path / "backup.db"
    fill(path, size=20_000)
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(40_000))
    with pytest.raises(StoreError) as raised:
        back_up(path, target)
    assert "kept.db is damaged" in raised.value.message
    assert "backup.db" not in raised.value.message + raised.value.hint
    assert not target.exists()

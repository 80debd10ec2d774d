"""A runner that keeps a tree fresh: what comes and goes, and what may go wrong on a disk meanwhile."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import apsw
import pytest

from afresh.daemon import Daemon
from afresh.engine import Engine
from afresh.engine.ahead import compile_ahead
from afresh.errors import StoreError
from afresh.estimate import Learner
from afresh.schedule import Scheduler
from afresh.sources.files import Files, key_of
from afresh.store import Sqlite
from afresh.types import Outcome, Page


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    compile_ahead()


@asynccontextmanager
async def running(store: Sqlite, tree: Path, *, budget: float = 200.0, notices: bool = False) -> AsyncIterator[Daemon]:
    root = key_of(str(tree), folder=True) or ""
    source = Files(notices=notices, roots=[root])
    store.add([Page(root, source.lane(root))])
    engine = Engine(scheduler=Scheduler.live(budget=budget), estimator=Learner(typical_rate=1.0))
    daemon = Daemon(engine=engine, sources=source, store=store, write_every=0.05)
    task = asyncio.create_task(daemon.run())
    try:
        yield daemon
    finally:
        daemon.stop()
        await task
        await source.close()


async def until(holds: Callable[[], object], seconds: float = 40.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


def body(store: Sqlite, path: Path, *, folder: bool = False) -> bytes | None:
    copy = store.copy(key_of(str(path), folder=folder) or "")
    return None if copy is None else copy.body


def last(store: Sqlite, path: Path) -> tuple[Outcome, str] | None:
    crawls = store.history(key_of(str(path)) or "", 1)
    return (crawls[0].outcome, crawls[0].reason) if crawls else None


def test_a_tree_is_found_and_followed(tmp_path: Path) -> None:
    """New files and folders, changes, a file that becomes a folder and back; links lead nowhere."""
    tree, store = tmp_path / "tree", Sqlite(tmp_path / "afresh.db")
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "deep.txt").write_text("deep")
    (tree / "x.txt").write_text("one")
    (tree / "up").symlink_to(tmp_path)

    async def scene() -> None:
        async with running(store, tree) as daemon:
            await until(lambda: body(store, tree / "a" / "b" / "deep.txt") == b"deep")
            await until(lambda: body(store, tree / "x.txt") == b"one")
            (tree / "x.txt").unlink()
            (tree / "x.txt").mkdir()
            (tree / "x.txt" / "inside.txt").write_text("inside")
            await until(lambda: body(store, tree / "x.txt" / "inside.txt") == b"inside")
            await until(lambda: last(store, tree / "x.txt") == (Outcome.GONE, "is_a_folder"))
            assert body(store, tree / "x.txt") == b"one"  # the last copy stays
            assert not [page.url for page in daemon.engine.pages() if "/up" in page.url]
            assert daemon.pages == 7

    asyncio.run(scene())
    store.close()


def test_what_is_well_again_is_found_by_its_folder(tmp_path: Path) -> None:
    """A file that was deleted, or was a fifo for a moment, is not left alone for half a minute or an hour."""
    tree, store = tmp_path / "tree", Sqlite(tmp_path / "afresh.db")
    tree.mkdir()
    for name in ("one.txt", "two.txt"):
        (tree / name).write_text("before")

    async def scene() -> None:
        async with running(store, tree):
            await until(lambda: body(store, tree / "one.txt") and body(store, tree / "two.txt"))
            for name in ("one.txt", "two.txt"):
                (tree / name).unlink()
            os.mkfifo(tree / "two.txt")
            await until(lambda: last(store, tree / "one.txt") == (Outcome.GONE, "no_such_file"))
            await until(lambda: last(store, tree / "two.txt") == (Outcome.REFUSED, "special_file"))
            (tree / "two.txt").unlink()
            for name in ("one.txt", "two.txt"):
                (tree / name).write_text("after")
            for name in ("one.txt", "two.txt"):
                await until(lambda name=name: body(store, tree / name) == b"after", 15.0)  # type: ignore[misc]

    asyncio.run(scene())
    store.close()


@pytest.mark.skipif(find_spec("watchfiles") is None, reason="watchfiles is not installed")
def test_notices_are_heard_as_of_one_sender_more(tmp_path: Path) -> None:
    """At a budget that comes round once in a minute, a change and a new file are there within seconds."""
    tree, store = tmp_path / "tree", Sqlite(tmp_path / "afresh.db")
    tree.mkdir()
    for nth in range(30):
        (tree / f"{nth}.txt").write_text("one")

    async def scene() -> None:
        async with running(store, tree, budget=30.0, notices=True) as daemon:
            await until(lambda: body(store, tree / "29.txt"))
            daemon.engine.first.scheduler.budget = 1.0
            heard: list[bool] = []
            deadline = time.monotonic() + 60
            while not any(heard):
                (tree / "7.txt").write_text(f"{time.monotonic()}")
                await asyncio.sleep(1.0)
                heard.append(daemon.engine.signals(key_of(str(tree / "7.txt")) or "") > 0)
                assert time.monotonic() < deadline
            (tree / "new.txt").write_text("new")
            await until(lambda: key_of(str(tree / "new.txt")) in daemon.engine)
            assert any(each["sender"] == "watchfiles" for each in daemon.engine.senders.summary())

    asyncio.run(scene())
    store.close()


RUNNER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from test_files_live import running
from afresh.store import Sqlite
async def main():
    async with running(Sqlite(sys.argv[1]), Path(sys.argv[2])):
        await asyncio.sleep(100)
asyncio.run(main())
"""


def test_a_runner_that_is_killed_loses_no_file(tmp_path: Path) -> None:
    """What was found is found again: the folder's own crawl is durable only after what it leads to."""
    tree, path = tmp_path / "tree", tmp_path / "afresh.db"
    for nth in range(40):
        (tree / f"{nth % 4}").mkdir(parents=True, exist_ok=True)
        (tree / f"{nth % 4}" / f"{nth}.txt").write_text(str(nth))
    files = sorted(tree.glob("*/*.txt"))
    kept = 0
    for _ in range(2):
        command = [sys.executable, "-c", RUNNER, str(path), str(tree), str(Path(__file__).parent)]
        process = subprocess.Popen(command)
        try:
            deadline = time.monotonic() + 60
            while not path.exists() or Sqlite(path).totals().copies < min(kept + 12, 45):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        after = Sqlite(path).totals().copies
        assert after >= kept
        kept = after
    store = Sqlite(path)

    async def scene() -> None:
        async with running(store, tree):
            await until(lambda: all(body(store, file) == file.stem.encode() for file in files))

    asyncio.run(scene())
    store.close()


def test_a_store_that_is_full_takes_no_more_and_says_so(tmp_path: Path) -> None:
    tree, store = tmp_path / "tree", Sqlite(tmp_path / "afresh.db", max_bytes=600_000)
    tree.mkdir()
    for nth in range(20):
        (tree / f"{nth:02d}.bin").write_bytes(os.urandom(100_000))

    async def scene() -> None:
        async with running(store, tree) as daemon:
            await until(lambda: store.space().takes != "everything" and daemon.engine.without_room is not None)
            await until(lambda: store.totals().crawls >= 4)
            await asyncio.sleep(1.0)
            some = store.totals().copies
            assert 1 <= some < 15
            (tree / "00.bin").unlink()  # the runner goes on
            await asyncio.sleep(0.5)
            store.max_bytes = 50_000_000
            await until(lambda: store.totals().copies >= 19, 60.0)

    asyncio.run(scene())
    store.close()


def test_a_full_disk_stops_the_runner_with_one_sentence_and_nothing_is_lost(small: Path, tmp_path: Path) -> None:
    tree, path = tmp_path / "tree", small / "afresh.db"
    tree.mkdir()
    for nth in range(60):
        (tree / f"{nth:02d}.bin").write_bytes(os.urandom(100_000))

    async def scene(seconds: float) -> None:
        with Sqlite(path) as store:
            async with running(store, tree):
                await until(lambda: store.totals().copies == 61, seconds)

    with pytest.raises(StoreError, match="The disk is full"):
        asyncio.run(scene(60.0))
    with Sqlite(path) as store:
        before = store.totals().copies
        assert 1 <= before < 40
    assert apsw.Connection(str(path)).pragma("integrity_check") == "ok"
    subprocess.run(["mount", "-o", "remount,size=40m", str(small)], check=True)
    asyncio.run(scene(60.0))
    with Sqlite(path) as store:
        for file in tree.iterdir():
            copy = store.copy(key_of(str(file)) or "")
            assert copy is not None
            assert copy.body == file.read_bytes()

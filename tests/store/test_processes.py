"""Several processes on one store, and processes that are killed."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import afresh
from afresh.errors import StoreLocked
from afresh.store import PageState, Sqlite
from afresh.store.files import is_run
from afresh.testing.store_model import page, record
from afresh.types import Outcome

PAGES = 40
SOURCE = str(Path(afresh.__file__).parent.parent)

HEAD = """
import random, resource, sys
from dataclasses import replace
from itertools import count
from afresh.errors import StoreError
from afresh.store import PageState, Sqlite
from afresh.testing.store_model import page, record
from afresh.types import Outcome

def body(nth, time):
    return random.Random(f"{nth} {time}").randbytes(500 + nth * 700)

def say(*words):
    print(*words, flush=True)

store = Sqlite(sys.argv[1], keep_crawls=10)
"""

# Goes on where the store says that the last one ended, and says what was acknowledged.
WRITER = """
store.claim()
start = int(store.get("time") or 0)
say("ready", start)
for time in count(start + 1):
    chosen = random.Random(time).sample(range(40), 8)
    batch = []
    for nth in chosen:
        state = store.state(page(nth).url) or PageState(page(nth))
        batch.append(record(state, Outcome.CHANGED, float(time), body(nth, time)))
    store.add([page(nth) for nth in chosen])
    store.write(batch)
    store.put({"time": str(time)})
    say("kept", time, *chosen)
"""


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", HEAD + program, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def lines(process: subprocess.Popen[str]) -> list[list[str]]:
    """All that a process says until it ends, in words; a line that it could not finish does not count."""
    assert process.stdout
    with process.stdout as said:
        return [line.split() for line in said.read().splitlines(keepends=True) if line.endswith("\n")]


def body(nth: int, moment: int) -> bytes:
    return random.Random(f"{nth} {moment}").randbytes(500 + nth * 700)


def test_kill_9_at_any_moment_loses_nothing_acknowledged(tmp_path: Path) -> None:
    rng, path = random.Random(20), tmp_path / "s.db"
    acknowledged: dict[int, int] = {}  # page to time
    last = unheard = 0
    for nth in range(20):
        process = start(WRITER, path)
        assert process.stdout
        if nth % 4 == 1:  # killed while it starts
            time.sleep(rng.uniform(0.05, 0.3))
        else:
            assert process.stdout.readline().split()[0] == "ready", "the restart did not come up by itself"
            time.sleep(rng.uniform(0.0, 0.15))
        process.send_signal(signal.SIGKILL)
        said = lines(process)
        process.wait()
        for word, moment, *chosen in said:
            if word == "ready":
                continue
            last, unheard = int(moment), 0
            acknowledged |= {int(page_number): last for page_number in chosen}
        unheard += 1  # every process may have written one batch of which it could not tell any more
        check_after_kill(path, acknowledged, last + unheard)
    assert last > 20, "too few batches to prove anything"


def check_after_kill(path: Path, acknowledged: dict[int, int], newest: int) -> None:
    with Sqlite(path, create=False, keep_crawls=10) as store:
        store.claim()
        assert list(store.problems()) == []
        for nth, moment in acknowledged.items():
            crawl, *_ = store.history(page(nth).url)
            assert crawl.time >= moment, f"the crawl of page {nth} at {moment} was acknowledged and is lost"
            assert crawl.time <= newest
        for _, state in store.states():
            copy, nth = store.copy(state.page.url), int(state.page.url.rsplit("/", 1)[1])
            if state.fetched is None:  # added, and killed before its first crawl was written
                assert (copy, state.crawls) == (None, 0)
                continue
            # Copy, state and history are of one crawl.
            assert copy
            assert copy.body == body(nth, int(copy.fetched))
            assert (copy.fetched, copy.checked, copy.validators) == (state.fetched, state.checked, state.validators)
            assert store.history(state.page.url)[0].time == copy.fetched
            assert state.learned == str(copy.fetched).encode()


READER = """
say("ready")
while store.totals().pages < 40:
    pass
seen = set()
while len(seen) < 15:
    for _, state in store.states():
        copy = store.copy(state.page.url)
        if copy is None:
            assert state.fetched is None
            continue
        nth = int(state.page.url.rsplit("/", 1)[1])
        assert copy.body == body(nth, int(copy.fetched)), "half a copy"
        assert copy.fetched == copy.checked
        assert state.fetched == state.checked, "a mixed state"
        assert state.learned == (b"" if state.fetched is None else str(state.fetched).encode()), "a mixed state"
        seen.add(copy.fetched)
say("whole", len(seen))
"""


def test_a_reader_beside_the_runner_sees_whole_states_only(tmp_path: Path) -> None:
    Sqlite(tmp_path / "s.db").close()
    writer, reader = start(WRITER, tmp_path / "s.db"), start(READER, tmp_path / "s.db")
    try:
        code = reader.wait(timeout=30)
    finally:
        for process in (writer, reader):
            process.kill()
            process.wait()
    assert lines(writer)
    assert lines(reader)[-1][0] == "whole"
    assert code == 0


ADDER = """
first = int(sys.argv[2])
for nth in range(first, first + 100):
    assert store.add([page(nth)]) == 1
say("added")
"""


def test_pages_added_by_other_processes_reach_the_runner(tmp_path: Path) -> None:
    with Sqlite(tmp_path / "s.db") as store:
        store.claim()
        store.add([page(0)])
        adders = [start(ADDER, tmp_path / "s.db", first) for first in (1_000, 2_000)]
        known, urls = 0, []
        deadline = time.monotonic() + 30
        while len(urls) < 201 and time.monotonic() < deadline:
            for number, state in store.states(after=known):
                known = number
                urls.append(state.page.url)
            store.write([record(PageState(page(0)), Outcome.NEW, 1.0, b"x" * 5_000)])
        assert [adder.wait(timeout=30) for adder in adders] == [0, 0]
        assert [lines(adder) for adder in adders] == [[["added"]]] * 2
        assert len(urls) == len(set(urls)) == 201
        assert store.totals().pages == 201
        assert list(store.problems()) == []


HOLDER = """
store.claim()
say("claimed")
sys.stdin.read()
"""


def test_only_one_process_runs_on_a_store_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    holder = start(HOLDER, path)
    assert holder.stdout
    assert holder.stdout.readline() == "claimed\n"
    with Sqlite(path) as store:
        with pytest.raises(StoreLocked, match=rf"process {holder.pid}\) runs on {path}") as caught:
            store.claim()
        assert f"kill {holder.pid}" in caught.value.hint
        holder.kill()
        holder.wait()
        holder.stdout.close()
        store.claim()


def test_many_processes_may_create_one_store_at_once(tmp_path: Path) -> None:
    adders = [start(ADDER, tmp_path / "s.db", 1_000 * nth) for nth in range(6)]
    assert [adder.wait(timeout=60) for adder in adders] == [0] * 6
    assert [lines(adder) for adder in adders] == [[["added"]]] * 6
    with Sqlite(tmp_path / "s.db", create=False) as store:
        assert store.totals().pages == 600
    assert {file.name for file in tmp_path.iterdir()} == {"s.db"}


# The kernel itself refuses to let any file grow beyond the limit, as a full disk does.
CROWDED = """
store.claim()
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
for time in count(1):
    batch = [record(PageState(page(nth)), Outcome.CHANGED, float(time), body(nth, time)) for nth in range(20)]
    try:
        store.add([page(nth) for nth in range(20)])
        store.write(batch)
    except StoreError as error:
        say("refused", error)
        break
    say("kept", time)
"""


@pytest.mark.parametrize("limit", [100_000, 333_333, 1_000_001])
def test_a_file_that_may_not_grow_is_reported_and_keeps_what_was_acknowledged(tmp_path: Path, limit: int) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    process = start(CROWDED, tmp_path / "s.db", limit)
    said = lines(process)
    assert process.wait(timeout=30) == 0
    assert said[-1][0] == "refused"
    assert "The disk" in " ".join(said[-1])
    last = int(said[-2][1]) if len(said) > 1 else 0
    with Sqlite(tmp_path / "s.db", create=False) as store:
        assert list(store.problems()) == []
        for _, state in store.states():
            copy = store.copy(state.page.url)
            assert (copy.fetched if copy else 0) == last


def test_a_store_whose_runner_was_killed_is_not_said_to_be_run(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    assert not is_run(path)
    with start(WRITER, path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert is_run(path)
        assert is_run(path)  # to ask does not disturb
        process.kill()
    assert not is_run(path)
    with Sqlite(path) as store:
        store.claim(brief=True)
        assert not is_run(path)  # a command that takes a moment

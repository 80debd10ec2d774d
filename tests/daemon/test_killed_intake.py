"""Runners that are killed with SIGKILL while they take evidence and wishes in: each takes effect exactly once."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import afresh
from afresh.store import PageState, Sqlite
from afresh.store.messages import of_pages, of_requests, of_signals, packed
from afresh.testing.store_model import page, record
from afresh.types import Outcome, Request, Signal

RUNNER = """
import asyncio, sys
from afresh.daemon import Daemon
from afresh.engine import Engine
from afresh.engine.ahead import compile_ahead
from afresh.estimate import Grid
from afresh.fetch import Scripted
from afresh.schedule import Scheduler
from afresh.store import Sqlite
from afresh.store.socket_file import socket_path

compile_ahead()

async def go():
    store = Sqlite(sys.argv[1])
    engine = Engine(scheduler=Scheduler.live(budget=1e-9), estimator=Grid(typical_rate=0.01))
    engine.scheduler._pace.take(1e12)  # it takes in, and crawls nothing
    daemon = Daemon(engine=engine, fetcher=Scripted({}), store=store, write_every=0.01, socket=socket_path(sys.argv[1]))
    asyncio.get_running_loop().call_later(0.2, lambda: print("up", flush=True))
    await daemon.run()

asyncio.run(go())
"""
SOURCE = str(Path(afresh.__file__).parent.parent)


def start(path: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.Popen(
        [sys.executable, "-c", RUNNER, str(path)], stdout=subprocess.PIPE, text=True, env=environment
    )


def test_kill_9_in_the_middle_of_a_batch_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    rng, path = random.Random(7), tmp_path / "s.db"
    now = time.time()
    pages = [page(nth) for nth in range(20)]
    with Sqlite(path) as store:
        store.add(pages)
        store.write([record(PageState(each), Outcome.NEW, now - 100.0, b"x") for each in pages])
    sent: dict[str, int] = {}
    asked = 0.0
    kills = taken_before_kill = 0
    for round_number in range(4):
        process = start(path)
        assert process.stdout is not None
        with Sqlite(path, create=False) as store:
            assert process.stdout.readline() == "up\n"
            for nth in range(40):
                some = [rng.choice(pages).url for _ in range(25)]
                heard = of_signals([Signal(url, now) for url in some], now, f"{round_number} {nth}")
                count = of_requests([Request(pages[0].url, now, 1.0)], now, f"r {round_number} {nth}")
                assert store.post([*heard, *count]) == 2
                assert store.post([*heard, *count]) == 0, "sent again, as after an answer that was lost"
                asked += 1.0
                for url in some:
                    sent[url] = sent.get(url, 0) + 1
                if nth == 20:
                    extra = page(100 + round_number)
                    store.post([*of_pages([extra], now), *packed("pause", [extra.url], now)])
            deadline = time.monotonic() + 60
            while round_number % 2 and store.totals().inbox_entries >= 80 and time.monotonic() < deadline:
                time.sleep(0.001)  # until it is in the middle of it, however busy the machine is
            time.sleep(rng.uniform(0.0, 0.25 * (1 - round_number % 2)))
            process.kill()
            process.communicate()
            kills += 1
            taken_before_kill += sum(sent.values()) > 0 and store.totals().inbox_entries < 80
    process = start(path)
    with Sqlite(path, create=False) as store:
        deadline = time.monotonic() + 20
        while store.totals().inbox_entries and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
        process.communicate()
    assert (kills, taken_before_kill > 1) == (4, True), "some of it must have been taken before a kill"
    with Sqlite(path, create=False) as store:
        assert list(store.problems()) == []
        assert store.inbox() == []
        states = {state.page.url: state for _, state in store.states()}
        assert {url: states[url].signals for url in sent} == sent
        assert [states[page(100 + nth).url].page.paused for nth in range(4)] == [True] * 4
        from afresh.estimate import Grid

        grid = Grid(typical_rate=0.01)
        grid.add(0, now=now, learned=states[pages[0].url].learned)
        assert round(grid._pages[0].burst) == asked

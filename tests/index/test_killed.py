"""A process that is killed at random moments while it writes copies: index and copies never disagree."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from afresh.index import FullText, check
from afresh.index.engines import engine_named
from afresh.store import Sqlite
from afresh.types import Page
from searched import HOSTS

WRITER = """
import random, sys
from searched import page_of, record
from afresh.index import FullText
from afresh.index.engines import engine_named
from afresh.store import Sqlite
index = FullText(engine=engine_named(sys.argv[3]))
rng = random.Random(int(sys.argv[2]))
with Sqlite(sys.argv[1]) as kept:
    if rng.random() < 0.7:
        kept.accompany(index)  # else a process that knows no index
    urls = [(state.page.url, state.page.host) for _, state in kept.states()]
    print("ready", flush=True)
    while True:
        some = rng.sample(urls, 5)
        kept.write([record(url, host, page_of(rng)) for url, host in some])
        if index.engine.batched and kept.companion and rng.random() < 0.5:
            with kept.writing() as connection:
                index.catch_up(connection, index.due(connection))
"""


@pytest.mark.parametrize("engine", ["fts5", "tantivy"])
def test_index_and_copies_agree_after_kills(tmp_path: Path, engine: str) -> None:
    if engine == "tantivy":
        pytest.importorskip("tantivy", reason="The extra afresh[tantivy] is not installed.")
    path, rng, index = tmp_path / "afresh.db", random.Random(9), FullText(engine=engine_named(engine))
    with Sqlite(path) as kept:
        kept.accompany(index)
        kept.add(Page(f"http://{host}/{nth}", host) for nth in range(40) for host in [HOSTS[nth % 4]])
    support = Path(__file__).parent.parent / "support"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(support), *sys.path])}
    written = 0
    for nth in range(6):
        command = [sys.executable, "-c", WRITER, str(path), str(nth), engine]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(rng.uniform(0.0, 0.25))
            writer.send_signal(signal.SIGKILL)
        with Sqlite(path) as kept:
            assert not list(check.problems(kept, index)), nth
            assert not check.sound_inside(kept, index)
            written = max(written, kept.totals().crawls)
            check.rebuild(kept, index, anew=False)
            assert not list(check.problems(kept, index)), nth
    assert written > 50

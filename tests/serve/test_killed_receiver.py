"""Kill -9 while 10,000 signals come in: every one that was acknowledged is there afterwards, none is counted twice."""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import afresh
from afresh.serve.receive import tokens
from afresh.store import Sqlite
from hub import free_port

RECEIVER = """
import asyncio, sys, time
from pathlib import Path
from afresh.serve.receive.application import application
from afresh.serve.receive.hook import Hooks
from afresh.serve.receive.inlet import Inlet
from afresh.serve.receive.listener import Listener
from afresh.serve.receive.tokens import Tokens
from afresh.store import Sqlite

async def go():
    store = Sqlite(sys.argv[1])
    inlet = Inlet(store.post, lambda: None)
    known = Tokens(Path(sys.argv[2]))
    hooks = Hooks(known, inlet, max_body=1 << 20, rate=1e6, never=(), keeps=lambda url: True, clock=time.time)
    await Listener(application([("POST", "/signal", hooks.post)]), "127.0.0.1", int(sys.argv[3])).start()
    print("up", flush=True)
    await asyncio.sleep(3600)

asyncio.run(go())
"""
SENDERS, BATCHES, BATCH = 4, 25, 100


def start(path: Path, file: Path, port: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(afresh.__file__).parent.parent)}
    command = [sys.executable, "-c", RECEIVER, str(path), str(file), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_what_was_acknowledged_is_there_and_counted_once(tmp_path: Path) -> None:
    path, file, port = tmp_path / "s.db", tmp_path / "tokens", free_port()
    Sqlite(path, max_inbox=1 << 30).close()
    token = tokens.new(file, "cms", "signal")
    process = [start(path, file, port)]
    acknowledged: set[str] = set()
    killed = 0

    def send(sender: int) -> None:
        """Every batch until it is acknowledged, again with the same key after an answer that was lost."""
        for batch in range(BATCHES):
            urls = [f"https://e.org/{sender}/{batch}/{nth}" for nth in range(BATCH)]
            headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": f"{sender} {batch}"}
            while True:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                try:
                    connection.request("POST", "/signal", json.dumps(urls), headers)
                    if connection.getresponse().status == 202:
                        acknowledged.update(urls)
                        break
                except (OSError, http.client.HTTPException):
                    time.sleep(0.01)
                finally:
                    connection.close()

    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(SENDERS)]
    for thread in threads:
        thread.start()
    kills_at = [len(threads) * BATCHES * BATCH * share // 4 for share in (1, 2, 3)]
    while any(thread.is_alive() for thread in threads):
        if kills_at and len(acknowledged) >= kills_at[0]:
            kills_at.pop(0)
            process[0].kill()
            process[0].communicate()
            with Sqlite(path, create=False) as store:  # as it was at the moment of the kill
                held = {item[0] for entry in store.inbox(limit=100_000) for item in json.loads(entry.body)}
            assert acknowledged - held == set()
            killed += 1
            process[0] = start(path, file, port)
        time.sleep(0.002)
    process[0].kill()
    process[0].communicate()
    with Sqlite(path, create=False) as store:
        counts = Counter(item[0] for entry in store.inbox(limit=100_000) for item in json.loads(entry.body))
        assert list(store.problems()) == []
    assert killed == 3
    assert set(counts) == acknowledged
    assert (len(counts), set(counts.values())) == (SENDERS * BATCHES * BATCH, {1})

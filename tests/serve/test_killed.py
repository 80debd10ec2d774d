"""A serving cache that is killed under load: what was counted, and what it answers afterwards."""

import asyncio
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

from afresh.store import PageState, Record, Sqlite
from afresh.store.messages import evidence
from afresh.types import Beliefs, Copy, Crawl, Outcome, Page, Request, Validators
from command_line import COMMAND
from serving import Origin, Reader, Told

PAGES = 20
LOAD = 2.5  # seconds


def body_of(path: str) -> bytes:
    return f"kept {path} ".encode() * 500


class Started:
    """`afresh serve` in a process of its own."""

    def __init__(self, folder: Path, origin: str) -> None:
        (folder / "afresh.toml").write_text(
            f'[store]\npath = "kept.db"\n[[serve]]\nprefix = "/"\norigin = "{origin}"\n'
        )
        command = [*COMMAND, "serve", "--listen", "127.0.0.1:0", "--config", str(folder / "afresh.toml")]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"COLUMNS": "200"})
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", said)
        assert found, said
        self.port = int(found[1])
        self.reads = threading.Thread(target=self.process.stderr.read, daemon=True)
        self.reads.start()

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        code = self.process.wait(20)
        self.reads.join(5)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code


async def _load(port: int, until: float, answered: list[float]) -> None:
    """Ask for page after page, until the connection breaks."""
    reader = Reader(*await asyncio.open_connection("127.0.0.1", port))
    try:
        nth = 0
        while time.time() < until:
            got = await reader.ask(f"/{nth % PAGES}")
            assert got.body == body_of(f"/{nth % PAGES}")
            answered.append(time.time())
            nth += 1
            await asyncio.sleep(0.002)
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        reader.close()


def counted(store: Sqlite) -> float:
    return sum(
        each.count
        for entry in store.inbox()
        if entry.kind == "requests"
        for each in evidence(entry)[0]
        if isinstance(each, Request)
    )


async def _killed(folder: Path) -> None:
    origin = Origin(lambda heard: Told(body=b"from the origin"))
    await origin.start()
    with Sqlite(folder / "kept.db") as store:
        now = time.time()
        for nth in range(PAGES):
            url = f"{origin.url}/{nth}"
            store.add([Page(url, "127.0.0.1")])
            copy = Copy(url, body_of(f"/{nth}"), "text/html", now, now, Validators('"k"'), {":status": "200"})
            state = PageState(Page(url, "127.0.0.1"), Beliefs(1.0, 1e-6), Validators('"k"'), now, now, 0, crawls=10)
            store.write([Record(Crawl(url, now, Outcome.NEW), state, copy)])
    started = await asyncio.to_thread(Started, folder, origin.url)
    answered: list[float] = []
    loads = [asyncio.create_task(_load(started.port, time.time() + 30, answered)) for _ in range(8)]
    await asyncio.sleep(LOAD)
    killed = time.time()
    assert await asyncio.to_thread(started.end, signal.SIGKILL) == -signal.SIGKILL
    await asyncio.gather(*loads)
    assert len(answered) > 200
    with Sqlite(folder / "kept.db") as store:
        durable = counted(store)
        assert sum(moment < killed - 1.0 for moment in answered) <= durable <= len(answered) + len(loads)
        for nth in range(PAGES):
            copy = store.copy(f"{origin.url}/{nth}")
            assert copy is not None
            assert copy.body == body_of(f"/{nth}")
    # It starts again at once, answers from the same copies, and an orderly end loses no request.
    again = await asyncio.to_thread(Started, folder, origin.url)
    more: list[float] = []
    await _load(again.port, time.time() + 0.5, more)
    assert await asyncio.to_thread(again.end, signal.SIGTERM) == 0
    with Sqlite(folder / "kept.db") as store:
        assert counted(store) == durable + len(more)
    assert not [heard for heard in origin.heard if heard.target[1:].isdecimal()]
    await origin.stop()


def test_a_kill_under_load_loses_at_most_a_second_of_counts_and_no_copy(tmp_path: Path) -> None:
    asyncio.run(_killed(tmp_path))


def test_readers_that_hang_up_while_they_are_answered_end_nothing(tmp_path: Path) -> None:
    async def scene() -> int:
        origin = Origin(lambda heard: Told(headers={"Cache-Control": "max-age=60"}, body=b"x" * 1000))
        await origin.start()
        started = await asyncio.to_thread(Started, tmp_path, origin.url)

        def hang_up() -> None:
            for nth in range(60):
                made = socket.create_connection(("127.0.0.1", started.port))
                made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                made.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 100)
                time.sleep(nth % 20 * 1e-4)
                made.close()  # with a reset, in the middle of the answers

        await asyncio.to_thread(hang_up)
        started.process.send_signal(signal.SIGPIPE)  # what the system sends to who writes to one that is gone
        reader = Reader(*await asyncio.open_connection("127.0.0.1", started.port))
        assert (await reader.ask()).status == 200
        reader.close()
        code = await asyncio.to_thread(started.end, signal.SIGTERM)
        await origin.stop()
        return code

    assert asyncio.run(scene()) == 0


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    async def scene() -> subprocess.CompletedProcess[str]:
        origin = Origin(lambda heard: Told())
        await origin.start()
        command = [*COMMAND, "serve", "--origin", origin.url, "--strict", "--listen", f"127.0.0.1:{origin.port}"]
        done = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, timeout=30, cwd=tmp_path, check=False
        )
        await origin.stop()
        return done

    done = asyncio.run(scene())
    assert done.returncode == 2
    assert "Nothing can listen" in done.stderr
    assert "Traceback" not in done.stderr

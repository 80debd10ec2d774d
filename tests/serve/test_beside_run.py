"""`afresh run` beside `afresh serve`, each a process of its own, over one store and an origin that changes."""

import asyncio
import signal
import subprocess
import threading
from pathlib import Path
from types import TracebackType

from afresh.store import Sqlite
from afresh.store.socket_file import ask
from command_line import COMMAND
from serving import Got, Heard, Origin, Reader, Told

OFTEN, ONCE = "/often", "/once"
ASKED = 10
SETTINGS = '[fetch]\nallow_private = true\n[politeness]\nfactor = 0\nshortest_gap = "0s"\n[crawl]\nbudget = "20/s"\n'


class Process:
    """One of ours; what it says is read on, so that it never waits for us."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.said: list[str] = []
        self._reads = threading.Thread(target=self._read, daemon=True)
        self._reads.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said.append(line)

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(120)
        self._reads.join(5)
        if self._process.stderr is not None:
            self._process.stderr.close()
        assert error is not None or code == 0, self.said


async def listening(process: Process) -> int:
    """The port, once it is said."""
    for _ in range(2_400):
        for line in process.said:
            if "127.0.0.1:" in line:
                return int(line.partition("127.0.0.1:")[2].split()[0].rstrip(".,/"))
        await asyncio.sleep(0.05)
    raise AssertionError(process.said)


async def _beside(folder: Path) -> None:
    versions = {OFTEN: 1, ONCE: 1}

    def play(heard: Heard) -> Told:
        if heard.target not in versions:
            return Told(status=404)
        body = f"{heard.target} as it is for the {versions[heard.target]}. time".encode()
        return Told(headers={"Cache-Control": "max-age=3600", "Content-Type": "text/plain"}, body=body)

    origin = Origin(play)
    await origin.start()

    def fetched(path: str) -> int:
        return sum(heard.target == path for heard in origin.heard)

    async def comes(path: str, more: int) -> None:
        """Wait until the origin was asked for a page so many times more: by the runner, as no reader asks."""
        wanted = fetched(path) + more
        for _ in range(6_000):  # the runner may have everything to compile first
            if fetched(path) >= wanted:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{path} was not fetched: {run.said}")

    (folder / "afresh.toml").write_text(f'{SETTINGS}[[serve]]\nprefix = "/"\norigin = "{origin.url}"\n')
    with (
        Process(folder, "serve", "--listen", "127.0.0.1:0") as serve,
        Process(folder, "run") as run,
    ):
        port = await listening(serve)
        reader = Reader(*await asyncio.open_connection("127.0.0.1", port))
        first = await reader.ask(OFTEN)
        assert (first.body, "fwd=uri-miss" in first["cache-status"]) == (b"/often as it is for the 1. time", True)
        assert (await reader.ask(ONCE)).status == 200
        for _ in range(ASKED - 1):
            assert "hit" in (await reader.ask(OFTEN))["cache-status"]
        # Nobody named these pages to the runner: they are kept because readers asked for them.
        assert (fetched(OFTEN), fetched(ONCE)) == (1, 1)
        await comes(OFTEN, 20)
        versions[OFTEN] = 2
        await comes(OFTEN, 2)  # the second one begins when the first one is kept
        answers: list[Got] = []
        async with asyncio.timeout(30):
            while not answers or answers[-1].body != b"/often as it is for the 2. time":
                answers.append(await reader.ask(OFTEN))
                await asyncio.sleep(0.05)
        # Its origin allowed an hour, and the runner looked ahead: no reader ever waited for the new one.
        assert [got["cache-status"] for got in answers if "; hit;" not in got["cache-status"]] == []
        assert answers[-1]["x-fresh-probability"] > "0.5"
        assert "/robots.txt" in [heard.target for heard in origin.heard]
        # The runner is told how readers were answered, for its metrics.
        async with asyncio.timeout(60):
            while ask(folder / "afresh.db", "counts")["answers"].get("hit", 0) < ASKED - 1:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.2)
        reader.close()
    with Sqlite(folder / "afresh.db") as store:
        often, once = store.state(origin.url + OFTEN), store.state(origin.url + ONCE)
        assert often is not None
        assert once is not None
        assert often.beliefs is not None
        assert once.beliefs is not None
        assert often.beliefs.request_rate > 2 * once.beliefs.request_rate > 0
        copy = store.copy(origin.url + OFTEN)
        assert copy is not None
        assert copy.body == answers[-1].body
        assert store.totals().pages == 2
    await origin.stop()


def test_the_runner_keeps_fresh_what_readers_ask_the_cache_for(tmp_path: Path) -> None:
    asyncio.run(_beside(tmp_path))

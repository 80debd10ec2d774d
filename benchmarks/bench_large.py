"""A store of very many pages: filled, started, crawled, signalled, killed, started again. Nothing acknowledged is lost.

    python benchmarks/bench_large.py                                  # a million pages, a minute
    python benchmarks/bench_large.py --pages 10000000 --seconds 300   # on demand: some 8 GB of disk, half an hour

A server in another process answers for all of them on loopback: "not modified" to who has the page, else a page. The
runner is `afresh run`, a process of its own, killed with no chance to put anything in order.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import cycle, islice
from multiprocessing.connection import Connection
from pathlib import Path

from afresh.store import Sqlite
from afresh.store.messages import of_signals
from afresh.types import Page, Signal

SETTINGS = """
[store]
path = "{path}"
[crawl]
budget = "{budget}/s"
concurrency = 64
[fetch]
allow_private = true
[politeness]
factor = 0
shortest_gap = "0s"
robots = false
address_at_once = 1000
address_share = 0
"""
SIGNALS_AN_ENTRY = 1_000
KEPT = 1_000  # more crawls of a page than the history keeps


class Pages(asyncio.Protocol):
    """One page for every address; "not modified" for who has it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there."""
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.rest = transport, b""

    def data_received(self, data: bytes) -> None:
        """Some of a request, or of several."""
        *requests, self.rest = (self.rest + data).split(b"\r\n\r\n")
        for request in requests:
            path = request.split(b" ", 2)[1]
            if b"if-none-match" in request.lower():
                self.transport.write(b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\nContent-Length: 0\r\n\r\n')
                continue
            body = b"<!doctype html><title>%s</title>" % path + b"<p>Some text of a page.</p>" * 40
            head = b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: "1"\r\nContent-Length: %d\r\n\r\n' % len(body)
            self.transport.write(head + body)


def serve(told: Connection) -> None:
    """Serve until the process ends."""

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Pages, "127.0.0.1", 0)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def pages_of(count: int, hosts: int, port: int) -> Iterator[Page]:
    """All pages: each host has its own in ten folders."""
    for number in range(count):
        host = f"h{number % hosts}.localhost"
        yield Page(f"http://{host}:{port}/f{number // hosts % 10}/p{number}", host)


class Run:
    """`afresh run`, and what it says."""

    def __init__(self, folder: Path) -> None:
        self.began = time.monotonic()
        self.first = float("nan")  # seconds to the first crawl that is safely stored
        self.crawls: list[tuple[str, float]] = []
        command = [sys.executable, "-m", "afresh", "run", "--json"]
        with (folder / "errors.txt").open("a") as errors:
            self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=errors)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.endswith(b"\n"):
                return
            said = json.loads(line)
            if "url" in said and "time" in said:
                if not self.crawls:
                    self.first = time.monotonic() - self.began
                self.crawls.append((said["url"], said["time"]))

    def wait_for_a_crawl(self, seconds: float) -> None:
        """Until the first one."""
        while not self.crawls and time.monotonic() < self.began + seconds and self.process.poll() is None:
            time.sleep(0.1)

    @property
    def resident(self) -> int:
        """Bytes that the process has in memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * 4096

    @property
    def cpu(self) -> float:
        """Seconds of the processor that it has used."""
        spent = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(spent[11]) + int(spent[12])) / os.sysconf("SC_CLK_TCK")

    def kill(self) -> None:
        """As a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.reader.join()


def post_signals(path: Path, urls: list[str]) -> tuple[float, float]:
    """(seconds to hand the signals over durably, seconds until none waits any more)."""
    began = time.monotonic()
    with Sqlite(path, create=False) as store:
        for first in range(0, len(urls), SIGNALS_AN_ENTRY):
            now = time.time()
            some = [Signal(url, now, "bench") for url in urls[first : first + SIGNALS_AN_ENTRY]]
            store.post(list(of_signals(some, now, f"bench {first}")))
        posted = time.monotonic() - began
        while store.totals().inbox_entries and time.monotonic() < began + 300:
            time.sleep(0.1)
        return posted, time.monotonic() - began


def main() -> None:
    """Carry it all out."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--signals", type=int, default=100_000)
    parser.add_argument("--folder", help="keep the store here instead of in a temporary folder")
    arguments = parser.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    port = here.recv()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        path = folder / "afresh.db"
        (folder / "afresh.toml").write_text(SETTINGS.format(path=path, budget=arguments.budget))
        began = time.monotonic()
        with Sqlite(path) as store:
            store.add(pages_of(arguments.pages, arguments.hosts, port))
        took = time.monotonic() - began
        print(f"{arguments.pages:,} pages added in {took:.0f} s, {arguments.pages / took:,.0f}/s", flush=True)
        acknowledged: list[tuple[str, float]] = []
        for nth in range(2):
            run = Run(folder)
            run.wait_for_a_crawl(600.0)
            if not run.crawls:
                raise SystemExit((folder / "errors.txt").read_text()[-2_000:])
            print(f"start {nth + 1}: {run.first:.1f} s and {run.cpu:.1f} s of processor time to the first stored crawl")
            used, counted, since = run.cpu, len(run.crawls), time.monotonic()
            time.sleep(arguments.seconds if nth == 0 else arguments.seconds / 5)
            seconds = time.monotonic() - since
            per_second, each = (len(run.crawls) - counted) / seconds, (run.cpu - used) / (len(run.crawls) - counted)
            print(f"  crawled {per_second:.0f}/s of {arguments.budget}/s, {1e6 * each:.0f} µs of processor time each")
            if nth == 0:
                # Of pages that have a copy: of others a signal says nothing.
                crawled = dict.fromkeys(url for url, _ in run.crawls)
                urls = list(islice(cycle(crawled), arguments.signals))
                before, used = len(run.crawls), run.cpu
                posted, taken = post_signals(path, urls)
                spent = run.cpu - used - each * (len(run.crawls) - before)
                print(
                    f"  {len(urls):,} signals of another process: durable at {len(urls) / posted:,.0f}/s, all taken in"
                    f" after {taken:.1f} s ({len(urls) / taken:,.0f}/s), {(len(run.crawls) - before) / taken:.0f}"
                    f" crawls/s meanwhile; {1e6 * spent / len(urls):.0f} µs of processor time each, but for the crawls"
                )
            print(f"  resident {run.resident / 1e6:,.0f} MB, {run.resident / arguments.pages:.0f} bytes a page in all")
            run.kill()
            acknowledged += run.crawls
            with Sqlite(path, create=False) as store:
                totals = store.totals()
                lost = sum(
                    all(abs(crawl.time - at) > 1e-6 for crawl in store.history(url, KEPT))
                    for url, at in acknowledged[:: max(1, len(acknowledged) // 20_000)]
                )
            print(
                f"  killed: {len(acknowledged):,} crawls acknowledged, {lost} lost; {totals.pages:,} pages in the store"
            )
    server.terminate()


if __name__ == "__main__":
    main()

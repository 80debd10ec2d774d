"""What a refresh that is answered 304 costs: the whole daemon beside the bare fetch, in one run, in CPU time.

    python benchmarks/bench_refresh.py [--pages N] [--measured N] [--profile FILE]

The daemon is the real one (engine with scheduler, learner and activity, HTTP, SQLite); a server in another process
answers "not modified" to everything. Only the daemon's process counts. The first refresh of a page since the start
proves its copy whole; later ones do not, so the two are measured apart.
"""

import argparse
import asyncio
import cProfile
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from afresh.cli.build import addresses_for, compile_all, detector_for, fetcher_for, permits_for, politeness_of
from afresh.config import Config, parse
from afresh.daemon import Daemon, Finished, SteadyClock
from afresh.detect import mark
from afresh.engine import Engine
from afresh.estimate import Activity, Learner
from afresh.estimate.activity import slice_width
from afresh.estimate.base import typical_rate
from afresh.fetch import Http
from afresh.frontier import Lanes
from afresh.schedule import Scheduler
from afresh.sources import Web
from afresh.store import PageState, Record, Sqlite
from afresh.types import Copy, Crawl, Fetched, Order, Outcome, Page, Validators, Verdict, Wait

HOSTS = 64
SETTINGS = """
[fetch]
allow_private = true
[politeness]
factor = 0
shortest_gap = "0s"
[crawl]
budget = "100000/s"
"""
BODY = b"<!doctype html><title>A page</title>" + b"<p>Some text of a page, and some more of it.</p>" * 100
KNOWN = Validators(etag='"5f3-1a2b3c4d"', last_modified="Sun, 06 Nov 2022 08:49:37 GMT", fingerprint=mark(BODY))
NOT_MODIFIED = (
    b"HTTP/1.1 304 Not Modified\r\nServer: bench\r\nDate: %s\r\nConnection: keep-alive\r\n"
    b'ETag: "5f3-1a2b3c4d"\r\nLast-Modified: Sun, 06 Nov 2022 08:49:37 GMT\r\nCache-Control: max-age=60\r\n\r\n'
)
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nServer: bench\r\nContent-Length: 0\r\n\r\n"


class Unchanging(asyncio.Protocol):
    """Knows that nothing has changed; of robots.txt, that there is none."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """A question, which comes in one piece."""
        date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()).encode()
        self.transport.write(NOT_FOUND if data.startswith(b"GET /robots.txt ") else NOT_MODIFIED % date)  # type: ignore[attr-defined]


def serve(told: Connection) -> None:
    """The server's process: says at which port it listens, and serves until it is ended."""

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Unchanging, "127.0.0.1", 0)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def fill(store: Sqlite, pages: list[Page], now: float) -> None:
    """Give every page a copy, fetched some time ago."""
    store.add(pages)
    for start in range(0, len(pages), 1000):
        records = []
        for page in pages[start : start + 1000]:
            copy = Copy(page.url, BODY, "text/html", now - 3600.0, now - 3600.0, KNOWN)
            state = PageState(page, None, KNOWN, copy.fetched, copy.checked, crawls=1)
            records.append(Record(Crawl(page.url, copy.fetched, Outcome.NEW, status=200), state, copy))
        store.write(records)


class Timed(Engine):
    """An engine that counts the CPU time which giving orders and learning take."""

    spent = 0.0

    def next(self, now: float) -> Order | Wait:
        """As the engine does."""
        began = time.thread_time()
        try:
            return super().next(now)
        finally:
            self.spent += time.thread_time() - began

    def finish(self, order: Order, fetched: Fetched, verdict: Verdict, now: float, *, rest: float = 0.0) -> Crawl:
        """As the engine does."""
        began = time.thread_time()
        try:
            return super().finish(order, fetched, verdict, now, rest=rest)
        finally:
            self.spent += time.thread_time() - began


def engine_for(config: Config, pages: int) -> Timed:
    """The engine that many pages have."""
    budget = config.crawl.budget
    return Timed(
        scheduler=Scheduler(budget=budget, lease=config.fetch.timeout + 60, sweep=config.crawl.sweep),
        estimator=Learner(typical_rate=typical_rate(budget, pages)),
        activity=Activity(width=slice_width(typical_rate(budget, pages))),
        lanes=Lanes(politeness_of(config)),
    )


class Meter:
    """Reads clocks of CPU time when so many crawls are finished; stops the daemon at the last.

    They are those of the process, of the event loop's thread and of the engine.
    """

    def __init__(
        self, marks: list[int], stop: Callable[[], None], engine: Timed, profile: cProfile.Profile | None
    ) -> None:
        self.marks, self.stop, self.engine, self.profile = marks, stop, engine, profile
        self.read: list[tuple[float, float, float]] = []
        self.finished = 0

    def hear(self, event: object) -> None:
        """Count."""
        if not isinstance(event, Finished):
            return
        assert event.crawl.status == 304, event.crawl
        self.finished += 1
        if self.finished == self.marks[len(self.read)]:
            self.read.append((time.process_time(), time.thread_time(), self.engine.spent))
            if self.profile is not None and len(self.read) == len(self.marks) - 1:
                self.profile.enable()
            if len(self.read) == len(self.marks):
                if self.profile is not None:
                    self.profile.disable()
                self.marks = [*self.marks, -1]
                self.stop()


async def whole(config: Config, store: Sqlite, pages: int, measured: int, profile: cProfile.Profile | None) -> Meter:
    """Refresh with the whole daemon."""
    clock, engine = SteadyClock(), engine_for(config, pages)
    fetcher = fetcher_for(config, clock)
    daemon = Daemon(
        engine=engine,
        sources=Web(
            fetcher,
            permits=permits_for(config, store),
            addresses=addresses_for(config, engine.lanes),
        ),
        store=store,
        detector=detector_for(config),
        clock=clock,
        concurrency=config.crawl.concurrency,
    )
    # The first thousand load what is compiled, make connections and ask for robots.txt.
    later = round(1.2 * pages)
    meter = Meter([1000, 1000 + measured, later, later + measured], daemon.stop, engine, profile)
    daemon.listeners.append(meter.hear)
    await daemon.run()
    await fetcher.close()
    return meter


async def bare(fetcher: Http, urls: list[str]) -> float:
    """CPU seconds of one fetch, some under way at once, without anything around it."""

    async def some(mine: list[str]) -> None:
        for url in mine:
            fetched = await fetcher.fetch_while(url, KNOWN, lambda _: True)
            assert fetched.status == 304, fetched

    await some(urls[:200])
    began = time.process_time()
    await asyncio.gather(*(some([url for url in urls if f"//h{nth}." in url]) for nth in range(16)))
    fetched = sum(any(f"//h{nth}." in url for nth in range(16)) for url in urls)
    spent = time.process_time() - began
    await fetcher.close()
    return spent / fetched


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=24_000, help="that are kept; more than 20,000")
    parser.add_argument("--measured", type=int, default=10_000, help="refreshes")
    parser.add_argument("--profile", help="a file for where later refreshes spend their time, as pstats reads it")
    options = parser.parse_args()
    told, tell = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(tell,), daemon=True)
    server.start()
    port = told.recv()
    compile_all()
    config = parse(SETTINGS)
    hosts = [f"h{nth}.localhost:{port}" for nth in range(HOSTS)]
    pages = [
        Page(f"http://{hosts[n % HOSTS]}/docs/{n % 97}/page{n}.html", hosts[n % HOSTS]) for n in range(options.pages)
    ]
    profile = cProfile.Profile(time.thread_time) if options.profile else None
    with tempfile.TemporaryDirectory() as folder, Sqlite(Path(folder) / "afresh.db") as store:
        fill(store, pages, time.time())
        meter = asyncio.run(whole(config, store, len(pages), options.measured, profile))
    fetch = asyncio.run(bare(fetcher_for(config, SteadyClock()), [page.url for page in pages]))
    server.terminate()
    print(f"{len(pages):,} pages on {HOSTS} hosts, {options.measured:,} refreshes answered 304, CPU of one process")
    print(f"  bare fetch                          {1e6 * fetch:6.0f} µs")
    for name, n in (("first since start", 0), ("later", 2)):
        all_of_it, loop, engine = (
            (after - before) / options.measured for before, after in zip(meter.read[n], meter.read[n + 1], strict=True)
        )
        print(f"  whole pipeline, {name:17}   {1e6 * all_of_it:6.0f} µs, {all_of_it / fetch:.2f} x the fetch")
        print(f"    threads beside the event loop     {1e6 * (all_of_it - loop):6.0f} µs")
        print(f"    the engine's next and finish      {1e6 * engine:6.0f} µs")
        rest = loop - engine
        print(f"    fetch and all else on the loop    {1e6 * rest:6.0f} µs, {rest / fetch:.2f} x the fetch")
    if profile is not None:
        profile.dump_stats(options.profile)


if __name__ == "__main__":
    main()

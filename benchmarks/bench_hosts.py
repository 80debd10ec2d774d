"""Many hosts with a gap of one second each, all at once: is any gap undercut, and is the fetcher ever idle?

    python benchmarks/bench_hosts.py [--hosts N] [--seconds S]

The hosts are one server in a process of its own, each at its own loopback address. What is told of gaps comes from that
server's log. A host is ready when it has rested for ten times what its last answer took, or for the gap if that is
longer; how late it is asked then is told by the crawler. A few hosts that the crawler can easily serve show that. Ten
thousand are more than it can serve, so most of them would be asked long after their gaps whatever it did; therefore the
pages of two hundred are a million times as important as the others, and are asked for as soon as their gaps allow.
"""

import argparse
import asyncio
import json
import selectors
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network
from socket import AF_INET

from aiohttp.abc import AbstractResolver, ResolveResult

from afresh.daemon import Daemon, Finished, Ordered, SteadyClock
from afresh.engine import Engine
from afresh.estimate import Grid
from afresh.fetch import Guard, Http, Limits
from afresh.frontier import Addresses, Lanes, Politeness, host_of
from afresh.schedule import Scheduler
from afresh.sources import Web
from afresh.store import Memory
from afresh.types import Importance, Page

GAP = 1.0
WANTED = 200  # hosts whose pages are more important than all others
BODY = b"<p>A page.</p>"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)


class Log(asyncio.Protocol):
    """Answers everything, and notes when it was asked by whom."""

    rows: list[tuple[str, float]] = []  # noqa: RUF012 - one log for all connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A crawler comes."""
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Requests are short and come whole."""
        self.rows.append((data.partition(b"Host: ")[2].partition(b"\r\n")[0].decode(), time.monotonic()))
        self.transport.write(ANSWER)


async def serve() -> None:
    """Serve until standard input ends, then print the log."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Log, "0.0.0.0", 0, backlog=8192)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    print(json.dumps(Log.rows))


class Spread(AbstractResolver):
    """An address of its own for every host: 127.1.0.0 and up."""

    async def resolve(self, host: str, port: int = 0, family: int = AF_INET) -> list[ResolveResult]:  # type: ignore[override]
        """hN.test is the N-th."""
        address = str(IPv4Address("127.1.0.0") + int(host[1:-5]))
        return [ResolveResult(hostname=host, host=address, port=port, family=AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        """Nothing to let go of."""


async def crawl(port: int, hosts: int, seconds: float, watch: "Watch") -> tuple[float, float]:
    """Keep two pages of each host fresh for a while; CPU and wall seconds after the start."""
    clock, store = SteadyClock(), Memory()
    urls = [f"http://h{number}.test:{port}/{page}" for page in "ab" for number in range(hosts)]
    wanted = {f"h{number}.test:{port}" for number in range(WANTED)}
    store.add(
        [Page(url, host_of(url), importance=Importance(1e6 if host_of(url) in wanted else 1.0)) for url in urls],
    )
    polite = Politeness(factor=10.0, shortest_gap=GAP)
    fetcher = Http(
        user_agent="afresh/bench",
        limits=Limits(connections=512),
        guard=Guard(networks=[IPv4Network("127.0.0.0/8")]),
        resolver=Spread(),
        clock=clock,
    )
    # As `afresh run` has them for so many pages.
    engine = Engine(scheduler=Scheduler.live(budget=50_000.0), estimator=Grid(typical_rate=1.0), lanes=Lanes(polite))
    daemon = Daemon(
        engine=engine,
        sources=Web(fetcher, addresses=Addresses(politeness=polite)),
        store=store,
        clock=clock,
        concurrency=256,
        listeners=[started := _Started()],
    )
    started.then = lambda: setattr(watch, "daemon", daemon)
    daemon.listeners.append(lambda event: watch.hear(event, wanted))
    asyncio.get_running_loop().call_later(seconds, daemon.stop)
    await daemon.run()
    watch.daemon = None
    cost = time.process_time() - started.cpu, time.monotonic() - started.wall
    await fetcher.close()
    return cost


class Watch(selectors.DefaultSelector):
    """Adds up how long the event loop sleeps while a place for another fetch is free."""

    def __init__(self) -> None:
        super().__init__()
        self.daemon: Daemon | None = None
        self.idle = 0.0
        self.ready: dict[str, float] = {}
        self.late: list[float] = []  # seconds from the moment that an important host was ready to the next order for it

    def hear(self, event: object, wanted: set[str]) -> None:
        """Compare the moments of orders with what the hosts were promised."""
        if isinstance(event, Ordered) and event.order.host in self.ready:
            self.late.append(event.order.time - self.ready.pop(event.order.host))
        elif isinstance(event, Finished) and self.daemon and (host := host_of(event.crawl.url)) in wanted:
            self.ready[host] = self.daemon.engine.lanes.state(host).ready

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As usual."""
        before = time.monotonic()
        ready = super().select(timeout)
        if self.daemon and timeout != 0 and len(self.daemon._under_way) < self.daemon.concurrency:
            self.idle += time.monotonic() - before
        return ready


class _Started:
    """Notes when the first order is given: what comes before is loading."""

    cpu = wall = 0.0
    then: Callable[[], object] = print

    def __call__(self, event: object) -> None:
        if not self.wall and type(event).__name__ == "Ordered":
            self.cpu, self.wall = time.process_time(), time.monotonic()
            self.then()


def measure(hosts: int, seconds: float) -> None:
    """One run and what the server's log says of it."""
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    port = int(server.stdout.readline())
    watch = Watch()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(watch)) as runner:
        cpu, wall = runner.run(crawl(port, hosts, seconds, watch))
    rows = json.loads(server.communicate("")[0])
    last: dict[str, float] = {}
    gaps, often = [], []
    for host, moment in rows:
        if host in last:
            gaps.append(moment - last[host])
            if int(host[1:].partition(".")[0]) < WANTED:
                often.append(moment - last[host])
        last[host] = moment
    print(f"{hosts} hosts, {GAP:g} s gap, {wall:.1f} s: {len(rows)} requests to {len(last)} hosts")
    if gaps:
        undercut = sum(gap < GAP for gap in gaps)
        print(f"  shortest time between two requests to one host: {min(gaps):.4f} s ({undercut} undercut)")
    if often:
        print(f"  {WANTED} important hosts: {len(often)} gaps, median {statistics.median(often):.4f} s", end="; ")
        late = sorted(watch.late)
        print(
            f"asked after being ready: median {statistics.median(late):.4f} s, 99 % {late[int(0.99 * len(late))]:.4f} s"
        )
    print(f"  {len(rows) / wall:.0f} requests a second; the crawler used {cpu / wall:.0%} of a core")
    print(f"  asleep with a place free for another fetch: {watch.idle / wall:.1%} of the time")


def main() -> None:
    """Few and many."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="*", default=[200, 10_000])
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return
    for hosts in options.hosts:
        measure(hosts, options.seconds)


if __name__ == "__main__":
    main()

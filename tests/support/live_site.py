"""Web sites on loopback whose every answer a test decides, and a daemon that crawls them over real sockets."""

import asyncio
import socket
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path

from aiohttp.abc import AbstractResolver, ResolveResult

from afresh.cli.receiving import receiver_for
from afresh.config import Config, ReceiveSettings
from afresh.daemon import Daemon, Listener, SteadyClock
from afresh.engine import Engine
from afresh.estimate import Grid
from afresh.fetch import Guard, Http, Limits
from afresh.frontier import Addresses, AddressLimits, Lanes, Politeness, host_of
from afresh.schedule import Greedy, Plain, Schedules
from afresh.sources.web import Discovery, Permits, Web
from afresh.sources.web.source import Hears
from afresh.store import Memory, Store
from afresh.types import Page

NO_GAPS = Politeness(factor=0, shortest_gap=0, longest_gap=0, first_back_off=0)
NONE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def html(body: str, *headers: str, kind: str = "text/html") -> bytes:
    """A whole answer."""
    text = body.encode()
    more = "".join(f"{header}\r\n" for header in headers)
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\n{more}\r\n".encode() + text


def to(location: str) -> bytes:
    """A redirect."""
    return f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()


@dataclass
class Asked:
    """One request as the server saw it."""

    host: str  # without port
    path: str
    address: str  # that the request was sent to
    begun: float
    ended: float = float("inf")
    head: str = ""  # of the request, as sent


@dataclass
class LiveSite:
    """A server for all names; `answer(host, path)` decides. Listens on every loopback address."""

    answer: Callable[[str, str], bytes]
    takes: float = 0.0  # seconds
    log: list[Asked] = field(default_factory=list)
    port: int = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._talk, "0.0.0.0", self.port, backlog=4096)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        self._server.close()

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.port}{path}"

    def asked(self, host: str) -> list[str]:
        return [each.path for each in self.log if each.host == host]

    def most_at_once(self) -> int:
        events = sorted((moment, step) for each in self.log for moment, step in ((each.begun, 1), (each.ended, -1)))
        most = running = 0
        for _, step in events:
            running += step
            most = max(most, running)
        return most

    def gaps(self) -> Iterator[float]:
        """From the end of each answer to the next request, host by host."""
        last: dict[str, float] = {}
        for each in sorted(self.log, key=lambda each: each.begun):
            if each.host in last:
                yield each.begun - last[each.host]
            last[each.host] = each.ended

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                path = head.split(" ", 2)[1]
                host = next(line[6:] for line in head.split("\r\n") if line.lower().startswith("host: "))
                name = host.partition(":")[0]
                asked = Asked(name, path, writer.get_extra_info("sockname")[0], time.monotonic(), head=head)
                self.log.append(asked)
                if self.takes:
                    await asyncio.sleep(self.takes)
                answer = self.answer(name, path)
                asked.ended = time.monotonic()
                writer.write(answer)
                await writer.drain()
        writer.close()


class Names(AbstractResolver):
    """Where each name leads; all others to 127.0.0.1."""

    def __init__(self, names: Mapping[str, str] | Callable[[str], str] | None = None) -> None:
        self._names = names or {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        where = self._names(host) if callable(self._names) else self._names.get(host, "127.0.0.1")
        return [ResolveResult(hostname=host, host=where, port=port, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        """Nothing to let go of."""


class Clock(SteadyClock):
    """The daemon's clock, which a test may push on."""

    shift = 0.0

    def __call__(self) -> float:
        return super().__call__() + self.shift


@dataclass
class Crawl:
    """A daemon on a live site: `until` something is so."""

    site: LiveSite
    store: Store = field(default_factory=Memory)
    names: Mapping[str, str] | Callable[[str], str] | None = None
    budget: float = 300.0
    politeness: Politeness = NO_GAPS
    limits: AddressLimits | None = None
    discovery: Discovery | None = None
    never: Container[str] = ()
    robots: bool = True
    networks: tuple[str, ...] = ("127.0.0.0/8",)
    concurrency: int = 64
    scheduler: Schedules | None = None
    clock: Clock = field(default_factory=Clock)
    listeners: tuple[Listener, ...] = ()
    receive: tuple[int, Path] | None = None  # a port where hubs and senders reach it, and a file of tokens
    began: Callable[[Daemon], object] = lambda daemon: None  # is told of the daemon when it runs

    async def until(self, reached: Callable[[], bool], *urls: str, seconds: float = 60.0) -> Daemon:
        self.store.add([Page(url, host_of(url)) for url in urls])
        fetcher = Http(
            user_agent="afresh/test",
            limits=Limits(seconds=5.0, connections=self.concurrency),
            guard=Guard(networks=[IPv4Network(network) for network in self.networks], never=self.never),
            resolver=Names(self.names),
            clock=self.clock,
        )
        scheduler = self.scheduler or Plain(Greedy(), budget=self.budget)
        engine = Engine(scheduler=scheduler, estimator=Grid(typical_rate=0.1), lanes=Lanes(self.politeness))
        daemon = Daemon(
            engine=engine,
            sources=Web(
                fetcher,
                permits=Permits("afresh", recall=self.store.get, names=self.store.names) if self.robots else None,
                addresses=Addresses(self.limits or AddressLimits(), self.politeness),
                discovery=self.discovery,
                never=self.never,
                hears=Hears(
                    public_url=f"http://127.0.0.1:{self.receive[0]}" if self.receive else "",
                    recall=self.store.get,
                    names=self.store.names,
                ),
            ),
            store=self.store,
            never=self.never,
            clock=self.clock,
            concurrency=self.concurrency,
            write_every=0.05,
            listeners=self.listeners,
        )
        receiver = None
        if self.receive is not None:
            port, tokens = self.receive
            receiver = receiver_for(Config(receive=ReceiveSettings(listen=("127.0.0.1", port), tokens=tokens)), daemon)
        running = asyncio.create_task(daemon.run())
        if receiver is not None:
            await receiver.start()
        self.began(daemon)
        end = time.monotonic() + seconds
        while not reached() and time.monotonic() < end and not running.done():  # noqa: ASYNC110 - of the test's own
            await asyncio.sleep(0.02)
        if receiver is not None:
            await receiver.stop()
        daemon.stop()
        await running
        await daemon.sources.close()
        return daemon

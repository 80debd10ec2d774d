"""Runs a synthetic web until it is told to stop: what `afresh web` does."""

import asyncio
import signal
import time
from collections.abc import Callable
from typing import Any

from afresh.sim.web.ledger import Ledger
from afresh.sim.web.options import SiteOptions
from afresh.sim.web.pings import Pinger
from afresh.sim.web.readers import Readers
from afresh.sim.web.server import Server
from afresh.sim.web.site import Site
from afresh.units import show_count, show_duration

Status = Callable[[str], None]


def _quiet(_: str) -> None:
    """Say nothing."""


def _printable(name: str) -> str:
    # A client chooses its own name; it must not choose what it does to a terminal.
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def status_lines(ledger: Ledger, t: float, pinger: Pinger | None = None) -> list[str]:
    """How things stand: one line for the site, one for each client."""
    clients = show_count(len(ledger.clients), "client")
    lines = [f"{show_duration(t)} on, {show_count(ledger.asked, 'request')} by readers, {clients}"]
    if pinger is not None:
        lost = f", {pinger.lost} lost (last: {_printable(pinger.problem)[:100]})" if pinger.lost else ""
        lines.append(f"  pings: {pinger.sent} sent{lost}")
    for name, row in ledger.report(t).items():
        fresh = row["readers_fresh"] if row["readers_fresh"] is not None else row["time_fresh"]
        share = "no score yet" if fresh is None else f"{fresh:.1%} of requests served fresh"
        lines.append(
            f"  {_printable(name)}: {share}; {show_count(row['requests'] or 0, 'request')}, "
            f"{row['not_modified']} not modified, {row['errors']} errors, {row['broken']} broken"
        )
    return lines


async def serve_forever(
    options: SiteOptions,
    *,
    host: str = "127.0.0.1",
    port: int = 8400,
    readers: bool = True,
    ping_url: str = "",
    ping_style: str = "indexnow",
    status: Status = _quiet,
    every: float = 10.0,
    stop: asyncio.Event | None = None,
) -> dict[str, Any]:
    """Serve a site until `stop` is set (or the task is cancelled); the ledger's report.

    `status` gets lines of text: where the site is, then at intervals how the clients do. With `readers`, drawn
    requests score the clients; their freshness over time is always counted.
    """
    site = Site(options)
    started = time.monotonic()
    server = Server(site, clock=lambda: time.monotonic() - started, host=host, port=port)
    pinger = Pinger(server, ping_url, style=ping_style) if ping_url else None
    await server.start()
    stop = stop or asyncio.Event()
    status(
        f"{show_count(options.pages, 'page')} on {show_count(options.hosts, 'host name')} at http://localhost:{server.port}/"
    )
    status(f"For example {server.url(0)}; counts are at http://localhost:{server.port}/_site/clients")
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_tell(server, pinger, status, every))]
            if readers:
                tasks.append(group.create_task(Readers(server.ledger).run(server.clock)))
            if pinger is not None:
                tasks.append(group.create_task(pinger.run()))
            await stop.wait()
            for task in tasks:
                task.cancel()
    finally:
        await server.stop()
    return server.ledger.report(server.clock())


async def _tell(server: Server, pinger: Pinger | None, status: Status, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        for line in status_lines(server.ledger, server.clock(), pinger):
            status(line)


def run(options: SiteOptions, **settings: Any) -> dict[str, Any]:
    """`serve_forever` from ordinary code: runs until Ctrl-C or SIGTERM, then returns the ledger's report."""

    async def main() -> dict[str, Any]:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        return await serve_forever(options, stop=stop, **settings)

    return asyncio.run(main())

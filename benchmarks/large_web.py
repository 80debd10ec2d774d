"""Crawl a made web through a bound that holds a tenth of it, and without: found, polite, fresh?

Each host is an address of its own on loopback. Its front page leads to hubs, these to the other pages of the host and
to front pages of further hosts. So all pages are found only if the hubs come in first. Pages change at random moments,
about every `--period` seconds. What politeness is asked about is the server's own log.

    python benchmarks/large_web.py --hosts 2000 --kept 20000
"""

import argparse
import asyncio
import json
import multiprocessing
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from afresh.cli.bounds import Bounds
from afresh.frontier import Scope
from afresh.sources.web import Discovery
from afresh.store import Sqlite
from afresh.store.messages import FOUND_SO_FAR

HUBS, LEAVES = 5, 94  # of a host, besides its front page
FULL = 0.95  # of the pages that may be held have a copy, where the crawl counts as full
GAP = 0.2  # seconds that a host rests at least
SETTINGS = """
[fetch]
allow_private = true
[politeness]
factor = 1
shortest_gap = "{gap}s"
[crawl]
sitemaps = false
feeds = false
budget = "{budget}/s"
"""


def name(host: int, port: int) -> str:
    """The address of a host."""
    return f"127.{1 + host // 62_500}.{host // 250 % 250}.{host % 250 + 1}:{port}"


def version(host: int, page: int, now: float, period: float) -> int:
    """How often a page has changed: its moments are spread by a hash."""
    return int(now / period + (host * 7919 + page * 104_729) % 1000 / 1000)


def links(host: int, page: int, hosts: int, port: int) -> list[str]:
    """Where a page leads to."""
    if page == 0:
        return [f"/{hub}" for hub in range(1, HUBS + 1)]
    if page > HUBS:
        return ["/"]
    share = range(HUBS + page, HUBS + LEAVES + 1, HUBS)
    further = host * HUBS + page
    front = [f"http://{name(further, port)}/"] if further < hosts else []
    return [*(f"/{page}/{leaf}" for leaf in share), *front]


def serve(pipe: Any, hosts: int, period: float, log: Path) -> None:
    """Answer until told to stop; then write the log."""
    asked: list[tuple[str, str, float, float]] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            own = writer.get_extra_info("sockname")[0].split(".")
            host = (int(own[1]) - 1) * 62_500 + int(own[2]) * 250 + int(own[3]) - 1
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode()
                began, last = time.time(), path.rpartition("/")[2]
                body, status = b"", b"404 Not Found"
                if path == "/" or last.isdigit():
                    page = int(last or 0)
                    anchors = "".join(f'<a href="{to}">x</a>' for to in links(host, page, hosts, port))
                    body = f"<p>version {version(host, page, began, period)} of page {page}</p>{anchors}".encode()
                    status = b"200 OK"
                head = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % (status, len(body))
                writer.write(head + body)
                await writer.drain()
                asked.append((".".join(own), path, began, time.time()))
        writer.close()

    async def go() -> None:
        nonlocal port
        server = await asyncio.start_server(talk, "0.0.0.0", 0, backlog=4096)
        port = server.sockets[0].getsockname()[1]
        pipe.send(port)
        while not pipe.poll():  # noqa: ASYNC110 - a process waits
            await asyncio.sleep(0.2)

    port = 0
    asyncio.run(go())
    log.write_text("\n".join(json.dumps(each) for each in asked))
    pipe.send(len(asked))


def crawl(options: argparse.Namespace, kept: int | None) -> dict[tuple[int, int], bool]:
    """One crawl; prints what it found; which pages it kept, and whether each copy is current."""
    folder = Path(tempfile.mkdtemp())
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs, options.hosts, options.period, folder / "log"))
    server.start()
    port = ours.recv()
    (folder / "afresh.toml").write_text(SETTINGS.format(gap=GAP, budget=options.budget))
    command = [sys.executable, "-c", "from afresh.cli import main; main()", "crawl", f"http://{name(0, port)}/"]
    command += [word for host in range(options.hosts) for word in ("--scope", name(host, port))]
    command += ["--max-kept", str(kept)] if kept else []
    pages = options.hosts * (1 + HUBS + LEAVES)
    for nth in range(options.kills):
        command = killed(folder, command, 0.4 * nth)
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    began = time.monotonic()
    copies, known, deadline = 0, 0.0, began + options.longest
    done_at = 0.0
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(2.0)
        if (folder / "afresh.db").exists():
            with Sqlite(folder / "afresh.db", create=False) as store:
                copies = store.totals().copies
                known = json.loads(store.get(FOUND_SO_FAR) or "{}").get("known", 0)
        # Pages are exchanged all the time: a few of those that are held have no copy yet.
        if copies >= FULL * (kept or pages) and known >= pages and not done_at:
            done_at = time.monotonic()
        if done_at and time.monotonic() > done_at + options.then:
            break
    process.send_signal(signal.SIGTERM)
    stopped = time.time()
    process.wait()
    current: dict[tuple[int, int], bool] = {}
    with Sqlite(folder / "afresh.db", create=False) as store:
        totals = store.totals()
        for _, state in store.states():
            copy = store.copy(state.page.url)
            if copy is not None:
                own = state.page.host.partition(":")[0].split(".")
                host = (int(own[1]) - 1) * 62_500 + int(own[2]) * 250 + int(own[3]) - 1
                page = int(state.page.url.rpartition("/")[2] or 0)
                text = f"version {version(host, page, stopped, options.period)} ".encode()
                current[host, page] = text in copy.body
    with Sqlite(folder / "afresh.db", create=False) as store:
        bounds = Bounds.stored(store)
        assert bounds is not None
        backlog = bounds.backlog(store, folder / "afresh.db", 256 << 20)
        Discovery(Scope(), backlog=backlog)
        known, waiting = len(backlog.known), len(backlog)
        waits = Counter(
            url for number in range(len(backlog.waiting.names)) for url, _ in backlog.waiting.take(number, 1 << 30)
        )
    ours.send("stop")
    ours.recv()
    server.join()
    asked = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    with Sqlite(folder / "afresh.db", create=False) as store:
        in_store = {state.page.url for _, state in store.states()}
    twice = sum(count > 1 for count in waits.values()) + len(in_store & set(waits))
    print(f"{'bounded' if kept else 'unbounded'}: {totals.pages:,} pages kept, {totals.copies:,} copies")
    held_or_waits = len(in_store | set(waits))
    print(f"  known {known:,} of {pages:,}; waiting {waiting:,}; in both or twice {twice}; somewhere {held_or_waits:,}")
    took = (done_at or time.monotonic()) - began
    rate = len(asked) / (asked[-1][2] - asked[0][2])
    print(f"  {totals.crawls:,} crawls; all found and full after {took:.0f} s; {rate:.0f} requests/s")
    by_host: dict[str, list[tuple[float, float]]] = {}
    for host, _, start, end in asked:
        by_host.setdefault(host, []).append((start, end))
    gaps = [later[0] - sooner[1] for each in by_host.values() for sooner, later in pairwise(sorted(each))]
    overlapping = sum(gap < 0 for gap in gaps)
    print(f"  least gap between requests to a host {min(gaps):.3f} s of {GAP} s; overlapping: {overlapping}")
    print(f"  copies that are current when it is stopped: {100 * np.mean(list(current.values())):.1f} %")
    shutil.rmtree(folder)
    return current


def killed(folder: Path, command: list[str], later: float) -> list[str]:
    """Begin a crawl and kill it some time after it has begun to fetch; the command that goes on with it."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def crawls() -> int:
        if not (folder / "afresh.db").exists():
            return 0
        with Sqlite(folder / "afresh.db", create=False) as store:
            return store.totals().crawls

    before, deadline = crawls(), time.monotonic() + 120.0
    while crawls() < before + 120 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(later)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return command[: command.index("crawl") + 1]


def main() -> None:
    """Crawl twice."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hosts", type=int, default=200)
    options.add_argument("--kept", type=int, default=2_000)
    options.add_argument("--budget", type=float, default=150)
    options.add_argument("--period", type=float, default=300.0)
    options.add_argument("--then", type=float, default=60.0, help="seconds that it goes on once all that fits is there")
    options.add_argument("--longest", type=float, default=900.0, help="seconds at most")
    options.add_argument("--kills", type=int, default=0, help="how often each crawl is killed (-9) at first")
    options.add_argument("--bounded-only", action="store_true")
    chosen = options.parse_args()
    inside = crawl(chosen, chosen.kept)
    if not chosen.bounded_only:
        outside = crawl(chosen, None)
        both = [page for page in inside if page in outside]
        bounded, free = (100 * np.mean([each[page] for page in both]) for each in (inside, outside))
        print(f"of {len(both):,} pages that both keep: {bounded:.1f} % current with the bound, {free:.1f} % without")


if __name__ == "__main__":
    main()

"""What the console costs the crawl: 100 listeners to the feed of changes and 50 requests a second to the API.

One runner crawls a synthetic web. Periods with that load and without it alternate, so that a busy machine slows both.
The figure is the ratio of the crawl rates; the load itself comes from another process on the same machine.

    python benchmarks/bench_console.py --budget 100/s
"""

import argparse
import asyncio
import json
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

from afresh.store import Sqlite
from afresh.store.socket_file import ask as ask_runner

CLIENTS, REQUESTS = 100, 50.0
AFRESH = [sys.executable, "-m", "afresh"]
PATHS = ["collection", "pages?limit=50", "page", "changes?limit=100", "hosts", "figures?hours=1", "senders"]
PATHS += ["pages?state=failing"]
SETTINGS = "[fetch]\nallow_private = true\n[politeness]\nshortest_gap = '0s'\nfactor = 0.0\n"


async def listen(host: str, port: int, seen: Counter[str]) -> None:
    """One client of the feed."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"GET /api/v1/changes HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n".encode())
        while line := await reader.readline():
            seen["events"] += line.startswith(b"event:")
    finally:
        writer.close()


async def ask(host: str, port: int, path: str, seen: Counter[str], took: list[float]) -> None:
    """One request."""
    began = time.perf_counter()
    try:
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(f"GET /api/v1/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        head = await reader.readline()
        await reader.read()
        writer.close()
        seen[head.split()[1].decode() if head else "nothing"] += 1
    except OSError:
        seen["broken"] += 1
    took.append(time.perf_counter() - began)


async def load(base: str, seconds: float, url: str) -> None:
    """100 listeners and 50 requests a second, for so long; prints what came of them."""
    host, port = re.fullmatch(r"http://(.+):(\d+)", base).groups()  # type: ignore[union-attr]
    seen, took = Counter[str](), list[float]()
    clients = [asyncio.create_task(listen(host, int(port), seen)) for _ in range(CLIENTS)]
    asked: list[asyncio.Task[None]] = []
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        while len(asked) < passed * REQUESTS:
            path = PATHS[len(asked) % len(PATHS)]
            path = f"page?url={urllib.request.quote(url, safe='')}" if path == "page" else path  # type: ignore[attr-defined]
            asked.append(asyncio.create_task(ask(host, int(port), path, seen, took)))
        await asyncio.sleep(0.005)
    await asyncio.wait(asked, timeout=10)
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    print(json.dumps({"seen": seen, "median": statistics.median(took), "slowest": max(took), "asked": len(asked)}))


def crawls(store: Path) -> int:
    """Crawls so far, as the runner counts them; asked of the runner itself, as metrics may be seconds old."""
    return int(sum(ask_runner(store, "counts")["outcomes"].values()))


def copies(store: Path) -> int:
    """How many pages have a copy."""
    with Sqlite(store, create=False) as kept:
        return kept.totals().copies


def rate(store: Path, seconds: float) -> float:
    """Crawls a second, over a while."""
    before, began = crawls(store), time.monotonic()
    time.sleep(seconds)
    return (crawls(store) - before) / (time.monotonic() - began)


def cpu_of(pid: int) -> float:
    """Seconds of a processor that a process has used."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / 100.0


def main() -> None:
    """Alternate, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", default="100/s")
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=12.0, help="of one period")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--load", nargs=3, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.load:
        asyncio.run(load(said.load[0], float(said.load[1]), said.load[2]))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "afresh.toml").write_text(SETTINGS)
        site = ["--pages", str(said.pages), "--hosts", "50", "--day", "60s", "--port", "8797", "--urls", "urls"]
        web = subprocess.Popen([*AFRESH, "web", *site], cwd=folder, stdout=subprocess.DEVNULL)
        runner = None
        try:
            while not (folder / "urls").exists():
                time.sleep(0.2)
            time.sleep(1)
            subprocess.run([*AFRESH, "add", "--file", "urls"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            with (folder / "log").open("w") as log:
                words = [*AFRESH, "run", "--budget", said.budget, "--console", "127.0.0.1:0"]
                runner = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log)
            while not (found := re.search(r"Console at (http://\S+)/", (folder / "log").read_text())):
                time.sleep(0.2)
            measure(found[1], folder / "afresh.db", runner.pid, said)
        finally:
            for process in (runner, web):
                if process is not None:
                    process.send_signal(signal.SIGTERM)
                    process.wait(30)


def measure(base: str, store: Path, pid: int, said: argparse.Namespace) -> None:
    """The rates with load and without it, in turn."""
    while ask_runner(store, "counts") is None:  # the console is there before the runner listens
        time.sleep(0.2)
    while rate(store, 3.0) < 1 or copies(store) < 0.95 * said.pages:
        pass  # the first round brings copies: it is no steady state
    url = (store.parent / "urls").read_text().split()[0]
    quiet, loaded, cpu = list[float](), list[float](), {"quiet": 0.0, "loaded": 0.0}
    for _ in range(said.rounds):
        used = cpu_of(pid)
        quiet.append(rate(store, said.seconds))
        cpu["quiet"] += cpu_of(pid) - used
        # Clients are elsewhere as a rule: here they give way to who is measured.
        command = ["nice", "-n", "19", sys.executable, __file__, "--load", base, str(said.seconds + 2), url]
        other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        time.sleep(1)
        used = cpu_of(pid)
        loaded.append(rate(store, said.seconds))
        cpu["loaded"] += cpu_of(pid) - used
        print(f"  {quiet[-1]:.1f}/s, with load {loaded[-1]:.1f}/s:", other.communicate()[0].strip(), flush=True)
    ratios = [with_load / without for with_load, without in zip(loaded, quiet, strict=True)]
    without, with_it = ([round(each, 1) for each in rates] for rates in (quiet, loaded))
    print(f"crawls a second without load {without}, with it {with_it}")
    print(f"ratio of the rates {sum(loaded) / sum(quiet):.3f} (single rounds {[round(each, 3) for each in ratios]})")
    each = {name: cpu[name] / sum(rates) / said.seconds for name, rates in (("quiet", quiet), ("loaded", loaded))}
    print(f"the runner's own processor time a crawl, with load against without: {each['loaded'] / each['quiet']:.2f}")
    share = (each["loaded"] - each["quiet"]) * sum(loaded) / len(loaded)
    print(f"what the load costs the runner itself: {100 * share:.1f} % of a core")


if __name__ == "__main__":
    main()

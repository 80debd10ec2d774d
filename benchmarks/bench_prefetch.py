"""What fetching ahead costs and gains: the model of readers' paths by itself, and live, on the synthetic web.

    python benchmarks/bench_prefetch.py model
    python benchmarks/bench_prefetch.py live [--seconds N] [--readers N] [--budgets 1 2] [--repeat N]

Live, `afresh run` and `afresh serve` are processes of their own. Readers follow links of one half of the web through
the cache; the runner keeps the other half fresh meanwhile. At each budget there is a run without fetching ahead and one
with it, so that equal budgets can be compared.
"""

import argparse
import asyncio
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from afresh.estimate.paths import Paths
from afresh.estimate.paths.readers import compile_ahead
from afresh.sim.web import Server, Site, SiteOptions

PAGES, READERS, REQUESTS, MEMORY = 100_000, 1_000, 200_000, 96 << 20
HOSTS, BUDGET, LATENCY, DWELL = 20, 30.0, 0.3, 3.0  # hosts of each half; crawls a second; seconds
WARM_UP = 25.0  # seconds
SETTINGS = """
[store]
path = "{folder}/afresh.db"
[fetch]
allow_private = true
[crawl]
budget = "{budget}/s"
[politeness]
factor = 1
shortest_gap = "1s"
[proxy]
listen = "127.0.0.1:{port}"
max_pages = 1
"""
HOST = """
[[serve]]
host = "{host}"
origin = "http://{host}:{port}"
prefetch = {prefetch}
cost_per_kb = 0.002
"""
KEPT = '\n[[site]]\nhost = "{host}"\nimportance = 0.02\n'


def model() -> None:
    """The time of a request, and the memory that it all takes."""
    rng = np.random.default_rng(1)
    compile_ahead()
    names = [f"https://site.example/section/{page % 97}/page-{page}.html" for page in range(PAGES)]
    popularity = 1 / np.arange(1, PAGES + 1) ** 0.8
    popularity /= popularity.sum()
    links = rng.choice(PAGES, (PAGES, 20), p=popularity)
    paths = Paths(MEMORY)
    began = time.process_time()
    for page in range(PAGES):
        paths.links(names[page], [names[each] for each in links[page]], 0.0)
    learned = time.process_time() - began
    at = rng.integers(0, PAGES, READERS)
    who, which = rng.integers(0, READERS, REQUESTS), rng.integers(0, 20, REQUESTS)
    jumps, targets = rng.random(REQUESTS) < 0.2, rng.choice(PAGES, REQUESTS, p=popularity)
    asked = []
    for reader, place, jump, target in zip(who, which, jumps, targets, strict=True):
        at[reader] = target if jump else links[at[reader], place]
        asked.append((f"client-{reader}", names[at[reader]]))
    began = time.process_time()
    for number, (reader, url) in enumerate(asked):
        paths.request(reader, url, number * 0.01, most=16)
    took = time.process_time() - began
    # Names and readers as they are in dictionaries, beside the arrays.
    own = sum(map(sys.getsizeof, (paths._numbers, paths._names, paths._readers)))
    own += sum(sys.getsizeof(name) for name in paths._names) + sum(sys.getsizeof(key) for key in paths._readers)
    own += 100 * len(paths._readers) + 32 * len(paths._names)  # tuples and numbers in them
    print(f"{PAGES:,} pages with 20 links, {READERS:,} readers, {REQUESTS:,} requests, 16 pages foretold after each")
    print(f"request {1e6 * took / REQUESTS:.1f} µs of CPU; links of a page {1e6 * learned / PAGES:.1f} µs, once")
    print(
        f"memory {(paths.nbytes + own) / 2**20:.0f} MiB (arrays {paths.nbytes / 2**20:.0f}), bound {MEMORY >> 20} MiB"
    )
    for name, loss in paths.losses("https://site.example").items():
        print(f"  {name:10} {loss:.3f} nats a move")


@contextmanager
def process(*command: str) -> Iterator[subprocess.Popen[str]]:
    """A command of afresh, ended as with Ctrl-C."""
    started = subprocess.Popen(
        [sys.executable, "-m", "afresh", *command], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        yield started
    finally:
        started.terminate()
        try:
            said = started.communicate(timeout=30)[1]
        except subprocess.TimeoutExpired:
            started.kill()
            said = ""
        print(*(f"    {line}" for line in said.splitlines() if "ahead" in line or "Answered" in line), sep="\n")


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def ask(port: int, host: str, path: str, agent: str) -> bool:
    """One request through the cache; whether it was answered with a page."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())
    answer = await reader.read(-1)
    writer.close()
    return answer.startswith(b"HTTP/1.1 200")


async def walk(site: Site, hosts: list[int], port: int, number: int, waits: list[tuple[float, float]]) -> None:
    """A reader: looks at a page for a while, then follows a link of it, the earlier ones more often; sometimes goes
    back, or begins elsewhere.
    """
    rng = np.random.default_rng([7, number])
    page, before = -1, -1
    session = 0
    while True:
        chance = rng.random()
        inside = [each for each in site.links(page) if site.host_of[each] == site.host_of[page]] if page >= 0 else []
        if page < 0 or not inside or chance < 0.08:
            page, before, session = int(site.first_page[hosts[int(rng.integers(len(hosts)))]]), -1, session + 1
        elif chance < 0.2 and before >= 0:
            page, before = before, -1
        else:
            page, before = inside[min(int(rng.geometric(0.35)) - 1, len(inside) - 1)], page
        began = time.monotonic()
        if await ask(port, site.host(page), site.path(page), f"reader-{number}-{session}"):
            waits.append((began, time.monotonic() - began))
        await asyncio.sleep(float(rng.exponential(DWELL)))


async def live_run(budget: float, prefetch: bool, seconds: float, readers: int) -> tuple[float, float, float, int]:
    """(mean wait, share of requests without one, freshness of what is kept, requests)"""
    options = SiteOptions(
        pages=2000,
        hosts=2 * HOSTS,
        day=40.0,
        change_factor=20.0,
        latency=LATENCY,
        kinds=(("reference", 1),),
        processes="poisson",
        seed=3,
    )
    site, begun = Site(options), time.monotonic()
    server = Server(site, clock=lambda: time.monotonic() - begun)
    await server.start()
    port, ours = free_port(), list(range(HOSTS, 2 * HOSTS))
    kept = [page for host in range(HOSTS) for page in list(site.pages_of(host))[:20]]
    with tempfile.TemporaryDirectory() as folder:
        text = SETTINGS.format(folder=folder, budget=budget, port=port)
        for host in range(HOSTS):
            text += KEPT.format(host=f"{site.hosts[host]}:{server.port}")
        for host in ours:
            text += HOST.format(host=site.hosts[host], port=server.port, prefetch=str(prefetch).lower())
        config = Path(folder) / "afresh.toml"
        config.write_text(text)
        fronts = [int(site.first_page[host]) for host in ours]
        (Path(folder) / "urls.txt").write_text("\n".join(server.url(page) for page in [*kept, *fronts]))
        add = [sys.executable, "-m", "afresh", "add", "--file", f"{folder}/urls.txt", "--config", str(config)]
        await asyncio.to_thread(subprocess.run, add, check=True, stdout=subprocess.DEVNULL)
        with process("run", "--config", str(config)), process("serve", "--config", str(config)):
            while not await ask(  # noqa: ASYNC110
                port, site.hosts[ours[0]], "/", "probe"
            ):
                await asyncio.sleep(0.5)
            client = next(name for name in server.ledger.clients if name.startswith("afresh"))
            while server.ledger.client(client).fresh(time.monotonic() - begun, np.array(kept)).mean() < 0.7:  # noqa: ASYNC110
                await asyncio.sleep(1.0)  # the runner may compile first
            waits: list[tuple[float, float]] = []
            walking = [asyncio.create_task(walk(site, ours, port, number, waits)) for number in range(readers)]
            await asyncio.sleep(WARM_UP)
            start, fresh = time.monotonic(), list[float]()
            while time.monotonic() < start + seconds:
                await asyncio.sleep(0.5)
                now = time.monotonic() - begun
                fresh.append(float(server.ledger.client(client).fresh(now, np.array(kept)).mean()))
            for task in walking:
                task.cancel()
            await asyncio.gather(*walking, return_exceptions=True)
            told = [wait for at, wait in waits if at >= start]
        await server.stop()
    return float(np.mean(told)), float(np.mean(np.array(told) < LATENCY / 10)), float(np.mean(fresh)), len(told)


def live(seconds: float, readers: int, budgets: list[float], repeat: int) -> None:
    """Runs one after another, at each budget without fetching ahead and with it."""
    for _ in range(repeat):
        for times in budgets:
            for name, prefetch in (("without", False), ("ahead", True)):
                wait, at_once, fresh, count = asyncio.run(live_run(times * BUDGET, prefetch, seconds, readers))
                print(
                    f"{name:8} budget {times * BUDGET:g}/s: mean wait {1000 * wait:.0f} ms, {at_once:.1%} without "
                    f"waiting, {count:,} requests; everything else fresh {fresh:.2%}",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["model", "live"])
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--readers", type=int, default=30)
    parser.add_argument(
        "--budgets", type=float, nargs="+", default=[1.0, 2.0], help=f"times {BUDGET:g} crawls a second"
    )
    parser.add_argument("--repeat", type=int, default=1)
    given = parser.parse_args()
    if given.what == "model":
        model()
    else:
        live(given.seconds, given.readers, given.budgets, given.repeat)

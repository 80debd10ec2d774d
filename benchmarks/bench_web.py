"""How fast the synthetic web is: bodies, readers, and answers over HTTP with a load client in another process."""

import asyncio
import multiprocessing
import time
from multiprocessing.queues import Queue

import aiohttp

from afresh.sim.web import Ledger, LoopbackResolver, Readers, Server, Site, SiteOptions

OPTIONS = SiteOptions(pages=2000, hosts=50, day=1.0, processes="poisson")
SECONDS = 5.0
CONNECTIONS = 32


def load(urls: list[str], conditional: bool, results: "Queue[tuple[int, int, float]]") -> None:
    """Ask for all pages round and round; answers, 304s among them, and the CPU time it took."""

    async def main() -> tuple[int, int]:
        tags: dict[str, str] = {}
        counts = [0, 0]
        end = time.perf_counter() + SECONDS
        connector = aiohttp.TCPConnector(limit=0, resolver=LoopbackResolver())
        async with aiohttp.ClientSession(connector=connector, headers={"User-Agent": "load"}) as session:

            async def worker(mine: list[str]) -> None:
                while True:
                    for url in mine:
                        if time.perf_counter() >= end:
                            return
                        headers = {"If-None-Match": tags[url]} if conditional and url in tags else {}
                        async with session.get(url, headers=headers) as answer:
                            await answer.read()
                        counts[0] += 1
                        counts[1] += answer.status == 304
                        if "ETag" in answer.headers:
                            tags[url] = answer.headers["ETag"]

            await asyncio.gather(*(worker(urls[start::CONNECTIONS]) for start in range(CONNECTIONS)))
        return counts[0], counts[1]

    started = time.process_time()
    answers, hits = asyncio.run(main())
    results.put((answers, hits, time.process_time() - started))


async def serve(conditional: bool) -> None:
    """Serve the load client and say what it cost."""
    begun = time.monotonic()
    server = Server(Site(OPTIONS), clock=lambda: time.monotonic() - begun)
    await server.start()
    results: Queue[tuple[int, int, float]] = multiprocessing.Queue()
    client = multiprocessing.Process(target=load, args=(server.urls(), conditional, results))
    cpu = time.process_time()
    client.start()
    await asyncio.to_thread(client.join)
    cpu = time.process_time() - cpu
    answers, hits, client_cpu = results.get()
    await server.stop()
    kind = "conditional" if conditional else "full"
    print(
        f"{kind}: {answers / SECONDS:.0f} answers/s ({hits / answers:.0%} of them 304), "
        f"{answers / cpu:.0f} per CPU-second of the server; CPU seconds in {SECONDS:g} s: "
        f"server {cpu:.2f}, client {client_cpu:.2f}"
    )


def bodies() -> None:
    """Pages written per second, new and once their shell is known."""
    site = Site(OPTIONS)
    for name, version in (("first", 0), ("again", 1)):
        started = time.process_time()
        size = sum(len(site.body(page, version)) for page in range(OPTIONS.pages))
        took = time.process_time() - started
        print(f"bodies, {name}: {OPTIONS.pages / took:.0f} per CPU-second, mean {size / OPTIONS.pages:.0f} bytes")


def readers() -> None:
    """What drawing and judging readers costs, with three clients."""
    site = Site(SiteOptions(pages=20_000, hosts=100))
    ledger = Ledger(site)
    for name in ("afresh", "uniform", "nutch"):
        for page in range(0, 20_000, 2):
            ledger.handed(ledger.client(name), page, 0, 0.0)
    crowd = Readers(ledger, rate=20_000.0)
    started = time.process_time()
    for step in range(1, 201):
        crowd.step(step * 0.05)
    print(f"readers: {crowd.total / (time.process_time() - started):.0f} per CPU-second, 3 clients, 20,000 pages")


if __name__ == "__main__":
    bodies()
    readers()
    for conditional in (False, True):
        asyncio.run(serve(conditional))

"""How true X-Fresh-Probability is of pages that the cache has just met: what it says, and what was so.

    python benchmarks/fresh_said.py [--pages N]

`afresh run` and `afresh serve` are processes of their own on the synthetic web. On each of its four hosts some pages
change every few seconds and others never. Readers ask for each page at some moment of a minute, and again for a minute.
"""

import argparse
import asyncio
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from bench_prefetch import free_port, process

from afresh.sim.web import Server, Site, SiteOptions
from afresh.sim.web.render import read_mark

AGAIN = (0.3, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0)  # seconds after the first request
MEETING = 60.0  # seconds in which pages are asked for first
RISE = 0.003  # of a probability, by its three digits
SETTINGS = """
[store]
path = "{folder}/afresh.db"
[fetch]
allow_private = true
[crawl]
budget = "3/s"
[politeness]
factor = 1
shortest_gap = "0.3s"
[proxy]
listen = "127.0.0.1:{port}"
"""


async def ask(port: int, host: str, path: str) -> tuple[dict[str, str], bytes]:
    """(fields, body) of what the cache answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await asyncio.wait_for(reader.read(-1), 60)).partition(b"\r\n\r\n")
    writer.close()
    lines = (line.decode("latin-1").partition(":") for line in head.split(b"\r\n")[1:])
    return {name.lower(): value.strip() for name, _, value in lines}, body


async def measure(pages: int) -> None:
    """Ask for all, and compare."""
    options = SiteOptions(pages=pages, hosts=4, day=30.0, processes="poisson", seed=5)
    site, begun = Site(options), time.monotonic()
    server = Server(site, clock=lambda: time.monotonic() - begun)
    await server.start()
    port, rng = free_port(), np.random.default_rng(0)
    said, rises = list[tuple[float, bool]](), 0

    async def follow(page: int, begins: float) -> None:
        nonlocal rises
        await asyncio.sleep(begins)
        host, path, last, date = site.host(page), site.path(page), 2.0, ""
        before = 0.0, 0
        met = time.monotonic()
        await ask(port, host, path)
        for wait in AGAIN:
            await asyncio.sleep(max(met + wait - time.monotonic(), 0.0))
            fields, body = await ask(port, host, path)
            if "afresh; hit" not in fields.get("cache-status", ""):
                last = 2.0
                continue
            fresh = float(fields["x-fresh-probability"])
            mark = read_mark(body)
            said.append((fresh, mark is not None and mark.version == site.version(page, time.monotonic() - begun)))
            now, age = time.monotonic(), int(fields["age"])
            # A look in between renews the date, or the age, if it came within the same second.
            same = fields["date"] == date and age - before[1] > now - before[0] - 0.5
            rises += fresh > last + RISE and same
            last, date, before = fresh, fields["date"], (now, age)

    with tempfile.TemporaryDirectory() as folder:
        text = SETTINGS.format(folder=folder, port=port)
        for host in site.hosts:
            text += f'[[serve]]\nhost = "{host}"\norigin = "http://{host}:{server.port}"\n'
        config = Path(folder) / "afresh.toml"
        config.write_text(text)
        with process("run", "--config", str(config)), process("serve", "--config", str(config)):
            while True:
                try:
                    await ask(port, site.hosts[0], "/")
                    break
                except OSError:
                    await asyncio.sleep(0.5)
            await asyncio.gather(*(follow(page, rng.random() * MEETING) for page in range(pages)))
        await server.stop()
    print(
        f"{pages} pages met, {len(said):,} answers from copies; the probability rose without a new look {rises} times"
    )
    tenths = defaultdict[int, list[tuple[float, bool]]](list)
    for each in said:
        tenths[min(int(10 * each[0]), 9)].append(each)
    for name, rows in [(f"{tenth / 10:.1f}-", tenths[tenth]) for tenth in sorted(tenths)] + [("all", said)]:
        means = np.mean([row[0] for row in rows]), np.mean([row[1] for row in rows])
        print(f"  {name:4} said {means[0]:.3f}, was {means[1]:.3f}, {len(rows):,} answers")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=150)
    asyncio.run(measure(parser.parse_args().pages))

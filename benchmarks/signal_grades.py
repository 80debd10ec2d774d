"""Grades and gain on the synthetic web: sitemaps of recall 0.5 and precision 0.2, an honest sender, and a liar.

    python benchmarks/signal_grades.py                   # twice four minutes: with signals, and without
    python benchmarks/signal_grades.py --known           # once, with weights that are known

The crawler is `afresh crawl`, a process of its own, which is told one address of each host. The honest sender submits
by IndexNow, the liar posts pages at random. What is true is known to the site, which also counts how fresh copies are.
"""

import argparse
import asyncio
import json
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from afresh.sim.web import Server, Site, SiteOptions
from afresh.sim.web.pings import Pinger

COMMAND = [sys.executable, "-c", "from afresh.cli import main; main()"]
SETTINGS = """
[fetch]
allow_private = true
[politeness]
factor = 0
shortest_gap = "50ms"
[crawl]
budget = "{budget}/s"
sitemaps = {signals}
feeds = {signals}
"""
RECALL, PRECISION, PING_RECALL, PING_PRECISION = 0.5, 0.2, 0.6, 0.9
# Weights as -log(1 - precision) has them.
KNOWN = ("--pin", "indexnow=1", "--pin", "sitemap=0.1", "--mute", "liar")


def serve(options: SiteOptions, ping: int) -> tuple[Server, asyncio.AbstractEventLoop, Callable[[], object]]:
    """The site, in a thread of its own, with its honest sender; and how that is ended."""
    began = time.monotonic()
    server = Server(Site(options), clock=lambda: time.monotonic() - began)
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    if not ping:
        return server, loop, lambda: None
    pings = asyncio.run_coroutine_threadsafe(Pinger(server, f"http://127.0.0.1:{ping}/indexnow").run(), loop)
    return server, loop, pings.cancel


def lie(urls: list[str], token: str, rate: float, port: int) -> None:
    """Say of one page after another that it has changed."""
    rng = random.Random(1)
    while True:
        time.sleep(1.0)
        body = "\n".join(rng.choice(urls) for _ in range(round(rate)))
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/signal", body.encode(), {"Authorization": f"Bearer {token}"}
        )
        try:
            urllib.request.urlopen(asked, timeout=5).close()
        except OSError:
            continue


def run(
    options: SiteOptions, *, signals: bool, known: bool = False, seconds: float, budget: int
) -> tuple[float, list[dict[str, Any]]]:
    """One crawl, with weights that are learned or known; (mean freshness over its second half, grades)."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "afresh.toml").write_text(SETTINGS.format(budget=budget, signals=str(signals).lower()))
        token = subprocess.run(
            [*COMMAND, "token", "new", "liar"], cwd=root, capture_output=True, text=True
        ).stdout.strip()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
        server, loop, end_pings = serve(options, port if signals else 0)
        homes = [f"{server.documents.home(host)}/" for host in range(options.hosts)]
        if signals:
            threading.Thread(target=lie, args=(server.urls(), token, 3.0, port), daemon=True).start()
        crawl = subprocess.Popen(
            [*COMMAND, "crawl", *homes, "--receive", f"127.0.0.1:{port}"],
            cwd=root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        fresh: list[float] = []
        try:
            began = None
            while began is None or time.monotonic() - began < seconds:
                time.sleep(1.0)
                clients = json.load(urllib.request.urlopen(f"http://127.0.0.1:{server.port}/_site/clients"))
                mine = [each for name, each in clients.items() if name.startswith("afresh/")]
                if mine and began is None:
                    began = time.monotonic()
                    if known:
                        subprocess.run([*COMMAND, "senders", *KNOWN], cwd=root, check=True, capture_output=True)
                if mine and began is not None and time.monotonic() - began > seconds / 2:
                    fresh.append(float(mine[0]["fresh_now"]))
            said = subprocess.run([*COMMAND, "senders", "--json"], cwd=root, capture_output=True, text=True).stdout
            grades = [grade for line in said.splitlines() for grade in json.loads(line)["grades"]]
        finally:
            crawl.kill()
            crawl.wait()
            end_pings()
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
            loop.call_soon_threadsafe(loop.stop)
        return sum(fresh) / max(len(fresh), 1), grades


def share(grade: dict[str, Any], name: str) -> str:
    """A share with its range."""
    low, high = grade[f"{name}_range"]
    return "-" if grade[name] is None else f"{grade[name]:.2f} [{low:.2f}, {high:.2f}]"


def ranges(grade: dict[str, Any]) -> list[tuple[list[float], float]]:
    """What is said of a sender of which the truth is known, each with the truth."""
    known = {"sitemap": (PRECISION, RECALL), "indexnow": (PING_PRECISION, PING_RECALL)}.get(str(grade["sender"]))
    if known is None or float(str(grade["heard"])) < 20 or grade["recall"] is None:
        return []
    return [(grade["precision_range"], known[0]), (grade["recall_range"], known[1])]


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--budget", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--known", action="store_true", help="one run, with weights that are known from the start")
    chosen = parser.parse_args()
    options = SiteOptions(
        pages=chosen.pages,
        hosts=4,
        seed=chosen.seed,
        day=60.0,
        change_factor=4.0,
        processes="poisson",
        noise_share=0.0,
        sitemap_recall=RECALL,
        sitemap_precision=PRECISION,
        ping_share=1.0,
        ping_recall=PING_RECALL,
        ping_precision=PING_PRECISION,
    )
    if chosen.known:
        best, _ = run(options, signals=True, known=True, seconds=chosen.seconds, budget=chosen.budget)
        print(f"freshness as the site counts it: {best:.3f} with weights that are known")
        return
    heard, grades = run(options, signals=True, seconds=chosen.seconds, budget=chosen.budget)
    print(f"{'sender':14}{'host':24} {'heard':>6}  {'precision':18} {'recall':18} {'weight':>6}")
    for grade in grades:
        weight = "-" if grade["weight"] is None else f"{grade['weight']:.2f}"
        shares = f"{share(grade, 'precision'):18} {share(grade, 'recall'):18}"
        print(f"{grade['sender']:14}{str(grade['host'])[:24]:24} {grade['heard']:6,.0f}  {shares} {weight:>6}")
    held = [low <= true <= high for grade in grades for (low, high), true in ranges(grade)]
    print(f"ranges of {len(held)} shares that are known, with 20 signals or more: {sum(held)} hold the truth")
    print(f"truth: sitemap {PRECISION} and {RECALL}, indexnow {PING_PRECISION} and {PING_RECALL}, liar 0")
    silent, _ = run(options, signals=False, seconds=chosen.seconds, budget=chosen.budget)
    print(f"freshness as the site counts it: {heard:.3f} with signals, {silent:.3f} without")


if __name__ == "__main__":
    main()

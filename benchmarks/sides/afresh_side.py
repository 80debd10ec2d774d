"""Crawl a site with afresh until every page has a copy, then refresh it; print what it cost as one JSON line.

Run by benchmarks/crawl.py in a process of its own: afresh_side.py SEED FOLDER
"""

import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path

from afresh.cli.bounds import Bounds
from afresh.cli.build import addresses_for, compile_all, detector_for, engine_for, fetcher_for, permits_for
from afresh.cli.run import Progress, to_come
from afresh.config import Config, parse
from afresh.daemon import Daemon, Finished, SteadyClock, Stored
from afresh.engine import Engine
from afresh.frontier import HostPatterns
from afresh.sources import Web
from afresh.store import Sqlite

# What a host of one's own on loopback needs: no gaps, and a budget that is never the limit.
SETTINGS = """
[fetch]
allow_private = true
[politeness]
factor = 0
shortest_gap = "0s"
[crawl]
budget = "100000/s"
"""


def config_for(folder: Path) -> Config:
    """The settings, with the store in a folder."""
    return parse(SETTINGS + f'[store]\npath = "{folder / "afresh.db"}"\n')


class Finish:
    """Stops a daemon once every page that is known has been crawled, or so many crawls were made."""

    def __init__(self, daemon: Daemon, most: int | None = None) -> None:
        self.daemon, self.most = daemon, most
        self.crawled: set[str] = set()
        self.stored: set[str] = set()
        self.statuses: Counter[int] = Counter()
        self.outcomes: Counter[str] = Counter()

    def hear(self, event: object) -> None:
        """Count what was crawled, and what of it is durable."""
        if isinstance(event, Finished):
            self.statuses[event.crawl.status] += 1
            self.outcomes[event.crawl.outcome] += 1
            self.crawled.add(event.crawl.url)
            every = len(self.crawled) >= self.daemon.pages
            if every if self.most is None else self.statuses.total() >= self.most:
                self.daemon.stop()
        elif isinstance(event, Stored):
            self.stored.update(crawl.url for crawl in event.crawls)


def go(config: Config, store: Sqlite, bounds: Bounds, most: int | None, engine: Engine) -> dict[str, object]:
    """One run of the daemon, with all that `afresh crawl` has."""

    async def run() -> dict[str, object]:
        clock = SteadyClock()
        fetcher = fetcher_for(config, clock)
        progress = Progress(config, as_json_lines=False)
        daemon = Daemon(
            engine=engine,
            sources=Web(
                fetcher,
                permits=permits_for(config, store),
                addresses=addresses_for(config, engine.lanes),
                discovery=bounds.discovery(()),
            ),
            store=store,
            detector=detector_for(config),
            clock=clock,
            concurrency=config.crawl.concurrency,
            listeners=[progress.hear],
        )
        finish = Finish(daemon, most)
        daemon.listeners.append(finish.hear)
        wall, cpu = time.monotonic(), time.process_time()
        await daemon.run()
        cpu, wall = time.process_time() - cpu, time.monotonic() - wall
        await fetcher.close()
        return {
            "pages": len(finish.stored),
            "fetches": sum(finish.statuses.values()),
            "not_modified": finish.statuses[304],
            "outcomes": finish.outcomes,
            "cpu": cpu,
            "wall": wall,
        }

    return asyncio.run(run())


def main(seed: str, folder: Path) -> None:
    """Crawl, then refresh in a second run on the same store."""
    config = config_for(folder)
    pages = Bounds.seeds([seed], HostPatterns(()))
    bounds = Bounds(tuple(page.host for page in pages))
    warm_up()
    results = {}
    for name in ("crawl", "refresh"):
        with Sqlite(str(config.store.path)) as store:
            store.add(pages)
            engine = engine_for(
                config, store.totals().pages, to_come=to_come(bounds.discovery(()), store.totals().copies)
            )
            most = store.totals().pages if name == "refresh" else None
            results[name] = go(config, store, bounds, most, engine)
    results["process"] = {"cpu": time.process_time()}
    print(json.dumps(results))


def warm_up() -> None:
    """Load compiled code: it is loaded once in the life of a daemon, and this is a short run."""
    compile_all()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

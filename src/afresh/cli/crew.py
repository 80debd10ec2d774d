"""What a worker of a cluster runs: the same engine, daemon and sources as `afresh run`, for the hosts that it owns."""

import asyncio
import fcntl
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from afresh.cli.notifying import beside, courier_for
from afresh.cli.opening import open_store
from afresh.cli.options import ConfigFile
from afresh.cluster.gate import Gated, Others
from afresh.cluster.travel import Travel
from afresh.cluster.worker import Build, Post, Worker
from afresh.config import Config
from afresh.daemon import Daemon, SteadyClock
from afresh.errors import ConfigError
from afresh.frontier import HostPatterns
from afresh.sources import Sources
from afresh.sources.sql import Definitions
from afresh.store.postgres import Part, Postgres
from afresh.types import Address
from afresh.units import Budget

if TYPE_CHECKING:
    from afresh.notify import Courier

ADDRESS = "AFRESH_CLUSTER_STORE"  # how a process is told where the store is: its arguments could be read by others


PATIENCE = 3.0  # seconds to wait for a server that is away, of a lease of ten
TELLS = 0  # the number of the worker that tells of changes: there is always one, and its lease makes it the only one
LAST_SECONDS = 2.0  # for messages that are due when a worker ends, of the margin of a lease that is lost


class _Crawling:
    """A daemon with the sources that it does not close itself, and with who tells of changes beside it."""

    def __init__(self, daemon: Daemon, sources: Sources, courier: "Courier | None") -> None:
        self.daemon, self._sources, self._courier = daemon, sources, courier
        if courier is not None:
            beside(courier, daemon)
            courier.start()

    async def close(self) -> None:
        """Let go of connections."""
        if self._courier is not None:
            await asyncio.to_thread(self._courier.stop, LAST_SECONDS)
        await self._sources.close()


def builder(config: Config) -> Build:
    """What makes the daemon of a part, by the settings."""
    from afresh.cli.bounds import Bounds
    from afresh.cli.build import (
        cost_for,
        detector_for,
        engine_for,
        engines_for,
        fetcher_for,
        kinds_for,
        sources_for,
    )
    from afresh.cli.run import to_come

    never = HostPatterns(config.crawl.never)

    def build(post: Post) -> _Crawling:
        own = replace(config, crawl=replace(config.crawl, budget=Budget(post.budget), budget_hours=()))
        bounds = Bounds.stored(post.store)
        discovery = None if bounds is None else bounds.discovery(config.crawl.never)
        totals, clock = post.store.totals(), SteadyClock(post.ahead)
        first = engine_for(own, totals.pages, to_come=to_come(discovery, totals.copies))
        fetcher = Gated(fetcher_for(own, clock, post.gate.require), post.gate)
        web = sources_for(
            own, post.store, first.lanes, clock, discovery, fetcher=fetcher, never=Others(never, post.slices)
        )[0]
        sources = Sources([web])
        daemon = Daemon(
            engine=engines_for(own, post.store, first, sources, Definitions()),
            sources=sources,
            store=post.store,
            detector=detector_for(own),
            never=never,
            kinds=kinds_for(own),
            clock=clock,
            concurrency=own.crawl.concurrency,
            grace=own.crawl.grace,
            max_unwritten=own.crawl.max_unwritten,
            cost=cost_for(own),
            others=Travel(post.slices).divided,
        )
        tells = post.store.part is not None and post.store.part.number == TELLS
        return _Crawling(daemon, sources, courier_for(own, post.store) if tells else None)

    return build


def require_fit(config: Config) -> Address:
    """The address of the store; ConfigError if the settings are not for a cluster."""
    address = config.store.path
    if isinstance(address, Path):
        raise ConfigError(
            f"A cluster needs a store in PostgreSQL, and the store is the file {address}.",
            hint="Use --store postgresql://user@host/database; afresh migrate carries a store over.",
        )
    require_crawls(config.crawl.budget)
    if config.crawl.policy == "mirror" or config.index.enabled:
        raise ConfigError(
            'A cluster has no full-text index, and no policy = "mirror".', hint="Take them out of the settings."
        )
    return address


def require_crawls(budget: Budget) -> None:
    """ConfigError if it is not one of crawls: that alone is shared out."""
    if budget.unit != "calls":
        raise ConfigError("The budget of a cluster is a number of crawls.", hint='Write it like "100/s".')


def compile_once() -> None:
    """Compile what is not yet compiled; of several processes the first does it, and the others load it."""
    from afresh.cli.build import compile_all
    from afresh.store.postgres.address import own_folder

    with (own_folder() / "compiles").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        compile_all()


def serve(config: Config, part: int, node: str = "") -> None:
    """Be one worker, until the cluster is stopped or a signal comes."""
    compile_once()
    address = require_fit(config)

    def opened(part: Part) -> Postgres:
        kept = open_store(config, create=False, patience=PATIENCE, part=part)
        assert isinstance(kept, Postgres)  # noqa: S101 - its address says so
        return kept

    worker = Worker(address, part, builder(config), opened, node=node)
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: worker.end())
    worker.run()


def worker(
    part: Annotated[int, typer.Argument(help="Its number.", min=0)],
    config: ConfigFile = None,
) -> None:
    """Be one worker of a cluster; `afresh cluster up` starts these.

    Example: AFRESH_CLUSTER_STORE=postgresql://me@db/afresh afresh cluster worker 0
    """
    from afresh.cli.opening import settings

    serve(settings(config, os.environ.get(ADDRESS)), part)

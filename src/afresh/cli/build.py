"""From settings to objects: the only place that puts the parts together for the command line."""

from dataclasses import replace
from pathlib import Path

from afresh import __version__
from afresh.config import Config, load
from afresh.engine import Engine
from afresh.estimate import Grid
from afresh.fetch import Guard, Http, Limits
from afresh.frontier import Hosts, Politeness
from afresh.schedule import Greedy, Plain
from afresh.store import Sqlite

DAY = 86400.0
YEAR = 365.25 * DAY


def settings(config: Path | None, store: Path | None) -> Config:
    """The settings, with the store given on the command line in place of theirs."""
    read = load(config)
    return replace(read, store=replace(read.store, path=store)) if store else read


def open_store(config: Config, *, create: bool) -> Sqlite:
    """The store that the settings name."""
    return Sqlite(config.store.path, create=create, keep_crawls=config.store.history)


def engine_for(config: Config, pages: int) -> Engine:
    """An engine with the settings' budget and politeness.

    Before any evidence, a page is taken to change about as often as the budget could visit it: the only time scale
    that is known then, and within what is seen on the web.
    """
    typical = min(max(config.crawl.budget / max(pages, 1), 1 / YEAR), 1 / 60)
    return Engine(
        scheduler=Plain(Greedy(), budget=config.crawl.budget, lease=config.fetch.timeout + 60),
        estimator=Grid(typical_rate=typical),
        hosts=Hosts(
            Politeness(
                factor=config.politeness.factor,
                shortest_gap=config.politeness.shortest_gap,
                longest_gap=config.politeness.longest_gap,
                first_back_off=config.politeness.first_back_off,
                longest_back_off=config.politeness.longest_back_off,
            )
        ),
    )


def fetcher_for(config: Config) -> Http:
    """A fetcher within the settings' limits."""
    contact = f" (+{config.fetch.contact})" if config.fetch.contact else ""
    fetch = config.fetch
    return Http(
        user_agent=f"afresh/{__version__}{contact}",
        limits=Limits(
            seconds=fetch.timeout,
            connect=fetch.connect_timeout,
            lookup=fetch.lookup_timeout,
            body=fetch.max_body,
            redirects=fetch.max_redirects,
            connections=max(config.crawl.concurrency, 1),
            per_host=fetch.per_host,
        ),
        guard=Guard(allow_private=fetch.allow_private, networks=fetch.allow_networks, ports=fetch.allow_ports),
        unverified_hosts=fetch.unverified_hosts,
    )

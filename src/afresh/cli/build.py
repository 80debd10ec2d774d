"""From settings to the parts of a crawler: engine and fetcher."""

from collections.abc import Callable, Container
from importlib import import_module
from inspect import iscoroutinefunction, signature
from secrets import token_bytes
from typing import cast

import numpy as np

from afresh import __version__
from afresh.cli.compiling import shown_compiling
from afresh.cli.opening import site_rules, versions_of
from afresh.config import Config
from afresh.daemon import Daemon, KindRule, Kinds
from afresh.daemon.searching import Report, Searching
from afresh.detect import Detector
from afresh.engine import Costs, Engine, Engines, Names
from afresh.engine.costs import TYPICAL
from afresh.errors import ConfigError
from afresh.estimate import Activity, Learner
from afresh.estimate.activity import slice_width
from afresh.estimate.base import typical_rate
from afresh.estimate.requests import Memory
from afresh.fetch import Fetcher, Guard, Http, Limits
from afresh.frontier import Addresses, AddressLimits, HostPatterns, Lanes, Politeness, Retries, SiteRule, SiteRules
from afresh.frontier.links import wanted
from afresh.hours import Hours
from afresh.mirror.costs import COSTS, Cost
from afresh.mirror.scheduler import ByCosts
from afresh.schedule import Plain, Rule, Scheduler, Schedules
from afresh.schedule.peer_rules import RULES
from afresh.schedule.peers import ByInterval, RefreshProbabilities
from afresh.schedule.wheel.policies import POLICIES
from afresh.sources import Source, Sources, Web
from afresh.sources.files import ROOTS, Files
from afresh.sources.files import Limits as FileLimits
from afresh.sources.files.source import PURSE as FILES
from afresh.sources.sql import Database, Definitions, Query, Sql
from afresh.sources.web import Discovery, Permits
from afresh.sources.web.source import Hears
from afresh.store import LastingStore, Store
from afresh.units import Budget, budget, show_budget

SHORTEST = 0.5  # seconds between two looks at a file, or two runs of a query, for which nobody says otherwise
FEW = 1000  # things that a new purse is taken to have
SPREAD_OF_QUERIES = 30.0  # tables change by the second or by the year: a factor on either side of the typical rate
MOST_SECONDS = 300.0  # that a look or a query may take, before its order is taken back
MOST_BY_RULE = 200_000  # pages that a rule of somebody else's looks at for every crawl


def engine_for(config: Config, pages: int, *, to_come: int = 0, lanes: Lanes | None = None) -> Engine:
    """The engine for what `crawl.budget` pays: for this many pages, or more that are yet to be found."""
    costs, budget = costs_for(config.crawl.budget, config.crawl.penalty), in_crawls(config.crawl.budget)
    if costs is not None and config.crawl.policy not in ("value", *POLICIES):
        raise ConfigError(
            f"The policy {config.crawl.policy} knows no costs.", hint='Give crawl.budget in crawls, such as "1/s".'
        )
    return Engine(
        scheduler=scheduler_for(config, max(pages, to_come)),
        estimator=Learner(
            typical_rate=typical_rate(budget, max(pages, to_come)),
            requests=Memory(config.crawl.request_memory, config.crawl.burst_memory),
        ),
        importance=config.importance,
        retries=Retries(gone=config.crawl.gone_retry),
        rules=rules_for(config),
        # The width follows what is found.
        activity=Activity(width=slice_width(typical_rate(budget, pages))),
        lanes=Lanes(politeness_of(config)) if lanes is None else lanes,
        names=Names(token_bytes(16)),  # whoever writes links must not be able to choose addresses that collide
        costs=costs,
    )


def engines_for(
    config: Config, store: LastingStore, first: Engine, sources: Sources, definitions: Definitions
) -> Engines:
    """An engine for each purse: that of the settings' `[crawl]`, and others once the first thing of theirs is there."""
    known = {host: pages for host, pages, _ in store.pages_by_host()}

    def make(purse: str) -> Engine | None:
        found = purse_of(config, purse, definitions)
        if found is None:
            return None
        budget, penalty = found
        pages = sum(count for lane, count in known.items() if lane == purse or (purse == FILES and lane[:5] == "file:"))
        costs, crawls = costs_for(budget, penalty), in_crawls(budget)
        typical = typical_rate(crawls, max(pages, FEW))
        lease = MOST_SECONDS + 60
        return Engine(
            scheduler=Scheduler.live(
                budget=crawls, lease=lease, sweep=config.crawl.sweep, counted=budget.unit == "calls"
            ),
            estimator=Learner(
                typical_rate=typical,
                requests=Memory(config.crawl.request_memory, config.crawl.burst_memory),
                spread=None if purse == FILES else SPREAD_OF_QUERIES,
            ),
            retries=Retries(gone=config.crawl.gone_retry),
            # Files of a folder may change together; of queries, the tables that they read say that.
            activity=Activity(width=slice_width(typical)) if purse == FILES else None,
            lanes=first.lanes,
            names=Names(token_bytes(16)),
            costs=costs,
            purse=purse,
            shortest=SHORTEST,
        )

    return Engines(first, make, sources.purse)


def purse_of(config: Config, purse: str, definitions: Definitions) -> tuple[Budget, float] | None:
    """(budget, penalty) of a purse besides `crawl`; None if there is no such purse."""
    if purse == FILES:
        return config.files.budget, config.files.penalty
    database = definitions.databases.get(purse.removeprefix("sql:")) if purse.startswith("sql:") else None
    return None if database is None else (budget(database.budget), database.penalty)


def costs_for(given: Budget, penalty: float) -> Costs | None:
    """What learns costs; None where every refresh costs one of the budget."""
    return Costs(given.unit, penalty=penalty) if given.unit != "calls" or penalty else None


def in_crawls(given: Budget) -> float:
    """A budget as the schedule has it: in crawls of a typical cost."""
    return float(given) / TYPICAL[given.unit]


def scheduler_for(config: Config, pages: int) -> Schedules:
    """What spends the budget, by the policy that the settings name."""
    name, budget, sweep = config.crawl.policy, in_crawls(config.crawl.budget), config.crawl.sweep
    lease, counted = config.fetch.timeout + 60, config.crawl.budget.unit == "calls"
    if name == "value":
        return Scheduler.live(budget=budget, lease=lease, sweep=sweep, counted=counted)
    if name in POLICIES:
        return Scheduler(budget=budget, policy=name, lease=lease, sweep=sweep, counted=counted)
    if name == "mirror":
        return ByCosts(
            budget=budget,
            lease=lease,
            epsilon=config.crawl.probes,
            rng=np.random.default_rng(),
            cost=config.crawl.cost,
        )
    if pages > MOST_BY_RULE:
        raise ConfigError(
            f"The policy {name} is for {MOST_BY_RULE:,} pages at most: it looks at each of them for every crawl.",
            hint='Use policy = "value", which does not.',
        )
    if name == "refresh-probabilities":
        rule: Rule = RefreshProbabilities(budget=budget, rng=np.random.default_rng())
    else:
        rule = ByInterval(RULES[name])
    return Plain(rule, budget=budget, lease=lease)


def cost_for(config: Config) -> Cost:
    """What an outdated copy costs, by the name or the import path that the settings give."""
    name = config.crawl.cost
    if name in COSTS:
        return COSTS[name]
    return cast(Cost, function_named(name, "The cost", "It takes an afresh.mirror.costs.Seen.", arguments=1))


def function_named(name: str, what: str, hint: str, arguments: int) -> Callable[..., object]:
    """An operator's own function, by its import path; ConfigError if it cannot be called with so many arguments."""
    path, _, function = name.partition(":")
    try:
        module = import_module(path)
    except Exception as error:  # whatever an operator's module may raise
        raise ConfigError(
            f"{what} {name} cannot be imported: {type(error).__name__}: {str(error)[:200]}.",
            hint="Is its folder in PYTHONPATH?",
        ) from error
    if not hasattr(module, function):
        raise ConfigError(f"{what} {name} does not exist: {path} has no {function}.", hint="Is the name spelled right?")
    found = getattr(module, function)
    if not callable(found):
        raise ConfigError(f"{what} {name} is not a function.", hint=hint)
    if isinstance(found, type):
        raise ConfigError(f"{what} {name} is a class.", hint=f"Name a function, or an object of it. {hint}")
    if iscoroutinefunction(found) or iscoroutinefunction(type(found).__call__):
        raise ConfigError(f"{what} {name} is async.", hint=f"Write it with def: it runs in a thread. {hint}")
    if not _takes(found, arguments):
        takes = "1 argument" if arguments == 1 else f"{arguments} arguments"
        raise ConfigError(f"{what} {name} cannot be called with {takes}.", hint=hint)
    return cast(Callable[..., object], found)


def _takes(function: Callable[..., object], arguments: int) -> bool:
    try:
        given = signature(function)
    except (TypeError, ValueError):  # it does not say
        return True
    try:
        given.bind(*[None] * arguments)
    except TypeError:
        return False
    return True


def searching_for(config: Config, kept: LastingStore) -> Callable[[Daemon], Searching] | None:
    """What follows searches beside a daemon; None if the settings want no index."""
    from afresh.cli.opening import in_file
    from afresh.cli.search import index_for

    if not config.index.enabled:
        if config.crawl.policy == "mirror" and config.crawl.cost == "query-quality":
            raise ConfigError("The cost query-quality needs an index.", hint="Write enabled = true below [index].")
        return None
    report = None
    if config.index.report:
        hint = "It takes an address, the old copy and the new one."
        report = cast(Report, function_named(config.index.report, "The report", hint, arguments=3))
    index = index_for(config)
    in_a_file = in_file(kept, "An index needs")
    in_a_file.accompany(index)

    def made(daemon: Daemon) -> Searching:
        return Searching(
            store=in_a_file,
            index=index,
            engine=daemon.engine,
            clock=daemon.clock,
            copy=daemon.copy,
            steers=config.index.weigh == "quality",
            most=config.index.queries,
            report=report,
        )

    return made


def politeness_of(config: Config) -> Politeness:
    """How long hosts rest."""
    return Politeness(
        factor=config.politeness.factor,
        shortest_gap=config.politeness.shortest_gap,
        longest_gap=config.politeness.longest_gap,
        first_back_off=config.politeness.first_back_off,
        longest_back_off=config.politeness.longest_back_off,
    )


async def take_up(config: Config, daemon: Daemon, definitions: Definitions) -> None:
    """Let a running daemon continue with other settings: budgets, rules of sites, politeness, how much at once
    and in the store.

    The others need a new start: where the store is, how pages are fetched and compared, the policy.
    """
    engine, crawl = daemon.engine, config.crawl
    engine.lanes.politeness = politeness_of(config)
    for part in engine.parts:
        part.importance = config.importance
        part.retries = Retries(gone=config.crawl.gone_retry)
    daemon.concurrency, daemon.grace = crawl.concurrency, crawl.grace
    daemon.store.max_bytes = config.store.max_bytes
    daemon.store.keep_versions = versions_of(config)
    for part in engine.parts[1:]:
        if (found := purse_of(config, part.purse, definitions)) is not None and part.has_unit(found[0].unit):
            part.scheduler.budget = in_crawls(found[0])
    if engine.first.has_unit(crawl.budget.unit):
        hours = budget_hours(config)
        await daemon.control.set(rules=rules_for(config), budget=in_crawls(crawl.budget), budget_hours=hours)


def budget_hours(config: Config) -> list[tuple[Hours, float]]:
    """The budgets of other hours, as the schedule has them."""
    return [(hours, in_crawls(cast(Budget, each))) for hours, each in config.crawl.budget_hours]


def rules_for(config: Config) -> SiteRules:
    """The rules for sites in the settings."""
    return SiteRules(
        SiteRule(
            site.host,
            site.path,
            site.importance,
            site.shortest_interval,
            site.longest_interval,
            site.hours,
            site.budget,
        )
        for site in config.site
    )


def kinds_for(config: Config) -> Kinds | None:
    """What tells the kinds of pages; None if the settings do not want it."""
    rules = [
        KindRule(kind.name, kind.pages, kind.change_rate, kind.value, kind.spread, kind.cost) for kind in config.kind
    ]
    return Kinds(rules) if config.crawl.kinds else None


def compile_all(begins: Callable[[], object] = lambda: None, *, policy: str = "value") -> None:
    """Compile what learns and what reads before anything waits for it.

    It says so if anything really is compiled, and calls `begins`.
    """
    from afresh.detect.compare import compile_ahead as compile_reading
    from afresh.engine.ahead import compile_ahead as compile_heart
    from afresh.estimate.learner import compile_ahead as compile_estimator
    from afresh.frontier.ahead import compile_ahead as compile_frontier
    from afresh.kinds.model import compile_ahead as compile_kinds

    with shown_compiling(begins):
        compile_estimator()
        compile_heart()
        compile_reading(wanted())
        compile_kinds()
        compile_frontier()
        _explain_once()
        if policy == "mirror":
            from afresh.mirror.ahead import compile_ahead as compile_mirror

            compile_mirror()


def _explain_once() -> None:
    """Load the code that says when a page is due, so that the first question about it delays no crawl."""
    scheduler = Scheduler.live(budget=1.0)
    slot = scheduler.add(request_rate=1.0, change_rate=0.1, now=0.0, age=1.0, shape=2.0)
    scheduler.resume_price(5.0)
    scheduler.explain(slot, 1.0, 1.0)


def fetcher_for(config: Config, clock: Callable[[], float], permit: Callable[[], None] = lambda: None) -> Http:
    """A fetcher within the settings' limits, on the daemon's clock, that asks while it is permitted."""
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
        ),
        allow_downgrade=fetch.allow_downgrade,
        guard=Guard(
            allow_private=fetch.allow_private,
            networks=fetch.allow_networks,
            ports=fetch.allow_ports,
            never=HostPatterns(config.crawl.never),
        ),
        unverified_hosts=fetch.unverified_hosts,
        clock=clock,
        permit=permit,
    )


def detector_for(config: Config) -> Detector:
    """A detector that knows the sites' own rules."""
    return Detector(site_rules(config))


def permits_for(config: Config, store: Store) -> Permits | None:
    """What asks robots.txt, unless the settings say not to; what was answered before is in the store."""
    return Permits("afresh", recall=store.get, names=store.names) if config.politeness.robots else None


def definitions_for(config: Config, store: Store) -> Definitions:
    """The databases and queries that the settings name, and those that others have told the store of.

    ConfigError says what is wrong with one of the settings'.
    """
    databases = [
        Database(
            each.name,
            each.url,
            timeout=each.timeout,
            max_rows=each.max_rows,
            max_bytes=each.max_size,
            connections=each.connections,
            notify=each.notify,
            watch=each.watch,
            budget=show_budget(each.budget) if each.budget.unit != "calls" else f"{float(each.budget)!r}/s",
            penalty=each.penalty,
            max_kept=each.max_kept,
            settled=True,
        )
        for each in config.database
    ]
    queries = [Query(each.name, each.database, each.sql, settled=True) for each in config.query]
    known = Definitions(databases, queries)
    known.recall(store)
    return known


def sources_for(
    config: Config,
    store: Store,
    lanes: Lanes,
    clock: Callable[[], float],
    discovery: Discovery | None = None,
    definitions: Definitions | None = None,
    *,
    fetcher: Fetcher | None = None,
    never: Container[str] | None = None,
) -> list[Source]:
    """What there is to keep copies of, by the settings. To add a kind of thing, add its source here, and the budget of
    its purse to `purse_of`. A worker of a cluster has a `fetcher` of its own, and hosts that others ask."""
    web = Web(
        fetcher or fetcher_for(config, clock),
        permits=permits_for(config, store),
        addresses=addresses_for(config, lanes),
        never=HostPatterns(config.crawl.never) if never is None else never,
        discovery=discovery,
        hears=Hears(
            sitemaps=config.crawl.sitemaps,
            feeds=config.crawl.feeds,
            public_url=config.receive.public_url if config.receive.listen is not None else "",
            recall=store.get,
            names=store.names,
        ),
        clock=clock,
    )
    files = Files(
        limits=FileLimits(config.files.timeout, config.files.max_size),
        exclude=config.files.exclude,
        hash_every=config.files.hash_every,
        notices=config.files.notices,
        roots=[name.removeprefix(ROOTS) for name, _ in store.names(ROOTS)],
    )
    return [web, files, Sql(definitions or Definitions(), recall=store.get)]


def addresses_for(config: Config, lanes: Lanes) -> Addresses:
    """What limits the names of one address together."""
    limits = AddressLimits(
        at_once=config.politeness.address_at_once,
        gap_share=config.politeness.address_share,
        names=config.politeness.address_names,
    )
    return Addresses(limits, lanes.politeness)

"""From settings to a serving cache with all its parts."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from afresh import __version__
from afresh.cli.opening import place_of
from afresh.config import WITH_EFFECTS, Config, ServeSettings
from afresh.fetch import Guard
from afresh.frontier import HostPatterns
from afresh.frontier.glob import Glob
from afresh.serve.proxy.access_log import AccessLog
from afresh.serve.proxy.asking import Asking
from afresh.serve.proxy.cache import Cache
from afresh.serve.proxy.evidence import Evidence, Reports
from afresh.serve.proxy.origins import Origins
from afresh.serve.proxy.policy import Policy
from afresh.serve.proxy.routes import Routes, Site
from afresh.serve.proxy.server import Server
from afresh.serve.proxy.service import Allowed, Service
from afresh.serve.proxy.shelf import Shelf
from afresh.serve.proxy.telling import Telling
from afresh.serve.proxy.ways import digest

if TYPE_CHECKING:
    from afresh.serve.proxy.prefetching import Prefetching
    from afresh.store import Store


@dataclass(slots=True)
class Parts:
    """What serves, and what has to be told when it begins and ends."""

    server: Server
    service: Service
    policy: Policy
    origins: Origins
    evidence: Evidence | None
    shelf: Shelf | None
    log: AccessLog | None
    prefetching: "Prefetching | None" = None
    telling: Telling | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Begin; where readers come to."""
        where = await self.server.start(host, port)
        if self.evidence is not None:
            self.evidence.start()
        if self.prefetching is not None:
            self.prefetching.start()
        if self.telling is not None:
            self.telling.start()
        return where

    async def stop(self, grace: float) -> None:
        """Answer what was asked, and let go of everything."""
        await self.server.stop(grace)
        if self.prefetching is not None:
            await self.prefetching.close()
        if self.evidence is not None:
            await self.evidence.close()
        if self.telling is not None:
            await self.telling.close()
        await self.policy.close()
        await self.origins.close()
        if self.shelf is not None:
            self.shelf.close()
        if self.log is not None:
            self.log.close()


def parts_for(config: Config, store: "Store | None", tokens: list[str]) -> Parts:
    """All parts of a serving cache, by the settings."""
    proxy, fetch = config.proxy, config.fetch
    never = HostPatterns(config.crawl.never)
    guard = Guard(
        allow_private=fetch.allow_private, networks=fetch.allow_networks, ports=fetch.allow_ports, never=never
    )
    agent = f"afresh/{__version__}" + (f" (+{fetch.contact})" if fetch.contact else "")
    cache = Cache(proxy.memory, by_value=proxy.evict == "value")
    evidence = shelf = None
    if store is not None:
        evidence = Evidence(store, most_pages=proxy.max_pages, never=never, effects=with_effects(config))
        shelf = Shelf(store, {"user-agent": agent, "accept": "text/html,*/*;q=0.8"})
    policy = Policy(
        cache,
        shelf,
        changed=evidence.changed if evidence is not None else lambda url: None,
        refresh=evidence.refresh if evidence is not None else lambda url: None,
    )
    origins = Origins(guard, connections=proxy.connections, seconds=fetch.connect_timeout, lookup=fetch.lookup_timeout)
    asking = Asking(origins, cache, policy, largest=proxy.max_object, agent=agent, longest_stale=proxy.max_stale)
    log = None
    if proxy.access_log:
        path = None if proxy.access_log == "-" else Path(proxy.access_log).expanduser()
        log = AccessLog(path, proxy.access_log_format, proxy.trusted)
    telling = Telling(place_of(config)) if store is not None else None
    reports = Reports(*(each for each in (evidence, log, telling) if each is not None))
    service = Service(
        routes_for(config),
        cache,
        asking,
        policy,
        reports,
        allowed=Allowed(proxy.connect, purge=tuple(map(digest, tokens)), body=proxy.max_request),
    )
    prefetching = None
    if store is not None and fetches_ahead(config):
        prefetching = _prefetching(config, service)
        reports.tell(prefetching)
    return Parts(Server(service, idle=proxy.idle), service, policy, origins, evidence, shelf, log, prefetching, telling)


def with_effects(config: Config) -> Callable[[str], bool]:
    """Whether a request for a page may do something, as far as its path says so."""
    patterns = {each for site in config.serve for each in site.prefetch_except} if config.serve else WITH_EFFECTS
    globs = [Glob(pattern) for pattern in sorted(patterns) if "?" not in pattern]

    def effects(url: str) -> bool:
        path = url.partition("://")[2].partition("/")[2].lower()
        return any(glob.matches(f"/{path}") for glob in globs)

    return effects


def fetches_ahead(config: Config) -> bool:
    """Whether any site wants to be fetched ahead of its readers."""
    return any(site.prefetch and not site.strict for site in config.serve)


def _prefetching(config: Config, service: Service) -> "Prefetching":
    # What learns is compiled code, which takes a while to load: only who wants it waits for it.
    from afresh.estimate.paths import Paths
    from afresh.serve.proxy.prefetching import Prefetching, Turns, Wish

    wishes = [
        Wish(_site(site), site.cost_per_kb, site.prefetch_except)
        for site in config.serve
        if site.prefetch and not site.strict
    ]
    paths = Paths(config.proxy.prefetch_memory)
    return Prefetching(service, paths, wishes, Turns(place_of(config)), trusted=config.proxy.trusted)


def routes_for(config: Config) -> Routes:
    """What is mapped, and which ways are open."""
    hosts: dict[str, Site] = {}
    within: dict[str, list[tuple[str, Site]]] = {"": []}  # "": at any host
    for said in sorted(config.serve, key=lambda each: -len(each.prefix)):
        prefix = said.prefix.rstrip("/")
        if said.host and not prefix:
            hosts[said.host] = _site(said)
        else:
            within.setdefault(said.host, []).append((prefix, _site(said)))
    anywhere = within.pop("")
    return Routes(
        hosts,
        within,
        [each for each in anywhere if each[0]],
        next((site for prefix, site in anywhere if not prefix), None),
        HostPatterns(config.proxy.mirror),
        config.proxy.forward,
        HostPatterns(config.crawl.never),
    )


def _site(said: ServeSettings) -> Site:
    return Site(said.origin, said.strict, said.threshold, said.stale, outside=said.prefix.rstrip("/"))

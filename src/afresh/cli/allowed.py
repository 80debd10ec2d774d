"""What politeness allows of a budget, from what a store and the settings say."""

from collections.abc import Sequence
from functools import partial
from json import loads

from afresh.config import Config
from afresh.frontier import Allowance, HostPatterns, Politeness, Rest, allowance
from afresh.store import Store, understood

BY_SETTING = "politeness.shortest_gap"


def allowed(kept: Store, config: Config) -> Allowance:
    """As the last runner found out, with addresses and answers; or before any has run, by the settings alone."""
    never, shortest = HostPatterns(config.crawl.never), config.politeness.shortest_gap
    hosts = [host for host, _, _ in kept.pages_by_host() if host not in never]
    found = Allowance.from_text(kept.get("allowance"))
    if found is not None and found.hosts == len(hosts):
        changed = found.because == BY_SETTING and found.rest != shortest  # the settings, since then
        if not changed:
            return found
    gap = Politeness(factor=config.politeness.factor, shortest_gap=shortest).gap(0.0)
    return allowance((host, Rest(gap, BY_SETTING)) for host in hosts)


def host_rates(kept: Store, config: Config, hosts: Sequence[str], polite: Allowance) -> list[float]:
    """How often each host may be asked, in crawls a second: together no more than politeness allows in all."""
    shortest = Politeness(factor=config.politeness.factor, shortest_gap=config.politeness.shortest_gap).gap(0.0)
    gaps = [max(shortest, _crawl_delay(kept, host)) for host in hosts]
    if not all(gaps):
        return [float("inf")] * len(hosts)
    rates = [1.0 / gap for gap in gaps]
    kept_hosts = max(len(hosts), polite.hosts)
    share = min(1.0, polite.rate * len(hosts) / kept_hosts / sum(rates)) if rates else 1.0
    return [rate * share for rate in rates]


def _crawl_delay(kept: Store, host: str) -> float:
    for scheme in ("https", "http"):
        name = f"robots {scheme}://{host}"
        if (text := kept.get(name)) is not None:
            return understood(name, partial(_delay_in, text))
    return 0.0


def _delay_in(text: str) -> float:
    return float((loads(text).get("robots") or {}).get("delay") or 0.0)

"""What politeness allows of a budget, from what a store and the settings say."""

from afresh.config import Config
from afresh.frontier import Allowance, HostPatterns, Politeness, Rest, allowance
from afresh.store import Store

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

"""Which URLs exist and which hosts are ready.

A URL comes in from outside in any spelling and leaves as its canonical form (`url`), under which everything else knows
it. Its host is what politeness is counted by (`hosts`): after every answer the host rests, longer if it was slow, much
longer if it failed.
"""

from afresh.frontier.base import Eliminator
from afresh.frontier.hosts import Hosts, Politeness
from afresh.frontier.links import Links, links
from afresh.frontier.permission import Permission, RobotsState, robots_verdict
from afresh.frontier.robots import Robots
from afresh.frontier.seen import Seen, fingerprints
from afresh.frontier.url import Resolver, Url, canonical, canonical_or_none, host_of, parse

__all__ = [
    "Eliminator",
    "Hosts",
    "Links",
    "Permission",
    "Politeness",
    "Resolver",
    "Robots",
    "RobotsState",
    "Seen",
    "Url",
    "canonical",
    "canonical_or_none",
    "fingerprints",
    "host_of",
    "links",
    "parse",
    "robots_verdict",
]

"""Which URLs exist and which hosts are ready.

A page comes in as bytes and leaves as `links`: absolute URLs in their one canonical spelling (`url`), under which
everything else knows them. `scope` says which of them a crawl may have at all, and what looks like a trap. A small
cache (`cache`) and the eliminator (`seen`) drop what was met before; on a cluster the rest goes to the process that
owns the host (`split`). What is new becomes a page.

Before anything is sent, its host is asked what robots may do there (`robots`, and `permission`, which keeps that
knowledge fresh), and politeness is counted by host (`lanes`) and by network address (`addresses`): after every answer
the host rests, longer if it was slow, much longer if it failed. `allowance` says what all that adds up to.
"""

from afresh.frontier.addresses import Addresses, AddressLimits
from afresh.frontier.allowance import Allowance, allowance
from afresh.frontier.base import Eliminator
from afresh.frontier.cache import Sieve, UrlCache
from afresh.frontier.faults import host_failed, in_trouble, is_unreachable, retry_after
from afresh.frontier.host_patterns import HostPatterns
from afresh.frontier.lanes import Lane, Lanes, Rest
from afresh.frontier.links import Links, links
from afresh.frontier.permission import Permission, RobotsState
from afresh.frontier.politeness import Politeness, Retries
from afresh.frontier.purses import Purses
from afresh.frontier.robots import Robots
from afresh.frontier.scope import Admission, Refusal, Scope, Traps, site_of
from afresh.frontier.seen import Seen, fingerprints
from afresh.frontier.sites import SiteRule, SiteRules
from afresh.frontier.split import Splitter, owner
from afresh.frontier.url import Resolver, Url, canonical, canonical_or_none, host_of, parse

__all__ = [
    "AddressLimits",
    "Addresses",
    "Admission",
    "Allowance",
    "Eliminator",
    "HostPatterns",
    "Lane",
    "Lanes",
    "Links",
    "Permission",
    "Politeness",
    "Purses",
    "Refusal",
    "Resolver",
    "Rest",
    "Retries",
    "Robots",
    "RobotsState",
    "Scope",
    "Seen",
    "Sieve",
    "SiteRule",
    "SiteRules",
    "Splitter",
    "Traps",
    "Url",
    "UrlCache",
    "allowance",
    "canonical",
    "canonical_or_none",
    "fingerprints",
    "host_failed",
    "host_of",
    "in_trouble",
    "is_unreachable",
    "links",
    "owner",
    "parse",
    "retry_after",
    "site_of",
]

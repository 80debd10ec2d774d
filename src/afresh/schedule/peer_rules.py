"""The rules that others use: their state machines by number, and their published constants. Times are seconds."""

from typing import NamedTuple

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0

ROUND_ROBIN, FIXED, NUTCH, STORM, FACTOR, ENTRIES, MODIFIED, PROPORTIONAL = range(8)


class PeerRule(NamedTuple):
    """A state machine and its constants."""

    machine: int
    start: float = 0.0  # first interval
    shortest: float = 0.0
    longest: float = float("inf")
    grow: float = 0.0  # unchanged: the interval grows by this share, or to this multiple
    shrink: float = 0.0  # changed: it shrinks by this share, or is divided by this
    shift: float = 0.0  # Nutch: moved towards the last change by this share; others: see the rules of `peers`
    wait: float = 0.0  # taken only when overdue by this, and then the oldest copy first


RULES = {
    "uniform": PeerRule(ROUND_ROBIN),
    "proportional": PeerRule(PROPORTIONAL),
    "nutch": PeerRule(FIXED, start=30 * DAY, longest=90 * DAY),
    "nutch-adaptive": PeerRule(NUTCH, 30 * DAY, MINUTE, 90 * DAY, grow=0.4, shrink=0.2, shift=0.3),
    "nutch-1.22": PeerRule(NUTCH, 30 * DAY, MINUTE, 90 * DAY, grow=0.4, shrink=0.2),  # its shift is cut to nothing
    "stormcrawler": PeerRule(FIXED, start=1440 * MINUTE),
    "stormcrawler-adaptive": PeerRule(STORM, 1440 * MINUTE, 60 * MINUTE, 14 * DAY, grow=0.5, shrink=0.5),
    "common-crawl-news": PeerRule(STORM, 1440 * MINUTE, 90 * MINUTE, 90 * DAY, grow=0.5, shrink=0.2),
    "heritrix": PeerRule(FACTOR, 12 * HOUR, HOUR, 28 * DAY, grow=1.5, shrink=1.5),
    "miniflux": PeerRule(ENTRIES, DAY, 5 * MINUTE, DAY, shift=7 * DAY),
    "yacy": PeerRule(MODIFIED, DAY, shift=0.5, wait=DAY),
    "scrapy": PeerRule(MODIFIED, DAY, shift=0.1),
    "squid": PeerRule(MODIFIED, DAY, 0.0, 3 * DAY, shift=0.2),
    "traffic-server": PeerRule(MODIFIED, DAY, HOUR, DAY, shift=0.1),
}

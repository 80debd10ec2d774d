"""When other caches ask the origin: their rules over a page's requests and changes, one page at a time.

All lifetimes are those that a rule is given; what a rule does at the end of one, or shortly before, is its own.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import log

from numpy.random import Generator


class Does(Enum):
    """What a cache does with a request."""

    SERVES = "serves"  # what it has
    BEHIND = "behind"  # the same, and asks the origin behind the reader's back
    WAITS = "waits"  # the reader waits for the origin


@dataclass(slots=True)
class Held:
    """A copy in another cache."""

    fetched: float
    expires: float
    lifetime: float
    used: float  # when it was asked for last
    hits: int = 0  # without a gap of a minute


@dataclass(frozen=True, slots=True)
class Knobs:
    """What rules have besides the lifetime, at their usual values."""

    grace: float = 10.0  # Varnish: seconds that an expired copy is handed out while it is fetched
    unused: float = 600.0  # nginx: seconds after which a copy is dropped
    fuzz: tuple[float, float] = (240.0, 0.005)  # Traffic Server: seconds before the end, and the chance at each hit
    share: float = 0.1  # unbound, CoreDNS: of the lifetime, in which a hit refreshes
    hits: int = 2  # CoreDNS: so many hits without a gap of a minute
    took: float = 0.2  # XFetch: seconds that a fetch takes


def _varnish(now: float, held: Held, knobs: Knobs, rng: Generator) -> Does:
    if now < held.expires:
        return Does.SERVES
    return Does.BEHIND if now < held.expires + knobs.grace else Does.WAITS


def _plain(now: float, held: Held, knobs: Knobs, rng: Generator) -> Does:
    return Does.SERVES if now < held.expires else Does.WAITS


def _nginx(now: float, held: Held, knobs: Knobs, rng: Generator) -> Does:
    return Does.WAITS if now - held.used > knobs.unused else _plain(now, held, knobs, rng)


def _nginx_updating(now: float, held: Held, knobs: Knobs, rng: Generator) -> Does:
    if now - held.used > knobs.unused:
        return Does.WAITS
    return Does.SERVES if now < held.expires else Does.BEHIND


def _traffic_server(now: float, held: Held, knobs: Knobs, rng: Generator) -> Does:
    seconds, chance = knobs.fuzz
    if held.expires - seconds <= now < held.expires and rng.random() < chance:
        return Does.WAITS
    return _plain(now, held, knobs, rng)


def _unbound(now: float, held: Held, knobs: Knobs, rng: Generator) -> Does:
    if held.expires - knobs.share * held.lifetime <= now < held.expires:
        return Does.BEHIND
    return _plain(now, held, knobs, rng)


def _coredns(now: float, held: Held, knobs: Knobs, rng: Generator) -> Does:
    held.hits = held.hits + 1 if now - held.used <= 60.0 else 1
    return _unbound(now, held, knobs, rng) if held.hits >= knobs.hits else _plain(now, held, knobs, rng)


def _xfetch(now: float, held: Held, knobs: Knobs, rng: Generator) -> Does:
    return Does.SERVES if now - knobs.took * log(1.0 - rng.random()) < held.expires else Does.WAITS


Rule = Callable[[float, Held, Knobs, Generator], Does]
RULES: dict[str, Rule] = {
    "varnish": _varnish,
    "nginx": _nginx,
    "nginx-updating": _nginx_updating,
    "squid": _plain,
    "traffic-server": _traffic_server,
    "unbound": _unbound,
    "coredns": _coredns,
    "xfetch": _xfetch,
}
LONGEST_BY_DATE = 3 * 86400.0  # Squid: whatever its share of a page's age comes to


@dataclass(slots=True)
class Tally:
    """What came of requests."""

    requests: int = 0
    fresh: int = 0  # answered with what the origin had at that moment
    unwaited: int = 0  # answered from a copy
    fetches: int = 0

    def add(self, other: "Tally") -> None:
        """Sum up."""
        self.requests += other.requests
        self.fresh += other.fresh
        self.unwaited += other.unwaited
        self.fetches += other.fetches


@dataclass(frozen=True, slots=True)
class Asked:
    """One page: when it was asked for, when it changed, both in order, and since when it is there."""

    requests: Sequence[float]
    changes: Sequence[float]
    since: float
    name: str = ""
    versions: list[int] = field(default_factory=list)  # that the origin had at each request

    def __post_init__(self) -> None:
        self.versions.extend(bisect_right(self.changes, now) for now in self.requests)

    def changed(self, version: int) -> float:
        """When it changed last."""
        return self.changes[version - 1] if version else self.since


def play(page: Asked, rule: Rule, lifetime: float, rng: Generator, *, by_date: float = 0.0, knobs: Knobs) -> Tally:
    """One page's requests by a rule. `by_date`: for the lifetime, this share of the time since its last change."""
    held, have, tally = None, -1, Tally()
    for now, version in zip(page.requests, page.versions, strict=True):
        does = Does.WAITS if held is None else rule(now, held, knobs, rng)
        tally.requests += 1
        tally.unwaited += does is not Does.WAITS
        if does is Does.WAITS:
            have = version
        tally.fresh += have == version
        if does is not Does.SERVES:
            have = version
            tally.fetches += 1
            if by_date:
                lifetime = min(by_date * (now - page.changed(version)), LONGEST_BY_DATE)
            hits = 0 if held is None else held.hits
            held = Held(now, now + lifetime, lifetime, now, hits)
        elif held is not None:
            held.used = now
    return tally

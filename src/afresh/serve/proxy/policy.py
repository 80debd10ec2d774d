"""Own policy at work: what is kept, how long it is good, and what the store knows besides."""

import asyncio
from collections.abc import Callable
from math import inf
from typing import Protocol

from afresh.serve.proxy import belief
from afresh.serve.proxy.cache import Cache
from afresh.serve.proxy.entry import Entry
from afresh.serve.proxy.fields import Named
from afresh.serve.proxy.routes import Site
from afresh.serve.proxy.rules import Terms
from afresh.types import Beliefs

KEPT = frozenset({200, 203, 301, 308, 404, 410})
LOOK_EVERY = 2.0  # seconds after which a hit makes us ask the store whether it knows more
MOST_LOOKS = 64  # at once
LONGEST_MEMORY = 20.0  # changes and confirmations that count at most, so that what changes its ways is noticed
FOREVER = 4e9


class Kept(Protocol):
    """What can look into the store."""

    async def find(self, url: str, site: Site, asked_with: Named) -> Entry | None:
        """The copy of a page, if it may be handed out for this request."""

    async def newer(self, entry: Entry, site: Site) -> Entry | None:
        """What the store knows of a page by now: another entry, or the same with other beliefs."""


class Policy:
    """What own policy decides. It calls `changed` with a page that turned out to have changed, and `refresh` with one
    that should be crawled now.
    """

    def __init__(
        self,
        cache: Cache,
        kept: Kept | None = None,
        *,
        changed: Callable[[str], None] = lambda url: None,
        refresh: Callable[[str], None] = lambda url: None,
    ) -> None:
        self.trust = belief.Trust()
        self.changed = changed
        self.refresh = refresh
        self._cache = cache
        self._kept = kept
        self._looks: set[asyncio.Task[None]] = set()
        self._sites: dict[str, Site] = {}

    @staticmethod
    def storable(terms: Terms, status: int, fields: Named) -> bool:
        """Whether an answer may be kept and shared: what is secret or one reader's own never is."""
        said = (fields.get("cache-control", "") + "," + fields.get("cdn-cache-control", "")).lower()
        forbidden = "no-store" in said or "private" in said or "set-cookie" in fields
        return status in KEPT and not forbidden and "*" not in fields.get("vary", "")

    def fetched(self, older: Entry | None, made: Entry, site: Site, now: float) -> None:
        """A whole answer came: what is believed of the page now."""
        host = _host_of(made.url)
        made.beliefs = belief.from_lifetime(_lifetime(made.terms), self.trust.factor(host))
        if older is not None:
            same = older.body == made.body and older.status == made.status
            self._observe(older, made, now, changed=not same)
            if not same:
                self.changed(made.url)
        self.settle(made, site)
        if self._kept is not None:
            made.look_again = now + LOOK_EVERY
        self._sites[host] = site

    def confirmed(self, older: Entry, made: Entry, site: Site, now: float) -> None:
        """The origin said that what we have still holds."""
        self._observe(older, made, now, changed=False)
        made.signals = 0
        self.settle(made, site)

    def _observe(self, older: Entry, made: Entry, now: float, *, changed: bool) -> None:
        """Learn of the page, and of how far its host's lifetimes can be trusted."""
        elapsed = max(now - older.confirmed, 0.0)
        self.trust.saw(_host_of(made.url), _lifetime(older.terms), elapsed, changed=changed)
        known = older.beliefs
        if known is None or older.from_store or known.shape == inf:
            if known is not None:
                made.beliefs = known
            return
        changes = known.shape + (1.0 if changed else 0.0)
        seconds = known.shape / max(known.change_rate, 1e-9) + (elapsed / 2 if changed else elapsed)
        rate = changes / seconds
        made.beliefs = Beliefs(0.0, change_rate=rate, shape=min(changes, LONGEST_MEMORY))

    def settle(self, entry: Entry, site: Site) -> None:
        """Until when an entry is handed out without asking."""
        if entry.beliefs is not None:
            good = belief.good_for(entry.beliefs, entry.signals, site.threshold)
            entry.good_until = min(entry.confirmed + good, FOREVER)

    @staticmethod
    def said(entry: Entry, now: float) -> bytes:
        """How probably an entry is fresh, as a field."""
        if entry.beliefs is None:
            return b""
        fresh = entry.beliefs.freshness(max(now - entry.confirmed, 0.0), entry.signals)
        return b"X-Fresh-Probability: %.3f\r\n" % fresh

    async def from_store(self, url: str, site: Site, asked_with: Named) -> Entry | None:
        """What the store has of a page; it is in memory from then on."""
        if self._kept is None:
            return None
        entry = await self._kept.find(url, site, asked_with)
        if entry is not None:
            self.settle(entry, site)
            self._cache.put(entry, entry.confirmed)
            self._sites[_host_of(url)] = site
        return entry

    def look(self, entry: Entry, now: float) -> None:
        """Ask the store behind the reader's back whether it has a newer copy, or knows more of the page."""
        entry.look_again = now + LOOK_EVERY
        site = self._sites.get(_host_of(entry.url))
        if self._kept is None or site is None or len(self._looks) >= MOST_LOOKS:
            entry.look_again = now + LOOK_EVERY if self._kept is not None else inf
            return
        task = asyncio.get_running_loop().create_task(self._look(self._kept, entry, site))
        self._looks.add(task)
        task.add_done_callback(self._looks.discard)

    async def _look(self, kept: Kept, entry: Entry, site: Site) -> None:
        found = await kept.newer(entry, site)
        if found is None:
            return
        self.settle(found, site)
        if (
            found is not entry
            and self._cache.get(entry.url, dict(zip(entry.names, entry.selector, strict=True))) is entry
        ):
            found.look_again = entry.look_again
            self._cache.put(found, found.confirmed)

    async def close(self) -> None:
        """Stop looking."""
        for task in self._looks:
            task.cancel()


def _lifetime(terms: Terms) -> float:
    if terms.validate:
        return belief.SHORTEST_LIFETIME
    return terms.lifetime if terms.explicit or terms.lifetime else belief.UNKNOWN_LIFETIME


def _host_of(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]

"""Own policy at work: what is kept, how long it is good, and what the store knows besides."""

import asyncio
from collections.abc import Callable
from math import inf
from typing import Protocol

from afresh.serve.proxy import belief, dates
from afresh.serve.proxy.cache import Cache
from afresh.serve.proxy.entry import Entry
from afresh.serve.proxy.fields import Named
from afresh.serve.proxy.routes import Site
from afresh.serve.proxy.rules import Terms

KEPT = frozenset({200, 203, 301, 308, 404, 410})
LOOK_EVERY = 2.0  # seconds after which a hit makes us ask the store whether it knows more
MOST_LOOKS = 64  # at once


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
        self._looks: dict[Entry, asyncio.Task[None]] = {}
        self._sites: dict[str, Site] = {}

    @staticmethod
    def storable(terms: Terms, status: int, fields: Named) -> bool:
        """Whether an answer may be kept and shared: what is secret or one reader's own never is."""
        said = (fields.get("cache-control", "") + "," + fields.get("cdn-cache-control", "")).lower()
        forbidden = "no-store" in said or "private" in said or "set-cookie" in fields
        return status in KEPT and not forbidden and "*" not in fields.get("vary", "")

    def fetched(self, older: Entry | None, made: Entry, site: Site, now: float) -> None:
        """A whole answer came: what is believed of the page now."""
        if older is None or older.outlook is None:
            made.outlook = self._at_first(made, now)
        else:
            same = older.body == made.body and older.status == made.status
            self._observe(older, made, now, changed=not same)
            if not same:
                self.changed(made.url)
        self.settle(made, site)
        if self._kept is not None:
            made.look_again = now + LOOK_EVERY
        self._sites[_host_of(made.url)] = site

    def confirmed(self, older: Entry, made: Entry, site: Site, now: float) -> None:
        """The origin said that what we have still holds."""
        self._observe(older, made, now, changed=False)
        self.settle(made, site)

    def crawled(self, older: Entry | None, made: Entry, site: Site) -> None:
        """The runner has looked at a page: what it found, and what it believes by now (`made.beliefs`)."""
        name = _host_of(made.url)
        if older is not None and older.outlook is not None and made.confirmed <= older.confirmed:
            made.outlook = older.outlook.heard(made.beliefs)
        else:
            if older is None or older.outlook is None:
                made.outlook = self._at_first(made, made.confirmed)
                if made.beliefs is not None:
                    self.trust.knows(name, _lifetime(made.terms), made.beliefs)
            else:
                self._observe(older, made, made.confirmed, changed=older.body != made.body)
            if made.outlook is not None:
                made.outlook = made.outlook.told(self.trust.host(name), made.beliefs)
        self.settle(made, site)

    def _at_first(self, made: Entry, now: float) -> belief.Outlook:
        host = self.trust.host(_host_of(made.url))
        explicit = _lifetime(made.terms) if made.terms.explicit or made.terms.validate else None
        return belief.at_first(host, explicit, _silent(made, now) if host.dated else None)

    def _observe(self, older: Entry, made: Entry, now: float, *, changed: bool) -> None:
        """Learn of the page, and of how far its host's lifetimes and dates can be trusted."""
        name = _host_of(made.url)
        host = self.trust.host(name)
        elapsed = max(now - older.confirmed, 1e-3)
        silent = _silent(made, now)
        if older.modified and silent is not None:
            moved = older.modified != made.modified
            host.right = belief.FORGETTING * host.right + (moved == changed)
            host.wrong = belief.FORGETTING * host.wrong + (moved != changed)
        known = older.outlook
        if known is not None:
            if not known.checks:
                self.trust.saw(name, _lifetime(older.terms), elapsed, changed=changed)
            known.foretold(host, elapsed, changed=changed)
            # A date before the last look tells of no change since: then it is none.
            told = silent if changed and host.dated and silent is not None and silent <= elapsed + 1.0 else None
            made.outlook = known.after(host, elapsed, changed=changed, silent=told)
            made.hits, made.hits_since = older.hits, older.hits_since
            if made.beliefs is None:  # we looked, not the runner: for a reader
                made.hits += 1.0
                made.beliefs, made.signals = older.beliefs, 0
                made.signals_before = older.signals_before + older.signals

    def settle(self, entry: Entry, site: Site) -> None:
        """Until when an entry is handed out without asking."""
        if entry.outlook is not None:
            good = entry.outlook.good_for(site.threshold, entry.signals, entry.asked_for())
            entry.good_until = min(entry.confirmed + good, belief.FOREVER)

    @staticmethod
    def said(entry: Entry, now: float) -> bytes:
        """How probably an entry is fresh, as a field."""
        if entry.outlook is None:
            return b""
        fresh = entry.outlook.freshness(max(now - entry.confirmed, 0.0), entry.signals)
        return b"X-Fresh-Probability: %.3f\r\n" % fresh

    async def from_store(self, url: str, site: Site, asked_with: Named) -> Entry | None:
        """What the store has of a page; it is in memory from then on."""
        if self._kept is None:
            return None
        entry = await self._kept.find(url, site, asked_with)
        if entry is not None:
            self.crawled(None, entry, site)
            self._cache.put(entry, entry.confirmed)
            self._sites[_host_of(url)] = site
        return entry

    def look(self, entry: Entry, now: float) -> None:
        """Ask the store behind the reader's back whether it has a newer copy, or knows more of the page."""
        entry.look_again = now + LOOK_EVERY
        if self._looking(entry) is None:
            entry.look_again = now + LOOK_EVERY if self._kept is not None else inf

    async def looked(self, entry: Entry) -> None:
        """Wait for what the store knows of a page, before its origin is asked; all who wait share one look.

        What was told to be asked about first (`Cache.spoil`) is: what was crawled meanwhile may be of before.
        """
        if entry.good_until > 0.0 and (task := self._looking(entry)) is not None:
            await asyncio.wait([task])

    def _looking(self, entry: Entry) -> asyncio.Task[None] | None:
        """The look at what the store knows of a page that is under way, or a new one; None if there can be none."""
        if entry in self._looks:
            return self._looks[entry]
        site = self._sites.get(_host_of(entry.url))
        if self._kept is None or site is None or len(self._looks) >= MOST_LOOKS:
            return None
        task = asyncio.get_running_loop().create_task(self._look(self._kept, entry, site))
        self._looks[entry] = task
        task.add_done_callback(lambda _: self._looks.pop(entry, None))
        return task

    async def _look(self, kept: Kept, entry: Entry, site: Site) -> None:
        found = await kept.newer(entry, site)
        if found is None:
            return
        self.crawled(entry, found, site)
        if (
            found is not entry
            and entry.good_until > 0.0
            and self._cache.get(entry.url, dict(zip(entry.names, entry.selector, strict=True))) is entry
        ):
            found.look_again = entry.look_again
            self._cache.put(found, found.confirmed)

    async def close(self) -> None:
        """Stop looking."""
        for task in self._looks.values():
            task.cancel()


def _lifetime(terms: Terms) -> float:
    if terms.validate:
        return belief.SHORTEST_LIFETIME
    return terms.lifetime if terms.explicit or terms.lifetime else belief.UNKNOWN_LIFETIME


def _silent(entry: Entry, now: float) -> float | None:
    """For how many seconds a page has been as it is, by its Last-Modified; None: it does not say, or nonsense."""
    modified = dates.moment(entry.modified) if entry.modified else None
    return max(now - modified, 0.0) if modified is not None and modified <= now + 1.0 else None


def _host_of(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]

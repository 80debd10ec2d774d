"""Sitemaps that robots.txt names: read in their hosts' own turns, for pages that nobody links to and for changes.

A sitemap is a special page of its host, as robots.txt is: when a page of the host is about to be fetched and a sitemap
is due, the turn goes to the sitemap, and the page's order is given back. Of two turns in a row only one is taken, so
that an index of thousands delays the pages and does not starve them.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from afresh.detect import compare
from afresh.fetch import gunzip
from afresh.frontier import Resolver, canonical_or_none, host_failed, host_of, retry_after
from afresh.frontier.effort import rest_for
from afresh.signals import Entry, Sitemap, read_sitemap
from afresh.signals.sitemap import FREQUENCIES, LARGEST
from afresh.sources.base import Later, Listed, Runner
from afresh.sources.pieces import in_pieces
from afresh.sources.web.agenda import Agenda, Known
from afresh.sources.web.asking import Asker
from afresh.sources.web.discovery import Discovery
from afresh.sources.web.permits import Permits
from afresh.types import Fetched, Outcome

SENDER = "sitemap"  # of the signals
MOST = 100_000  # of all hosts together; those of the host that was met first are forgotten, and found again
SLACK = 300.0  # seconds that a publisher's clock may be ahead of ours

_SPOILED = {
    "too_large": f"It is larger than {LARGEST >> 20} MiB; the rest was left out.",
    "truncated": "It breaks off before its end.",
    "bad_coding": "It is not compressed as it should be; the rest was left out.",
}


class Sitemaps:
    """Reads what robots.txt names, now and then, and makes pages and signals of it.

    Invariants: a sitemap is asked for like a page, with the same permission, politeness and guard; it speaks for its
    own host and for those whose robots.txt leads to it; it raises at most one signal for a page until that is crawled.
    """

    def __init__(self, *, asker: Asker, permits: Permits, discovery: Discovery, runner: Runner) -> None:
        self.asker = asker
        self.permits = permits
        self.discovery = discovery
        self.runner = runner
        self._agendas: dict[str, Agenda] = {}  # by host
        self._count = 0
        self._one_at_a_time = asyncio.Lock()  # what is being read is in memory whole

    async def turn(self, url: str) -> float | None:
        """Use the turn of a page's host for a sitemap that is due; the host's rest after that, None if none is."""
        host = host_of(url)
        known = self._due(url, host)
        if known is None:
            return None
        own = host_of(known.url) == host
        if own:
            got = await self.asker.ask(known.url, known.validators)
            if isinstance(got, Later):
                return got.gap
            fetched = got
        else:
            fetched = await self.asker.elsewhere(url, known.url)
        self.runner.hold(len(fetched.body))
        try:
            return await self._took(host, known, fetched, own=own)
        finally:
            self.runner.hold(-len(fetched.body))

    async def _took(self, host: str, known: Known, fetched: Fetched, *, own: bool) -> float:
        """Use what came; the host's rest."""
        # The bytes are what counts, whatever type it claims: of a page the dates would not count, here they are all.
        fetched = replace(fetched, content_type="")
        verdict = await asyncio.to_thread(compare, known.validators, fetched)
        now = self.runner.clock()
        rest = 0.0
        if own:
            rest = self.runner.lanes.answered(
                host,
                failed=False if verdict.outcome.refreshed else host_failed(host, fetched, verdict.reason),
                now=now,
                took=fetched.took,
                retry_after=retry_after(host, fetched),
                reason=verdict.reason,
            )
        known.answered(verdict.outcome, verdict.validators, now)
        if verdict.outcome in (Outcome.NEW, Outcome.CHANGED):
            named = await self._read(host, known, fetched)
            if self.runner.compete:
                rest = max(rest, rest_for(len(fetched.body), named))
        elif not verdict.outcome.refreshed:
            problem = f"It could not be fetched: {verdict.reason}."
            if host_of(known.url) in self.asker.never:
                problem = "It was not fetched: its host is never to be crawled (crawl.never)."
            self.runner.tell(Listed(known.url, now, problem=problem))
        return rest

    def _due(self, url: str, host: str) -> Known | None:
        """The sitemap that this turn goes to, if any."""
        lines, agenda = self.permits.sitemaps(url), self._agendas.get(host)
        if agenda is None:
            if not lines:
                return None
            agenda = self._agendas[host] = Agenda()
        if lines is not agenda.lines:
            agenda.lines = lines
            whole = (canonical_or_none(line, url) for line in lines)
            self._named(agenda, dict.fromkeys(each for each in whole if each is not None))
        return agenda.take(self.runner.clock())

    def _named(
        self, agenda: Agenda, urls: dict[str, float | None], by: Known | None = None, *, all_of_them: bool = True
    ) -> None:
        """Note what is named, within bounds."""
        self._count -= len(agenda)
        agenda.named(urls, by, all_of_them=all_of_them)
        self._count += len(agenda)
        while self._count > MOST and len(self._agendas) > 1:
            self._count -= len(self._agendas.pop(next(iter(self._agendas))))

    async def _read(self, host: str, known: Known, fetched: Fetched) -> Iterator[str]:
        """Make pages, further sitemaps and signals of what was fetched; the addresses that it names."""
        async with self._one_at_a_time:
            said = await asyncio.to_thread(_read_body, fetched.body)
        resolve = Resolver(fetched.location or known.url)
        # It speaks for the host that it lies on, and for the one whose robots.txt led to it.
        hosts = {host, host_of(known.url)}
        origins = tuple(f"{scheme}://{name}/" for name in hosts for scheme in ("http", "https"))

        def own(entries: Iterable[Entry]) -> dict[str, float | None]:
            moments = {resolve(entry.url): entry.lastmod for entry in entries}
            return {url: moment for url, moment in moments.items() if url is not None and url.startswith(origins)}

        children: dict[str, float | None] = {}
        for piece in in_pieces(said.children, _length):
            children |= own(piece)
            await asyncio.sleep(0)
        if said.children and (agenda := self._agendas.get(host)) is not None:
            self._named(agenda, children, known, all_of_them=not said.problem)
        found = signals = 0
        for piece in in_pieces(said.entries, _length):
            pages, now = own(piece), self.runner.clock()
            often = {resolve(entry.url): FREQUENCIES[entry.changefreq] for entry in piece if entry.changefreq}
            new = self.discovery.listed(list(pages), now)
            self.runner.found(new)
            found += len(new)
            for url in pages:
                if url in often:
                    self.runner.lasts(url, often[url])
            signals += sum(self._hear(url, changed, now) for url, changed in pages.items())
            await asyncio.sleep(0)
        entries = len(said.entries) + len(said.children)
        self.runner.tell(Listed(known.url, self.runner.clock(), entries, found, signals, said.problem))
        return (entry.url for entry in chain(said.entries, said.children))

    def _hear(self, url: str, changed: float | None, now: float) -> bool:
        """Raise a signal if the page is said to be newer than its copy, and nobody said so before."""
        return changed is not None and changed <= now + SLACK and self.runner.hint(url, SENDER, changed)


def _length(entry: Entry) -> int:
    return len(entry.url)


def _read_body(body: bytes) -> Sitemap:
    """What a sitemap says, compressed or not."""
    if not body.startswith(b"\x1f\x8b"):
        return read_sitemap(body)
    content, reason = gunzip(body, LARGEST)
    said = read_sitemap(content)
    return replace(said, problem=_SPOILED[reason]) if reason else said

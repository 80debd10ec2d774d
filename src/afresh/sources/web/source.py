"""The door to the web: what the loop asks is answered here, in the loop's words."""

import time
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass

from afresh.estimate.validators import ETAG, LAST_MODIFIED
from afresh.fetch import Fetcher
from afresh.fetch.headers import date, lifetime
from afresh.frontier import Addresses, Allowance, Lanes, Links, Rest, allowance, canonical_or_none, host_of
from afresh.signals.websub import Announced, best, in_header
from afresh.sources.base import PURSE, Finder, Known, Later, Runner
from afresh.sources.web.asking import Asker
from afresh.sources.web.discovery import Discovery
from afresh.sources.web.lists import Hub, Lists
from afresh.sources.web.overhearing import Overhearing
from afresh.sources.web.permits import Permits
from afresh.sources.web.proofs import Proofs
from afresh.sources.web.subscriptions import Subscriptions
from afresh.store.messages import FOLLOWED
from afresh.types import Fetched, Page, Validators


@dataclass(frozen=True, slots=True)
class Hears:
    """What is heard of the web besides its pages, and what was kept of that before a restart."""

    sitemaps: bool = True
    feeds: bool = True
    public_url: str = ""  # where hubs reach us; "": they cannot
    recall: Callable[[str], str | None] = lambda name: None
    names: Callable[[str], list[tuple[str, int]]] = lambda prefix: []


class Web:
    """Pages of the web. A key is a canonical URL, a lane is a host.

    `never`: hosts that are not asked anything. `discovery` finds further pages in links, and in what is heard.
    """

    kind = "web"

    def __init__(
        self,
        fetcher: Fetcher,
        *,
        permits: Permits | None = None,
        addresses: Addresses | None = None,
        never: Container[str] = (),
        discovery: Discovery | None = None,
        hears: Hears | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.fetcher = fetcher
        self.permits = permits
        self.addresses = addresses
        self.discovery = discovery
        self._hears = hears or Hears()
        if discovery is not None:
            discovery.heard = self._heard
        self.finder: Finder = discovery or Overhearing(self._heard)
        self._asker = Asker(
            fetcher=fetcher, lanes=Lanes(), clock=clock, permits=permits, addresses=addresses, never=never
        )
        self._proofs = Proofs(self._asker)
        self.lists: Lists | None = None
        self.subscriptions: Subscriptions | None = None

    def key(self, text: str) -> str | None:
        """The canonical URL."""
        return canonical_or_none(text)

    def lane(self, key: str) -> str:
        """The host, with its port if that is not the usual one."""
        return host_of(key)

    def purse(self, key: str) -> str:
        """One for the whole web."""
        return PURSE

    async def begin(self, runner: Runner) -> None:
        """Keep to what the runner knows of hosts from now on."""
        self._asker.lanes, self._asker.clock = runner.lanes, runner.clock
        if self.permits is not None:
            await self.permits.begin(runner.clock())
        hears = self._hears
        self.lists = Lists(
            asker=self._asker,
            runner=runner,
            permits=self.permits,
            discovery=self.discovery,
            sitemaps=hears.sitemaps,
            feeds=hears.feeds,
            recall=hears.recall,
            names=hears.names,
            pushes=self._offer,
        )
        self.subscriptions = Subscriptions(
            self.lists, runner, self.fetcher, hears.public_url, self._asker.never, hears.recall, hears.names
        )
        await self.lists.begin()
        for name, _ in hears.names(FOLLOWED):
            self.said(name, hears.recall(name))
        await self.subscriptions.begin()

    def take(self) -> Mapping[str, str | None]:
        """What hosts permit and list, to be kept."""
        kept = {} if self.permits is None else self.permits.take()
        if self.lists is not None and self.subscriptions is not None:
            kept = {**kept, **self.lists.take(), **self.subscriptions.take()}
        return kept

    def said(self, name: str, text: str | None) -> None:
        """An operator follows a sitemap from now on, or does so no more."""
        if name.startswith(FOLLOWED) and self.lists is not None:
            url = canonical_or_none(name.removeprefix(FOLLOWED))
            if url is not None:
                (self.lists.leave if text is None else self.lists.follow)(url)

    async def get(self, key: str, known: Known) -> Fetched | Later:
        """The page; or its turn went to something else of its host."""
        if (rest := await self._proofs.turn(key)) is not None:
            return Later(rest)
        if self.lists is not None and (rest := await self.lists.turn(key)) is not None:
            return Later(rest)
        return await self._asker.ask(key, known.validators)

    async def proof(self, url: str) -> Fetched | None:
        """A small file, in one of its host's next turns, redirects not followed; None: not now."""
        return await self._proofs.get(url)

    async def lend(self, key: str) -> bool:
        """Whether another process of ours may ask for a page now, in its host's turn; `lent` must follow if so."""
        return await self._asker.lend(key)

    def lent(self, key: str, took: float) -> None:
        """The turn that was lent is over."""
        self._asker.lent(key, took)

    def dated(self, validators: Validators, now: float) -> float | None:
        """The moment of Last-Modified."""
        return date(validators.last_modified, now)

    def marks(self, before: Validators, after: Validators) -> list[tuple[str, bool]]:
        """ETag and Last-Modified, as far as both answers had them."""
        pairs = ((ETAG, before.etag, after.etag), (LAST_MODIFIED, before.last_modified, after.last_modified))
        return [(name, old != new) for name, old, new in pairs if old and new]

    def lifetime(self, fetched: Fetched) -> float | None:
        """What Cache-Control or Expires say."""
        return lifetime(fetched.meta)

    @property
    def arriving(self) -> int:
        """Bytes of bodies that are under way."""
        return int(getattr(self.fetcher, "arriving", 0))

    def allowed(self, rests: Iterable[tuple[str, Rest]], others: tuple[int, Rest]) -> Allowance:
        """What politeness allows, with the limits of network addresses."""
        if self.addresses is None:
            return allowance(rests, others=others)
        return allowance(rests, self.addresses.of, self.addresses.turns, others)

    async def close(self) -> None:
        """Let go of all connections."""
        if self.subscriptions is not None:
            await self.subscriptions.close()
        if self.lists is not None:
            await self.lists.close()
        await self.fetcher.close()

    def _heard(self, page: Page, fetched: Fetched, links: Links) -> None:
        """A page was read: it may name feeds and hubs."""
        if self.lists is None:
            return
        if links.feeds:
            self.lists.announced(page.host, links.feeds)
        if announced := best(in_header(fetched.meta.get("link", "")), Announced(links.hubs, links.itself)):
            self._offer(Hub(page.host, page.url, announced, fetched.location or page.url))

    def _offer(self, hub: Hub) -> None:
        if self.subscriptions is not None:
            self.subscriptions.offered(hub)

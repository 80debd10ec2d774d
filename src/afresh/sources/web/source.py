"""The door to the web: what the loop asks is answered here, in the loop's words."""

import time
from collections.abc import Callable, Container, Iterable, Mapping

from afresh.fetch import Fetcher
from afresh.fetch.headers import date, lifetime
from afresh.frontier import Addresses, Allowance, Lanes, Rest, allowance, canonical_or_none, host_of
from afresh.sources.base import PURSE, Known, Later, Runner
from afresh.sources.web.asking import Asker
from afresh.sources.web.discovery import Discovery
from afresh.sources.web.permits import Permits
from afresh.sources.web.sitemaps import Sitemaps
from afresh.types import Fetched, Validators


class Web:
    """Pages of the web. A key is a canonical URL, a lane is a host.

    `never`: hosts that are not asked anything. `discovery` finds further pages in links; with it and `permits`, in
    sitemaps as well, if they are wanted.
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
        sitemaps: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.fetcher = fetcher
        self.finder = discovery
        self.permits = permits
        self.addresses = addresses
        self._reads_sitemaps = sitemaps
        self._asker = Asker(
            fetcher=fetcher, lanes=Lanes(), clock=clock, permits=permits, addresses=addresses, never=never
        )
        self._sitemaps: Sitemaps | None = None

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
            if self._reads_sitemaps and self.finder is not None:
                self._sitemaps = Sitemaps(asker=self._asker, permits=self.permits, discovery=self.finder, runner=runner)

    def take(self) -> Mapping[str, str | None]:
        """What hosts permit, to be kept."""
        return {} if self.permits is None else self.permits.take()

    async def get(self, key: str, known: Known) -> Fetched | Later:
        """The page; or its turn went to something else of its host."""
        if self._sitemaps is not None and (rest := await self._sitemaps.turn(key)) is not None:
            return Later(rest)
        return await self._asker.ask(key, known.validators)

    def dated(self, validators: Validators, now: float) -> float | None:
        """The moment of Last-Modified."""
        return date(validators.last_modified, now)

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
        await self.fetcher.close()

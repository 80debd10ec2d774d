"""Whether a page may be asked for now, and asking for it: robots.txt, limits for each address, redirects elsewhere.

An order says that its host is ready. What it does not know: what the host's robots.txt permits, how many other names
share the host's address, and where a redirect leads. If the moment is wrong, the order is given back and comes again.
"""

import asyncio
from collections.abc import Callable, Container
from dataclasses import replace

from afresh.fetch import Fetcher
from afresh.frontier import Addresses, Lanes, host_failed, host_of, is_unreachable, retry_after
from afresh.sources.base import Later
from afresh.sources.web.permits import Permits
from afresh.types import Fetched, Validators

LONGEST_WAIT = 5.0  # for the turn of a host that a redirect leads to; after that the page is tried again later
VISITED = 0.2  # seconds after which an order comes again whose host is visited for something else
LONGEST_JOURNEY = 30.0  # over all hosts that redirects lead to
MOST_HOSTS = 4  # that one page may lead to
NOTHING = Validators()


class Asker:
    """Asks for pages when all that is to be respected allows it.

    Invariants: no page is asked for that its own host's robots.txt does not permit, redirects included; while one host
    is visited because of another's redirect, no order of its own is carried out.
    """

    def __init__(
        self,
        *,
        fetcher: Fetcher,
        lanes: Lanes,
        clock: Callable[[], float],
        permits: Permits | None = None,
        addresses: Addresses | None = None,
        never: Container[str] = (),
    ) -> None:
        self.fetcher = fetcher
        self.lanes = lanes
        self.clock = clock
        self.permits = permits
        self.addresses = addresses
        self.never = never  # hosts that are not asked anything; the fetcher would refuse them, too
        self._lent: dict[str, str] = {}  # addresses whose turn other processes have, by host

    async def ask(self, url: str, known: Validators, *, most: int = 0, follow: bool = True) -> Fetched | Later:
        """The page, or when to try again; `most` bytes of it, if that is more than usual; `follow` where it leads."""
        host = host_of(url)
        if host in self.never:
            return Fetched(url, self.clock(), 0.0, reason="scope")
        lane = self.lanes.lane(host)
        if lane.visited:
            return Later(VISITED)
        if (rests := lane.ready - self.clock()) > 0.0:
            return Later(rests)  # it was visited since the order was given, and rests from that
        address, held = await self._take_turn(url, host)
        if held is not None:
            return held
        began, fetched = self.clock(), None
        try:
            asked = await self._permission(url, host)
            if asked is not None:
                return asked.failure or asked if isinstance(asked, Later) else asked
            may = self._same(host) if follow else _nowhere
            fetched = await self.fetcher.fetch_while(url, known, may, most=most)
        finally:
            self._end_turn(address, began, fetched)
        if follow and 300 <= fetched.status < 400 and fetched.location and not fetched.reason:
            return await self._journey(url, fetched)
        return fetched

    async def instead(self, url: str) -> tuple[Fetched | None, float]:
        """Something else than a page, in the turn that a page of its host has now, and how long the host rests then.

        Redirects are not followed. None: not now.
        """
        got = await self.ask(url, Validators(), follow=False)
        return (None, got.gap) if isinstance(got, Later) else (got, self._answered(host_of(url), got, self.clock()))

    async def elsewhere(self, url: str, where: str) -> Fetched:
        """Something at another host that this one points to, in that host's turn; a redirect if it does not come."""
        if host_of(where) in self.never:
            return Fetched(where, self.clock(), 0.0, reason="scope")
        return await self._journey(url, Fetched(where, self.clock(), 0.0, status=302, location=where))

    async def visit(self, where: str, known: Validators, *, most: int = 0, follow: bool = True) -> Fetched | Later:
        """Ask for something that is no page of ours, such as a feed, in its host's own turn; or when that may be.

        `follow`: also where it leads to.
        """
        host = host_of(where)
        if host in self.never:
            return Fetched(where, self.clock(), 0.0, reason="scope")
        lane = self.lanes.lane(host)
        if not lane.is_free:
            return Later(1.0)
        if lane.ready > self.clock():
            return Later(lane.ready - self.clock())
        lane.visited = True
        try:
            asked = await self._permission(where, host)
            if isinstance(asked, Later):
                if asked.failure is not None:
                    self._answered(host, asked.failure, self.clock())
                return asked
            may = self._same(host) if follow else _nowhere
            got = asked or await self._fetched_elsewhere(where, host, known, most, may)
        finally:
            lane.visited = False
        if got is None:
            return Later(1.0)
        if follow and 300 <= got.status < 400 and got.location and not got.reason:
            return await self._journey(where, got)
        return got

    async def lend(self, url: str) -> bool:
        """Whether another process of ours may ask for a page now, in its host's turn; `lent` must follow if so.

        Only where it is known what robots.txt says: it is not asked for the sake of that.
        """
        host = host_of(url)
        if host in self.never or host in self._lent:
            return False
        if self.permits is not None:
            await self.permits.load(url)
            if self.permits.must_ask(url, self.clock()) or not self.permits.allowed(url, self.clock()):
                return False
        address = self.addresses.of(host) if self.addresses is not None else ""
        if address and self.addresses is not None and not self.addresses.start(address, self.clock()):
            return False
        self._lent[host] = address
        return True

    def lent(self, url: str, took: float) -> None:
        """The turn that was lent is over."""
        address = self._lent.pop(host_of(url), "")
        if address and self.addresses is not None:
            self.addresses.finish(address, now=self.clock(), took=took)

    def _same(self, host: str) -> Callable[[str], bool]:
        """Whether a redirect may be followed without further ado: it stays on the host, and robots.txt permits it."""
        return lambda url: host_of(url) == host and (self.permits is None or self.permits.allowed(url, self.clock()))

    async def _permission(self, url: str, host: str) -> Fetched | Later | None:
        """None if robots.txt permits the page; if it must be fetched first, that takes the host's turn."""
        permits = self.permits
        if permits is None:
            return None
        await permits.load(url)
        if permits.must_ask(url, self.clock()):
            answer = await permits.ask(url, self.fetcher, self.clock)
            now = self.clock()
            delay, closed = permits.crawl_delay(url, now), permits.closed_until(url, now)
            lane = self.lanes.lane(host)
            self.lanes.wants(host, delay)
            if closed is not None:
                return _closed(url, answer, closed - now)
            if host_failed(host, answer) and (lane.failures or is_unreachable(answer.reason)):
                return _closed(url, answer, 0.0)  # the rules still hold, but it is the host that fails
            return Later(max(self._answered(host, answer, now), delay or 0.0))
        now = self.clock()
        if self.lanes.lane(host).delay is None:  # rules that were kept from before a restart
            self.lanes.wants(host, permits.crawl_delay(url, now))
        if permits.allowed(url, now):
            return None
        closed = permits.closed_until(url, now)
        return Later(max(closed - now, 0.0)) if closed is not None else Fetched(url, now, 0.0, reason="robots")

    async def _take_turn(self, url: str, host: str) -> tuple[str, Fetched | Later | None]:
        """The address whose turn was taken ("": none need be), and what to say instead if it cannot be had."""
        address, addresses = await self._address(url, host), self.addresses
        if addresses is None or not address:
            return "", None
        now = self.clock()
        if not addresses.admit(host, address):
            return "", Fetched(url, now, 0.0, reason="names_of_address")
        if not addresses.start(address, now):
            return "", Later(addresses.later(address, now) - now)
        return address, None

    def _end_turn(self, address: str, began: float, fetched: Fetched | None) -> None:
        if address and self.addresses is not None:
            now, ours = self.clock(), fetched.waited if fetched is not None else 0.0
            self.addresses.finish(address, now=now, took=max(now - began - ours, 0.0))

    async def _address(self, url: str, host: str) -> str:
        if self.addresses is None:
            return ""
        address = self.addresses.where(host, self.clock())
        if address is None:
            address = self.addresses.found(host, await self.fetcher.address(url), self.clock())
        return address

    async def _journey(self, url: str, fetched: Fetched) -> Fetched:
        """Follow a page to other hosts, each in its turn and with its permission; as far as we got."""
        try:
            async with asyncio.timeout(LONGEST_JOURNEY):
                for _ in range(MOST_HOSTS):
                    further = await self._visit(url, fetched)
                    if further is None:
                        return fetched
                    fetched = further
                    if fetched.reason or not 300 <= fetched.status < 400 or not fetched.location:
                        return fetched
        except TimeoutError:
            return fetched
        return replace(fetched, reason="too_many_redirects")

    async def _visit(self, url: str, fetched: Fetched) -> Fetched | None:
        """One step of the journey; None if the host's turn cannot be had soon, or never."""
        where, host = fetched.location, host_of(fetched.location)
        if host in self.never:
            return None
        own = host == host_of(url)  # whose turn this is anyway
        if not own and not await self._is_free(host):
            return None
        lane = self.lanes.lane(host)
        lane.visited = True
        try:
            await asyncio.sleep(0 if own else max(lane.ready - self.clock(), 0.0))
            asked = await self._permission(where, host)
            if isinstance(asked, Later) and asked.failure is None and asked.gap <= LONGEST_WAIT:
                # robots.txt was fetched just now.
                await asyncio.sleep(asked.gap)
                asked = await self._permission(where, host)
            if isinstance(asked, Later):
                if asked.failure is not None:
                    self._answered(host, asked.failure, self.clock())
                return None
            got = asked or await self._fetched_elsewhere(where, host)
        finally:
            lane.visited = False
        if got is None:
            return None
        return replace(
            got,
            url=url,
            started=fetched.started,
            took=fetched.took,  # the first host's own: the others were told of theirs
            waited=fetched.waited,
            hops=(*fetched.hops, *got.hops),
            location=got.location or where,
            validators=Validators(),  # of another address: they must not be sent to this one
        )

    async def _is_free(self, host: str) -> bool:
        """Whether a host is nobody else's, and ready, before long."""
        end, lane = self.clock() + LONGEST_WAIT, self.lanes.lane(host)
        while not lane.is_free:  # seldom, and soon over: not worth a queue
            if self.clock() >= end:
                return False
            await asyncio.sleep(0.02)
        return lane.ready <= end

    async def _fetched_elsewhere(
        self,
        where: str,
        host: str,
        known: Validators = NOTHING,
        most: int = 0,
        may: Callable[[str], bool] | None = None,
    ) -> Fetched | None:
        """The page at another host, which rests afterwards like after any other fetch."""
        while True:
            address, held = await self._take_turn(where, host)
            if isinstance(held, Fetched):
                return held
            if held is None:
                began, got = self.clock(), None
                try:
                    got = await self.fetcher.fetch_while(where, known, may or self._same(host), most=most)
                finally:
                    self._end_turn(address, began, got)
                break
            if held.gap > LONGEST_WAIT:
                return None
            await asyncio.sleep(held.gap)  # it may be the first host's own address, which rests now
        self._answered(host, got, self.clock())
        return got

    def _answered(self, host: str, got: Fetched, now: float) -> float:
        """Let a host rest after something that was asked of it besides its orders; for how long."""
        return self.lanes.answered(
            host,
            failed=host_failed(host, got),
            now=now,
            took=got.took,
            retry_after=retry_after(host, got),
            reason=got.reason or f"status_{got.status}",
        )


def _nowhere(url: str) -> bool:
    return False


def _closed(url: str, answer: Fetched, gap: float) -> Later:
    """The page could not be asked for, because its host did not say what it permits, and is not asked again so soon."""
    reason = answer.reason or f"status_{answer.status}"
    if not is_unreachable(reason) and not reason.startswith("refused_"):
        reason = f"robots_{reason}"
    rest = max(gap, answer.retry_after or 0.0, 0.0)
    return Later(rest, Fetched(url, answer.started, answer.took, reason=reason, retry_after=rest))

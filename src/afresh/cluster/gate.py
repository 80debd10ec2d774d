"""No request without a lease: what stands between a worker's sources and its fetcher."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Container
from dataclasses import replace

from afresh.fetch import Fetcher
from afresh.fetch.guard import Refused
from afresh.store.slices import slice_of_host
from afresh.types import Blame, Fetched, Validators

# Linux stops its monotonic clock while the machine sleeps, and leases do not.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
NO_LEASE = "no_lease"  # the reason of a fetch that was not begun, or broken off, because the lease was about to end


def now() -> float:
    """Seconds on a clock that stops for nobody: not for a step of the wall clock, not for a process that was suspended,
    not for a machine that slept.
    """
    return time.clock_gettime(_CLOCK)


class Gate:
    """Open until a moment of our own clock, `now`.

    Invariant: no request begins after that moment, and none is under way a moment later.
    """

    def __init__(self, until: float) -> None:
        self.until = until
        self._under_way: set[asyncio.Task[object]] = set()

    @property
    def is_open(self) -> bool:
        """Whether a request may begin."""
        return now() < self.until

    @property
    def under_way(self) -> int:
        """Requests that are."""
        return len(self._under_way)

    def require(self) -> None:
        """Refused, if it is not.

        Asked before each request goes out: since its fetch began, the process may have been stopped for a while.
        """
        if not self.is_open:
            raise Refused(NO_LEASE, "the lease is about to end")

    def shut(self) -> None:
        """Break off all that is under way; nothing begins any more."""
        self.until = 0.0
        for task in list(self._under_way):
            task.cancel()

    async def through(self, url: str, ask: Callable[[], Awaitable[Fetched]]) -> Fetched:
        """Ask, if the gate is open."""
        if not self.is_open:
            return Fetched(url, time.time(), 0.0, reason=NO_LEASE, blame=Blame.NOBODY)
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request belongs to a task")
        nested = task in self._under_way
        self._under_way.add(task)
        try:
            fetched = await ask()
            return replace(fetched, blame=Blame.NOBODY) if fetched.reason == NO_LEASE else fetched
        finally:
            if not nested:
                self._under_way.discard(task)


class Gated:
    """A fetcher behind a gate."""

    def __init__(self, fetcher: Fetcher, gate: Gate) -> None:
        self._fetcher, self._gate = fetcher, gate

    @property
    def arriving(self) -> int:
        """Bytes that are arriving now."""
        return int(getattr(self._fetcher, "arriving", 0))

    async def fetch(self, url: str, known: Validators, *, beginning: int = 0) -> Fetched:
        """Get the page."""
        return await self._gate.through(url, lambda: self._fetcher.fetch(url, known, beginning=beginning))

    async def fetch_while(self, url: str, known: Validators, may: Callable[[str], bool], *, most: int = 0) -> Fetched:
        """Get the page, with redirects as far as they may go."""
        return await self._gate.through(url, lambda: self._fetcher.fetch_while(url, known, may, most=most))

    async def post(self, url: str, form: bytes) -> Fetched:
        """Post a form."""
        return await self._gate.through(url, lambda: self._fetcher.post(url, form))

    async def address(self, url: str) -> str:
        """The numeric address of the page's host: no host is asked for that."""
        return await self._fetcher.address(url)

    async def close(self) -> None:
        """Let go of all connections."""
        await self._fetcher.close()


class Others:
    """Hosts that this worker asks nothing: those of other workers, and those that nobody may ask."""

    def __init__(self, never: Container[str], slices: frozenset[int]) -> None:
        self._never, self._slices = never, slices

    def __contains__(self, host: object) -> bool:
        return host in self._never or slice_of_host(str(host)) not in self._slices

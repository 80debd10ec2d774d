"""What readers ask for, told to the runner: counted here, and handed to the inbox in batches several times a second."""

import asyncio
import logging
from collections.abc import Callable, Container
from concurrent.futures import ThreadPoolExecutor
from math import exp
from time import time
from typing import Protocol

from afresh.errors import AfreshError
from afresh.frontier.url import canonical_or_none, host_of
from afresh.serve.proxy.protocol import Connection
from afresh.serve.proxy.request import Request
from afresh.store.base import Entry, Store
from afresh.store.messages import of_pages, of_requests, of_signals, packed
from afresh.types import Page, Signal
from afresh.types import Request as Asked

EVERY = 0.4  # seconds between two batches: with the time to write one, everything is durable within a second
MOST_PAGES = 50_000  # counted between two batches
REMEMBERED = 86400.0  # seconds after which a request counts 1/e when pages are weighed against each other
SENDER = "proxy"
_READING = frozenset({"GET", "HEAD"})
_log = logging.getLogger("afresh.serve")


class Evidence:
    """Counts requests by page. Pages that are new to the store enter by being asked for, up to a number of them."""

    def __init__(
        self,
        store: Store,
        *,
        most_pages: int,
        never: Container[str] = (),
        effects: Callable[[str], bool] = lambda url: False,
        clock: Callable[[], float] = time,
    ) -> None:
        """`effects` says of a page whether asking for it may do something: then it is never asked for on our own."""
        self._store = store
        self._effects = effects
        self._most = most_pages
        self._never = never
        self._clock = clock
        self._counts: dict[str, int] = {}
        self._changed: set[str] = set()
        self._refresh: set[str] = set()
        self._entered: dict[str, tuple[float, float]] = {}  # that came in by us: requests of late, and when
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "afresh-evidence")
        self.posted = 0  # requests that are durable
        self.lost = 0  # that nobody would take

    def start(self) -> None:
        """Begin to hand over."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def asked(self, url: str) -> None:
        """A page was asked for."""
        counts = self._counts
        if url in counts:
            counts[url] += 1
        elif len(counts) < MOST_PAGES:
            counts[url] = 1
        else:
            self.lost += 1

    def answered(self, connection: Connection, request: Request, url: str, status: int, size: int, how: str) -> None:
        """An answer is out: what readers share and could read is evidence."""
        if url and status < 400 and how != "pass" and request.method in _READING:
            self.asked(url)

    def malformed(self, connection: Connection, status: int) -> None:
        """What is no request is evidence of nothing."""

    def changed(self, url: str) -> None:
        """A page was seen to have changed, or something was done that changes it."""
        if len(self._changed) < MOST_PAGES:
            self._changed.add(url)

    def refresh(self, url: str) -> None:
        """Somebody wants a page crawled now."""
        if len(self._refresh) < MOST_PAGES:
            self._refresh.add(url)

    async def close(self) -> None:
        """Hand over what is left."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._hand_over()
        self._thread.shutdown()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            await asyncio.shield(asyncio.ensure_future(self._hand_over()))

    async def _hand_over(self) -> None:
        if not (self._counts or self._changed or self._refresh):
            return
        counts, self._counts = self._counts, {}
        changed, self._changed = self._changed, set()
        refresh, self._refresh = self._refresh, set()
        loop = asyncio.get_running_loop()
        try:
            self.posted += await loop.run_in_executor(self._thread, self._post, counts, changed, refresh)
        except AfreshError as error:
            # The inbox may be full for a moment: counts can wait, as long as there are not too many.
            _log.warning("Requests could not be handed over yet: %s", error.message)
            for url, count in counts.items():
                if url in self._counts or len(self._counts) < MOST_PAGES:
                    self._counts[url] = self._counts.get(url, 0) + count
                else:
                    self.lost += count
            self._changed |= changed
            self._refresh |= refresh

    def _post(self, counts: dict[str, int], changed: set[str], refresh: set[str]) -> int:
        """One batch, in a thread; how many requests it held."""
        now = self._clock()
        canonical = {url: page for url in (*counts, *changed, *refresh) if (page := canonical_or_none(url)) is not None}
        requests: dict[str, int] = {}
        for url, count in counts.items():
            page = canonical.get(url)
            if page is not None and host_of(page) not in self._never:
                requests[page] = requests.get(page, 0) + count
        entries: list[Entry] = [*self._newcomers(requests, now)]
        entries += of_requests([Asked(url, now, count) for url, count in requests.items()], now)
        entries += of_signals([Signal(canonical[url], now, SENDER) for url in changed if url in canonical], now)
        entries += packed("refresh", [canonical[url] for url in refresh if url in canonical], now)
        if entries:
            self._store.post(entries)
        return sum(requests.values())

    def _newcomers(self, requests: dict[str, int], now: float) -> list[Entry]:
        """What lets pages in that the store does not have, and the least asked for of those that came in so out."""
        for url in requests:
            if url in self._entered:
                self._entered[url] = (self._asked_for(url, now) + requests[url], now)
        urls = [url for url in requests if url not in self._entered and not self._effects(url)]
        known = self._store.numbers(urls) if urls else []
        new = [url for url, number in zip(urls, known, strict=True) if not number]
        if not new:
            return []
        new.sort(key=requests.__getitem__, reverse=True)
        room = max(self._most - self._store.totals().pages, 0)
        leaving: list[str] = []
        if len(new) > room:
            least = sorted(self._entered, key=lambda url: self._asked_for(url, now))
            for url, other in zip(new[room:], least, strict=False):
                if requests[url] <= self._asked_for(other, now):
                    break
                leaving.append(other)
            new = new[: room + len(leaving)]
        for url in leaving:
            del self._entered[url]
        self._entered |= {url: (float(requests[url]), now) for url in new}
        made = of_pages([Page(url, host_of(url), now) for url in new], now)
        return [*packed("remove", leaving, now), *made]

    def _asked_for(self, url: str, now: float) -> float:
        """How often a page was asked for of late."""
        count, at = self._entered[url]
        return count * exp(-max(now - at, 0.0) / REMEMBERED)


class Listener(Protocol):
    """Who is told of every answer: who asked, for what, and how it was answered."""

    def answered(self, connection: Connection, request: Request, url: str, status: int, size: int, how: str) -> None:
        """An answer is out. `url`: the page at its origin, or "" if none was meant; `how`: hit, stale, checked,
        miss, joined, pass, own, broken or left, as in the access log.
        """

    def malformed(self, connection: Connection, status: int) -> None:
        """Something came that is no request."""


class Reports:
    """Everybody who is told of every answer: the evidence, the access log, whoever else wants to know, or nobody."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = listeners

    def tell(self, listener: Listener) -> None:
        """Let one more know."""
        self._listeners = (*self._listeners, listener)

    def answered(self, connection: Connection, request: Request, url: str, status: int, size: int, how: str) -> None:
        """An answer is out."""
        for listener in self._listeners:
            listener.answered(connection, request, url, status, size, how)

    def malformed(self, connection: Connection, status: int) -> None:
        """Something came that is no request."""
        for listener in self._listeners:
            listener.malformed(connection, status)

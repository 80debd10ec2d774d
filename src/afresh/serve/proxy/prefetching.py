"""Fetching ahead of readers: in turns that the runner lends, best first, and never in a reader's way."""

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from time import time

from afresh.errors import AfreshError
from afresh.estimate.paths import Paths
from afresh.estimate.paths.readers import site_of
from afresh.frontier.glob import Glob
from afresh.serve.proxy.access_log import reader_of
from afresh.serve.proxy.candidates import Candidates
from afresh.serve.proxy.entry import Entry
from afresh.serve.proxy.filling import Filling
from afresh.serve.proxy.protocol import Connection
from afresh.serve.proxy.request import Request
from afresh.serve.proxy.routes import Site
from afresh.serve.proxy.segments import MAX_BYTES, Parts, parts_of
from afresh.serve.proxy.service import Service
from afresh.store.socket_file import ask
from afresh.value.downloads import Piece

FORETOLD = 16  # pages that are expected of a reader
AT_ONCE = 4  # fetches
WANTED = 8  # pieces for which a turn is asked at once
MAX_UNREAD = 200  # pages that wait to be read for their links
MAX_AHEAD = 50_000  # addresses that were fetched ahead and that nobody has asked for yet
READ_AGAIN = 600.0  # seconds after which a page without links is read again
LOOK_AGAIN = 5.0  # seconds after which the store is asked again whether it has a page
PAUSE = 0.02  # seconds, while readers wait
LONGEST = 30.0  # seconds for one fetch: who drips must not hold all of them
VAIN = 600.0  # seconds for which an address is left alone that failed, or may not be kept
LEAST_MISSING = 0.05  # a copy that is fresh more probably than 1 minus that is as good as any
TELL_EVERY = 2.0  # seconds, the runner
RATE_OVER = 20.0  # seconds that the rate told is the mean of
NO_TURN = 0.1  # seconds after the runner had none
NO_RUNNER = 2.0  # seconds after no runner answered
_log = logging.getLogger("afresh.serve")


@dataclass(frozen=True, slots=True)
class Wish:
    """What an operator wants of a site."""

    site: Site
    cost_per_kb: float = 0.0
    but: tuple[str, ...] = ()  # patterns of paths that are never fetched ahead


@dataclass(slots=True)
class Counts:
    """What was fetched ahead, and what became of it."""

    fetched: int = 0
    fetched_bytes: int = 0
    used: int = 0  # of these, asked for by a reader since
    used_bytes: int = 0
    called_off: int = 0  # since a reader waited
    called_off_bytes: int = 0  # that no later fetch has taken up
    vain_bytes: int = 0  # of what failed, and of what may not be kept
    from_store: int = 0  # that only had to be read

    taken_up: int = 0  # of these, completed later

    @property
    def wasted_bytes(self) -> int:
        """What nobody has asked for, so far."""
        return self.fetched_bytes - self.used_bytes + self.called_off_bytes + self.vain_bytes


class Turns:
    """Asks the runner on a store for turns."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, "afresh-turns")

    async def turn(self, wanted: Sequence[tuple[str, float]]) -> Mapping[str, object] | None:
        """What may be fetched, and when; None if no runner answers."""
        return await self._ask("turn", {"wanted": [list(each) for each in wanted]})

    async def over(self, key: str, took: float, *, failed: bool | None) -> None:
        """It was fetched, or was not."""
        await self._ask("turn over", {"key": key, "took": took, "failed": failed})

    async def tell(self, who: str, counts: Mapping[str, float]) -> None:
        """Say what was fetched ahead so far, for `afresh status`."""
        await self._ask("fetched ahead", {"who": who, "counts": dict(counts)})

    async def _ask(self, question: str, arguments: dict[str, object]) -> Mapping[str, object] | None:
        def answered() -> Mapping[str, object] | None:
            with suppress(AfreshError):
                found = ask(self._store, question, arguments)
                return found if isinstance(found, dict) else None
            return None

        return await asyncio.get_running_loop().run_in_executor(self._thread, answered)

    def close(self) -> None:
        """Ask no more."""
        self._thread.shutdown(wait=False)


class Prefetching:
    """Listens to answers, expects what comes next, and fetches that while nobody waits.

    Only sites with a `Wish`, only in own policy. While readers wait for an origin, nothing is begun there, and what was
    begun is called off, unless a reader has joined it.
    """

    def __init__(
        self,
        service: Service,
        paths: Paths,
        wishes: Sequence[Wish],
        turns: Turns,
        *,
        trusted: Sequence[IPv4Network | IPv6Network] = (),
        clock: Callable[[], float] = time,
    ) -> None:
        self.counts = Counts()
        self.paths = paths
        self._service, self._turns, self._clock = service, turns, clock
        self._trusted = trusted
        self._sites: dict[str, list[tuple[Wish, Candidates]]] = {}
        for wish in wishes:
            made = Candidates(wish.site.base, wish.cost_per_kb, _may(wish))
            self._sites.setdefault(site_of(wish.site.base), []).append((wish, made))
        self._unread: OrderedDict[str, tuple[Candidates, dict[str, None]]] = OrderedDict()
        self._read: OrderedDict[str, float] = OrderedDict()  # when pages were read for what they lead to
        self._ahead: OrderedDict[str, int] = OrderedDict()  # bytes, of what nobody has asked for yet
        self._looked: OrderedDict[str, float] = OrderedDict()
        self._vain: OrderedDict[str, float] = (
            OrderedDict()
        )  # when addresses were fetched of which nothing could be kept
        self._running: dict[asyncio.Task[None], Filling | None] = {}
        self._rate = 0.0  # bytes a second, of late
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._reader = ThreadPoolExecutor(1, "afresh-parts")

    def start(self) -> None:
        """Begin."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(each) for each in (self._run(), self._read_pages(), self._tell())]

    async def close(self) -> None:
        """Fetch no more."""
        tasks = [*self._tasks, *self._running]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._reader.shutdown(wait=False, cancel_futures=True)
        self._turns.close()

    # What readers do.

    def answered(self, connection: Connection, request: Request, url: str, status: int, size: int, how: str) -> None:
        """An answer is out: whoever got it goes on from there."""
        if not url or status >= 400 or how in ("pass", "own") or request.method != "GET":
            return
        found = self._wish(url)
        if found is None:
            return
        if (fetched := self._ahead.pop(url, None)) is not None:
            self.counts.used += 1
            self.counts.used_bytes += fetched
        entry, candidates = self._service.cache.get(url, request.fields), found[1]
        if how == "miss" and status == 200:
            candidates.measured(url, size, page=_is_html(entry))
        if not _is_html(entry):
            return
        now = self._clock()
        reader = f"{reader_of(connection.peer, request, self._trusted)} {request.fields.get('user-agent', '')[:200]}"
        candidates.come(reader, self.paths.request(reader, url, now, most=FORETOLD), now)
        unread = not self.paths.knows_links(url) and now - self._read.get(url, 0.0) > READ_AGAIN
        if unread and (url in self._unread or len(self._unread) < MAX_UNREAD):
            readers = self._unread.setdefault(url, (candidates, {}))[1]
            if len(readers) < MAX_UNREAD:
                readers[reader] = None
        self._wake.set()

    def malformed(self, connection: Connection, status: int) -> None:
        """Nobody goes on from there."""

    def _wish(self, url: str) -> tuple[Wish, Candidates] | None:
        for wish, candidates in self._sites.get(site_of(url), ()):
            base = wish.site.base
            if url.startswith(base) and url[len(base) : len(base) + 1] in ("", "/", "?"):
                return wish, candidates
        return None

    # What pages lead to and need.

    async def _read_pages(self) -> None:
        while True:
            while self._unread:
                url, (candidates, readers) = self._unread.popitem(last=False)
                entry = self._service.cache.get(url, {})
                if entry is not None and _is_html(entry):
                    await self._read_page(entry, candidates)
                    for reader in readers:  # who are there still: now it is known where they can go
                        if expected := self.paths.expect(reader, url, most=FORETOLD):
                            candidates.come(reader, expected, self._clock())
                    self._wake.set()
            await asyncio.sleep(PAUSE)

    async def _read_page(self, entry: Entry, candidates: Candidates) -> None:
        plain = await self._service.asking.plain(entry) if entry.coding else entry
        kind = entry.fields.get("content-type", "")
        loop = asyncio.get_running_loop()
        try:
            parts = await loop.run_in_executor(self._reader, parts_of, plain.body[:MAX_BYTES], entry.url, kind)
        except Exception:
            _log.exception("The parts of %s could not be read.", entry.url)
            parts = Parts()
        _bounded(self._read, entry.url, self._clock())
        candidates.measured(entry.url, len(entry.body), page=True)
        self.paths.links(entry.url, parts.links, self._clock())
        candidates.here(entry.url, parts)
        self._wake.set()

    async def _tell(self) -> None:
        """Let the runner know how it goes."""
        before = 0
        while True:
            await asyncio.sleep(TELL_EVERY)
            ahead, answers = self.counts, self._service.counts
            fetched = ahead.fetched_bytes + ahead.called_off_bytes + ahead.vain_bytes
            self._rate += (max(fetched - before, 0) / TELL_EVERY - self._rate) * TELL_EVERY / RATE_OVER
            before = fetched
            counts = {
                "fetched": ahead.fetched,
                "fetched_bytes": ahead.fetched_bytes,
                "used": ahead.used,
                "used_bytes": ahead.used_bytes,
                "wasted_bytes": ahead.wasted_bytes,
                "bytes_per_second": self._rate,
                "answers": answers.answered,
                "at_once": answers.hits + answers.stale,
            }
            await self._turns.tell(f"{os.getpid()}", counts)

    # Fetching.

    async def _run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._wake.wait()
            self._wake.clear()
            pause: float | None = 0.0
            while pause is not None:
                await asyncio.sleep(pause)
                pause = await self._step()

    async def _step(self) -> float | None:
        """Begin one fetch, if there is one to begin; how long to wait before the next, or None: until something new."""
        waiting = {site_of(filling.url) for filling in self._service.asking.running if filling.wanted}
        self._give_way(waiting)
        if len(self._running) >= AT_ONCE:
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED, timeout=PAUSE)
            return 0.0
        wanted = await self._best(waiting)
        if not wanted:
            return PAUSE if waiting or self._running else None
        said = await self._turns.turn([(url, piece.gain) for url, (piece, _, _) in wanted.items()])
        key = None if said is None else said.get("key")
        for url, (piece, _, candidates) in wanted.items():
            if url != key:
                candidates.not_now(url, piece)
        if key not in wanted or said is None:
            return NO_RUNNER if said is None else NO_TURN
        piece, wish, candidates = wanted[str(key)]
        after = said.get("after")
        fetch = self._fetch(str(key), float(after) if isinstance(after, int | float) else 0.0, piece, wish, candidates)
        task = asyncio.get_running_loop().create_task(fetch)
        self._running[task] = None
        task.add_done_callback(self._fetched)
        return 0.0

    def _fetched(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        self._wake.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("A fetch ahead of readers failed: %r", error)

    def _give_way(self, waiting: set[str]) -> None:
        """Readers wait for these origins: what nobody has joined is called off there."""
        for filling in self._running.values():
            if filling is not None and site_of(filling.url) in waiting and not filling.wanted and not filling.over:
                assert filling.task is not None  # noqa: S101
                filling.task.cancel()

    async def _best(self, waiting: set[str]) -> dict[str, tuple[Piece, Wish, Candidates]]:
        """Pieces to ask a turn for, those worth most first."""
        load = float(self._service.asking.for_readers)
        found: dict[str, tuple[Piece, Wish, Candidates]] = {}
        now = self._clock()
        for origin, sites in self._sites.items():
            for wish, candidates in sites if origin not in waiting else ():
                candidates.expire(now)
                number = 0
                while number < WANTED and (best := candidates.best(load)) is not None:
                    url, piece = best
                    in_vain = now - self._vain.get(url, -VAIN) < VAIN
                    if url in found or in_vain or await self._is_here(url, wish.site):
                        continue
                    if self._sized(url, piece, candidates):
                        candidates.not_now(url, piece)  # the order may be another now
                        continue
                    missing = self._missing(url)
                    gain = piece.gain * missing
                    if missing >= LEAST_MISSING and gain * 1000.0 >= candidates.cost(load) * (piece.end - piece.start):
                        found[url] = replace(piece, gain=gain), wish, candidates
                        number += 1
        ordered = sorted(found.items(), key=lambda each: -each[1][0].gain)
        for url, (piece, _, candidates) in ordered[WANTED:]:
            candidates.not_now(url, piece)
        return dict(ordered[:WANTED])

    async def _is_here(self, url: str, site: Site) -> bool:
        """Whether a reader who asks for it would not wait, by what is in memory or in the store."""
        entry, now = self._service.cache.get(url, {}), self._clock()
        if url in self._service.asking.under_way or (entry is not None and now < entry.good_until):
            return True
        if now - self._looked.get(url, 0.0) < LOOK_AGAIN:
            return False
        _bounded(self._looked, url, now)
        entry = await self._service.policy.from_store(url, site, {})
        here = entry is not None and now < entry.good_until
        self.counts.from_store += here
        return here

    def _missing(self, url: str) -> float:
        """How probably a reader would get something else than the copy that is here: only that is gained."""
        entry = self._service.cache.get(url, {})
        if entry is None or entry.outlook is None:
            return 1.0
        return 1.0 - entry.outlook.freshness(max(self._clock() - entry.confirmed, 0.0), entry.signals)

    def _sized(self, url: str, piece: Piece, candidates: Candidates) -> bool:
        """Whether an older answer tells a size that was not known."""
        entry = self._service.cache.get(url, {})
        if entry is None or entry.status != 200 or candidates.knows_size(url):
            return False
        candidates.measured(url, len(entry.body), page=_is_html(entry), of=piece.name)
        return True

    async def _fetch(self, url: str, after: float, piece: Piece, wish: Wish, candidates: Candidates) -> None:
        began, failed = self._clock(), None
        try:
            await asyncio.sleep(after)
            began = self._clock()
            filling = self._service.ahead(wish.site, url)
            if filling is None or filling.task is None:
                return
            task = asyncio.current_task()
            if task is not None:
                self._running[task] = filling
            await asyncio.wait({filling.task}, timeout=LONGEST)
            if not filling.task.done():
                filling.task.cancel()
                await asyncio.wait({filling.task})
                _bounded(self._vain, url, self._clock())
            if filling.task.cancelled():
                self._called_off(filling, piece, candidates)
                return
            failed = filling.failure is not None or filling.status >= 500
            if failed or filling.broken or not (filling.stored or filling.entry is not None):
                _bounded(self._vain, url, self._clock())
                self.counts.vain_bytes += filling.size
                return
            self.counts.fetched += 1
            self.counts.fetched_bytes += filling.size
            if filling.begun:
                self.counts.taken_up += 1
                self.counts.called_off_bytes -= filling.begun
            _bounded(self._ahead, url, filling.size)
            entry = self._service.cache.get(url, {})
            if url == piece.name and entry is not None and _is_html(entry):
                await self._read_page(entry, candidates)
            else:
                candidates.measured(url, filling.size, page=False)
        finally:
            await self._turns.over(url, max(self._clock() - began, 0.0), failed=failed)

    def _called_off(self, filling: Filling, piece: Piece, candidates: Candidates) -> None:
        """A reader came first. What has come may be here still: then only the rest is to be fetched."""
        self.counts.called_off += 1
        self.counts.called_off_bytes += filling.size - filling.begun
        if filling.length is not None and filling.status == 200:
            here = filling.size if filling.url in self._service.asking.unfinished else 0
            candidates.left(filling.url, filling.length - here, of=piece.name)
        candidates.not_now(filling.url, piece)


def _may(wish: Wish) -> Callable[[str], bool]:
    """Whether an address of a site may be fetched ahead."""
    patterns = [Glob(pattern) for pattern in wish.but]
    base = wish.site.base
    start = len(site_of(base))

    def may(url: str) -> bool:
        inside = url.startswith(base) and url[len(base) : len(base) + 1] in ("", "/", "?")
        return inside and not any(pattern.matches(url[start:].lower()) for pattern in patterns)

    return may


def _is_html(entry: Entry | None) -> bool:
    return entry is not None and entry.status == 200 and "html" in entry.fields.get("content-type", "").lower()


def _bounded(kept: "OrderedDict[str, int] | OrderedDict[str, float]", url: str, value: float) -> None:
    kept[url] = value  # type: ignore[assignment]
    kept.move_to_end(url)
    while len(kept) > MAX_AHEAD:
        kept.popitem(last=False)

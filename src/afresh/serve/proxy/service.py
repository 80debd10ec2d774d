"""What is answered: from memory, from the store, or by asking the origin once for all who wait."""

import asyncio
import logging
from collections.abc import Container
from dataclasses import dataclass
from time import time
from typing import Protocol

from afresh.fetch.target import Target
from afresh.serve.proxy import forwarded, respond, rules
from afresh.serve.proxy.asking import Asking
from afresh.serve.proxy.cache import Cache
from afresh.serve.proxy.directives import NOTHING, Directives, parsed
from afresh.serve.proxy.entry import Entry
from afresh.serve.proxy.filling import Broken, Filling
from afresh.serve.proxy.policy import Policy
from afresh.serve.proxy.protocol import Connection
from afresh.serve.proxy.recent import Recent
from afresh.serve.proxy.request import SAFE, Refusal, Request
from afresh.serve.proxy.routes import Routes, Site, loops
from afresh.serve.proxy.vary import codings, selected
from afresh.serve.proxy.ways import purge, tunnel

AT_ONCE = 1 << 16  # bytes of a body that are written in one go
WHOLE_WITHIN = 0.005  # seconds that a small answer is waited for, before its head says whether it is kept
GONE = (ConnectionResetError, asyncio.CancelledError)  # what comes of a reader who hung up
_READING = frozenset({"GET", "HEAD"})
_log = logging.getLogger("afresh.serve")


class Notes(Protocol):
    """Who is told of every answer: the access log, and the evidence for the runner."""

    def answered(self, connection: Connection, request: Request, url: str, status: int, size: int, how: str) -> None:
        """An answer is out."""

    def malformed(self, connection: Connection, status: int) -> None:
        """Something came that is no request."""


class Nobody:
    """Nobody is told."""

    def answered(self, connection: Connection, request: Request, url: str, status: int, size: int, how: str) -> None:
        """An answer is out."""

    def malformed(self, connection: Connection, status: int) -> None:
        """Something came that is no request."""


@dataclass(slots=True)
class Allowed:
    """What readers may do besides reading."""

    connect: bool = False
    connect_ports: Container[int] = frozenset({443})
    purge: tuple[bytes, ...] = ()  # digests of the tokens; none: nobody may
    body: int = 64 << 20  # bytes of a request's body


@dataclass(slots=True)
class Counts:
    """What was answered, and how."""

    hits: int = 0
    stale: int = 0
    checked: int = 0  # copies that the origin said still hold
    misses: int = 0
    passed: int = 0
    joined: int = 0
    errors: int = 0

    @property
    def answered(self) -> int:
        """All answers."""
        return self.hits + self.stale + self.checked + self.misses + self.passed + self.joined + self.errors


class Service:
    """Decides about each request; nothing here knows of sockets."""

    def __init__(
        self,
        routes: Routes,
        cache: Cache,
        asking: Asking,
        policy: Policy,
        notes: Notes,
        *,
        allowed: Allowed | None = None,
    ) -> None:
        self.routes = routes
        self.cache = cache
        self.asking = asking
        self.policy = policy
        self.notes = notes
        self.allowed = allowed or Allowed()
        self.counts = Counts()
        self.recent = Recent()

    # From memory, within the call that brought the request.

    def at_once(self, connection: Connection, request: Request) -> bool:
        """Answer from memory, if that is all it takes."""
        if request.method not in _READING or request.has_body:
            return False
        found = self.routes.find(request)
        if isinstance(found, Refusal):
            return False
        return self._from_memory(connection, request, *found)

    def again(self, connection: Connection, data: bytes) -> Request | None:
        """Answer from memory what came in the same bytes before; the request, or None if that is not all it takes."""
        known = self.recent.get(data)
        return known[0] if known is not None and self._from_memory(connection, *known) else None

    def note(self, data: bytes, request: Request) -> None:
        """These bytes, all of them, were this request, which was answered from memory."""
        found = self.routes.find(request)
        if not isinstance(found, Refusal):
            self.recent.note(data, request, *found)

    def _from_memory(self, connection: Connection, request: Request, site: Site, url: str) -> bool:
        """Answer with a copy that is in memory and good; False if there is none, or it needs more than that."""
        fields = request.fields
        entry = self.cache.get(url, fields)
        now = time()
        if entry is None or now >= entry.good_until:
            return False
        if site.strict:
            wanted = parsed(fields["cache-control"]) if "cache-control" in fields else NOTHING
            if wanted and rules.use(entry.terms, entry.age(now), wanted) is not rules.Use.FRESH:
                return False
        elif "authorization" in fields or "cookie" in fields:
            return False
        if len(entry.body) > AT_ONCE or (
            entry.coding and not _accepts(entry.coding, fields.get("accept-encoding", ""))
        ):
            return False
        entry.hits += 1.0
        if not site.strict and now >= entry.look_again:
            self.policy.look(entry, now)
        if not entry.said_from <= now < entry.said_until:
            self._say(entry, site, now)
        head, body, status = respond.from_entry(
            entry, fields, request.method, entry.said, respond.closing(request.keep_alive, request.version)
        )
        connection.transport.write(head + body)
        self.counts.hits += 1
        if not self.cache.by_value:
            self.cache.touched(url)
        self.notes.answered(connection, request, url, status, len(body), "hit")
        return True

    def _say(self, entry: Entry, site: Site, now: float) -> None:
        """Put together what a hit says of its copy, and until when it says so: until one of its numbers changes."""
        age, left = entry.age(now), min(entry.good_until - now, 2147483648.0)
        entry.said = b"Age: %d\r\nCache-Status: afresh; hit; ttl=%d\r\n" % (age, left)
        entry.said_from, entry.said_until = now, now + min(1.0 - age % 1.0, max(left % 1.0, 1e-3))
        if not site.strict:
            entry.said += self.policy.said(entry, now)

    # What needs time.

    async def answer(self, connection: Connection, request: Request) -> None:
        """Answer one request, however long it takes."""
        if request.method == "CONNECT":
            refusal = await tunnel(connection, request, self.routes, self.asking.origins, self.allowed)
            if refusal is not None:
                self._refuse(connection, request, refusal)
            return
        if loops(request.fields.get("via", "")):
            self._refuse(connection, request, Refusal(502, "This request goes in a circle."))
            return
        found = self.routes.find(request)
        if isinstance(found, Refusal):
            self._refuse(connection, request, found)
            return
        site, url = found
        if request.method == "PURGE":
            refusal = purge(request, url, self.cache, self.policy, self.allowed)
            if refusal.status == 200:
                self.asking.unfinished.drop(url)
            self._refuse(connection, request, refusal)
        elif request.method not in _READING or request.has_body or self._is_private(site, request):
            await self._pass(connection, request, site, url)
        else:
            await self._read(connection, request, site, url)

    def _is_private(self, site: Site, request: Request) -> bool:
        """Own policy: what a reader is known by goes to the origin and comes back, and nothing of it is kept."""
        return not site.strict and ("authorization" in request.fields or "cookie" in request.fields)

    async def _read(self, connection: Connection, request: Request, site: Site, url: str) -> None:
        wanted = parsed(request.fields.get("cache-control", "")) if site.strict else NOTHING
        entry = self.cache.get(url, request.fields)
        if entry is None and not site.strict and "range" not in request.fields:
            entry = await self.policy.from_store(url, site, request.fields)
        elif entry is not None and not site.strict and time() >= entry.good_until and url not in self.asking.under_way:
            await self.policy.looked(entry)  # the runner may have refreshed it ahead
            entry = self.cache.get(url, request.fields)
        now = time()
        if entry is not None and await self._from(connection, request, site, entry, wanted, now):
            return
        if "only-if-cached" in parsed(request.fields.get("cache-control", "")):
            self._refuse(
                connection, request, Refusal(504, "There is no copy here that could be handed out.", "detail=no_copy")
            )
            return
        filling, how = self._filling(connection, request, site, url, entry)
        try:
            await filling.head()
            if not filling.shared and how == "joined":
                # It turned out not to be for all: everybody asks alone from now on.
                filling, how = self._begin(connection, request, site, url, entry, joinable=False), "miss"
                await filling.head()
            if self._wants_another(filling, request):
                filling = self._begin(connection, request, site, url, None, joinable=False)
                await filling.head()
            await self._hand_out(connection, request, site, filling, how)
        finally:
            if not filling.joinable and filling.task is not None and not filling.keep:
                filling.task.cancel()

    async def _from(
        self, connection: Connection, request: Request, site: Site, entry: Entry, wanted: Directives, now: float
    ) -> bool:
        """Answer with what is kept, if that may be."""
        if site.strict:
            use = rules.use(entry.terms, entry.age(now), wanted)
        elif now < entry.good_until:
            use = rules.Use.FRESH
        else:
            use = rules.Use.STALE if site.serve_stale else rules.Use.ASK
        if use is rules.Use.ASK:
            return False
        if use is rules.Use.STALE:
            if not entry.refreshing:
                entry.refreshing = True
                filling = self._begin(None, request, site, entry.url, entry, joinable=True)
                self.asking.under_way[entry.url] = filling
            self.counts.stale += 1
        else:
            self.counts.hits += 1
        entry.hits += 1.0
        self.cache.touched(entry.url)
        if not site.strict and now >= entry.look_again:
            self.policy.look(entry, now)
        await self._write_entry(connection, request, site, entry, now, b"hit", stale=use is rules.Use.STALE)
        return True

    def _filling(
        self, connection: Connection, request: Request, site: Site, url: str, entry: Entry | None
    ) -> tuple[Filling, str]:
        """The fetch that this request waits for: one that is under way, or a new one."""
        conditional = any(name.decode() in request.fields for name in forwarded.CONDITIONS)
        joinable = request.method == "GET" and not (conditional and (site.strict or "range" in request.fields))
        joinable = joinable and not self.cache.alone(url, time())
        running = self.asking.under_way.get(url)
        if running is not None and joinable and running.joinable and _fits(running, request):
            running.wanted = True
            return running, "joined"
        filling = self._begin(connection, request, site, url, entry, joinable=joinable)
        if joinable:
            self.asking.under_way[url] = filling
        return filling, "miss"

    def _begin(
        self,
        connection: Connection | None,
        request: Request,
        site: Site,
        url: str,
        entry: Entry | None,
        *,
        joinable: bool,
        wanted: bool = True,
    ) -> Filling:
        """A new fetch, for a reader (`connection`) or behind all readers' backs."""
        filling = Filling(url, joinable=joinable, wanted=wanted)
        names = entry.names if entry is not None else self.cache.names_of(url)
        filling.task = asyncio.get_running_loop().create_task(
            self.asking.fetch(filling, request, site, entry, owner=connection, names=names)
        )
        return filling

    def ahead(self, site: Site, url: str) -> Filling | None:
        """Fetch a page for which nobody has asked yet; None if it is here and good, or is being fetched.

        Readers who ask meanwhile join it. Until one does (`wanted`), whoever began it may cancel its `task`. It is told
        nobody's fields, so what depends on them is kept for those who send none.
        """
        entry = self.cache.get(url, {})
        now = time()
        if url in self.asking.under_way or (entry is not None and now < entry.good_until):
            return None
        if self.cache.alone(url, now):
            return None
        request = Request("GET", Target(url).path.encode("ascii"), "1.1", [])
        filling = self._begin(None, request, site, url, entry, joinable=True, wanted=False)
        self.asking.under_way[url] = filling
        return filling

    @staticmethod
    def _wants_another(filling: Filling, request: Request) -> bool:
        """Whether what came was selected by other fields than this request's."""
        if filling.failure is not None:
            return False
        names, selector = filling.names, filling.selector
        if filling.entry is not None:
            names, selector = filling.entry.names, filling.entry.selector
        return bool(names) and selected(names, request.fields) != selector

    async def _hand_out(self, connection: Connection, request: Request, site: Site, filling: Filling, how: str) -> None:
        """Answer with what came of a fetch."""
        if filling.failure is not None:
            self._refuse(connection, request, filling.failure)
        elif filling.entry is not None:
            note = filling.note.encode() + (b"; collapsed" if how == "joined" else b"")
            now = time()
            stale = now >= filling.entry.good_until and "detail=stale" in filling.note
            if stale:
                self.counts.stale += 1
            else:
                self.counts.checked += 1
            await self._write_entry(connection, request, site, filling.entry, now, note, stale=stale, how="checked")
        else:
            if how == "joined":
                self.counts.joined += 1
            else:
                self.counts.misses += 1
            await self._stream(connection, request, filling, how)

    async def _write_entry(
        self,
        connection: Connection,
        request: Request,
        site: Site,
        entry: Entry,
        now: float,
        note: bytes,
        *,
        stale: bool,
        how: str = "hit",
    ) -> None:
        left = max(min(entry.good_until - now, 2147483648.0), -2147483648.0)
        said = b"Age: %d\r\nCache-Status: afresh; %b; ttl=%d\r\n" % (entry.age(now), note, left)
        said += respond.STALE_WARNING if stale else b""
        if not site.strict:
            said += self.policy.said(entry, now)
        served = entry
        if entry.coding and not _accepts(entry.coding, request.fields.get("accept-encoding", "")):
            served = await self.asking.plain(entry)
        head, body, status = respond.from_entry(
            served, request.fields, request.method, said, respond.closing(request.keep_alive, request.version)
        )
        connection.write(head)
        start = 0
        try:
            for start in range(0, len(body), AT_ONCE):
                connection.write(memoryview(body)[start : start + AT_ONCE])
                await connection.drained()
        except GONE:
            self.notes.answered(connection, request, "", status, start, "left")
            raise
        self.notes.answered(connection, request, entry.url, status, len(body), "stale" if stale else how)

    async def _pass(self, connection: Connection, request: Request, site: Site, url: str) -> None:
        """Hand a request on as it is, and its answer back; nothing is kept."""
        if request.length is not None and request.length > self.allowed.body:
            self._refuse(connection, request, Refusal(413, "The body of the request is too large."))
            return
        filling = Filling(url, joinable=False)
        body = connection.body(request, self.allowed.body) if request.has_body else None
        filling.task = asyncio.get_running_loop().create_task(
            self.asking.pass_on(filling, request, site, body, peer=connection.peer, owner=connection)
        )
        try:
            await filling.head()
            if filling.failure is not None:
                self._refuse(connection, request, filling.failure)
                return
            self.counts.passed += 1
            if request.method not in SAFE and filling.status < 400:
                self._invalidate(url, filling)
            await self._stream(connection, request, filling, "pass")
        finally:
            filling.task.cancel()

    def _invalidate(self, url: str, filling: Filling) -> None:
        """Something was changed: what is kept of it, and of where the answer points on the same origin, is no good."""
        where = Target(url)
        self.policy.changed(url)
        self.cache.drop(url)
        self.asking.unfinished.drop(url)
        for name in ("location", "content-location"):
            named = filling.fields.get(name)
            if named is not None:
                other = forwarded.absolute(named, where)
                if other is not None:
                    self.cache.drop(other)

    async def _stream(self, connection: Connection, request: Request, filling: Filling, how: str) -> None:
        """Send an answer on while it arrives."""
        reader = filling.join()
        try:
            await self._send(connection, request, filling, reader, how)
        finally:
            filling.leave(reader)

    async def _send(self, connection: Connection, request: Request, filling: Filling, reader: object, how: str) -> None:
        bodiless = request.method == "HEAD" or filling.status in (204, 304)
        chunked = False
        lines = filling.lines if how != "joined" else _without_cookies(filling.lines)
        framing = b""
        if filling.status != 204 and (filling.length is not None or bodiless):
            if filling.length is not None:
                framing = b"Content-Length: %d\r\n" % filling.length
        elif filling.status != 204:
            chunked = request.version == "1.1"
            if chunked:
                framing = b"Transfer-Encoding: chunked\r\n"
            else:
                request.keep_alive = False
        if filling.keep and filling.length is not None and filling.length <= AT_ONCE:
            await filling.rather_whole(WHOLE_WITHIN)
        said = filling.note + ("; stored" if filling.stored else "") + ("; collapsed" if how == "joined" else "")
        note = b"Cache-Status: afresh; %b\r\n" % said.encode()
        connection.write(
            respond.streamed(
                filling.status, lines, framing + note + respond.closing(request.keep_alive, request.version)
            )
        )
        size = 0
        try:
            async for piece in filling.pieces(reader):
                size += len(piece)
                if bodiless:
                    continue
                connection.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                await connection.drained()
        except Broken:
            connection.transport.abort()  # it must not look as if it were whole
            self.notes.answered(connection, request, "", filling.status, size, "broken")
            return
        except GONE:
            self.notes.answered(connection, request, "", filling.status, size, "left")
            raise
        if chunked and not bodiless:
            connection.write(b"0\r\n\r\n")
        self.notes.answered(connection, request, filling.url, filling.status, size, how)

    def _refuse(self, connection: Connection, request: Request, refusal: Refusal) -> None:
        """Answer in our own name."""
        if refusal.status >= 500:
            self.counts.errors += 1
        more = b"Cache-Status: afresh; %b\r\n" % refusal.said.encode() if refusal.status >= 400 else b""
        if request.version == "1.0" and request.keep_alive:
            more += b"Connection: keep-alive\r\n"
        keep_alive = request.keep_alive and request.whole
        connection.write(
            respond.own(
                refusal.status,
                refusal.sentence,
                time(),
                keep_alive=keep_alive,
                head_only=request.method == "HEAD",
                more=more,
            )
        )
        self.notes.answered(connection, request, "", refusal.status, len(refusal.sentence) + 1, "own")


def _accepts(coding: str, accepted: str) -> bool:
    """Whether a body in this coding can be handed out."""
    if coding in ("identity", ""):
        return True
    return "," not in coding and coding.removeprefix("x-") in codings(accepted).split(",")


def _fits(running: Filling, request: Request) -> bool:
    """Whether a fetch that is under way may bring what a request asks for."""
    if not running.known:
        return True
    return running.shared and selected(running.names, request.fields) == running.selector


def _without_cookies(lines: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [line for line in lines if line[0].lower() not in (b"set-cookie", b"set-cookie2")]

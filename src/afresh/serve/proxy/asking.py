"""One fetch from an origin: what is sent, what came of it, and what of that is kept."""

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from time import time

from afresh.fetch.inflate import Body, Spoiled
from afresh.fetch.reasons import reason
from afresh.fetch.target import BadTarget, Target
from afresh.serve.proxy import entry as entries
from afresh.serve.proxy import forwarded, rules, vary
from afresh.serve.proxy.cache import Cache
from afresh.serve.proxy.entry import Entry
from afresh.serve.proxy.fields import Lines, Named, end_to_end, joined, packed
from afresh.serve.proxy.filling import Broken, Filling
from afresh.serve.proxy.origins import Crowded, Exchange, Origins
from afresh.serve.proxy.policy import Policy
from afresh.serve.proxy.protocol import Connection
from afresh.serve.proxy.request import Refusal, Request
from afresh.serve.proxy.routes import Site
from afresh.serve.proxy.unfinished import Beginning, Unfinished, beginning_of
from afresh.serve.proxy.vary import selected

FIRST_BYTE = 60.0  # seconds until the head of an answer is there
BETWEEN_BYTES = 60.0
MOST_INTERIM_BYTES = 8192
_CANNOT = {"timeout": 504, "dns_timeout": 504, "connect_timeout": 504, "no_connection": 504, "reset": 504, "dns": 504}
_FAILED = {
    "timeout": f"The origin did not answer within {FIRST_BYTE:.0f} seconds.",
    "connect_timeout": "The origin could not be reached in time.",
    "no_connection": "The origin could not be reached.",
    "reset": "The origin closed the connection without an answer.",
    "dns": "The name of the origin is not known.",
    "dns_timeout": "The name of the origin could not be looked up in time.",
    "bad_protocol": "The origin did not answer in HTTP/1.1 as it should.",
}
_OF_A_PART = frozenset({206, 304, 416})  # what an origin may only say of parts and conditions
_ADDRESSES = frozenset({b"location", b"content-location"})
_FORBIDDEN = frozenset({"refused_address", "refused_port", "scope"})
_log = logging.getLogger("afresh.serve")


class Asking:
    """Fetches for readers."""

    def __init__(
        self, origins: Origins, cache: Cache, policy: Policy, *, largest: int, agent: str, longest_stale: float
    ) -> None:
        self.origins = origins
        self.cache = cache
        self.policy = policy
        self.largest = largest  # bytes of a body that is kept
        self.agent = agent
        self.longest_stale = longest_stale
        self.under_way: dict[str, Filling] = {}  # what others may join, by address
        self.running: set[Filling] = set()  # all that is being asked
        self.unfinished = Unfinished()

    @property
    def for_readers(self) -> int:
        """How many fetches readers wait for: while there are any, nothing is fetched ahead."""
        return sum(filling.wanted for filling in self.running)

    async def fetch(
        self,
        filling: Filling,
        request: Request,
        site: Site,
        entry: Entry | None,
        *,
        owner: Connection | None,
        names: vary.Selector,
    ) -> None:
        """Ask for what a reader wants to read; what came of it is in the filling."""
        url = filling.url
        asks = entry is not None and request.method == "GET" and bool(entry.etag or entry.modified)
        lines, asked_with = self._lines(request, site, entry if asks else None, names)
        exchange: Exchange | None = None
        filling.asked = time()
        begun: Beginning | None = None
        if filling.joinable and not site.strict and request.method == "GET":
            begun = self.unfinished.take(url, asked_with, filling.asked)
        self.running.add(filling)
        try:
            interim = _interim_for(owner, request) if owner is not None else None
            exchange, status, said, begun = await self._ask(
                filling, request, site, lines, asked_with, begun=begun, interim=interim
            )
            if not self._settled(filling, request, site, entry, status, said, asked_with, asks=asks):
                self._goes_on(filling, begun)
                filling.tell()
                await self._pump(filling, exchange, begun)
                filling.stored = self._keep(filling, request, site, entry, asked_with)
                filling.finish()
        except asyncio.CancelledError:
            if filling.known:
                begun = beginning_of(filling, time())
            if begun is not None:
                self.unfinished.keep(begun)
            raise
        except (OSError, ValueError, Spoiled, Crowded, Broken) as error:
            self._failed(filling, site, entry, error)
        finally:
            if not filling.over:
                filling.finish(broken=True)
            filling.tell()
            self.running.discard(filling)
            if self.under_way.get(url) is filling:
                del self.under_way[url]
            if entry is not None:
                entry.refreshing = False
            if exchange is not None:
                exchange.release()

    async def _ask(
        self,
        filling: Filling,
        request: Request,
        site: Site,
        lines: Lines,
        asked_with: Named,
        *,
        begun: Beginning | None,
        interim: Callable[[bytes], None] | None,
    ) -> tuple[Exchange, int, Lines, Beginning | None]:
        """(what brings the body, status and fields of the whole answer, the beginning that the body goes on from)."""
        if begun is not None:
            exchange = await self._send(filling, request, site, _with_range(lines, begun), interim)
            status, said = exchange.answer.status, exchange.answer.headers.lines
            whole = begun.continued(said) if status == 206 else None
            if whole is not None and self._shareable(filling, site, whole, asked_with):
                return exchange, 200, whole, begun
            if status not in _OF_A_PART:
                return exchange, status, said, None  # another page by now, or an error: this is the answer
            exchange.release()
            if not filling.wanted:
                raise Broken  # one turn is one question
        exchange = await self._send(filling, request, site, lines, interim)
        status, said = exchange.answer.status, exchange.answer.headers.lines
        if status == 206 and not any(name.lower() == b"range" for name, _ in lines):
            exchange.release()
            raise ValueError("a part that nobody asked for")
        return exchange, status, said, None

    async def _send(
        self,
        filling: Filling,
        request: Request,
        site: Site,
        lines: Lines,
        interim: Callable[[bytes], None] | None,
    ) -> Exchange:
        where = Target(filling.url)
        head = forwarded.head(request.method, where, lines, via=request.fields.get("via", ""))
        async with asyncio.timeout(FIRST_BYTE):
            exchange = await self.origins.ask(where, request.method, head, named=site.named, interim=interim)
        filling.answered = time()
        return exchange

    def _goes_on(self, filling: Filling, begun: Beginning | None) -> None:
        """An answer goes on from a beginning that is here."""
        if begun is not None:
            filling.begun = len(begun.body)
            if filling.wanted:
                self.unfinished.used += 1
                self.unfinished.used_bytes += filling.begun

    def _lines(self, request: Request, site: Site, entry: Entry | None, names: vary.Selector) -> tuple[Lines, Named]:
        """(what is sent, and what of it the answer may depend on)."""
        if site.strict:
            lines = forwarded.lines_of(request, besides=forwarded.CONDITIONS if entry is not None else frozenset())
            asked_with = request.fields
        else:
            lines = forwarded.own_lines(self.agent, names, request.fields)
            asked_with = joined(lines)
            if entry is None:
                lines += [line for line in request.lines if line[0].lower() in (b"range", b"if-range")]
        if entry is not None:
            lines += forwarded.conditions(entry.etag, entry.modified)
        return lines, asked_with

    def _settled(
        self,
        filling: Filling,
        request: Request,
        site: Site,
        entry: Entry | None,
        status: int,
        lines: Lines,
        asked_with: Named,
        *,
        asks: bool,
    ) -> bool:
        """Take in the head of an answer; whether that was all there is to say."""
        lines = _outward(lines, site)
        fields = joined(lines)
        filling.status, filling.fields = status, fields
        if status == 304 and asks and entry is not None:
            self._confirmed(filling, site, entry, lines, asked_with)
            filling.finish()
            filling.tell()
            return True
        if status >= 500 and entry is not None and request.method == "GET":
            age = entry.age(filling.answered)
            reached = site.strict  # own policy bears an error like a silence
            if rules.bears_failure(entry.terms, age, reached=reached, longest=self.longest_stale):
                self._stand_in(filling, entry, f"fwd=stale; fwd-status={status}; detail=stale")
                return True
        filling.lines = end_to_end(lines, besides=frozenset({b"content-length"}))
        length = fields.get("content-length", "")
        filling.length = int(length) if length.isdecimal() and len(length) < 19 else None
        terms = rules.terms(
            request.method, asked_with, status, fields, filling.asked, filling.answered, url=filling.url
        )
        names = vary.names_of(fields)
        storable = terms.storable if site.strict else self.policy.storable(terms, status, fields)
        why = self._why(filling, entry)
        filling.note = f"fwd={why}" if entry is None else f"fwd={why}; fwd-status={status}"
        if request.method == "HEAD" and entry is not None:
            self._compare(entry, fields)
        if storable and names is not None and request.method == "GET":
            if not site.strict:
                names = tuple(name for name in names if name != "accept-encoding")
            filling.names, filling.selector = names, selected(names, asked_with)
            filling.shared = filling.keep = filling.length is None or filling.length <= self.largest
        elif filling.joinable:
            self.cache.note_alone(filling.url, filling.answered)
        return False

    def _shareable(self, filling: Filling, site: Site, lines: Lines, asked_with: Named) -> bool:
        """Whether an answer may be kept for all: only such a one is put together of parts."""
        fields = joined(lines)
        terms = rules.terms("GET", asked_with, 200, fields, filling.asked, filling.answered, url=filling.url)
        return not site.strict and self.policy.storable(terms, 200, fields) and vary.names_of(fields) is not None

    def _confirmed(self, filling: Filling, site: Site, entry: Entry, lines: Lines, asked_with: Named) -> None:
        """The origin says that what we have still holds."""
        newer = entries.after(entry, lines)
        terms = rules.terms("GET", asked_with, entry.status, newer, filling.asked, filling.answered, url=filling.url)
        fresh = entries.refreshed(entry, lines, terms, filling.answered)
        if not site.strict:
            self.policy.confirmed(entry, fresh, site, filling.answered)
        if terms.storable or not site.strict:
            self.cache.put(fresh, filling.answered)
        else:
            self.cache.drop(entry.url)
        filling.entry, filling.shared = fresh, True
        filling.note = f"fwd={self._why(filling, entry)}; fwd-status=304"

    def _why(self, filling: Filling, entry: Entry | None) -> str:
        """Why the origin was asked, in the words of RFC 9211."""
        if entry is None:
            return "vary-miss" if self.cache.names_of(filling.url) else "uri-miss"
        return "request" if filling.asked < entry.good_until else "stale"

    @staticmethod
    def _compare(entry: Entry, fields: Named) -> None:
        """What HEAD says of a page for which we have a copy (RFC 9111, 4.3.5)."""
        told = {"etag": entry.etag, "last-modified": entry.modified, "content-length": str(len(entry.body))}
        if any(name in fields and fields[name] != known for name, known in told.items()):
            entry.good_until = 0.0

    async def _pump(self, filling: Filling, exchange: Exchange, begun: Beginning | None = None) -> None:
        """Bring the body in; behind a beginning exactly what is missing."""
        if begun is not None:
            await filling.feed(begun.body)
        while True:
            async with asyncio.timeout(BETWEEN_BYTES):
                pieces = await exchange.answer.more()
            if not pieces:
                break
            piece = b"".join(pieces)
            if begun is not None and filling.size + len(piece) > begun.total:
                raise Broken
            await filling.feed(piece, exchange.others_wait)
            if filling.keep and filling.size > self.largest:
                filling.let_go()
        if begun is not None and filling.size != begun.total:
            raise Broken

    def _keep(self, filling: Filling, request: Request, site: Site, entry: Entry | None, asked_with: Named) -> bool:
        """The whole answer is there: keep it, if it is for all; what it replaces is known to be outdated."""
        if not filling.keep:
            if entry is not None and filling.status < 500 and request.method == "GET" and filling.status != 206:
                self.cache.drop(entry.url)
            return False
        terms = rules.terms(
            request.method, asked_with, filling.status, filling.fields, filling.asked, filling.answered, url=filling.url
        )
        if not _is_useful(site, terms, filling.fields):
            return False  # it could neither be handed out nor asked about
        made = entries.make(
            filling.url,
            filling.status,
            filling.lines,
            filling.body(),
            terms,
            filling.answered,
            selected_by=(filling.names, filling.selector),
        )
        if not site.strict:
            self.policy.fetched(entry, made, site, filling.answered)
        self.cache.put(made, filling.answered)
        return True

    def _failed(self, filling: Filling, site: Site, entry: Entry | None, error: Exception) -> None:
        """The origin did not answer as it should."""
        if filling.known:
            return  # those who read it find out
        why = "crowded" if isinstance(error, Crowded) else "bad_url" if isinstance(error, BadTarget) else reason(error)
        if entry is not None and why not in _FORBIDDEN:
            age = entry.age(time())
            if rules.bears_failure(entry.terms, age, reached=False, longest=self.longest_stale):
                self._stand_in(filling, entry, "fwd=stale; detail=stale")
                return
        if why in _FORBIDDEN:
            status, sentence = 403, "This address is not for us to ask."
        elif why == "crowded":
            status, sentence = 503, "Too many wait for this origin already."
        else:
            status, sentence = _CANNOT.get(why, 502), _FAILED.get(why, f"The origin could not be asked: {why}.")
        asked = filling.note or f"fwd={self._why(filling, entry)}"
        filling.failure = Refusal(status, sentence, f"{asked}; detail={why}")

    @staticmethod
    def _stand_in(filling: Filling, entry: Entry, note: str) -> None:
        filling.entry, filling.shared, filling.note = entry, True, note
        filling.finish()
        filling.tell()

    async def pass_on(
        self,
        filling: Filling,
        request: Request,
        site: Site,
        body: AsyncIterator[bytes] | None,
        *,
        peer: str,
        owner: Connection,
    ) -> None:
        """Hand a request on whole, for its reader alone."""
        exchange: Exchange | None = None
        filling.note = "fwd=method" if request.method not in ("GET", "HEAD") else "fwd=bypass"
        self.running.add(filling)
        try:
            where = Target(filling.url)
            lines = forwarded.lines_of(request)
            lines.append((b"X-Forwarded-For", peer.encode("latin-1")))
            head = forwarded.head(
                request.method,
                where,
                lines,
                via=request.fields.get("via", ""),
                length=request.length,
                chunked=body is not None and request.length is None,
            )
            if body is not None and request.length is None:
                body = _in_chunks(body)
            async with asyncio.timeout(FIRST_BYTE):
                exchange = await self.origins.ask(
                    where, request.method, head, named=site.named, body=body, interim=_interim_for(owner, request)
                )
            answer = exchange.answer
            filling.status, filling.fields = answer.status, joined(answer.headers.lines)
            filling.lines = _outward(end_to_end(answer.headers.lines, besides=frozenset({b"content-length"})), site)
            length = filling.fields.get("content-length", "")
            filling.length = int(length) if length.isdecimal() and len(length) < 19 else None
            filling.tell()
            await self._pump(filling, exchange)
            filling.finish()
        except (OSError, ValueError, Spoiled, Crowded, Broken) as error:
            self._failed(filling, site, None, error)
        finally:
            if not filling.over:
                filling.finish(broken=True)
            filling.tell()
            self.running.discard(filling)
            if exchange is not None:
                exchange.release()

    async def plain(self, entry: Entry) -> Entry:
        """An entry with its coding undone, for a reader who does not accept it; as it is, if that cannot be done."""

        def undo() -> bytes:
            body = Body([entry.coding.removeprefix("x-")], self.largest)
            body.feed(entry.body)
            return body.finish()

        if "no-transform" in entry.fields.get("cache-control", "") or "," in entry.coding:
            return entry
        try:
            undone = await asyncio.to_thread(undo)
        except (Spoiled, ValueError, zlib.error):
            return entry
        lines = [
            line for line in entry.lines if line[0].lower() not in (b"content-encoding", b"etag", b"accept-ranges")
        ]
        made = entries.make(entry.url, entry.status, lines, undone, entry.terms, time())
        return replace(
            made, born=entry.born, good_until=entry.good_until, outlook=entry.outlook, confirmed=entry.confirmed
        )


def _is_useful(site: Site, terms: rules.Terms, fields: Named) -> bool:
    """Whether a copy could ever be handed out, or asked about."""
    return not site.strict or terms.lifetime > 0 or bool({"etag", "last-modified"} & set(fields))


def _outward(lines: Lines, site: Site) -> Lines:
    """What an origin says, with its own address replaced by the one that readers know."""
    if not any(name.lower() in _ADDRESSES for name, _ in lines):
        return lines
    return [
        (name, site.outward(value.decode("latin-1")).encode("latin-1") if name.lower() in _ADDRESSES else value)
        for name, value in lines
    ]


def _with_range(lines: Lines, begun: Beginning) -> Lines:
    """What is sent to ask for the rest of a beginning: whether an older copy still holds is not asked with it."""
    return [line for line in lines if line[0].lower() not in forwarded.CONDITIONS] + begun.asks()


def _interim_for(owner: Connection, request: Request) -> Callable[[bytes], None] | None:
    """What hands answers before the answer on to the reader that they are for."""
    if request.version != "1.1":
        return None
    left = MOST_INTERIM_BYTES

    def hand_on(interim: bytes) -> None:
        nonlocal left
        status, *rest = interim.replace(b"\r\n", b"\n").split(b"\n")
        if status[9:12] == b"100":
            return
        lines = [(name, value.strip(b" \t")) for name, _, value in (line.partition(b":") for line in rest if line)]
        told = b"HTTP/1.1 %b\r\n%b\r\n" % (status[9:], packed(end_to_end(lines)))
        left -= len(told)
        if left >= 0 and not owner.started and not owner.transport.is_closing():
            owner.transport.write(told)

    return hand_on


async def _in_chunks(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for piece in body:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"

"""Pages over HTTP: conditional, bounded in time and size, and never to an address it must not reach."""

import logging
import resource
import ssl
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from afresh.fetch import headers
from afresh.fetch.answer import Answer
from afresh.fetch.connect import Dialer
from afresh.fetch.deadline import Deadlines
from afresh.fetch.guard import Guard
from afresh.fetch.inflate import ACCEPTED, Spoiled
from afresh.fetch.read import read
from afresh.fetch.reasons import reason
from afresh.fetch.resolve import Lookup, Names, Resolver, SystemResolver
from afresh.fetch.stalls import Stalls
from afresh.fetch.target import BadTarget, Target, redirected, target
from afresh.fetch.wire import PAGE, Question, Wire
from afresh.types import Fetched, Validators

REDIRECTS = frozenset({301, 302, 303, 307, 308})
CONTENT = frozenset({200, 203})  # the answers whose body is the page
THREADS = 1  # that undo content codings: each has memory of its own, which it does not give back
MOST_NOTED = 10_000  # hosts whose oddities are remembered as told

_log = logging.getLogger("afresh.fetch")


def _half_the_files() -> int:
    """Half of what the system lets this process have open, and at most 4,096: the other half is for all else."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(soft // 2, 4096) if soft > 0 else 4096


@dataclass(frozen=True, slots=True)
class Limits:
    """What one fetch may cost at most, and how many there may be at once."""

    seconds: float = 60.0  # the whole fetch, redirects included
    connect: float = 15.0  # until a connection stands; half of it for the TLS handshake
    lookup: float = 10.0  # until a name is resolved
    body: int = 16 * 1024 * 1024  # as it arrives, and after inflation
    redirects: int = 5
    connections: int = 256
    keep_alive: float = 15.0  # how long an idle connection is kept for the next fetch
    idle: int = field(default_factory=_half_the_files)  # how many are


@dataclass(slots=True)
class _Seen:
    """What was seen of a fetch so far: on failure this is all there is to tell."""

    url: str
    started: float
    clock: Callable[[], float]  # which stands still while we keep the answer waiting
    began: float = 0.0  # by that clock, when the host was first asked
    came: float | None = None  # and when the whole answer was there; None: it is not
    real_began: float = field(default_factory=time.monotonic)
    status: int = 0
    received: int = 0
    hops: list[str] = field(default_factory=list)
    asked_again: bool = False
    beginning: int = 0  # bytes of the body that are enough; 0: it must be whole
    question: Question = PAGE

    def fetched(self, **more: Any) -> Fetched:
        now = self.clock()
        took = max((now if self.came is None else self.came) - self.began, 0.0)
        read_late = 0.0 if self.came is None else max(now - self.came, 0.0)
        return Fetched(
            self.url,
            self.started,
            took,
            waited=max(time.monotonic() - self.real_began - took - read_late, 0.0),
            status=self.status,
            received=self.received,
            hops=tuple(self.hops),
            **more,
        )


class Http:
    """Gets pages over HTTP and HTTPS; every outcome is a value.

    Invariants: the guard sees every address that a socket is made for, and a pooled connection stays with the address
    that was seen; nothing is kept between fetches but connections and resolved names (no cookies, no credentials);
    memory of one fetch stays below twice `limits.body` and a decoder's window.
    """

    def __init__(
        self,
        *,
        user_agent: str,
        limits: Limits | None = None,
        allow_private: bool = False,
        allow_downgrade: bool = False,
        guard: Guard | None = None,
        unverified_hosts: Collection[str] = (),
        tls: ssl.SSLContext | None = None,
        resolver: Resolver | None = None,
        clock: Callable[[], float] = time.time,
        permit: Callable[[], None] = lambda: None,
    ) -> None:
        """`permit` is called right before each request goes out, and raises what hinders it, such as `Refused`."""
        self.user_agent = user_agent
        self.limits = limits or Limits()
        self.guard = guard or Guard(allow_private=allow_private)
        self.allow_downgrade = allow_downgrade
        self.unverified_hosts = frozenset(unverified_hosts)
        self.tls = tls
        self.resolver = resolver
        self.clock = clock
        self.permit = permit
        self._wire: Wire | None = None
        self._threads: ThreadPoolExecutor | None = None
        self.arriving = 0  # bytes of bodies in memory that are not whole yet
        self._deadlines = Deadlines(self.limits.seconds)
        self._stalls = Stalls()
        self._noted: set[tuple[str, str]] = set()

    async def fetch(self, url: str, known: Validators, *, beginning: int = 0) -> Fetched:
        """Get the page, or hear that it is still what we `known` it to be; redirects are followed wherever.

        `beginning`: so many bytes of it are enough, however many there are; 0: all of it, or nothing.
        """
        return await self._fetch(url, known, lambda _: True, beginning=beginning)

    async def fetch_while(self, url: str, known: Validators, may: Callable[[str], bool], *, most: int = 0) -> Fetched:
        """The same, but a redirect is followed only to where it `may`; any other is itself what came of the fetch.

        The URL is asked as it stands, for it is what was permitted: `bad_url` if it would be written otherwise.
        `most`: so many bytes may come, where that is more than usual.
        """
        return await self._fetch(url, known, may, as_it_is=True, question=Question(most=most))

    async def post(self, url: str, form: bytes) -> Fetched:
        """Post a form; a redirect gets the same form. Like all that is fetched it goes past the guard."""
        return await self._fetch(url, Validators(), lambda _: True, question=Question(form=form))

    async def tell(self, url: str, message: bytes, headers: Mapping[str, str]) -> Fetched:
        """Post JSON with headers of the caller's. Of the answer, its status alone is wanted.

        A redirect is itself the answer: nobody else gets the message. However much is answered, it is not read.
        """
        question = Question(form=message, kind="application/json", headers=headers, status_alone=True)
        return await self._fetch(url, Validators(), lambda _: False, question=question)

    async def _fetch(
        self,
        url: str,
        known: Validators,
        may: Callable[[str], bool],
        *,
        as_it_is: bool = False,
        beginning: int = 0,
        question: Question = PAGE,
    ) -> Fetched:
        self._stalls.begin()
        seen = _Seen(url, self.clock(), self._stalls.now, self._stalls.now(), beginning=beginning, question=question)
        try:
            where = target(url)
            if as_it_is and where.url != url:
                raise BadTarget("not as it is sent")
            with self._deadlines.limit():
                return await self._ask(seen, where, known, may)
        except (OSError, ValueError, Spoiled) as error:
            return seen.fetched(reason=reason(error))
        finally:
            self._stalls.end()

    async def address(self, url: str) -> str:
        """The numeric address that the page's host is reached at, of several always the same one; "" if none."""
        try:
            where = target(url)
            found = await self._open().addresses(where.host, where.port)
        except (OSError, ValueError):
            return ""  # asking for the page itself will tell why
        return min(found, default="")

    async def close(self) -> None:
        """Let go of all connections."""
        self._deadlines.close()
        self._stalls.close()
        if self._wire is not None:
            await self._wire.close()
            self._wire = None
        if self._threads is not None:
            self._threads.shutdown(wait=False)
            self._threads = None

    async def _ask(self, seen: _Seen, where: Target, known: Validators, may: Callable[[str], bool]) -> Fetched:
        """Ask, follow where the answer points, ask again if it makes no sense, and read what comes."""
        while True:
            asked = headers.conditions(known)
            conditional = bool(asked)
            asked |= seen.question.headers
            if seen.asked_again:
                asked["Cache-Control"] = "no-cache"
            self.guard.check_host(where.authority)
            wire, verified = self._open(), where.host not in self.unverified_hosts
            queued = self._stalls.now()
            await wire.place()
            seen.began += self._stalls.now() - queued
            connection, answer = await wire.ask(where, asked, verified=verified, question=seen.question)
            asked_at = where
            try:
                seen.status = answer.status
                self._note_oddities(where, answer)
                if answer.status in REDIRECTS and "Location" in answer.headers:
                    where = self._hop(seen, where, answer)
                    if not may(str(where)):
                        return seen.fetched(location=str(where))
                    known = Validators()  # what we know was about the address that was asked first
                elif answer.status == 304 and not (conditional and headers.confirms(known, answer.headers)):
                    if seen.asked_again:
                        raise Spoiled("not_modified_without_copy")
                    known, seen.asked_again = Validators(), True
                else:
                    return await self._take(seen, answer)
            finally:
                wire.release(asked_at, connection, verified=verified)

    def _hop(self, seen: _Seen, where: Target, answer: Answer) -> Target:
        """The next address of a chain of redirects, which is kept in `seen.hops`."""
        locations = set(answer.headers.all("Location"))
        try:
            if len(locations) > 1:
                raise BadTarget("it points to several places")
            following = redirected(locations.pop(), where)
        except BadTarget:
            raise Spoiled("bad_redirect") from None
        if where.secure and not following.secure and not self.allow_downgrade:
            raise Spoiled("insecure_redirect")
        visited = {str(target(seen.url)), *seen.hops}
        seen.hops.append(str(following))
        if str(following) in visited:
            raise Spoiled("redirect_loop")
        if len(seen.hops) > self.limits.redirects:
            raise Spoiled("too_many_redirects")
        return following

    async def _take(self, seen: _Seen, answer: Answer) -> Fetched:
        """What an answer that is no detour brought."""
        body = b""
        # Of all others, the status says what there is to say.
        if answer.status in CONTENT and not seen.question.status_alone:
            counted = 0

            def holds(size: int) -> None:
                nonlocal counted
                self.arriving += size - counted
                counted = size

            try:
                body = await read(
                    answer, max(self.limits.body, seen.question.most), self._threads, holds, seen.beginning
                )
            finally:
                seen.received, seen.came = answer.received, answer.over_at
                holds(0)
        # Validators of another address must not be sent to this one, so a page behind a redirect has none.
        kept = Validators() if seen.hops else headers.validators(answer.headers, self.clock())
        return seen.fetched(
            body=body,
            content_type=answer.headers.get("Content-Type", "")[: headers.LONGEST_VALUE],
            validators=kept,
            robots=headers.robots_tag(answer.headers.all("X-Robots-Tag"), self.user_agent),
            retry_after=headers.retry_after(answer.headers.get("Retry-After", ""), self.clock()),
            location=seen.hops[-1] if seen.hops else "",
            meta=headers.kept(answer.status, answer.headers) if answer.status in CONTENT else {},
        )

    def _note_oddities(self, where: Target, answer: Answer) -> None:
        """Tell once per host which of its headers are not believed."""
        for name in headers.oddities(answer.headers, self.clock()):
            key = (where.host, name)
            if key not in self._noted and len(self._noted) < MOST_NOTED:
                self._noted.add(key)
                _log.info("%s sends a %s that cannot be true; it is ignored", *key)

    def _open(self) -> Wire:
        """The connections; made at the first fetch, because they belong to the loop that runs then."""
        if self._wire is None:
            self._threads = ThreadPoolExecutor(THREADS, "afresh-inflate")
            sent = {"User-Agent": self.user_agent, "Accept": "text/html,*/*;q=0.8", "Accept-Encoding": ACCEPTED}
            limits = self.limits
            names = Names(Lookup(self.resolver or SystemResolver(), self.guard, seconds=limits.lookup))
            dialer = Dialer(
                names, self.guard, sent, seconds=limits.connect, most=limits.body, tls=self.tls, clock=self._stalls.now
            )
            self._wire = Wire(
                dialer,
                most=limits.connections,
                most_idle=limits.idle,
                keep_alive=limits.keep_alive,
                permit=self.permit,
            )
        return self._wire

"""IndexNow, as a receiver: a host names its changed pages, and proves by a key file that it is that host.

A proof that is not there yet is looked for again: until then a submission waits in the store. Hosts of which nothing is
kept are refused, so that nobody can make us ask a host that we do not know.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response

from afresh.errors import SignalError, StoreError
from afresh.frontier import Resolver
from afresh.serve.receive.bodies import Refused, answer, body_of, inflated
from afresh.serve.receive.inlet import Inlet
from afresh.serve.receive.meter import Meter
from afresh.serve.receive.waiting import WAITING, Proof, Waiting, kept, proof_of
from afresh.signals.indexnow import Submission, WrongHost, from_body, from_query, is_proof
from afresh.store import Entry, Store
from afresh.store.messages import of_signals
from afresh.types import Fetched, Signal

SENDER = "indexnow"
PROOF_SECONDS = 10.0  # that a submitter waits for its key file to be read
PATIENT_SECONDS = 600.0  # that we wait for it later
GOOD_SECONDS, BAD_SECONDS = 86_400.0, 60.0  # for which a proof, or the lack of one, is remembered
RETRY_SECONDS, GIVE_UP_SECONDS = 30.0, 86_400.0
MAX_PROOFS = 10_000
CHECKS = Meter(rate=10 / 60, burst=10.0)  # key files that one network address may have us read
PIECE = 500  # addresses that are looked at between two chances for others

_log = logging.getLogger("afresh.receive")


class Crawl(Protocol):
    """What is asked of the crawl beside which signals are received."""

    def clock(self) -> float:
        """What time it is."""

    def keeps_host(self, host: str) -> bool:
        """Whether pages of a host are kept."""

    def wants(self, url: str, sender: str) -> bool:
        """Whether a page is kept, and this sender was not heard of it since its last crawl; it is heard now."""

    async def proof(self, url: str) -> Fetched | None:
        """A small file of a kept host, in one of its next turns, redirects not followed; None: not now."""


@dataclass(slots=True)
class IndexNow:
    """Takes submissions."""

    crawl: Crawl
    inlet: Inlet
    store: Store
    rate: float  # addresses a second that one host may submit
    max_body: int
    _proofs: dict[tuple[str, str, str], tuple[bool, float]] = field(default_factory=dict)  # until when it holds
    _meter: Meter = field(init=False)
    _checks: Meter = field(default_factory=lambda: Meter(rate=CHECKS.rate, burst=CHECKS.burst))
    _waiting: Waiting = field(default_factory=Waiting)
    _task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self._meter = Meter(rate=self.rate, burst=max(self.rate * 3600.0, 1.0))

    def start(self) -> None:
        """Look for proofs that were not there."""
        self._task = asyncio.create_task(self._look_again())

    async def stop(self) -> None:
        """Leave what waits in the store."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def get(self, request: Request) -> Response:
        """One address."""
        return await self._submitted(request, lambda: from_query(request.query_params))

    async def post(self, request: Request) -> Response:
        """Many."""
        body = await body_of(request, self.max_body)
        coding = request.headers.get("content-encoding", "")
        return await self._submitted(request, lambda: from_body(inflated(body, coding, self.max_body)))

    async def _submitted(self, request: Request, read: Callable[[], Submission]) -> Response:
        try:
            submission = await asyncio.to_thread(read)
        except WrongHost as error:
            raise Refused(422, error.message) from None
        except SignalError as error:
            raise Refused(400, error.message) from None
        if not self.crawl.keeps_host(submission.host):
            raise Refused(422, "No page of that host is kept here.")
        proved = self._known(submission)
        if proved is None:
            if wait := self._checks.take(_submitter(request), 1.0, self.crawl.clock()):
                raise Refused(429, "Too many keys are to be checked.", Retry_After=str(wait))
            proved = await self._prove(submission)
        if proved is None:
            await self._keep(submission, _submitter(request))
            return answer(202, {"message": "The key file could not be read yet; it is tried again."})
        if not proved:
            raise Refused(403, "The key file does not hold the key.")
        if wait := self._charge(submission):
            raise Refused(429, "That host submits too much.", Retry_After=str(wait))
        return answer(200, {"signals": await self._hear(submission)})

    @property
    def waiting(self) -> list[str]:
        """Hosts of which a submission waits for its key file."""
        return self._waiting.hosts

    def _charge(self, submission: Submission) -> int:
        """Take it off what its host may submit; 0, or the seconds until there is room.

        Only what is proved is charged: otherwise anybody could use up what a host may submit.
        """
        return self._meter.take(submission.host, len(submission.urls), self.crawl.clock())

    def _known(self, submission: Submission) -> bool | None:
        good, until = self._proofs.get(proof_of(submission), (False, 0.0))
        return good if self.crawl.clock() < until else None

    async def _prove(self, submission: Submission, seconds: float = PROOF_SECONDS) -> bool | None:
        """Whether the key file holds the key; None if that cannot be told now."""
        fetched = None
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                fetched = await self.crawl.proof(submission.key_file)
        if fetched is None or fetched.status >= 500 or fetched.status == 429 or (not fetched.status and fetched.reason):
            refused = fetched is not None and fetched.reason in ("robots", "scope", "address", "bad_url")
            if not refused:
                return None
        good = fetched is not None and fetched.status == 200 and is_proof(fetched.body, submission.key)
        if len(self._proofs) >= MAX_PROOFS:
            self._proofs.pop(next(iter(self._proofs)))
        self._proofs[proof_of(submission)] = good, self.crawl.clock() + (GOOD_SECONDS if good else BAD_SECONDS)
        return good

    async def _hear(self, submission: Submission) -> int:
        """Store a signal for every page that is kept and not signalled yet; how many."""
        resolve, found = Resolver(f"http://{submission.host}/"), []
        for first in range(0, len(submission.urls), PIECE):
            whole = (resolve(url) for url in submission.urls[first : first + PIECE])
            found += [url for url in whole if url is not None and self.crawl.wants(url, SENDER)]
            await asyncio.sleep(0)
        now = self.crawl.clock()

        def entries() -> tuple[Sequence[Entry], int]:
            return of_signals((Signal(url, now, SENDER) for url in found), now), len(found)

        return await self.inlet.take(entries)

    async def _keep(self, submission: Submission, sent_by: str) -> None:
        """Have a submission wait for its proof, durably."""
        if (room := self._waiting.room_for(submission, sent_by, self.crawl.clock())) is None:
            raise Refused(429, "Too much waits for its key file.", Retry_After="60")
        waits, leaves = room
        gone = {} if leaves is None else {leaves.name: None}
        try:
            await asyncio.to_thread(self.store.put, {**gone, waits.name: waits.text})
        except StoreError as error:
            raise Refused(503, "The store cannot be written now.", error.hint, Retry_After="5") from None
        if submission.host not in self._waiting.hosts:
            _log.info("What %s submitted by IndexNow waits: its key file could not be read yet.", submission.host)
        if leaves is not None:
            self._waiting.drop(leaves)
        self._waiting.put(waits)

    async def _look_again(self) -> None:
        now = self.crawl.clock()
        found = await asyncio.to_thread(
            lambda: kept([name for name, _ in self.store.names(WAITING)], self.store.get, now)
        )
        for name, waits in found:
            self._waiting.put(waits)
            if name != waits.name:
                await asyncio.to_thread(self.store.put, {name: None, waits.name: waits.text})
        looking: set[Proof] = set()
        async with asyncio.TaskGroup() as group:
            while True:
                for proof in self._waiting.proofs() - looking:  # a host that is slow holds no other up
                    looking.add(proof)
                    task = group.create_task(self._look_at(proof))
                    task.add_done_callback(lambda _, proof=proof: looking.discard(proof))  # type: ignore[misc]
                await asyncio.sleep(RETRY_SECONDS)

    async def _look_at(self, proof: Proof) -> None:
        """Look for the proof of what waits."""
        if (waits := self._waiting.get(proof)) is None:
            return
        host = waits.submission.host
        try:
            proved = self._known(waits.submission)
            proved = await self._prove(waits.submission, PATIENT_SECONDS) if proved is None else proved
            if proved is None and self.crawl.clock() - waits.since < GIVE_UP_SECONDS:
                return
            if (waits := self._waiting.get(proof)) is None:  # it made room meanwhile
                return
            if proved:
                if self._charge(waits.submission):
                    return
                await self._hear(waits.submission)
            else:
                _log.warning("What %s submitted by IndexNow is dropped: its key file does not prove it.", host)
            if self._waiting.get(proof) is waits:
                self._waiting.drop(waits)
                await asyncio.to_thread(self.store.put, {waits.name: None})
        except (Refused, StoreError) as error:  # it stays, and is tried again
            _log.warning("What %s submitted waits: %s", host, error)


def _submitter(request: Request) -> str:
    """Who has key files read: a network address, or the network that is one customer's in IPv6.

    A proxy on this machine, such as one that speaks TLS, says in X-Forwarded-For last whom it stands for.
    """
    text = request.client.host if request.client is not None else ""
    try:
        address = ip_address(text)
        if address.is_loopback:
            address = ip_address(request.headers.get("x-forwarded-for", text).rpartition(",")[2].strip())
        return str(ip_network((address, 64), strict=False)) if address.version == 6 else str(address)
    except ValueError:
        return text

"""From what was sent to the inbox: read away from the event loop, and stored before it is acknowledged.

One thread does both, for all that waits at that moment: each body is read, and all that came of them is one
transaction; what has a key is one of its own, which tells whether it came before. So a thousand small deliveries cost a
few commits, and no stranger's bytes hold up the crawl.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from afresh.errors import InboxFull, StoreError
from afresh.serve.receive.bodies import Refused
from afresh.store import Entry

Told = TypeVar("Told")
Work = Callable[[], tuple[Sequence[Entry], Told]]
MAX_TOGETHER = 64  # deliveries in one transaction
MAX_WAITING = 1_000
RETRY_SECONDS = "5"


class _Job(Generic[Told]):
    def __init__(self, work: Work[Told]) -> None:
        self.work, self.is_new = work, True
        self.done: asyncio.Future[Told] = asyncio.get_running_loop().create_future()


class Inlet:
    """Takes deliveries, in their order.

    Invariant: `take` returns when what came of a delivery is durable; if it raises, nothing of it was kept.
    """

    def __init__(self, post: Callable[[Sequence[Entry]], int], wake: Callable[[], None]) -> None:
        self._post, self._wake = post, wake
        self._thread = ThreadPoolExecutor(1, "afresh-receive")
        self._waiting: list[_Job[object]] = []
        self._running: asyncio.Task[None] | None = None

    async def take(self, work: Work[Told]) -> Told:
        """Have some work done that makes entries; what it says besides. Refused if there is no room."""
        return (await self.take_once(work))[0]

    async def take_once(self, work: Work[Told]) -> tuple[Told, bool]:
        """The same, and whether any of it was new: what has a key may have been sent before."""
        if len(self._waiting) >= MAX_WAITING:
            raise Refused(503, "Too much is waiting.", "Send it again later.", Retry_After=RETRY_SECONDS)
        job = _Job(work)
        self._waiting.append(job)  # type: ignore[arg-type]
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._work())
        return await job.done, job.is_new

    async def close(self) -> None:
        """Finish what was taken."""
        if self._running is not None:
            await self._running
        self._thread.shutdown(wait=False)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            jobs, self._waiting = self._waiting[:MAX_TOGETHER], self._waiting[MAX_TOGETHER:]
            found = await loop.run_in_executor(self._thread, self._do, jobs)
            for job, (told, error) in zip(jobs, found, strict=True):
                if job.done.done():  # whoever sent it is gone
                    continue
                if error is not None:
                    job.done.set_exception(error)
                else:
                    job.done.set_result(told)
            self._wake()

    def _do(self, jobs: Sequence[_Job[object]]) -> list[tuple[object, Exception | None]]:
        """In the thread: what each says, or what went wrong."""
        found: list[tuple[object, Exception | None]] = []
        entries: list[Entry] = []
        together: list[int] = []  # the places of those without a key: one transaction
        for job in jobs:
            try:
                made, told = job.work()
                if made and made[0].key:  # alone, which says whether it is new
                    job.is_new, lost = self._stored(made)
                    found.append((told, lost))
                else:
                    together.append(len(found))
                    entries += made
                    found.append((told, None))
            except Exception as error:
                found.append((None, error))
        if entries and (lost := self._stored(entries)[1]) is not None:
            for nth in together:
                found[nth] = None, lost
        return found

    def _stored(self, entries: Sequence[Entry]) -> tuple[bool, Exception | None]:
        """Whether any was new; why they could not be stored."""
        try:
            return self._post(entries) > 0, None
        except InboxFull as error:
            return False, Refused(503, error.message, "Send it again later.", Retry_After=RETRY_SECONDS)
        except StoreError:
            lost = Refused(503, "The store cannot be written now.", "Send it again later.", Retry_After=RETRY_SECONDS)
            return False, lost

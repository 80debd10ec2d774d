"""From what was sent to the inbox: read away from the event loop, and stored before it is acknowledged.

One thread does both, for all that waits at that moment: each body is read, and all that came of them is one
transaction. So a thousand small deliveries cost a few commits, and no stranger's bytes hold up the crawl.
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
        self.work = work
        self.done: asyncio.Future[Told] = asyncio.get_running_loop().create_future()


class Inlet:
    """Takes deliveries, in their order.

    Invariant: `take` returns when what came of a delivery is durable; if it raises, nothing of it was kept.
    """

    def __init__(self, post: Callable[[Sequence[Entry]], object], wake: Callable[[], None]) -> None:
        self._post, self._wake = post, wake
        self._thread = ThreadPoolExecutor(1, "afresh-receive")
        self._waiting: list[_Job[object]] = []
        self._running: asyncio.Task[None] | None = None

    async def take(self, work: Work[Told]) -> Told:
        """Have some work done that makes entries; what it says besides. Refused if there is no room."""
        if len(self._waiting) >= MAX_WAITING:
            raise Refused(503, "Too much is waiting.", "Send it again later.", Retry_After=RETRY_SECONDS)
        job = _Job(work)
        self._waiting.append(job)  # type: ignore[arg-type]
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._work())
        return await job.done

    async def close(self) -> None:
        """Finish what was taken."""
        if self._running is not None:
            await self._running
        self._thread.shutdown(wait=False)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            jobs, self._waiting = self._waiting[:MAX_TOGETHER], self._waiting[MAX_TOGETHER:]
            found = await loop.run_in_executor(self._thread, self._do, [job.work for job in jobs])
            for job, (told, error) in zip(jobs, found, strict=True):
                if job.done.done():  # whoever sent it is gone
                    continue
                if error is not None:
                    job.done.set_exception(error)
                else:
                    job.done.set_result(told)
            self._wake()

    def _do(self, works: Sequence[Work[object]]) -> list[tuple[object, Exception | None]]:
        """In the thread: what each says, or what went wrong."""
        found: list[tuple[object, Exception | None]] = []
        entries: list[Entry] = []
        for work in works:
            try:
                made, told = work()
                entries += made
                found.append((told, None))
            except Exception as error:
                found.append((None, error))
        if not entries:
            return found
        try:
            self._post(entries)
        except InboxFull as error:
            lost: Exception = Refused(503, error.message, "Send it again later.", Retry_After=RETRY_SECONDS)
        except StoreError:
            lost = Refused(503, "The store cannot be written now.", "Send it again later.", Retry_After=RETRY_SECONDS)
        else:
            return found
        return [(told, error or lost) for told, error in found]

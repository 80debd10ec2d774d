"""Tells the runner how readers were answered, so that one place has the figures of both."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from afresh.errors import AfreshError
from afresh.serve.proxy.protocol import Connection
from afresh.serve.proxy.request import Request
from afresh.store.socket_file import ask

TELL_SECONDS = 5.0


class Telling:
    """Counts answers by how they were given, and tells the runner on a store; nothing is lost if none listens."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._who = uuid4().hex
        self._counts: Counter[str] = Counter()
        self._thread = ThreadPoolExecutor(1, "afresh-telling")
        self._task: asyncio.Task[None] | None = None

    def answered(self, connection: Connection, request: Request, url: str, status: int, size: int, how: str) -> None:
        """An answer is out."""
        self._counts[how] += 1

    def malformed(self, connection: Connection, status: int) -> None:
        """Something came that is no request."""
        self._counts["malformed"] += 1

    def start(self) -> None:
        """Begin to tell."""
        self._task = asyncio.create_task(self._keep_telling())

    async def _keep_telling(self) -> None:
        while True:
            await asyncio.sleep(TELL_SECONDS)
            await self._tell()

    async def _tell(self) -> None:
        said = {"who": self._who, "counts": dict(self._counts)}

        def told() -> None:
            with suppress(AfreshError):
                ask(self._store, "served", said)

        await asyncio.get_running_loop().run_in_executor(self._thread, told)

    async def close(self) -> None:
        """Tell the last of it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self._tell()
        self._thread.shutdown(wait=False)

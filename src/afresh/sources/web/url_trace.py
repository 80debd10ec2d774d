"""Writes the links of a crawl to a file as they are met, for `afresh lab urlcache`: compressed, off the event loop."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import numpy as np
import zstandard

from afresh.errors import ConfigError
from afresh.frontier.trace import MAGIC, RECORD, Records, records

AT_ONCE = 1 << 14  # links that are compressed together; a crawl that is killed loses fewer than that many
LEVEL = 3


class UrlTrace:
    """A file of links. What is written is whole frames, so a file that ends early is read as far as it goes.

    A file that is there already is continued. When it cannot be written any more, tracing ends and the crawl goes on:
    `problem` says why.
    """

    def __init__(self, path: Path) -> None:
        self.problem = ""
        self.links = 0  # that were handed over
        self._waiting: list[Records] = []
        self._count = 0
        try:
            self._file: BinaryIO = path.open("ab")
            with path.open("rb") as before:
                start = before.read(len(MAGIC))
            if start and start != MAGIC:
                self._file.close()
                raise ConfigError(f"{path} is there and is no trace of links.", hint="Choose another file.")
            if not start:
                self._file.write(MAGIC)
                self._file.flush()
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {error.strerror}.", hint="Choose another file.") from None
        self._thread = ThreadPoolExecutor(1, "url-trace")
        self._last: Future[None] | None = None

    def met(self, page_host: str, urls: Sequence[str]) -> None:
        """The links of one page, in their order."""
        if self.problem or not urls:
            return
        self._waiting.append(records(page_host, urls))
        self._count += len(urls)
        self.links += len(urls)
        if self._count >= AT_ONCE and (self._last is None or self._last.done()):
            self._hand_on()

    def close(self) -> None:
        """Write what waits; a second call does nothing."""
        if self._count:
            self._hand_on()
        self._thread.shutdown(wait=True)
        self._file.close()

    def _hand_on(self) -> None:
        found = np.concatenate(self._waiting) if self._waiting else np.empty(0, RECORD)
        self._waiting.clear()
        self._count = 0
        self._last = self._thread.submit(self._write, found)

    def _write(self, found: Records) -> None:
        try:
            self._file.write(zstandard.ZstdCompressor(level=LEVEL).compress(found.tobytes()))
            self._file.flush()
        except OSError as error:
            self.problem = f"the trace of links has ended: {error.strerror}"

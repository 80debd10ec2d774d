"""Writes the links of a crawl to a file as they are met, for `afresh lab urlcache`: compressed, off the event loop."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import zstandard

from afresh.errors import ConfigError
from afresh.frontier.trace import MAGIC, Records, records
from afresh.store.seen_journal import append_whole

AT_ONCE = 1 << 14  # links that are compressed together,
FLUSH_SECONDS = 3.0  # or what came in so long: a crawl that is killed loses no more
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
        self._lock, self._wake, self._closing = threading.Lock(), threading.Event(), False
        if path.exists() and not path.is_file():  # opening a pipe would wait for its reader
            raise ConfigError(f"{path} is no file.", hint="Choose another name for the trace.")
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
        self._thread = threading.Thread(target=self._keep_writing, name="url-trace", daemon=True)
        self._thread.start()

    def met(self, page_host: str, urls: Sequence[str]) -> None:
        """The links of one page, in their order."""
        if self.problem or not urls:
            return
        found = records(page_host, urls)
        with self._lock:
            self._waiting.append(found)
            self._count += len(urls)
        self.links += len(urls)
        if self._count >= AT_ONCE:
            self._wake.set()

    def close(self) -> None:
        """Write what waits; a second call does nothing."""
        self._closing = True
        self._wake.set()
        self._thread.join()
        self._file.close()

    def _keep_writing(self) -> None:
        while not self._closing:
            self._wake.wait(FLUSH_SECONDS)
            self._wake.clear()
            self._write_waiting()
        self._write_waiting()

    def _write_waiting(self) -> None:
        with self._lock:
            waiting, self._waiting, self._count = self._waiting, [], 0
        if waiting and not self.problem:
            self._write(np.concatenate(waiting))

    def _write(self, found: Records) -> None:
        try:
            # Half a frame would hide what a later crawl adds.
            append_whole(self._file.fileno(), zstandard.ZstdCompressor(level=LEVEL).compress(found.tobytes()))
        except OSError as error:
            self.problem = f"the trace of links has ended: {error.strerror}"

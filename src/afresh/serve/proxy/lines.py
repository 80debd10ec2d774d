"""Lines to a file or to standard output, written by a thread: whoever reads slowly holds up nobody."""

import sys
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import IO

MOST_WAITING = 100_000  # lines; more are dropped, and counted
EVERY = 0.25  # seconds


class LineWriter:
    """Takes lines; `write` neither waits nor raises."""

    def __init__(self, path: Path | None) -> None:
        self.dropped = 0
        self._path = path
        self._file: IO[str] | None = None if path is None else path.open("a", encoding="utf-8")
        self._waiting: deque[str] = deque()
        self._wake = threading.Event()
        self._anew = self._ended = False
        self._thread = threading.Thread(target=self._work, name="afresh-access-log", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """One more."""
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
        else:
            self._waiting.append(line)

    def again(self) -> None:
        """Open the file anew before the next line."""
        self._anew = True

    def close(self) -> None:
        """Write what is left, if that does not take long."""
        self._ended = True
        self._wake.set()
        self._thread.join(2.0)

    def _work(self) -> None:
        while not self._ended:
            self._wake.wait(EVERY)
            self._flush()
        self._flush()
        if self._file is not None:
            with suppress(OSError):
                self._file.close()

    def _flush(self) -> None:
        if self._anew and self._path is not None and self._file is not None:
            self._anew = False
            with suppress(OSError):
                self._file.close()
                self._file = self._path.open("a", encoding="utf-8")
        taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if taken:
            with suppress(OSError, ValueError):
                out = self._file if self._file is not None else sys.stdout
                out.write("\n".join(taken) + "\n")
                out.flush()

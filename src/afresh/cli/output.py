"""Standard output of a crawl, written by a thread of its own: a reader that is slow or asleep never holds up the crawl.

Lines wait in a bounded queue. Beyond its bound the newest are dropped and counted, and standard error says so.
"""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress

MAX_WAITING = 10_000  # lines that nobody has read yet; more are dropped
MAX_WAITING_BYTES = 16 << 20
AT_ONCE = 256  # lines in one write
CLOSE_SECONDS = 2.0  # for what is still to be written at the end


class Output:
    """Takes lines for standard output.

    Invariants: `write` neither waits nor raises; lines come out in order, each whole, unless they are dropped or the
    process ends in the middle of one.
    """

    def __init__(self, failed: Callable[[OSError], object], *, handle: int | None = None) -> None:
        """`failed` is called once, from another thread, if standard output cannot be written any more."""
        sys.stdout.flush()
        self.dropped = 0
        self.error: OSError | None = None  # why it cannot be written any more
        self._failed = failed
        self._handle = os.dup(sys.stdout.fileno() if handle is None else handle)
        self._waiting: deque[bytes] = deque()
        self._size = 0  # bytes that wait
        self._out = 0  # lines that are being written
        self._change = threading.Condition()
        self._ending = False
        self._thread = threading.Thread(target=self._work, name="afresh-output", daemon=True)
        self._thread.start()

    def write(self, text: str) -> bool:
        """Take in one line; False if there was no room for it."""
        line = (text + "\n").encode("utf-8", "backslashreplace")
        with self._change:
            if len(self._waiting) >= MAX_WAITING or self._size + len(line) > MAX_WAITING_BYTES:
                self.dropped += 1
                return False
            self._waiting.append(line)
            self._size += len(line)
            self._change.notify()
        return True

    def close(self) -> int:
        """Write what is left, for a while; how many lines were dropped in all."""
        with self._change:
            self._ending = True
            self._change.notify()
        self._thread.join(CLOSE_SECONDS)
        with self._change:
            return self.dropped + len(self._waiting) + self._out

    def _work(self) -> None:
        while True:
            with self._change:
                while not self._waiting and not self._ending:
                    self._change.wait()
                if not self._waiting:
                    break
                lines = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
                self._size -= sum(map(len, lines))
                self._out = len(lines)
            try:
                self._write_all(b"".join(lines))
            except OSError as error:
                self.error = error
                with suppress(RuntimeError):  # whoever wants to know is gone already
                    self._failed(error)
                break
            with self._change:
                self._out = 0
        os.close(self._handle)

    def _write_all(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._handle, rest) :]

"""The log of a run: written by a thread of its own, so that no disk and no reader of a pipe holds up the crawl."""

import errno
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from afresh.cli.log_lines import Fields, line, told
from afresh.daemon import Event
from afresh.errors import ConfigError

MAX_WAITING = 10_000  # lines that are not written yet; more are lost, and counted
MAX_WAITING_BYTES = 16 << 20
RETRY_SECONDS = 5.0  # between two attempts to open a log that was lost
CLOSE_SECONDS = 2.0  # for what is still to be written at the end
STANDARD_OUTPUT = "-"
_SQLITE = b"SQLite format 3\x00"
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


class Log:
    """A file, a pipe or standard output that takes one line for each event.

    Invariants: `write` neither waits nor raises; a line is written whole or is counted as lost, and how many were lost
    is said in the first line that can be written again. What cannot be written never stops the crawl.
    """

    def __init__(self, target: str, *, as_json: bool = False, clock: Callable[[], float] = time.time) -> None:
        """Open the log; ConfigError if that cannot be done now."""
        self.target = target
        self.as_json = as_json
        self.clock = clock
        self.lost = 0
        self._why = ""  # the last were lost
        self._handle: int | None = self._open()
        self._tried = 0.0
        self._broken_line = False  # a write ended in the middle of one
        self._waiting: deque[str] = deque()
        self._size = 0  # of what waits
        self._change = threading.Condition()
        self._reopening = self._ending = False
        self._thread = threading.Thread(target=self._work, name="afresh-log", daemon=True)
        self._thread.start()

    def write(self, event: str, fields: Fields) -> None:
        """Take in one event."""
        text = line(self.clock(), event, fields, as_json=self.as_json)
        with self._change:
            if len(self._waiting) >= MAX_WAITING or self._size + len(text) > MAX_WAITING_BYTES:
                self.lost += 1
                self._why = "they came faster than they could be written"
            else:
                self._waiting.append(text)
                self._size += len(text)
            self._change.notify()

    def reopen(self) -> None:
        """Open the file by its name again: an outside tool has moved it away."""
        with self._change:
            self._reopening = True
            self._change.notify()

    def close(self) -> None:
        """Write what is left, for a while."""
        with self._change:
            self._ending = True
            self._change.notify()
        self._thread.join(CLOSE_SECONDS)
        if not self._thread.is_alive() and self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _open(self) -> int:
        """A handle on the target; the errors that a person can do something about are ConfigErrors."""
        if self.target == STANDARD_OUTPUT:
            return os.dup(1)
        try:
            handle = os.open(Path(self.target).expanduser(), _FLAGS, 0o640)
        except OSError as error:
            reason = "nobody reads this pipe" if error.errno == errno.ENXIO else error.strerror
            raise ConfigError(
                f"The log {self.target} cannot be written: {reason}.",
                hint="Name a file in a folder that is there, or -.",
            ) from None
        try:
            self._require_log(handle)
        except BaseException:
            os.close(handle)
            raise
        os.set_blocking(handle, True)
        return handle

    def _require_log(self, handle: int) -> None:
        """A store that lines were appended to would be damaged."""
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return
        try:
            with Path(self.target).expanduser().open("rb") as file:
                begins = file.read(len(_SQLITE))
        except OSError:
            return  # it may be written and not read
        if begins == _SQLITE or self.target.endswith(("-wal", "-shm", "-lock")):
            raise ConfigError(f"{self.target} belongs to a store and is no log.", hint="Name another file.")

    def _work(self) -> None:
        while True:
            with self._change:
                while not (self._waiting or self._reopening or self._ending):
                    self._change.wait()
                lines, reopening, ending = list(self._waiting), self._reopening, self._ending
                self._waiting.clear()
                self._size = 0
                self._reopening = False
            if reopening or self._is_unlinked():
                self._open_again(at_once=reopening)
            self._write(lines)
            if ending and not self._waiting:
                return

    def _is_unlinked(self) -> bool:
        """Whether the file was removed: lines written to it would be lost."""
        if self._handle is None:
            return True
        held = os.fstat(self._handle)
        return stat.S_ISREG(held.st_mode) and held.st_nlink == 0

    def _open_again(self, *, at_once: bool) -> None:
        if self.target == STANDARD_OUTPUT or (not at_once and time.monotonic() - self._tried < RETRY_SECONDS):
            return
        self._tried = time.monotonic()
        try:
            handle = self._open()
        except ConfigError as error:
            self._why = error.message
            return
        if self._handle is not None:
            os.close(self._handle)
        self._handle, self._broken_line = handle, False

    def _write(self, lines: list[str]) -> None:
        if not lines:
            return
        lost, first = self.lost, []
        if lost:
            first = [line(self.clock(), "lost", {"lines": lost, "why": self._why}, as_json=self.as_json)]
        text = "\n" * self._broken_line + "".join(f"{each}\n" for each in (*first, *lines))
        content = text.encode("ascii", "backslashreplace")
        done = not self._is_unlinked() and self._write_all(content)
        with self._change:
            self.lost += -lost if done else len(lines)

    def _write_all(self, content: bytes) -> bool:
        """Whether all of it was written."""
        rest = memoryview(content)
        try:
            while rest and self._handle is not None:
                rest = rest[os.write(self._handle, rest) :]
        except OSError as error:
            self._why = error.strerror or str(error)
            if len(rest) < len(content):
                self._broken_line = content[len(content) - len(rest) - 1 : len(content) - len(rest)] != b"\n"
            if error.errno == errno.EPIPE and self.target != STANDARD_OUTPUT and self._handle is not None:
                os.close(self._handle)  # another reader may come
                self._handle = None
            return False
        self._broken_line = False
        return True


def write_to(log: Log, event: Event) -> None:
    """A listener that writes the daemon's events."""
    for name, fields in told(event):
        log.write(name, fields)

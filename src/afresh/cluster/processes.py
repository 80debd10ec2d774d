"""Workers as plain processes of this machine: quick to start, for one machine and for tests."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

AGAIN_SECONDS = 1.0  # between two starts of one worker
END_SECONDS = 15.0  # that a worker has to end in order


class Processes:
    """Keeps one process for each part; `command` says how one is started."""

    def __init__(self, command: Callable[[int], Sequence[str]], environment: dict[str, str] | None = None) -> None:
        self._command = command
        self._environment = {**os.environ, **(environment or {})}
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._started: dict[int, float] = {}

    def keep(self, parts: int, drained: frozenset[str], leased: frozenset[int]) -> None:
        """Start those that do not run."""
        for part in range(parts):
            process = self._running.get(part)
            if process is None and part in leased:
                continue  # one that somebody else began
            if (process is None or process.poll() is not None) and (
                time.monotonic() - self._started.get(part, -AGAIN_SECONDS) >= AGAIN_SECONDS
            ):
                self._started[part] = time.monotonic()
                self._running[part] = subprocess.Popen(  # noqa: S603 - our own program
                    list(self._command(part)), env=self._environment, stdin=subprocess.DEVNULL
                )

    def process(self, part: int) -> int | None:
        """The number of the process of a part; None if it does not run."""
        process = self._running.get(part)
        return None if process is None or process.poll() is not None else process.pid

    def close(self) -> None:
        """End all: in order, and by force where that takes too long."""
        for process in self._running.values():
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + END_SECONDS
        for process in self._running.values():
            try:
                process.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

"""Waiting for what other threads and processes do."""

import time
from collections.abc import Callable


def until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something holds; a test that waits for long has failed."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)

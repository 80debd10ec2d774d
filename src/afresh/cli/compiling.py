"""What a person sees while functions are compiled: nothing if none is, else how many have been so far."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.status import Status

from afresh.cli.terminal import errors

PATIENCE = 1.0  # seconds of compiling before it is worth a word
LINE_EVERY = 10.0  # seconds, where there is no terminal


class _Shown:
    """Counts functions that are compiled, and says so once that has taken a while."""

    def __init__(self, begins: Callable[[], object]) -> None:
        self.begins = begins
        self.began: float | None = None
        self.said = 0.0
        self.functions = 0
        self.told = False
        self.status: Status | None = None

    def hear(self, name: str) -> None:
        """A function begins to be compiled."""
        now = time.monotonic()
        self.began = self.began or now
        self.functions += 1
        if now - self.began < PATIENCE:
            return
        if not self.told:
            self.told = True
            self.begins()
        line = (
            f"Compiling for this machine, once, a minute or more: {self.functions} functions, {now - self.began:.0f} s"
        )
        if errors.is_terminal:
            if self.status is None:
                self.status = errors.status(line)
                self.status.start()
            self.status.update(line)
        elif now - self.said >= LINE_EVERY:
            self.said = now
            errors.print(line)

    def close(self) -> None:
        """All are compiled."""
        if self.status is not None:
            self.status.stop()


@contextmanager
def shown_compiling(begins: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Show what is compiled meanwhile on standard error; `begins` is called once it is worth a word."""
    from afresh.value.compiled import heard

    shown = _Shown(begins)
    try:
        with heard(shown.hear):
            yield
    finally:
        shown.close()

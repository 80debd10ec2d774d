"""Commands that work for long and keep nothing until the end: how they are stopped."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from afresh.cli.terminal import errors, outlive_pipes


class _Stopped(BaseException):
    """SIGTERM came."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stopped


@contextmanager
def stoppable() -> Iterator[None]:
    """End with one sentence and the usual exit code at Ctrl-C (130) and SIGTERM (143)."""
    before = signal.signal(signal.SIGTERM, _stop)
    outlive_pipes()  # of processes that are ended
    try:
        yield
    except (KeyboardInterrupt, _Stopped) as stopped:
        errors.print("afresh: Stopped; no result was written.")
        raise typer.Exit(143 if isinstance(stopped, _Stopped) else 130) from None
    finally:
        signal.signal(signal.SIGTERM, before)

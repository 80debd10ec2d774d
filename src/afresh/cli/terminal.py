"""What is printed for people: safe text, times, and the JSON of every command."""

import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from threading import Timer
from typing import NoReturn

from rich.console import Console

from afresh.units import as_json as as_json


class _Plain(Console):
    """Lets `main` end cleanly when the reader of our output is gone."""

    def on_broken_pipe(self) -> None:
        """Called while the error is being handled."""
        raise


# Long lines are left to the terminal: a line of ours must stay one line in a pipe.
console = _Plain(highlight=False, markup=False, soft_wrap=True)
errors = _Plain(stderr=True, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def working(what: str, patience: float = 2.0) -> Iterator[None]:
    """Show on standard error that something takes a while: a spinner on a terminal, else a line after `patience`."""
    if errors.is_terminal:
        with errors.status(f"{what} ..."):
            yield
        return
    notice = Timer(patience, errors.print, [f"{what} ..."])
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()


def plain(text: str, longest: int = 300) -> str:
    """Text from anywhere, without what could steer a terminal, and of bounded length.

    >>> plain("a\\x1b[31mred\\u202e")
    'a?[31mred?'
    """
    safe = "".join(character if character.isprintable() else "?" for character in text)
    return safe if len(safe) <= longest else safe[: longest - 1] + "…"


def moment(seconds: float | None) -> str:
    """A point in time for people, in UTC; "never" for none."""
    if seconds is None or not math.isfinite(seconds):
        return "never"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "never"


def now() -> float:
    """The time, for commands that look at a store once."""
    return time.time()


def read_by_a_pipe() -> None:
    """End at once and quietly when the reader of our output goes away (head, less), as other tools do."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def outlive_pipes() -> None:
    """Hear of a reader that went away as an error: for commands that have something to finish, or open sockets."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def output_failed(error: OSError) -> NoReturn:
    """Exit after an error of standard output: quietly if its reader went away, else with a sentence."""
    if isinstance(error, BrokenPipeError):
        read_by_a_pipe()
        os.kill(os.getpid(), signal.SIGPIPE)
    # What is left in the buffer cannot be written at the end either.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    with suppress(OSError):
        print(f"afresh: Standard output cannot be written: {error.strerror}.", file=sys.stderr)  # noqa: T201
    sys.exit(1)


def flush() -> None:
    """Write what is still in the buffer of standard output; an error now would be lost later."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()

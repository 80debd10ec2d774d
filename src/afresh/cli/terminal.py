"""What is printed for people: safe text, times, and the JSON of every command."""

import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from textwrap import wrap
from threading import Timer
from typing import NoReturn
from unicodedata import combining

from rich.console import Console

from afresh.errors import ConfigError
from afresh.units import as_json as as_json


class _Plain(Console):
    """Lets `main` end cleanly when the reader of our output is gone."""

    def on_broken_pipe(self) -> None:
        """Called while the error is being handled."""
        raise


MARKS = 4  # accents that one letter may carry; no language needs more
WIDTH = 80  # columns that what is printed for people fits on

# Long lines are left to the terminal: a line of ours must stay one line in a pipe.
console = _Plain(highlight=False, markup=False, soft_wrap=True)
errors = _Plain(stderr=True, highlight=False, markup=False, soft_wrap=True)


def write_file(path: Path, text: str) -> None:
    """Write a file, or standard output if it is called "-"; ConfigError says in one sentence why not."""
    if str(path) == "-":
        sys.stdout.write(text)
        return
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):  # such as /dev/null
            path.write_text(text, encoding="utf-8")
            return
        whole = path.with_name(f".{path.name[:200]}.{os.getpid()}")
        try:
            whole.write_text(text, encoding="utf-8")
            whole.replace(path)  # all of it or nothing
        finally:
            whole.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.", hint="Choose another file.") from None


def prepare_json(path: Path | None) -> None:
    """Say now, and not after the work, that a file cannot be written; "-" leaves standard output to the JSON alone."""
    if path is not None:
        if str(path) != "-":
            _check_writable(path)
        console.stderr = console.stderr or str(path) == "-"


def _check_writable(path: Path) -> None:
    if path.is_dir():
        raise ConfigError(f"{path} cannot be written: Is a directory.", hint="Choose another file.")
    if not path.parent.is_dir():
        raise ConfigError(f"{path} cannot be written: No such file or directory.", hint="Choose another file.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ConfigError(f"{path} cannot be written: Permission denied.", hint="Choose another file.")


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
    >>> plain("e" + 9 * "\\u0301") == "e" + MARKS * "\\u0301"
    True
    """
    safe = "".join(character if character.isprintable() else "?" for character in text)
    if not safe.isascii():  # marks upon marks would grow over the lines above and below
        safe = "".join(
            character
            for nth, character in enumerate(safe)
            if not (combining(character) and all(map(combining, safe[max(nth - MARKS, 0) : nth])))
        )
    return safe if len(safe) <= longest else safe[: longest - 1] + "…"


def labelled(label: str, text: str, indent: int = 12) -> str:
    """A label and a text beside it, in lines of at most 80 columns; only what has no blank in it may be longer.

    >>> print(labelled("why", "because " * 12))
    why         because because because because because because because because
                because because because because
    """
    lines = wrap(text, WIDTH - indent, break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join(f"{'' if nth else label:{indent}}{line}" for nth, line in enumerate(lines))


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


def show_address(where: tuple[str, int]) -> str:
    """An address and port as in a URL.

    >>> show_address(("::1", 80))
    '[::1]:80'
    """
    host, port = where
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

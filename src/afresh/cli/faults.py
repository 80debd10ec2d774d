"""Faults of our own and warnings during a live display: they go to the log, or are shown after the display ends."""

import asyncio
import logging
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from afresh.cli.log import Log
from afresh.cli.log_lines import fault
from afresh.cli.terminal import errors, labelled, plain
from afresh.units import show_count

_OURS = logging.getLogger("afresh")


class Faults(logging.Handler):
    """Takes what asyncio and `logging` would print in the middle of everything.

    With a log each has a line there, a fault with its trace; without one they are counted, and the last of each kind
    is told at the end.
    """

    def __init__(self, log: Log | None) -> None:
        super().__init__(logging.WARNING if log is None else logging.INFO)
        self.log = log
        self.faults = 0
        self.warnings = 0
        self._fault = ""
        self._warning = ""

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self)
        self._level = _OURS.level
        if self.log is not None:
            _OURS.setLevel(logging.INFO)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger().removeHandler(self)
        _OURS.setLevel(self._level)
        if error is not None and self.log is not None:
            self.log.write("fault", fault("the run ended", error))

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hear what a task or a callback failed with."""
        loop.set_exception_handler(self._hear)

    def _hear(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._note(str(context.get("message", "")), context.get("exception"))

    def _note(self, message: str, error: BaseException | None) -> None:
        self.faults += 1
        self._fault = f"{message}: {_where(error)}" if error is not None else message
        if self.log is not None:
            self.log.write("fault", fault(message, error))

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record of `logging`."""
        message = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            self._note(message, record.exc_info[1])
            return
        is_warning = record.levelno >= logging.WARNING
        if is_warning:
            self.warnings += 1
            self._warning = message
        if self.log is not None:
            self.log.write("warning" if is_warning else "note", {"message": message, "from": record.name})

    def say(self, message: str, *, refused: bool = False) -> None:
        """Report that a request was carried out, or could not be: to the log, and to the terminal.

        Whoever asked for it looks at the terminal first.
        """
        if self.log is not None:
            self.log.write("warning" if refused else "note", {"message": message})
        errors.print(labelled("", plain(message), 0))

    def tell(self) -> None:
        """Say what happened, once the display has ended."""
        where = f"see {self.log.target}" if self.log is not None else "--log FILE keeps their traces"
        if self.faults:
            many = "1 fault" if self.faults == 1 else f"{self.faults:,} faults"
            errors.print(f"{many} in afresh itself, the last: {plain(self._fault)} ({where})")
        if self.log is not None and self.log.lost:
            errors.print(f"{show_count(self.log.lost, 'line')} of the log could not be written.")
        if self.warnings and self.log is None:
            many = "1 warning" if self.warnings == 1 else f"{self.warnings:,} warnings, the last"
            errors.print(f"{many}: {plain(self._warning)}")


def _where(error: BaseException) -> str:
    """An error and the line that it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{place}"

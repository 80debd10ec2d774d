"""Messages to a command: JSON on its standard input. No shell reads what a page says."""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress

from afresh.notify.channels.base import DEADLINE, Undelivered
from afresh.notify.message import Letter
from afresh.reading.title import one_line

MAX_ERRORS = 2_000  # bytes of what it writes to standard error
KILL_SECONDS = 2.0  # until what was ended is gone


class Command:
    """A program and its arguments. One that does not end in time is ended, with all that it has begun."""

    def __init__(self, words: Sequence[str], seconds: float = DEADLINE) -> None:
        self.words, self.seconds = tuple(words), seconds

    async def send(self, letter: Letter) -> None:
        """Run it with the letter."""
        said = {"AFRESH_RULE": letter.rule, "AFRESH_ID": letter.id, "AFRESH_SUBJECT": letter.subject}
        try:
            process = await asyncio.create_subprocess_exec(
                *self.words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                env={**os.environ, **said},
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise Undelivered(f"{self.words[0][:80]} cannot be run: {why}") from None
        errors = bytearray()
        try:
            async with asyncio.timeout(self.seconds):
                await asyncio.gather(_feed(process, letter.to_json()), _listen(process, errors))
                code = await process.wait()
        except TimeoutError:
            raise Undelivered(f"{self.words[0][:80]} did not end in {self.seconds:g} s, and was ended") from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # what it has begun and left behind, too
            with suppress(TimeoutError):
                async with asyncio.timeout(KILL_SECONDS):
                    await process.wait()
        if code:
            why = one_line(errors.decode("utf-8", "replace"), 200)
            raise Undelivered(f"{self.words[0][:80]} ended with {code}{f': {why}' if why else ''}")

    async def close(self) -> None:
        """Nothing stays open."""


async def _feed(process: asyncio.subprocess.Process, body: bytes) -> None:
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    with suppress(BrokenPipeError, ConnectionResetError):  # it need not read
        process.stdin.write(body)
        await process.stdin.drain()
    process.stdin.close()


async def _listen(process: asyncio.subprocess.Process, errors: bytearray) -> None:
    """Read what it says until the end, and keep the beginning."""
    assert process.stderr is not None  # noqa: S101 - it is a pipe
    while piece := await process.stderr.read(1 << 14):
        errors.extend(piece[: max(MAX_ERRORS - len(errors), 0)])

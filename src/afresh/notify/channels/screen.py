"""Messages on standard output, for a person who looks on: `afresh watch`."""

import asyncio
import sys
from datetime import UTC, datetime
from textwrap import fill

from afresh.notify.channels.base import Undelivered
from afresh.notify.message import Letter

WIDTH = 80  # columns


class Screen:
    """Standard output. A reader who is gone, or does not read, holds up nobody else."""

    async def send(self, letter: Letter) -> None:
        """Print it."""
        when = datetime.fromtimestamp(letter.items[0].time if letter.items else letter.made, UTC)
        lines = f"{when:%H:%M:%S UTC}  {letter.text}".splitlines()
        text = "\n".join(fill(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False) for line in lines) + "\n"
        try:
            await asyncio.to_thread(_print, text)
        except OSError as error:
            raise Undelivered(f"standard output cannot be written: {error.strerror}") from None

    async def close(self) -> None:
        """It stays open."""


def _print(text: str) -> None:
    print(text, flush=True, file=sys.stdout)  # noqa: T201

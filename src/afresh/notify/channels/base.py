"""What every channel promises, and where secrets are found."""

import os
from pathlib import Path
from typing import Protocol

from afresh.notify.message import Letter

DEADLINE = 30.0  # seconds that one attempt may take, all in all
MAX_SECRET = 10_000  # bytes


class Undelivered(Exception):
    """It did not arrive, and why; `refused`: the receiver has answered, and does not want it."""

    def __init__(self, problem: str, *, retry_after: float | None = None, refused: bool = False) -> None:
        super().__init__(problem)
        self.problem, self.retry_after, self.refused = problem, retry_after, refused


class Channel(Protocol):
    """Carries letters. It keeps the deadline, whatever the other side does, and names no secret in what goes wrong."""

    async def send(self, letter: Letter) -> None:
        """Deliver it; Undelivered says why not."""

    async def close(self) -> None:
        """Let go of connections."""


def secret_in(text: str) -> str:
    """What a setting means: itself, or what `$NAME` holds in the environment, or the first line of `@FILE`.

    Undelivered names where it should be, never what it is.
    """
    if text.startswith("$"):
        found = os.environ.get(text[1:])
        if not found:
            raise Undelivered(f"there is no {text[:80]} in the environment")
        return found
    if text.startswith("@"):
        try:
            with Path(text[1:]).expanduser().open(encoding="utf-8") as file:
                return file.readline(MAX_SECRET).strip()
        except (OSError, UnicodeDecodeError):
            raise Undelivered(f"the file {text[1:][:80]} cannot be read") from None
    return text

"""What the runners ask of a fetcher."""

from typing import Protocol

from afresh.types import Fetched, Validators


class Fetcher(Protocol):
    """Gets one page. Every outcome, good or bad, is a `Fetched`; nothing is raised but cancellation."""

    async def fetch(self, url: str, known: Validators) -> Fetched:
        """Get the page, or hear that it is still what we `known` it to be."""

    async def close(self) -> None:
        """Let go of all connections."""

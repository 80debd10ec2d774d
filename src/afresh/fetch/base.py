"""What the runners ask of a fetcher."""

from collections.abc import Callable
from typing import Protocol

from afresh.types import Fetched, Validators


class Fetcher(Protocol):
    """Gets one page. Every outcome, good or bad, is a `Fetched`; nothing is raised but cancellation."""

    async def fetch(self, url: str, known: Validators, *, beginning: int = 0) -> Fetched:
        """Get the page, or hear that it is still what we `known` it to be; so many bytes are enough, 0: all of it."""

    async def fetch_while(self, url: str, known: Validators, may: Callable[[str], bool], *, most: int = 0) -> Fetched:
        """The same, but a redirect is followed only to where it `may`; any other is itself what came of the fetch.

        Such a redirect has the status of a redirect, and its target in `location`. The URL must be written as it is
        sent: permission was given for exactly these bytes. `most` bytes may come, where that is more than usual.
        """

    async def post(self, url: str, form: bytes) -> Fetched:
        """Post a form, and follow redirects with it."""

    async def address(self, url: str) -> str:
        """The numeric address that the page's host is reached at, the same for all its names; "" if there is none."""

    async def close(self) -> None:
        """Let go of all connections."""

"""A fetcher that answers from a script: for tests and examples, and it ships so that users' tests can use it too."""

from collections.abc import Callable

from afresh.types import Fetched, Validators


class Scripted:
    """Answers every URL by calling `answer(url, known)`; keeps the list of what was asked.

    >>> import asyncio
    >>> scripted = Scripted(lambda url, known: Fetched(url, started=0.0, took=0.0, status=404))
    >>> asyncio.run(scripted.fetch("http://example.com/", Validators())).status, scripted.asked
    (404, ['http://example.com/'])
    """

    def __init__(self, answer: Callable[[str, Validators], Fetched]) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def fetch(self, url: str, known: Validators, *, beginning: int = 0) -> Fetched:
        """Look the answer up."""
        self.asked.append(url)
        return self.answer(url, known)

    async def fetch_while(self, url: str, known: Validators, may: Callable[[str], bool], *, most: int = 0) -> Fetched:
        """The same: what the script says is what is found."""
        return await self.fetch(url, known)

    async def post(self, url: str, form: bytes) -> Fetched:
        """The same, whatever the form says."""
        return await self.fetch(url, Validators())

    async def address(self, url: str) -> str:
        """A script has no address."""
        return ""

    async def close(self) -> None:
        """Nothing to let go of."""

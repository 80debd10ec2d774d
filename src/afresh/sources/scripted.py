"""A source that answers from a script: for tests and examples, and it ships so that users' tests can use it too."""

from collections.abc import Callable

from afresh.sources.base import MAX_KEY, PURSE, Known, Later
from afresh.types import Fetched


class Scripted:
    """Answers every key by calling `answer(key, known)`; keeps the list of what was asked.

    Its keys are `KIND:LANE/NAME`.

    >>> import asyncio
    >>> from afresh.types import Answer
    >>> source = Scripted(lambda key, known: Fetched(key, 0.0, 0.0, answer=Answer.GONE))
    >>> asyncio.run(source.get("script:a/1", Known())).answered.value, source.lane("script:a/1"), source.asked
    ('gone', 'script:a', ['script:a/1'])
    """

    def __init__(
        self, answer: Callable[[str, Known], Fetched | Later], *, kind: str = "script", purse: str = PURSE
    ) -> None:
        self.answer = answer
        self.kind = kind
        self.asked: list[str] = []
        self._purse = purse

    def key(self, text: str) -> str | None:
        """The text itself, if it begins with our kind."""
        own = text.startswith(f"{self.kind}:") and len(text) <= MAX_KEY and text.isprintable()
        return text if own else None

    def lane(self, key: str) -> str:
        """What comes before the first slash."""
        return key.partition("/")[0]

    def purse(self, key: str) -> str:
        """One for all."""
        return self._purse

    async def get(self, key: str, known: Known) -> Fetched | Later:
        """Look the answer up."""
        self.asked.append(key)
        return self.answer(key, known)

    async def close(self) -> None:
        """Nothing to let go of."""
